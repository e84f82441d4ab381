//! A range of plausible values.

/// Both ends belong to it, and `low <= high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// From logarithms back to ratios.
    pub(crate) fn exp(&self) -> Interval {
        Interval {
            low: self.low.exp(),
            high: self.high.exp(),
        }
    }
}
