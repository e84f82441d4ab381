//! Inference about a mean from a handful of independent values: Student's t (Student 1908; R's `t.test`).
//!
//! Values are one a trial or one a block, never one a request: requests of one trial are not independent.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Interval;

/// What a sample says about the mean behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    pub count: usize,
    pub mean: f64,
    /// `s / sqrt(n)`, where `s` is the sample's standard deviation with `n - 1` in its denominator.
    pub standard_error: f64,
}

impl Mean {
    /// `None` with fewer than two values, or where one is not finite.
    pub fn of(values: &[f64]) -> Option<Mean> {
        if values.len() < 2 || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        // The second pass removes what rounding left of the first, so that equal values have a deviation of exactly 0.
        let first = values.iter().sum::<f64>() / count;
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Mean {
            count: values.len(),
            mean,
            standard_error: (squares / (count - 1.0) / count).sqrt(),
        })
    }

    /// Half the width of the two-sided 95 % interval: `t(0.975, n - 1) * s / sqrt(n)`.
    pub fn half_width_95(&self) -> f64 {
        student_quantile(0.975, self.degrees()) * self.standard_error
    }

    /// The two-sided 95 % interval of the mean.
    pub fn interval_95(&self) -> Interval {
        let half_width = self.half_width_95();
        Interval {
            low: self.mean - half_width,
            high: self.mean + half_width,
        }
    }

    /// The one-sided 95 % upper bound of the mean: `mean + t(0.95, n - 1) * s / sqrt(n)`.
    pub fn upper_bound_95(&self) -> f64 {
        self.mean + student_quantile(0.95, self.degrees()) * self.standard_error
    }

    /// The two-sided p-value of the hypothesis that the mean is 0.
    pub fn p_value(&self) -> f64 {
        two_sided_p_value(self.mean, self.standard_error, self.degrees())
    }

    fn degrees(&self) -> f64 {
        self.count.saturating_sub(1) as f64
    }
}

/// The quantile `probability` of Student's t with `degrees` of freedom, relative error below 1e-12 up to 1,000 degrees
/// and below 1e-5 up to 100,000. Infinite with no degree of freedom: nothing is known.
pub(crate) fn student_quantile(probability: f64, degrees: f64) -> f64 {
    student(degrees).map_or(f64::INFINITY, |student| student.inverse_cdf(probability))
}

/// The two-sided p-value of the hypothesis that what was estimated as `estimate` is 0.
pub(crate) fn two_sided_p_value(estimate: f64, standard_error: f64, degrees: f64) -> f64 {
    if estimate == 0.0 {
        return 1.0;
    }
    if standard_error == 0.0 {
        return 0.0;
    }
    let t = (estimate / standard_error).abs();
    student(degrees).map_or(1.0, |student| 2.0 * student.sf(t))
}

fn student(degrees: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_and_not_a_number_say_nothing_of_a_mean() {
        assert_eq!(Mean::of(&[1.0]), None);
        assert_eq!(Mean::of(&[1.0, f64::NAN]), None);
        assert_eq!(Mean::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let mean = Mean::of(&[0.1; 7]).unwrap();
        assert_eq!(
            mean.interval_95(),
            Interval {
                low: 0.1,
                high: 0.1
            }
        );
        assert_eq!(mean.upper_bound_95(), 0.1);
        assert_eq!(mean.p_value(), 0.0);
        assert_eq!(Mean::of(&[0.0; 7]).unwrap().p_value(), 1.0);
    }

    #[test]
    fn nothing_is_known_with_no_degree_of_freedom() {
        assert_eq!(student_quantile(0.975, 0.0), f64::INFINITY);
    }
}
