//! How much weight a percentile can bear.

/// Whether a percentile rests on enough requests beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmness {
    /// At least 100 requests of the trial lie beyond it.
    Firm,
    /// 10 to 99 do: shown with a mark.
    Tentative,
    /// Fewer than 10 do: not shown.
    Absent,
}

/// The firmness of quantile `quantile` (0 to 1) among `requests` requests of one trial.
///
/// The nearest-rank percentile leaves `requests - ceil(quantile * requests)` requests beyond it.
pub fn firmness(quantile: f64, requests: u64) -> Firmness {
    // Adding a millionth of a request undoes the rounding of products such as 0.999 * 100,000.
    let beyond = ((1.0 - quantile) * requests as f64 + 1e-6).floor();
    match beyond {
        beyond if beyond >= 100.0 => Firmness::Firm,
        beyond if beyond >= 10.0 => Firmness::Tentative,
        _ => Firmness::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p99_9_is_firm_from_100_000_requests_on() {
        assert_eq!(firmness(0.999, 100_000), Firmness::Firm);
        assert_eq!(firmness(0.999, 99_999), Firmness::Tentative);
        assert_eq!(firmness(0.999, 10_000), Firmness::Tentative);
        assert_eq!(firmness(0.999, 9_999), Firmness::Absent);
    }

    #[test]
    fn p99_is_firm_from_10_000_requests_on() {
        assert_eq!(firmness(0.99, 10_000), Firmness::Firm);
        assert_eq!(firmness(0.99, 999), Firmness::Absent);
    }
}
