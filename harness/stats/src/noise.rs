//! How far apart identical servers are found to be.

use crate::percentile::quartiles;

/// Differences up to this ratio, in either direction, are those of a server with itself.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct NoiseFloor {
    log: f64,
}

impl NoiseFloor {
    /// The least that is ever assumed: 1 %.
    pub fn least() -> NoiseFloor {
        NoiseFloor { log: 1.01_f64.ln() }
    }

    /// From the logarithms of ratios between a server and itself, one a block: the greater of 1 % and `Q3 + 3 IQR` of
    /// their magnitudes, Tukey's outer fence (Tukey 1977). `None` where there is no value, or one is not finite.
    pub fn of(identical_log_ratios: &[f64]) -> Option<NoiseFloor> {
        let magnitudes: Vec<f64> = identical_log_ratios.iter().map(|d| d.abs()).collect();
        let (first, third) = quartiles(&magnitudes)?;
        let fence = third + 3.0 * (third - first);
        Some(NoiseFloor {
            log: fence.max(NoiseFloor::least().log),
        })
    }

    /// As a ratio above 1: 1.013 is a floor of 1.3 %.
    pub fn ratio(&self) -> f64 {
        self.log.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_has_a_floor_of_one_percent() {
        let floor = NoiseFloor::of(&[0.001, -0.002, 0.0005, -0.001]).unwrap();
        assert!((floor.ratio() - 1.01).abs() < 1e-12);
    }

    #[test]
    fn a_noisy_machine_raises_the_floor_whatever_the_sign() {
        // Magnitudes 1 %, 2 %, 3 %, 4 %, 5 %: quartiles 2 % and 4 %.
        let floor = NoiseFloor::of(&[-0.01, 0.02, -0.03, 0.04, -0.05]).unwrap();
        assert!((floor.ratio() - 0.10_f64.exp()).abs() < 1e-12);
    }

    #[test]
    fn nothing_measured_is_no_floor() {
        assert_eq!(NoiseFloor::of(&[]), None);
        assert_eq!(NoiseFloor::of(&[0.01, f64::NAN]), None);
    }
}
