//! Noise for simulated measurements.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Seeded normal noise.
#[derive(Debug)]
pub(crate) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(crate) fn seeded(seed: u64) -> Noise {
        Noise(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A normal draw with mean 0 (Box and Muller 1958).
    pub(crate) fn normal(&mut self, deviation: f64) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        deviation * radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}
