//! `capacity.json`, and what it says in words.

use serde::{Deserialize, Serialize};
use stats::{Miss, Probe};

use crate::campaign::{DatabaseRecord, Plan, ServerRecord, Trial};
use crate::environment::Environment;
use crate::slo::Slo;

/// Raised whenever a reader of the previous version would misread the file.
pub(super) const SCHEMA: u32 = 1;

/// `capacity.json`: everything a search saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CapacityRecord {
    pub schema: u32,
    pub lanebench: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    pub command: Vec<String>,
    pub slo: Slo,
    pub confirmations: usize,
    pub plan: Plan,
    pub environment: Environment,
    pub database: DatabaseRecord,
    pub servers: Vec<ServerRecord>,
    pub searches: Vec<SearchRecord>,
    /// All of them, in the order they were run.
    pub trials: Vec<Trial>,
}

/// Where one server's capacity lies. Rates are requests a second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchRecord {
    pub server: String,
    /// The capacity of a closed loop, which the search starts from.
    pub closed_loop: f64,
    /// The highest rate that passes; none if even the least fails.
    pub passes: Option<RateRecord>,
    /// The lowest rate that fails; none if even the greatest passes.
    pub fails: Option<RateRecord>,
    pub trials: usize,
    /// Trials that stayed INVALID after being run again, and were used all the same.
    pub doubtful: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RateRecord {
    pub rate: f64,
    /// Why it fails.
    pub miss: Option<String>,
    /// Of each of the trials it was judged by.
    pub percentile_ms: Vec<Option<f64>>,
}

impl RateRecord {
    pub(super) fn of(probe: &Probe) -> RateRecord {
        let milliseconds = probe
            .outcomes
            .iter()
            .map(|outcome| outcome.percentile_seconds.map(|seconds| seconds * 1e3));
        RateRecord {
            rate: probe.rate,
            miss: probe.miss.map(|miss| in_words(miss).to_owned()),
            percentile_ms: milliseconds.collect(),
        }
    }
}

fn in_words(miss: Miss) -> &'static str {
    match miss {
        Miss::Errors => "errors",
        Miss::Incomplete => "requests left unanswered",
        Miss::Backlog => "a growing backlog",
        Miss::TooSlow => "too slow",
    }
}

impl CapacityRecord {
    /// Where a server's capacity lies, in a sentence.
    pub fn sentence(&self, search: &SearchRecord) -> String {
        let (slo, server) = (self.slo, &search.server);
        let end = |rate: &RateRecord| {
            let measured: Vec<f64> = rate.percentile_ms.iter().flatten().copied().collect();
            let figure = stats::median(&measured)
                .map(|ms| format!("{} {ms:.1} ms in the median trial", slo.percentile.name()));
            let details: Vec<String> = rate.miss.iter().cloned().chain(figure).collect();
            format!("{:.0}/s ({})", rate.rate, details.join(", "))
        };
        let found = match (&search.passes, &search.fails) {
            (Some(passes), Some(fails)) => {
                format!("meets it at {}, fails at {}", end(passes), end(fails))
            }
            (Some(passes), None) => format!(
                "meets it at {}, the highest rate that was tried",
                end(passes)
            ),
            (None, Some(fails)) => {
                format!("fails at {}, and at every rate that was tried", end(fails))
            }
            (None, None) => "was not measured".to_owned(),
        };
        let doubtful = match search.doubtful {
            0 => String::new(),
            count => format!("; {count} of them INVALID, and used all the same"),
        };
        format!(
            "{}, {slo}: {server} {found}; {} trials, each end confirmed by {}{doubtful}",
            self.plan.ladders[0].workload, search.trials, self.confirmations
        )
    }
}
