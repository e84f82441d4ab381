//! A service level objective: the percentile of the response times that has to stay below a limit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::campaign::Latency;

/// `p99<25ms`. The response counts from the intended instant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    pub percentile: Percentile,
    pub limit_seconds: f64,
}

/// Those that every window records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Percentile {
    P50,
    P90,
    P99,
    #[serde(rename = "p99.9")]
    P999,
}

impl Percentile {
    const ALL: [Percentile; 4] = [
        Percentile::P50,
        Percentile::P90,
        Percentile::P99,
        Percentile::P999,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Percentile::P50 => "p50",
            Percentile::P90 => "p90",
            Percentile::P99 => "p99",
            Percentile::P999 => "p99.9",
        }
    }

    /// From 0 to 1.
    pub fn quantile(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P90 => 0.9,
            Percentile::P99 => 0.99,
            Percentile::P999 => 0.999,
        }
    }

    pub fn of(self, latency: Latency) -> Duration {
        Duration::from_nanos(match self {
            Percentile::P50 => latency.p50,
            Percentile::P90 => latency.p90,
            Percentile::P99 => latency.p99,
            Percentile::P999 => latency.p99_9,
        })
    }
}

impl FromStr for Slo {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Slo> {
        let refused = || {
            anyhow::anyhow!(
                "give a percentile (p50, p90, p99 or p99.9), `<` and a time, such as 'p99<25ms'"
            )
        };
        let (percentile, limit) = text.split_once('<').ok_or_else(refused)?;
        let percentile = Percentile::ALL
            .into_iter()
            .find(|known| known.name() == percentile.trim())
            .ok_or_else(refused)?;
        let Some(limit_seconds) = seconds(limit.trim()) else {
            bail!(refused())
        };
        Ok(Slo {
            percentile,
            limit_seconds,
        })
    }
}

/// `25ms`, `500us`, `1.5s`; from a microsecond to a minute.
fn seconds(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        _ => return None,
    };
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (1e-6..=60.0).contains(&seconds).then_some(seconds)
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.limit_seconds * 1e3;
        write!(f, "{} < {ms} ms", self.percentile.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_slo_is_a_percentile_and_a_limit() {
        let slo: Slo = "p99<25ms".parse().unwrap();
        assert_eq!(slo.percentile, Percentile::P99);
        assert!((slo.limit_seconds - 0.025).abs() < 1e-12);
        assert_eq!(slo.to_string(), "p99 < 25 ms");
        for accepted in ["p99.9 < 1s", "p50<500us", "p90<2.5 ms"] {
            assert!(accepted.parse::<Slo>().is_ok(), "{accepted}");
        }
        for refused in [
            "",
            "p99",
            "p99<",
            "p99<25",
            "p98<25ms",
            "p99<-1ms",
            "p99<0ms",
            "p99>25ms",
            "p99<NaNms",
            "p99<1h",
            "99<25ms",
            "p99<2min",
        ] {
            let error = refused.parse::<Slo>().expect_err(refused).to_string();
            assert!(error.contains("'p99<25ms'"), "{error}");
        }
    }
}
