//! Order statistics of a handful of trials.

/// The median with the range it came from. A handful of trials is too few for an interval to mean much, so the
/// whole range is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub greatest: f64,
}

impl Spread {
    /// `None` where there is no value, or where one is not a number.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let median = median(values)?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Spread {
            median,
            least,
            greatest,
        })
    }

    /// Half of the range as a share of the median: 0.02 reads as "plus or minus 2 %".
    pub fn half_range(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            (self.greatest - self.least) / 2.0 / self.median
        }
    }
}

/// The middle value, or the mean of the two middle ones. `None` where there is no value, or one is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        Some(sorted[middle])
    } else {
        Some((sorted[middle - 1] + sorted[middle]) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn nothing_and_not_a_number_have_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn a_spread_keeps_the_whole_range() {
        let spread = Spread::of(&[98.0, 100.0, 104.0]).unwrap();
        assert_eq!(
            (spread.median, spread.least, spread.greatest),
            (100.0, 98.0, 104.0)
        );
        assert!((spread.half_range() - 0.03).abs() < 1e-12);
    }
}
