//! Trials that stand apart, to be marked and looked into. Nothing is discarded for standing apart.

use crate::summary::median;

/// Beyond this many robust standard deviations a value stands apart (Iglewicz and Hoaglin 1993).
const LIMIT: f64 = 3.5;

/// The median absolute deviation of normal values is this share of their standard deviation.
pub(crate) const NORMAL_MEDIAN_DEVIATION: f64 = 0.674_489_750_196_081_7;

/// The mean absolute deviation likewise: `sqrt(2 / pi)`.
const NORMAL_MEAN_DEVIATION: f64 = 0.797_884_560_802_865_4;

/// A value that stands apart from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    pub index: usize,
    /// How many robust standard deviations it lies above the median; negative: below.
    pub modified_z: f64,
}

/// The values with a modified z-score beyond 3.5: `0.6745 (x - median) / MAD`. Where more than half of the values are
/// equal, so that the MAD is 0, the mean absolute deviation takes its place. `None` where there is no value, or one is
/// not finite.
pub fn outliers(values: &[f64]) -> Option<Vec<Outlier>> {
    let scores = modified_z_scores(values)?;
    let apart = scores
        .into_iter()
        .enumerate()
        .filter(|(_, modified_z)| modified_z.abs() > LIMIT)
        .map(|(index, modified_z)| Outlier { index, modified_z });
    Some(apart.collect())
}

fn modified_z_scores(values: &[f64]) -> Option<Vec<f64>> {
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let median_deviation = median(&deviations)?;
    let mean_deviation = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let scale = if median_deviation > 0.0 {
        median_deviation / NORMAL_MEDIAN_DEVIATION
    } else if mean_deviation > 0.0 {
        mean_deviation / NORMAL_MEAN_DEVIATION
    } else {
        return Some(vec![0.0; values.len()]);
    };
    Some(
        values
            .iter()
            .map(|value| (value - centre) / scale)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_far_from_the_others_is_marked_with_its_distance() {
        let marked = outliers(&[100.0, 101.0, 99.0, 102.0, 98.0, 60.0]).unwrap();
        assert_eq!(marked.len(), 1);
        assert_eq!(marked[0].index, 5);
        // Median 99.5, MAD 1.5.
        assert!((marked[0].modified_z + 0.674_489_75 * 39.5 / 1.5).abs() < 1e-6);
    }

    #[test]
    fn ordinary_scatter_is_not_marked() {
        assert_eq!(outliers(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(vec![]));
        assert_eq!(outliers(&[7.0; 4]), Some(vec![]));
    }

    #[test]
    fn a_trial_apart_from_equal_ones_is_marked() {
        let mut values = [10.0; 9].to_vec();
        values.push(11.0);
        let marked = outliers(&values).unwrap();
        assert_eq!(
            marked
                .iter()
                .map(|outlier| outlier.index)
                .collect::<Vec<_>>(),
            [9]
        );
    }

    #[test]
    fn nothing_and_not_a_number_cannot_be_judged() {
        assert_eq!(outliers(&[]), None);
        assert_eq!(outliers(&[1.0, f64::NAN]), None);
    }
}
