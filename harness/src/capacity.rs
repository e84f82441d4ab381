//! `lanebench capacity`: the highest rate at which each lane meets a service level objective.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use stats::{
    Capacity, CapacitySearch, Firmness, Miss, Probe, RateOutcome, SearchedRates, firmness,
};
use workloads::{Catalog, Workload};

use crate::campaign::{DatabaseRecord, Ladder, Plan, ServerRecord, Trial, Window, write_json};
use crate::checks::{Outcome, Verdict};
use crate::cpus::CpuPlan;
use crate::environment::Environment;
use crate::expected::Answers;
use crate::folders::{FolderArgs, Folders};
use crate::process::{Profile, READY_LIMIT};
use crate::progress::Progress;
use crate::provision::DatabaseArgs;
use crate::rig::Rig;
use crate::run::{self, Arrivals};
use crate::rung::Rung;
use crate::server::Server;
use crate::session::{server_records, serving};
use crate::slo::Slo;
use crate::subject::Subject;
use crate::trial::Place;

/// Raised whenever a reader of the previous version would misread the file.
const SCHEMA: u32 = 1;
/// How often a trial that says nothing about the lane is run again.
const RERUNS: usize = 2;
/// No window is made longer than this for want of requests.
const LONGEST_WINDOW: f64 = 70.0;
/// Trials of a search as a rule, for the time left: doubling and bisecting, before the confirmations.
const USUAL_PROBES: usize = 10;

/// Flags of `lanebench capacity`.
#[derive(Debug, Clone, Args)]
pub struct CapacityArgs {
    /// The workload, by name (`lanebench list` shows all)
    #[arg(value_name = "WORKLOAD")]
    pub name: String,

    /// What has to be met: a percentile of the response times, counted from the intended instant, and its limit
    #[arg(long, value_name = "SLO", default_value = "p99<25ms")]
    pub slo: Slo,

    /// Servers, by name [default: all]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// Connections in each server's pool
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub pool: usize,

    /// Threads of the blocking lanes [default: as many as the pool has connections]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Connections to send on [default: eight times the pool]
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,

    /// How the instants of the requests are spread
    #[arg(long, value_enum, default_value = "poisson")]
    pub arrivals: Arrivals,

    /// Settings of the pools
    #[arg(long, value_enum, default_value = "parity")]
    pub profile: Profile,

    /// Seconds of warm-up of every trial
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    pub warmup: f64,

    /// Seconds of every window; more where the percentile would rest on fewer than ten requests beyond it
    #[arg(long, default_value_t = 3.0, value_name = "S")]
    pub window: f64,

    /// Reruns of the highest rate that passes and of the lowest that fails
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub confirmations: usize,

    /// Seed of the requests' parameters and instants
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    /// Folder for the results [default: results/<time>-capacity-<workload>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,
}

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
    fn of(probe: &Probe) -> RateRecord {
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

/// Searches every server's capacity and prints it.
///
/// # Errors
/// Bad usage, an interruption (what was measured is saved), or a failure of the harness, the database or a server.
pub fn run(args: &CapacityArgs, stop: &AtomicBool) -> Result<Verdict> {
    let folders = Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    refuse_impossible(args)?;
    let workload = run::chosen_workloads(std::slice::from_ref(&args.name), &catalog)?.remove(0);
    let servers = run::chosen_servers(&args.servers, &folders)?;
    let folder = run::results_folder(
        args.out.clone(),
        &folders,
        &format!("capacity-{}", args.name),
    )?;
    let plan = plan(args, &workload, &servers)?;
    let mut rig = Rig::open(&plan, servers, folders, &args.database, stop)?;
    let generator = rig.generator(&plan, plan.open_connections)?;
    let mut search = Search {
        record: CapacityRecord {
            schema: SCHEMA,
            lanebench: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            command: std::env::args().collect(),
            slo: args.slo,
            confirmations: args.confirmations,
            environment: rig.environment(),
            database: rig.provisioned.record(),
            servers: server_records(&rig.servers),
            searches: Vec::new(),
            trials: Vec::new(),
            plan,
        },
        file: folder.path().join("capacity.json"),
        folder: folder.path().to_owned(),
        greatest: 0.6 * generator.null_server_per_second,
        workload,
    };
    let ended = search.all(&mut rig, stop);
    search.close(ended)
}

fn refuse_impossible(args: &CapacityArgs) -> Result<()> {
    for (flag, count) in [
        ("--pool", Some(args.pool)),
        ("--threads", args.threads),
        ("--connections", args.connections),
    ] {
        run::refuse_count(flag, count)?;
    }
    run::refuse_seconds("--warmup", Some(args.warmup), 0.0)?;
    run::refuse_seconds("--window", Some(args.window), 0.1)?;
    if !(2..=100).contains(&args.confirmations) {
        bail!(
            "--confirmations {}: it may be 2 to 100; one trial has no spread to judge by",
            args.confirmations
        );
    }
    Ok(())
}

fn plan(args: &CapacityArgs, workload: &Workload, servers: &[Server]) -> Result<Plan> {
    Ok(Plan {
        ladders: vec![Ladder {
            workload: workload.name.clone(),
            definition: run::definition(workload),
            rungs: Vec::new(),
        }],
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        profiles: vec![args.profile],
        preset: "capacity".to_owned(),
        pool: args.pool,
        threads: args.threads,
        blocks: 1,
        most_blocks: 1,
        warmup_seconds: args.warmup,
        window_seconds: args.window,
        poisson: args.arrivals == Arrivals::Poisson,
        seed: args.seed,
        cpus: CpuPlan::for_this_machine()?,
        shares: Vec::new(),
        open_connections: args.connections.unwrap_or(8 * args.pool),
    })
}

struct Search {
    record: CapacityRecord,
    folder: PathBuf,
    file: PathBuf,
    /// Beyond this rate the generator would measure itself.
    greatest: f64,
    workload: Workload,
}

impl Search {
    fn all(&mut self, rig: &mut Rig, stop: &AtomicBool) -> Result<()> {
        let plan = self.record.plan.clone();
        let subjects = rig.subjects(&plan, READY_LIMIT, stop)?;
        let answers = Answers::derive(&self.workload, &rig.provisioned.database.url, plan.seed)?;
        let subjects = serving(&subjects, &self.workload);
        if subjects.is_empty() {
            bail!("no server serves {}", self.workload.name);
        }
        let planned = Duration::from_secs_f64(plan.load_seconds() + 0.8);
        let mut progress = Progress::start(0, planned);
        for (index, subject) in subjects.iter().enumerate() {
            let mut lane = Lane {
                rig,
                subject,
                answers: &answers,
                stop,
                progress: &mut progress,
                servers_after: subjects.len() - index - 1,
                trials: 0,
                doubtful: 0,
            };
            let found = self.of(&mut lane)?;
            self.record.searches.push(found);
            self.save()?;
        }
        progress.finish();
        Ok(())
    }

    fn of(&mut self, lane: &mut Lane<'_>) -> Result<SearchRecord> {
        let connections = 2 * self.record.plan.pool;
        let closed = self.trial(
            lane,
            Rung::Closed { connections },
            self.record.plan.window_seconds,
        )?;
        let closed_loop = self.window(lane, &closed)?.requests_per_second;
        let greatest = self.greatest.min(2.0 * closed_loop);
        let rates = SearchedRates {
            least: (closed_loop / 256.0).min(greatest),
            start: (closed_loop / 2.0).min(greatest),
            greatest,
        };
        let limit = self.record.slo.limit_seconds;
        let search = CapacitySearch::new(limit, rates, self.record.confirmations);
        let search = search.with_context(|| {
            format!(
                "{} answered nothing, so there is nothing to search",
                lane.subject.label()
            )
        })?;
        let capacity: Capacity = search.run(|rate| self.at(lane, rate))?;
        Ok(SearchRecord {
            server: lane.subject.label(),
            closed_loop,
            passes: capacity.highest_pass.as_ref().map(RateRecord::of),
            fails: capacity.lowest_fail.as_ref().map(RateRecord::of),
            trials: lane.trials,
            doubtful: lane.doubtful,
        })
    }

    /// One trial at a rate; again where it says nothing about the lane.
    fn at(&mut self, lane: &mut Lane<'_>, rate: f64) -> Result<RateOutcome> {
        let connections = self.record.plan.open_connections;
        let seconds = self.window_seconds(rate);
        let mut trial = self.trial(lane, Rung::Open { rate, connections }, seconds)?;
        for _ in 0..RERUNS {
            if trial.verdict == Verdict::Invalid {
                trial = self.trial(lane, Rung::Open { rate, connections }, seconds)?;
            }
        }
        lane.doubtful += usize::from(trial.verdict == Verdict::Invalid);
        let slo = self.record.slo;
        Ok(outcome(self.window(lane, &trial)?, rate, slo))
    }

    /// Long enough for ten requests beyond the percentile.
    fn window_seconds(&self, rate: f64) -> f64 {
        let beyond = 1.0 - self.record.slo.percentile.quantile();
        let needed = 10.5 / beyond / rate;
        needed.clamp(
            self.record.plan.window_seconds,
            LONGEST_WINDOW.max(self.record.plan.window_seconds),
        )
    }

    fn trial(&mut self, lane: &mut Lane<'_>, rung: Rung, seconds: f64) -> Result<Trial> {
        let plan = Plan {
            window_seconds: seconds,
            ..self.record.plan.clone()
        };
        let place = Place {
            rung,
            // Another seed of the instants each time, and the same for every server.
            block: lane.trials,
            attempt: 0,
            position: 0,
        };
        lane.progress
            .expect(lane.expected(self.record.confirmations));
        let what = format!("{} {}, {rung}", self.workload.name, lane.subject.label());
        lane.progress.trial_starts(&what);
        let of = (&self.workload, lane.answers);
        let trial = lane
            .rig
            .trial(&plan, lane.subject, of, place, None, lane.stop)?;
        lane.trials += 1;
        lane.progress
            .trial_ended(&format!("{what}: {}", self.summary(&trial)));
        self.record.trials.push(trial.clone());
        self.save()?;
        Ok(trial)
    }

    fn summary(&self, trial: &Trial) -> String {
        let slo = self.record.slo;
        let seen = trial.window.as_ref().map_or("-".to_owned(), |window| {
            let seen = slo.percentile.of(window.response_ns).as_secs_f64() * 1e3;
            format!(
                "{:.0}/s, {} {seen:.2} ms",
                window.requests_per_second,
                slo.percentile.name()
            )
        });
        format!("{seen}, {}", trial.verdict.name())
    }

    /// A lane that breaks its contract has no capacity.
    fn window<'t>(&self, lane: &Lane<'_>, trial: &'t Trial) -> Result<&'t Window> {
        let tripped = trial.checks.iter().find(|check| {
            check.outcome == Outcome::Tripped && check.verdict == Verdict::Misconfigured
        });
        match (&trial.window, tripped) {
            (Some(window), None) => Ok(window),
            (_, tripped) => {
                let check = tripped.or_else(|| {
                    trial
                        .checks
                        .iter()
                        .find(|check| check.outcome == Outcome::Tripped)
                });
                let why = check.map_or("no window took place", |check| check.figure.as_str());
                bail!(
                    "{} at {}: {}: {why}",
                    lane.subject.label(),
                    trial.rung,
                    trial.verdict.name()
                )
            }
        }
    }

    fn save(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make the results folder {}", self.folder.display()))?;
        write_json(&self.file, &self.record)
    }

    fn close(self, ended: Result<()>) -> Result<Verdict> {
        for search in &self.record.searches {
            println!("{}", sentence(&self.record, search));
        }
        if !self.record.trials.is_empty() {
            eprintln!("results: {}", self.file.display());
        }
        ended?;
        let doubtful = self
            .record
            .searches
            .iter()
            .any(|search| search.doubtful > 0);
        Ok(if doubtful {
            Verdict::Invalid
        } else {
            Verdict::Valid
        })
    }
}

/// One server under search.
struct Lane<'a> {
    rig: &'a mut Rig,
    subject: &'a Subject,
    answers: &'a Answers,
    stop: &'a AtomicBool,
    progress: &'a mut Progress,
    servers_after: usize,
    trials: usize,
    doubtful: usize,
}

impl Lane<'_> {
    /// Trials to come, as far as can be foreseen.
    fn expected(&self, confirmations: usize) -> usize {
        let usual = USUAL_PROBES + 2 * confirmations;
        usual.saturating_sub(self.trials).max(1) + self.servers_after * usual
    }
}

/// What the search needs to know of a window.
fn outcome(window: &Window, rate: f64, slo: Slo) -> RateOutcome {
    let counts = &window.counts;
    let quantile = slo.percentile.quantile();
    let enough = firmness(quantile, counts.scheduled) != Firmness::Absent;
    let percentile = slo.percentile.of(window.response_ns).as_secs_f64();
    RateOutcome {
        percentile_seconds: enough.then_some(percentile),
        errors: counts.failed(),
        completed_share: counts.correct as f64 / counts.scheduled.max(1) as f64,
        backlog_grew: backlog_grew(window, rate),
    }
}

/// Whether more requests were under way at the window's end than at its start, by more than chance: 1 % of all of them,
/// and four standard deviations of the difference of two Poisson numbers with the mean that Little's law gives.
fn backlog_grew(window: &Window, rate: f64) -> bool {
    let arrived = window.counts.scheduled as f64;
    let left = window.requests_per_second * window.seconds + window.counts.failed() as f64;
    let under_way = rate * window.response_ns.mean / 1e9;
    arrived - left > 0.01 * arrived + 4.0 * (2.0 * under_way).sqrt()
}

fn sentence(record: &CapacityRecord, search: &SearchRecord) -> String {
    let (slo, server) = (record.slo, &search.server);
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
        (None, Some(fails)) => format!("fails at {}, and at every rate that was tried", end(fails)),
        (None, None) => "was not measured".to_owned(),
    };
    let doubtful = match search.doubtful {
        0 => String::new(),
        count => format!("; {count} of them INVALID, and used all the same"),
    };
    format!(
        "{}, {slo}: {server} {found}; {} trials, each end confirmed by {}{doubtful}",
        record.plan.ladders[0].workload, search.trials, record.confirmations
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn window(scheduled: u64, in_window: f64, mean_ms: f64) -> Window {
        let latency = json!({ "p50": 1, "p90": 1, "p99": 24_000_000, "p99_9": 1, "max": 1, "mean": mean_ms * 1e6 });
        let counts = load::Counts {
            scheduled,
            correct: scheduled,
            ..load::Counts::default()
        };
        let window = json!({
            "seconds": 3.0, "requests_per_second": in_window / 3.0, "response_ns": latency, "service_ns": latency,
            "counts": counts, "errors": [], "generator_cpu_seconds": 0.1, "transactions_per_request": 1.0,
            "server": { "cpu_seconds": 1.0, "threads": 2, "rss_bytes": 1, "voluntary_switches": 1,
                "involuntary_switches": 1 },
            "sessions": { "samples": 0, "doing": {}, "sampler_cpu_seconds": 0.0 }, "series": [],
        });
        serde_json::from_value(window).unwrap()
    }

    #[test]
    fn a_backlog_grows_when_more_is_left_than_chance_explains() {
        // 1,440/s of 12 ms: 17 under way on average, so that 24 more or fewer are chance, and 43 are 1 %.
        assert!(!backlog_grew(&window(4_320, 4_320.0, 12.0), 1_440.0));
        assert!(!backlog_grew(&window(4_320, 4_270.0, 12.0), 1_440.0));
        // 1,700/s offered to a pool that can do 1,600.
        assert!(backlog_grew(&window(5_100, 4_800.0, 90.0), 1_700.0));
    }

    #[test]
    fn a_percentile_that_rests_on_too_few_requests_is_not_measured() {
        let slo: Slo = "p99<25ms".parse().unwrap();
        assert_eq!(
            outcome(&window(900, 900.0, 12.0), 300.0, slo).percentile_seconds,
            None
        );
        let enough = outcome(&window(1_100, 1_100.0, 12.0), 367.0, slo);
        assert_eq!(enough.percentile_seconds, Some(0.024));
        assert_eq!((enough.errors, enough.completed_share), (0, 1.0));
    }
}
