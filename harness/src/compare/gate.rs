//! `--fail-if-slower`: whether B is slower than A by more than a limit, for somebody's CI.
//!
//! Only the primary metric decides. It fails where the verdict is decided and B's whole interval lies beyond the limit,
//! and passes otherwise; where the interval only reaches beyond it, that is said.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use serde::Serialize;

use super::comparison::{ComparedRow, ComparedTable, Comparison};
use crate::metric::Metric;
use crate::rung::Rung;
use crate::sentences::words::{percent, signed, unsigned};
use crate::verdicts::greater_is_better;
use stats::Interval;

/// How much slower B may be, as a share: fewer requests a second, or a higher percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance(f64);

impl FromStr for Tolerance {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_suffix('%').map(str::trim_end);
        let plain = digits.filter(|digits| {
            digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        });
        let number = plain.and_then(|digits| digits.parse::<f64>().ok());
        match number {
            Some(number) if number < 100.0 => Ok(Tolerance(number / 100.0)),
            _ => bail!("give a percentage below 100, such as 5% or 2.5%"),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.2}", 100.0 * self.0);
        write!(
            f,
            "{} %",
            percent.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

/// What the primary metric of all rows says about the limit.
#[derive(Debug, Clone, Serialize)]
pub struct Gate {
    pub tolerance: Tolerance,
    /// Shown to be beyond it.
    pub slower: Vec<Finding>,
    /// May be beyond it, or cannot be compared.
    pub undecided: Vec<Finding>,
    /// Shown to be within it.
    pub within: usize,
    /// Rows of A that B does not have.
    pub not_in_both: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub workload: String,
    pub rung: Rung,
    pub server: String,
    pub metric: Metric,
    /// B's figure divided by A's, unlike the ratios of the table.
    pub b_over_a: Option<f64>,
    pub in_words: String,
}

impl Gate {
    pub fn of(comparison: &Comparison, tolerance: Tolerance) -> Gate {
        let mut gate = Gate {
            tolerance,
            slower: Vec::new(),
            undecided: Vec::new(),
            within: 0,
            not_in_both: comparison.not_in_both.clone(),
        };
        for table in &comparison.tables {
            for row in table.rows.iter().filter(|row| row.primary) {
                gate.judge(table, row);
            }
        }
        gate
    }

    fn judge(&mut self, table: &ComparedTable, row: &ComparedRow) {
        let finding = |in_words: String| Finding {
            workload: table.workload.clone(),
            rung: row.rung,
            server: row.server.clone(),
            metric: row.metric,
            b_over_a: row.ratio.map(f64::recip),
            in_words: format!(
                "{} at {} ({}): {in_words}",
                row.server, row.rung, table.workload
            ),
        };
        let (Some(ratio), Some(interval)) = (row.ratio, row.interval) else {
            return self.undecided.push(finding(row.verdict.clone()));
        };
        let (ratio, interval) = (ratio.recip(), of_b(interval));
        let (least, most) = losses(interval, row.metric);
        if row.faster && least > self.tolerance.0 {
            let (apart, range) = (percent(ratio), unsigned(interval));
            let worse = if greater_is_better(row.metric) {
                "fewer"
            } else {
                "higher"
            };
            let name = row.metric.name();
            self.slower.push(finding(match row.metric {
                Metric::Throughput => format!("{apart} {worse} {name} (interval {range})"),
                _ => format!("{name} {apart} {worse} (interval {range})"),
            }));
        } else if most > self.tolerance.0 {
            let name = row.metric.name();
            self.undecided
                .push(finding(format!("{name}, interval {}", signed(interval))));
        } else {
            self.within += 1;
        }
    }

    /// What is to be said of it, a line each.
    pub fn lines(&self) -> Vec<String> {
        let words = |findings: &[Finding]| {
            let words: Vec<&str> = findings
                .iter()
                .map(|finding| finding.in_words.as_str())
                .collect();
            words.join("; ")
        };
        let limit = self.tolerance;
        let mut lines = Vec::new();
        if !self.slower.is_empty() {
            lines.push(format!(
                "B is slower than A by more than {limit}: {}",
                words(&self.slower)
            ));
        }
        if !self.undecided.is_empty() {
            lines.push(format!(
                "not shown, and not excluded, that B is slower than A by more than {limit}: {}; more blocks would tell",
                words(&self.undecided)
            ));
        }
        if !self.not_in_both.is_empty() {
            lines.push(format!(
                "in A and not in B: {}",
                self.not_in_both.join(", ")
            ));
        }
        if lines.is_empty() {
            lines.push(format!(
                "B is not slower than A by more than {limit} in any of {} rows",
                self.within
            ));
        }
        lines
    }
}

/// From A / B to B / A.
fn of_b(Interval { low, high }: Interval) -> Interval {
    Interval {
        low: high.recip(),
        high: low.recip(),
    }
}

/// How much worse B is at least and at most, as shares of A's figure; negative: better.
fn losses(b_over_a: Interval, metric: Metric) -> (f64, f64) {
    if greater_is_better(metric) {
        (1.0 - b_over_a.high, 1.0 - b_over_a.low)
    } else {
        (b_over_a.low - 1.0, b_over_a.high - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_a_percentage() {
        let read = |text: &str| text.parse::<Tolerance>();
        assert_eq!(read("5%").unwrap(), Tolerance(0.05));
        assert_eq!(read("2.5%").unwrap().to_string(), "2.5 %");
        assert_eq!(read("0%").unwrap().to_string(), "0 %");
        for refused in [
            "0.05", "5", "", "%", "-5%", "nan%", "inf%", "1e1%", "100%", "five",
        ] {
            let error = read(refused).expect_err(refused).to_string();
            assert!(error.contains("such as 5%"), "{error}");
        }
    }
}
