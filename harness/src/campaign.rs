//! What a run writes down: the plan, the environment, every trial. `campaign.json` is the record; everything that
//! is printed or drawn is read from it.

use std::collections::BTreeMap;
use std::time::Duration;

use load::{Live, Phase};
use serde::{Deserialize, Serialize};

use crate::checks::{Check, Verdict};
use crate::cpus::CpuPlan;
use crate::environment::Environment;
use crate::generator::GeneratorRecord;
use crate::inspection::Inspection;
use crate::machine::Second;
use crate::pgbench::PgbenchRun;
use crate::process::Profile;
use crate::rung::Rung;
use crate::stages::Stages;
use crate::table::label;

/// Raised whenever a reader of the previous version would misread the file.
pub const SCHEMA: u32 = 2;

/// One results folder's record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Campaign {
    pub schema: u32,
    pub lanebench: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    pub state: State,
    /// The command lines that made it: the one that began it, then those that resumed it.
    pub commands: Vec<Vec<String>>,
    pub plan: Plan,
    /// What keeps it from being publishable, a line each; publishable if there is nothing.
    pub unpublishable: Vec<String>,
    pub environment: Environment,
    pub generator: GeneratorRecord,
    pub database: DatabaseRecord,
    pub servers: Vec<ServerRecord>,
    /// What every server sends to the database for one request, counted before any load.
    pub inspections: Vec<Inspection>,
    /// What rates given as shares are shares of.
    pub references: Vec<Reference>,
    /// In the order they were run. Those of a block that was run again stay: see [`Trial::attempt`].
    pub trials: Vec<Trial>,
    /// After each block of a closed loop, where pgbench is there and the workload has a statement.
    pub pgbench: Vec<PgbenchRun>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Running,
    Complete,
    Interrupted,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    pub ladders: Vec<Ladder>,
    pub servers: Vec<String>,
    pub profiles: Vec<Profile>,
    pub preset: String,
    pub pool: usize,
    /// Threads of the blocking lanes; as many as the pool has connections where not given.
    pub threads: Option<usize>,
    /// Blocks of every rung at least.
    pub blocks: usize,
    /// Blocks at most: more than `blocks` where a rung goes on until its ratios are precise.
    pub most_blocks: usize,
    pub warmup_seconds: f64,
    pub window_seconds: f64,
    /// Whether the instants of an open loop are random, with a seed of the block's.
    pub poisson: bool,
    /// Of the requests' parameters, of every order and of every resampling.
    pub seed: u64,
    pub cpus: CpuPlan,
    /// Rates that are shares of a capacity; their rungs join a ladder when it has been measured.
    pub shares: Vec<f64>,
    /// Connections of an open loop.
    pub open_connections: usize,
    /// Whether every request of every window is kept, in a Parquet file a trial.
    #[serde(default)]
    pub records: bool,
}

/// The rungs of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    pub workload: String,
    /// SHA-256 of its shape, statement and parameters: another one is another workload, whatever its name.
    pub definition: String,
    pub rungs: Vec<Rung>,
    /// The workload that is this one without what goes on beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
}

/// The capacity that a workload's rates are shares of: the lowest of the servers', so that all get the same rates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reference {
    pub workload: String,
    /// Connections of the closed loop it was measured with.
    pub connections: usize,
    pub requests_per_second: f64,
    /// Each server's, by its label.
    pub of_each: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DatabaseRecord {
    /// Which source it came from, in words.
    pub source: String,
    pub version: String,
    /// Every setting that is not at its default.
    pub settings: Vec<(String, String)>,
    pub scale: String,
    /// Hash of the seeded content.
    pub content: String,
    /// How it is brought back to that before every trial.
    pub between_trials: String,
    /// Why statements are not observed, where they are not.
    pub statements_unobserved: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerRecord {
    pub name: String,
    pub lane: crate::server::Lane,
    pub about: String,
    /// An earlier server of the campaign that is started with the very same command: an A/A pair.
    pub same_as: Option<String>,
    /// SHA-256 of the program; absent where it was not started here.
    pub binary_sha256: Option<String>,
    /// Workloads of the plan that it does not serve, each with the reason.
    #[serde(default)]
    pub skips: Vec<(String, String)>,
    /// The URL of a server that was attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
    /// What the server says of itself, by profile.
    pub says: Vec<(Profile, serde_json::Value)>,
}

/// One fresh server, one rung, one window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trial {
    pub workload: String,
    pub server: String,
    pub profile: Profile,
    pub rung: Rung,
    pub block: usize,
    /// 0 at first. A block that was INVALID or interrupted is run again as a whole; the latest attempt counts.
    pub attempt: usize,
    /// Its place in the block, from 0.
    pub position: usize,
    pub started_at: String,
    pub verdict: Verdict,
    pub checks: Vec<Check>,
    /// Absent where the trial did not get as far as a window.
    pub window: Option<Window>,
}

impl Trial {
    /// Its server's name in tables.
    pub fn label(&self) -> String {
        label(&self.server, self.profile)
    }

    /// Whether both are of one server in one profile.
    pub fn same_subject(&self, other: &Trial) -> bool {
        self.server == other.server && self.profile == other.profile
    }
}

/// What one window measured. Rates are per second, latencies in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Window {
    pub seconds: f64,
    /// Correct answers only.
    pub requests_per_second: f64,
    /// From the intended instant to the last byte. What got no answer counts with the time it waited at least.
    pub response_ns: Latency,
    /// From the send to the last byte.
    pub service_ns: Latency,
    pub counts: load::Counts,
    /// Distinct errors of the transport, with how often each came.
    pub errors: Vec<(String, u64)>,
    pub server: ServerUse,
    /// Where the requests' time went by the server's own account, if it gives one.
    pub stages: Option<Stages>,
    /// CPU time of all of PostgreSQL's processes; absent where they cannot be seen.
    pub database_cpu_seconds: Option<f64>,
    pub database: Option<DatabaseUse>,
    pub sessions: SessionUse,
    pub generator_cpu_seconds: f64,
    /// How long one statement holds its connection by its own account, where the workload says so.
    pub delay_ms: Option<f64>,
    /// What went on beside it, if anything was to.
    #[serde(default)]
    pub beside: Option<BesideUse>,
    /// Whole-life figures of the server, warm-up and verification included.
    pub statements_per_request: Option<f64>,
    /// Absent where they cannot be counted, as of a server that was attached to.
    pub transactions_per_request: Option<f64>,
    /// The window second by second, by role.
    pub series: Vec<Second>,
    /// The window second by second, as the load engine saw it.
    #[serde(default)]
    pub load: Vec<LoadSecond>,
    /// Response times and service times by share of the requests, in the steps of a percentile plot: from one to the
    /// next half as many requests are left.
    #[serde(default)]
    pub response_percentiles: Vec<Percentile>,
    #[serde(default)]
    pub service_percentiles: Vec<Percentile>,
}

/// What a right answer cost; `None` where there were none.
impl Window {
    /// CPU time of the server.
    pub fn cpu_us_each(&self) -> Option<f64> {
        self.each(self.server.cpu_seconds * 1e6)
    }

    /// CPU time of PostgreSQL; `None` also where it cannot be seen.
    pub fn database_cpu_us_each(&self) -> Option<f64> {
        self.each(self.database_cpu_seconds? * 1e6)
    }

    /// Context switches of the server.
    pub fn switches_each(&self) -> Option<f64> {
        self.each(self.server.switches() as f64)
    }

    fn each(&self, whole: f64) -> Option<f64> {
        let correct = self.counts.correct;
        (correct > 0).then(|| whole / correct as f64)
    }
}

/// A share of the requests, and the time in ns that none of them exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    pub share: f64,
    pub ns: u64,
}

/// A second of the load: what ended in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// Its end in seconds, from the begin of the window.
    pub at: f64,
    pub correct: u64,
    /// Requests that ended otherwise, those that were shed not among them.
    pub failed: u64,
    pub shed: u64,
    /// Response times of correct answers; absent where there were none.
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

impl LoadSecond {
    /// `None` for a second that is not wholly of the window.
    pub fn of(live: &Live, warmup: Duration) -> Option<LoadSecond> {
        let ns = |time: Option<Duration>| time.map(|time| time.as_nanos() as u64);
        let at = live.elapsed.checked_sub(warmup)?;
        let whole = live.phase == Phase::Window && at >= Duration::from_secs(1);
        whole.then(|| LoadSecond {
            at: at.as_secs_f64(),
            correct: live.correct,
            failed: live.failed.saturating_sub(live.shed),
            shed: live.shed,
            p50_ns: ns(live.p50),
            p99_ns: ns(live.p99),
        })
    }
}

/// A closed loop on another workload of the same server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BesideUse {
    pub workload: String,
    pub connections: usize,
    pub requests_per_second: f64,
    pub counts: load::Counts,
}

/// Nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
    pub mean: f64,
}

/// What the server used within the window; `threads` and `rss_bytes` at its end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ServerUse {
    pub cpu_seconds: f64,
    pub threads: u64,
    pub rss_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl ServerUse {
    /// Context switches.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    pub fn rss_mib(&self) -> f64 {
        self.rss_bytes as f64 / f64::from(1 << 20)
    }
}

/// What `pg_stat_statements` counted within the window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DatabaseUse {
    pub calls: u64,
    pub execution_ms: f64,
}

impl DatabaseUse {
    pub fn mean_execution_ms(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.execution_ms / self.calls as f64)
    }
}

/// What the lane's sessions in PostgreSQL were seen doing, sampled five times a second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionUse {
    pub samples: u32,
    /// How many times a session was seen in a state (`idle`, `active`) or, while active, waiting for something
    /// (`Timeout:PgSleep`): the names of `pg_stat_activity`.
    pub doing: BTreeMap<String, u64>,
    /// What watching cost, PostgreSQL's part of it not included.
    pub sampler_cpu_seconds: f64,
}
