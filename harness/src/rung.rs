//! One setting of a ladder of loads, and how it is written on the command line.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// How a trial's load is paced. Rows of the two kinds never share a table: one asks how much, the other how late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "loop")]
pub enum Rung {
    /// One request in flight on each connection, no think time: capacity.
    Closed { connections: usize },
    /// Requests are due at fixed instants, `rate` a second: latency under a load that does not wait for the server.
    Open { rate: f64, connections: usize },
}

impl Rung {
    pub fn connections(self) -> usize {
        match self {
            Rung::Closed { connections } | Rung::Open { connections, .. } => connections,
        }
    }

    /// How many requests can be in the database at a time.
    pub fn at_a_time(self, pool: usize) -> usize {
        match self {
            Rung::Closed { connections } => connections.min(pool),
            Rung::Open { .. } => pool,
        }
    }

    pub fn is_open(self) -> bool {
        matches!(self, Rung::Open { .. })
    }

    /// What tells it from the other rungs of its table: `8` connections, or `500` a second.
    pub fn figure(self) -> String {
        match self {
            Rung::Closed { connections } => connections.to_string(),
            Rung::Open { rate, .. } => rate_in_words(rate),
        }
    }

    /// For the name of a file.
    pub fn slug(self) -> String {
        match self {
            Rung::Closed { connections } => format!("closed-{connections}"),
            Rung::Open { rate, .. } => format!("open-{}", rate_in_words(rate)),
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rung::Closed { connections: 1 } => f.write_str("1 connection"),
            Rung::Closed { connections } => write!(f, "{connections} connections"),
            Rung::Open { rate, .. } => write!(f, "{}/s", rate_in_words(*rate)),
        }
    }
}

fn rate_in_words(rate: f64) -> String {
    if rate >= 10.0 {
        format!("{rate:.0}")
    } else {
        format!("{rate}")
    }
}

/// A rate as it is asked for: requests a second, or a share of what the slowest server can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AskedRate {
    Absolute(f64),
    /// Above 0; 0.8 was written `80%`.
    Share(f64),
}

impl FromStr for AskedRate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
        let rate = match text.strip_suffix('%') {
            Some(share) => number(share)
                .filter(|share| *share <= 1000.0)
                .map(|share| AskedRate::Share(share / 100.0)),
            None => number(text)
                .filter(|rate| (0.001..=10_000_000.0).contains(rate))
                .map(AskedRate::Absolute),
        };
        let Some(rate) = rate else {
            bail!("give requests a second, such as 500, or a share of the capacity, such as 80%")
        };
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_absolute_or_shares_of_a_capacity() {
        let asked = |text: &str| text.parse::<AskedRate>().unwrap();
        assert_eq!(asked("500"), AskedRate::Absolute(500.0));
        assert_eq!(asked("0.5"), AskedRate::Absolute(0.5));
        assert_eq!(asked("80%"), AskedRate::Share(0.8));
        for refused in ["", "0", "-5", "NaN", "inf", "1e15", "0%", "fast", "%"] {
            assert!(refused.parse::<AskedRate>().is_err(), "{refused}");
        }
    }

    #[test]
    fn a_rung_reads_as_people_say_it() {
        let open = Rung::Open {
            rate: 1_440.0,
            connections: 64,
        };
        assert_eq!(open.to_string(), "1440/s");
        assert_eq!(Rung::Closed { connections: 1 }.to_string(), "1 connection");
        assert_eq!(open.slug(), "open-1440");
    }
}
