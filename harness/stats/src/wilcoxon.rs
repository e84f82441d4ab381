//! Rank-based company for Student's t: it asks less of the data, and a few wild blocks cannot move it far.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::summary::median;

/// Up to this many values that are not 0 the p-value is exact.
const EXACT_UP_TO: usize = 100;

/// Wilcoxon's signed-rank test of the hypothesis that the values lie symmetrically about 0 (Wilcoxon 1945).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The sum of the ranks of the values above 0 (R's `V`).
    pub statistic: f64,
    /// Two-sided.
    pub p_value: f64,
}

impl SignedRank {
    /// Values of exactly 0 are left out, as Wilcoxon did; equal magnitudes share the mean of their ranks. Up to 100
    /// values the p-value is exact, given the ties; beyond that it is that of the normal approximation with the
    /// corrections for ties and continuity (as in R's `wilcox.test`). `None` where a value is not finite.
    pub fn of(values: &[f64]) -> Option<SignedRank> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut used: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| *value != 0.0)
            .collect();
        used.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let doubled_ranks = doubled_midranks(&used);
        let doubled_statistic: usize = used
            .iter()
            .zip(&doubled_ranks)
            .filter(|(value, _)| **value > 0.0)
            .map(|(_, rank)| rank)
            .sum();
        let p_value = if used.len() <= EXACT_UP_TO {
            exact_p_value(&doubled_ranks, doubled_statistic)
        } else {
            approximate_p_value(&doubled_ranks, doubled_statistic)
        };
        Some(SignedRank {
            statistic: doubled_statistic as f64 / 2.0,
            p_value,
        })
    }
}

/// Twice the rank of each magnitude, which is whole even where ties share a mean rank. `sorted` ascends by magnitude.
fn doubled_midranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let (first, last) = (ranks.len() + 1, ranks.len() + tied.len());
        ranks.extend(std::iter::repeat_n(first + last, tied.len()));
    }
    ranks
}

/// Under the hypothesis each rank has either sign with probability 1/2: the distribution of their sum, rank by rank.
fn exact_p_value(doubled_ranks: &[usize], doubled_statistic: usize) -> f64 {
    let total: usize = doubled_ranks.iter().sum();
    let mut probability = vec![0.0; total + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for &rank in doubled_ranks {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with_rank = if sum >= rank {
                probability[sum - rank]
            } else {
                0.0
            };
            probability[sum] = (probability[sum] + with_rank) / 2.0;
        }
    }
    // The distribution is symmetric about half the total, so that the smaller tail is the lower one of either sum.
    let tail_end = doubled_statistic.min(total - doubled_statistic);
    let tail: f64 = probability[..=tail_end].iter().sum();
    (2.0 * tail).min(1.0)
}

fn approximate_p_value(doubled_ranks: &[usize], doubled_statistic: usize) -> f64 {
    let total: usize = doubled_ranks.iter().sum();
    let mean = total as f64 / 4.0;
    // The sum of squared midranks over 4 is the textbook's n(n+1)(2n+1)/24 less its correction for ties.
    let squares: f64 = doubled_ranks
        .iter()
        .map(|rank| (*rank as f64 / 2.0).powi(2))
        .sum();
    let deviation = (doubled_statistic as f64 / 2.0 - mean).abs();
    let z = (deviation - 0.5).max(0.0) / (squares / 4.0).sqrt();
    Normal::standard().sf(z) * 2.0
}

/// The Hodges-Lehmann estimate of the centre: the median of the means of all pairs of values, each value paired with
/// itself too (Hodges and Lehmann 1963). `None` where there is no value, or one is not finite.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, first) in values.iter().enumerate() {
        means.extend(values[index..].iter().map(|second| (first + second) / 2.0));
    }
    median(&means)
}

/// The Hodges-Lehmann estimate of how far `a` lies above `b`: the median of the differences of all pairs. `None` where
/// a sample is empty, or a value is not finite.
pub fn hodges_lehmann_shift(a: &[f64], b: &[f64]) -> Option<f64> {
    if !a.iter().chain(b).all(|value| value.is_finite()) {
        return None;
    }
    let differences = a.iter().flat_map(|a| b.iter().map(move |b| a - b));
    median(&differences.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_blocks_on_one_side_are_as_improbable_as_ten_tosses() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let test = SignedRank::of(&values).unwrap();
        assert_eq!((test.statistic, test.p_value), (55.0, 2.0 / 1024.0));
        let negated: Vec<f64> = values.iter().map(|value| -value).collect();
        let test = SignedRank::of(&negated).unwrap();
        assert_eq!((test.statistic, test.p_value), (0.0, 2.0 / 1024.0));
    }

    #[test]
    fn nothing_but_zeros_is_no_evidence() {
        assert_eq!(SignedRank::of(&[0.0, 0.0]).unwrap().p_value, 1.0);
        assert_eq!(SignedRank::of(&[]).unwrap().p_value, 1.0);
        assert_eq!(SignedRank::of(&[f64::NAN]), None);
    }

    #[test]
    fn one_wild_block_hardly_moves_the_hodges_lehmann_estimate() {
        let tame = [0.010, 0.011, 0.012, 0.013, 0.014];
        let wild = [0.010, 0.011, 0.012, 0.013, 5.0];
        let moved = hodges_lehmann(&wild).unwrap() - hodges_lehmann(&tame).unwrap();
        assert!(moved.abs() < 0.001, "{moved}");
        assert_eq!(hodges_lehmann(&[]), None);
    }

    #[test]
    fn the_shift_of_two_samples_is_the_middle_of_all_differences() {
        assert_eq!(
            hodges_lehmann_shift(&[5.0, 6.0, 70.0], &[1.0, 2.0]),
            Some(4.5)
        );
        assert_eq!(hodges_lehmann_shift(&[], &[1.0]), None);
        assert_eq!(hodges_lehmann_shift(&[f64::NAN], &[1.0]), None);
    }
}
