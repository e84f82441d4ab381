//! Many questions asked of the same data.

/// Holm's step-down adjustment (Holm 1979; R's `p.adjust(method = "holm")`): rejecting where the adjusted p-value is at
/// most 5 % keeps the probability of any false rejection among all of them at 5 %, however they depend on each other.
/// In the order given. `None` where a value is not a probability.
pub fn holm(p_values: &[f64]) -> Option<Vec<f64>> {
    if !p_values.iter().all(|p_value| (0.0..=1.0).contains(p_value)) {
        return None;
    }
    let mut ascending: Vec<usize> = (0..p_values.len()).collect();
    ascending.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut greatest: f64 = 0.0;
    for (rejected, &index) in ascending.iter().enumerate() {
        let remaining = (p_values.len() - rejected) as f64;
        greatest = greatest.max(remaining * p_values[index]).min(1.0);
        adjusted[index] = greatest;
    }
    Some(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_multiplied_by_the_number_of_questions() {
        let adjusted = holm(&[0.04, 0.001, 0.03]).unwrap();
        let expected = [0.06, 0.003, 0.06];
        assert!(
            adjusted
                .iter()
                .zip(expected)
                .all(|(a, e)| (a - e).abs() < 1e-15),
            "{adjusted:?}"
        );
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        assert_eq!(holm(&[0.5, 1.5]), None);
        assert_eq!(holm(&[f64::NAN]), None);
        assert_eq!(holm(&[]), Some(vec![]));
    }
}
