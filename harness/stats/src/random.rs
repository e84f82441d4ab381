//! Seeded randomness: the only source of it in this crate.
//!
//! The generator is Xoshiro256++ (Blackman and Vigna 2021), and what is drawn from it is written out here rather than
//! left to a library's defaults, so that a seed gives the same orders and the same resamples with every later release.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

#[derive(Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A whole number from 0 to `bound - 1`; 0 where `bound` is 0. The upper half of a 128-bit product (Lemire 2019),
    /// without the rejection step: the bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A draw from the exponential distribution with mean 1, by inversion.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 random bits, plus a half: never 0, whose logarithm is infinite, and never 1.
        let uniform = ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -uniform.ln()
    }

    /// Every order is equally likely (Fisher and Yates; Durstenfeld 1964).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_for_ever() {
        let mut items: Vec<usize> = (0..8).collect();
        Random::seeded(42).shuffle(&mut items);
        assert_eq!(items, [7, 0, 1, 4, 3, 5, 2, 6]);
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut random = Random::seeded(1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| (880..1_120).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn exponential_draws_have_mean_and_variance_one() {
        let mut random = Random::seeded(2);
        let draws: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05);
    }
}
