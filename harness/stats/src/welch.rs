//! The difference of two means whose values are not paired: Welch's t (Welch 1947; SciPy's
//! `ttest_ind(equal_var=False)`), and the bootstrap-t beside it (Efron and Tibshirani 1993, section 16.2).

use crate::bootstrap::{RESAMPLES, of_pivots};
use crate::interval::Interval;
use crate::mean::{Mean, student_quantile, two_sided_p_value};
use crate::random::Random;

/// The mean of one sample less the mean of another. The samples may differ in size and in spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub difference: f64,
    /// `sqrt(s1^2 / n1 + s2^2 / n2)`.
    pub standard_error: f64,
    /// Of freedom, by Welch and Satterthwaite: seldom a whole number.
    pub degrees: f64,
}

impl Difference {
    /// `None` where either sample has fewer than two values, or a value is not finite.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Difference> {
        Some(Difference::between(&Mean::of(a)?, &Mean::of(b)?))
    }

    fn between(a: &Mean, b: &Mean) -> Difference {
        let (of_a, of_b) = (a.standard_error.powi(2), b.standard_error.powi(2));
        let both = of_a + of_b;
        let term = |part: f64, count: usize| part.powi(2) / (count as f64 - 1.0);
        let degrees = if both > 0.0 {
            both.powi(2) / (term(of_a, a.count) + term(of_b, b.count))
        } else {
            // Without any spread the degrees make no difference to the interval, which has no width.
            (a.count + b.count) as f64 - 2.0
        };
        Difference {
            difference: a.mean - b.mean,
            standard_error: both.sqrt(),
            degrees,
        }
    }

    /// The two-sided 95 % interval of the difference.
    pub fn interval_95(&self) -> Interval {
        let half_width = if self.standard_error > 0.0 {
            student_quantile(0.975, self.degrees) * self.standard_error
        } else {
            0.0
        };
        Interval {
            low: self.difference - half_width,
            high: self.difference + half_width,
        }
    }

    /// The two-sided p-value of the hypothesis that the means are equal.
    pub fn p_value(&self) -> f64 {
        two_sided_p_value(self.difference, self.standard_error, self.degrees)
    }
}

/// The two-sided 95 % bootstrap-t interval of the difference of the means; each sample is resampled by itself.
/// `None` as [`Difference::of`].
pub(crate) fn bootstrap_t_of_difference(a: &[f64], b: &[f64], seed: u64) -> Option<Interval> {
    let observed = Difference::of(a, b)?;
    let mut random = Random::seeded(seed);
    let (mut of_a, mut of_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    let mut pivots = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for (slots, values) in [(&mut of_a, a), (&mut of_b, b)] {
            for slot in slots {
                *slot = values[random.below(values.len())];
            }
        }
        let resampled = Difference::of(&of_a, &of_b)?;
        if resampled.standard_error > 0.0 {
            pivots.push((resampled.difference - observed.difference) / resampled.standard_error);
        }
    }
    Some(of_pivots(
        pivots,
        observed.difference,
        observed.standard_error,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_and_not_a_number_say_nothing_of_a_difference() {
        assert_eq!(Difference::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Difference::of(&[1.0, 2.0], &[1.0, f64::NAN]), None);
    }

    #[test]
    fn samples_without_spread_have_an_interval_of_no_width() {
        let difference = Difference::of(&[0.3; 4], &[0.1; 3]).unwrap();
        let interval = difference.interval_95();
        assert_eq!(interval.low, interval.high);
        assert_eq!(difference.p_value(), 0.0);
        assert_eq!(Difference::of(&[0.3; 4], &[0.3; 3]).unwrap().p_value(), 1.0);
    }

    #[test]
    fn the_bootstrap_agrees_with_welch_where_the_values_are_well_behaved() {
        let a: Vec<f64> = (0..20).map(|i| f64::from(i).sin() / 50.0).collect();
        let b: Vec<f64> = (0..15).map(|i| f64::from(i).cos() / 30.0).collect();
        let welch = Difference::of(&a, &b).unwrap().interval_95();
        let bootstrap = bootstrap_t_of_difference(&a, &b, 1).unwrap();
        assert!((welch.low - bootstrap.low).abs() < 0.004, "{bootstrap:?}");
        assert!((welch.high - bootstrap.high).abs() < 0.004, "{bootstrap:?}");
    }
}
