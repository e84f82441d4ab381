//! Percentiles of raw values.

/// The nearest-rank percentile: the smallest value that at least `quantile` (0 to 1) of all values do not exceed, i.e.
/// the value of rank `ceil(quantile * n)` (Hyndman and Fan 1996, definition 1). Always a value that was observed.
/// `sorted` is in ascending order. `None` where it is empty, or the quantile is not from 0 to 1.
pub fn nearest_rank<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    sorted.get(rank(sorted.len(), quantile)?).copied()
}

/// The index of the nearest-rank percentile among `count` sorted values.
pub(crate) fn rank(count: usize, quantile: f64) -> Option<usize> {
    if count == 0 || !(0.0..=1.0).contains(&quantile) {
        return None;
    }
    // Taking off a millionth of a value undoes the rounding of products such as 0.07 * 100.
    let rank = (quantile * count as f64 - 1e-6).ceil().max(1.0) as usize;
    Some(rank.min(count) - 1)
}

/// The lower and the upper quartile, linear between neighbours (Hyndman and Fan 1996, definition 7: R's default).
/// `None` where there is no value, or one is not finite.
pub(crate) fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let position = quantile * (sorted.len() - 1) as f64;
        let (below, above) = (
            sorted[position.floor() as usize],
            sorted[position.ceil() as usize],
        );
        below + (above - below) * position.fract()
    };
    Some((at(0.25), at(0.75)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_rounded_up() {
        let sorted = [15, 20, 35, 40, 50];
        assert_eq!(nearest_rank(&sorted, 0.30), Some(20));
        assert_eq!(nearest_rank(&sorted, 0.40), Some(20));
        assert_eq!(nearest_rank(&sorted, 0.41), Some(35));
        assert_eq!(nearest_rank(&sorted, 0.0), Some(15));
        assert_eq!(nearest_rank(&sorted, 1.0), Some(50));
    }

    #[test]
    fn rounding_of_a_product_does_not_raise_the_rank() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(nearest_rank(&sorted, 0.07), Some(7));
        let sorted: Vec<u32> = (1..=100_000).collect();
        assert_eq!(nearest_rank(&sorted, 0.999), Some(99_900));
    }

    #[test]
    fn nothing_and_an_impossible_quantile_have_no_percentile() {
        assert_eq!(nearest_rank::<u32>(&[], 0.5), None);
        assert_eq!(nearest_rank(&[1], 1.5), None);
        assert_eq!(nearest_rank(&[1], f64::NAN), None);
    }
}
