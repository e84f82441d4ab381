//! Two servers compared: the ratio, how sure it is, and what may be said of it.

use crate::bootstrap::bootstrap_t;
use crate::holm::holm;
use crate::interval::Interval;
use crate::mean::Mean;
use crate::noise::NoiseFloor;
use crate::welch::{Difference, bootstrap_t_of_difference};
use crate::wilcoxon::{SignedRank, hodges_lehmann, hodges_lehmann_shift};

/// Ratios up to 3 % in either direction make no difference to a user.
const EQUIVALENT_WITHIN: f64 = 1.03;

/// The family-wise error rate of questions that are asked together.
const SIGNIFICANCE: f64 = 0.05;

/// `ln(a / b)` of one block. `None` unless both are finite and above 0: a ratio needs two measured values.
pub fn log_ratio(a: f64, b: f64) -> Option<f64> {
    let measured = a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite();
    measured.then(|| a.ln() - b.ln())
}

/// What the blocks say about the ratio of server a to server b in one metric. All figures are ratios, not logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Of the smaller sample, where the blocks are not paired.
    pub blocks: usize,
    /// The geometric mean of the blocks' ratios; the ratio of the geometric means is the same.
    pub ratio: f64,
    /// Student's t on the logarithms: `exp(mean d +- t(0.975, n - 1) s / sqrt(n))`, 95 %. Welch's t where the blocks are
    /// not paired.
    pub interval: Interval,
    /// The bootstrap-t over blocks, 95 %.
    pub bootstrap: Interval,
    /// Student's t or Welch's, two-sided, of the hypothesis that the ratio is 1.
    pub p_value: f64,
    /// Wilcoxon's signed-rank test of the same hypothesis: a check of the others, never part of a verdict. `None`
    /// where the blocks are not paired.
    pub signed_rank: Option<SignedRank>,
    /// The Hodges-Lehmann estimate of the ratio: likewise.
    pub hodges_lehmann: f64,
}

impl Comparison {
    /// From `ln(a / b)` of each block; the seed is the bootstrap's. `None` with fewer than two blocks, or where a value
    /// is not finite.
    pub fn of(log_ratios: &[f64], seed: u64) -> Option<Comparison> {
        let mean = Mean::of(log_ratios)?;
        Some(Comparison {
            blocks: mean.count,
            ratio: mean.mean.exp(),
            interval: mean.interval_95().exp(),
            bootstrap: bootstrap_t(log_ratios, seed)?.exp(),
            p_value: mean.p_value(),
            signed_rank: Some(SignedRank::of(log_ratios)?),
            hodges_lehmann: hodges_lehmann(log_ratios)?.exp(),
        })
    }

    /// From the figures of two servers that were not measured side by side, as logarithms: `ln a` of each block of the
    /// one, `ln b` of each of the other. `None` as [`Comparison::of`].
    pub fn unpaired(logs_of_a: &[f64], logs_of_b: &[f64], seed: u64) -> Option<Comparison> {
        let difference = Difference::of(logs_of_a, logs_of_b)?;
        Some(Comparison {
            blocks: logs_of_a.len().min(logs_of_b.len()),
            ratio: difference.difference.exp(),
            interval: difference.interval_95().exp(),
            bootstrap: bootstrap_t_of_difference(logs_of_a, logs_of_b, seed)?.exp(),
            p_value: difference.p_value(),
            signed_rank: None,
            hodges_lehmann: hodges_lehmann_shift(logs_of_a, logs_of_b)?.exp(),
        })
    }

    /// Whether only one of the two intervals leaves room for no difference at all.
    pub fn intervals_disagree(&self) -> bool {
        self.interval.contains(1.0) != self.bootstrap.contains(1.0)
    }
}

/// Which values of a metric are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Response times, CPU per request.
    Lower,
}

/// What may be said of server a beside server b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies beyond the noise floor, on the better side. For CPU per request read "cheaper".
    Faster,
    /// The whole interval lies beyond the noise floor, on the worse side.
    Slower,
    /// The whole interval lies within 3 % of no difference.
    Equivalent,
    /// None of these is shown. It does not mean that the servers are equal.
    Inconclusive,
}

/// A comparison with what it takes to judge it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    pub comparison: Comparison,
    pub better: Better,
    pub noise_floor: NoiseFloor,
}

impl Question {
    /// The verdict on a single question that was named beforehand. Swapping the servers swaps faster and slower.
    pub fn verdict(&self) -> Verdict {
        let interval = self.comparison.interval;
        let floor = self.noise_floor.ratio();
        if self.comparison.intervals_disagree() {
            Verdict::Inconclusive
        } else if interval.low > floor {
            match self.better {
                Better::Higher => Verdict::Faster,
                Better::Lower => Verdict::Slower,
            }
        } else if interval.high < 1.0 / floor {
            match self.better {
                Better::Higher => Verdict::Slower,
                Better::Lower => Verdict::Faster,
            }
        } else if interval.low >= 1.0 / EQUIVALENT_WITHIN && interval.high <= EQUIVALENT_WITHIN {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }
}

/// The verdict on one of several questions, with the p-value that Holm's adjustment leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FamilyVerdict {
    pub adjusted_p_value: f64,
    pub verdict: Verdict,
}

/// The verdicts on questions that are asked together, such as all secondary metrics of one rung, in the order given: a
/// difference counts only if it also survives Holm's adjustment over all of them.
pub fn family_verdicts(questions: &[Question]) -> Vec<FamilyVerdict> {
    let p_values: Vec<f64> = questions
        .iter()
        .map(|question| question.comparison.p_value)
        .collect();
    // Refused only where a comparison was not made by this module, and then nothing is shown.
    let adjusted = holm(&p_values).unwrap_or_else(|| vec![1.0; questions.len()]);
    questions
        .iter()
        .zip(adjusted)
        .map(|(question, adjusted_p_value)| {
            let verdict = match question.verdict() {
                Verdict::Faster | Verdict::Slower if adjusted_p_value > SIGNIFICANCE => {
                    Verdict::Inconclusive
                }
                verdict => verdict,
            };
            FamilyVerdict {
                adjusted_p_value,
                verdict,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(low: f64, high: f64) -> Question {
        let interval = Interval { low, high };
        Question {
            comparison: Comparison {
                blocks: 10,
                ratio: (low * high).sqrt(),
                interval,
                bootstrap: interval,
                p_value: 0.01,
                signed_rank: None,
                hodges_lehmann: 1.0,
            },
            better: Better::Higher,
            noise_floor: NoiseFloor::least(),
        }
    }

    fn verdict(low: f64, high: f64) -> Verdict {
        question(low, high).verdict()
    }

    #[test]
    fn a_difference_counts_only_beyond_the_noise_floor() {
        assert_eq!(verdict(1.02, 1.08), Verdict::Faster);
        assert_eq!(verdict(1.005, 1.08), Verdict::Inconclusive);
        assert_eq!(verdict(0.92, 0.98), Verdict::Slower);
        assert_eq!(verdict(0.92, 0.995), Verdict::Inconclusive);
        let noisy = Question {
            noise_floor: NoiseFloor::of(&[0.05, -0.05, 0.05]).unwrap(),
            ..question(1.02, 1.08)
        };
        assert_eq!(noisy.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn only_an_interval_within_three_percent_is_equivalence() {
        assert_eq!(verdict(0.98, 1.02), Verdict::Equivalent);
        assert_eq!(verdict(1.001, 1.02), Verdict::Equivalent);
        assert_eq!(verdict(0.98, 1.04), Verdict::Inconclusive);
        assert_eq!(verdict(0.50, 2.00), Verdict::Inconclusive);
    }

    #[test]
    fn less_of_a_response_time_is_faster() {
        let lower = |low, high| Question {
            better: Better::Lower,
            ..question(low, high)
        };
        assert_eq!(lower(0.80, 0.90).verdict(), Verdict::Faster);
        assert_eq!(lower(1.10, 1.20).verdict(), Verdict::Slower);
    }

    #[test]
    fn intervals_that_disagree_about_no_difference_settle_nothing() {
        let mut disagreeing = question(1.02, 1.08);
        disagreeing.comparison.bootstrap = Interval {
            low: 0.99,
            high: 1.10,
        };
        assert!(disagreeing.comparison.intervals_disagree());
        assert_eq!(disagreeing.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn swapping_the_servers_swaps_the_verdict() {
        let log_ratios = [0.041, 0.052, 0.047, 0.060, 0.055, 0.049, 0.044, 0.058];
        let judge = |log_ratios: &[f64]| Question {
            comparison: Comparison::of(log_ratios, 1).unwrap(),
            ..question(1.0, 1.0)
        };
        assert_eq!(judge(&log_ratios).verdict(), Verdict::Faster);
        assert_eq!(judge(&log_ratios.map(|d| -d)).verdict(), Verdict::Slower);
    }

    #[test]
    fn a_difference_among_several_has_to_survive_the_adjustment() {
        let with_p = |p_value| {
            let mut question = question(1.02, 1.08);
            question.comparison.p_value = p_value;
            question
        };
        let verdicts = family_verdicts(&[with_p(0.03), with_p(0.001), question(0.98, 1.02)]);
        let names: Vec<Verdict> = verdicts.iter().map(|judged| judged.verdict).collect();
        assert_eq!(
            names,
            [Verdict::Faster, Verdict::Faster, Verdict::Equivalent]
        );
        let verdicts = family_verdicts(&[with_p(0.03), with_p(0.04)]);
        assert_eq!(verdicts[0].verdict, Verdict::Inconclusive);
        assert!((verdicts[0].adjusted_p_value - 0.06).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_needs_two_measured_values() {
        assert_eq!(log_ratio(2.0, 2.0), Some(0.0));
        assert_eq!(log_ratio(0.0, 2.0), None);
        assert_eq!(log_ratio(2.0, f64::NAN), None);
        assert_eq!(log_ratio(f64::INFINITY, 2.0), None);
        assert_eq!(Comparison::of(&[0.01], 1), None);
    }
}
