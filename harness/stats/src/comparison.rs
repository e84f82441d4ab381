//! Two servers compared: the ratio, how sure it is, and what may be said of it.

use crate::bootstrap::bootstrap_t;
use crate::holm::holm;
use crate::interval::Interval;
use crate::mean::Mean;
use crate::noise::NoiseFloor;
use crate::wilcoxon::{SignedRank, hodges_lehmann};

/// Ratios up to 3 % in either direction make no difference to a user.
const EQUIVALENT_WITHIN: f64 = 1.03;

/// The family-wise error rate of the secondary metrics.
const SIGNIFICANCE: f64 = 0.05;

/// `ln(a / b)` of one block. `None` unless both are finite and above 0: a ratio needs two measured values.
pub fn log_ratio(a: f64, b: f64) -> Option<f64> {
    let measured = a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite();
    measured.then(|| a.ln() - b.ln())
}

/// What the blocks say about the ratio of server a to server b in one metric. All figures are ratios, not logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    pub blocks: usize,
    /// The geometric mean of the blocks' ratios.
    pub ratio: f64,
    /// Student's t on the logarithms: `exp(mean d +- t(0.975, n - 1) s / sqrt(n))`, 95 %.
    pub interval: Interval,
    /// The bootstrap-t over blocks, 95 %.
    pub bootstrap: Interval,
    /// Student's t, two-sided, of the hypothesis that the ratio is 1.
    pub p_value: f64,
    /// Wilcoxon's signed-rank test of the same hypothesis: a check of the others, never part of a verdict.
    pub signed_rank: SignedRank,
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
            signed_rank: SignedRank::of(log_ratios)?,
            hodges_lehmann: hodges_lehmann(log_ratios)?.exp(),
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
    /// The verdict on the one metric named beforehand. Swapping the servers swaps faster and slower.
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

/// A secondary metric's verdict, with the p-value that Holm's adjustment leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondaryVerdict {
    pub adjusted_p_value: f64,
    pub verdict: Verdict,
}

/// The verdicts on all secondary metrics of one rung together, in the order given: a difference counts only if it
/// also survives Holm's adjustment over all of them.
pub fn secondary_verdicts(questions: &[Question]) -> Vec<SecondaryVerdict> {
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
            SecondaryVerdict {
                adjusted_p_value,
                verdict,
            }
        })
        .collect()
}
