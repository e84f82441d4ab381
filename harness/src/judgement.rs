//! From what a trial measured to the checks of its row and to what the row records.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use load::{Histogram, Outcome, RequestCounts};
use workloads::Workload;

use crate::attach;
use crate::audit;
use crate::beside::Beside;
use crate::campaign::{
    DatabaseUse, Latency, LoadSecond, Percentile, ServerUse, SessionUse, Window,
};
use crate::checks::{self, Check, Code, Held, Lifetime, Regular, Seen, Throughput};
use crate::cpu_time;
use crate::cpus::CpuPlan;
use crate::database::Database;
use crate::expected::{Answers, Cost, Delay, Holds};
use crate::inspection::Verified;
use crate::machine::{self, CpuTicks, Pressure, Throttling};
use crate::monitor::{Monitor, Queries, Statements, Vitals};
use crate::process::{Profile, RunningServer, Usage};
use crate::rung::Rung;
use crate::sampler::Sampled;
use crate::stages::Stages;
use crate::subject::Subject;

/// Points of a percentile plot from one share of the requests to the next, beyond which half as many are left.
const STEPS_TO_HALF: u32 = 2;

/// Counters that run for the whole life of the database.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    statements: Option<Statements>,
    commits: u64,
}

impl Totals {
    /// # Errors
    /// The connection is lost.
    pub fn read(monitor: &mut Monitor) -> Result<Totals> {
        Ok(Totals {
            statements: monitor.statements()?,
            commits: monitor.commits()?,
        })
    }
}

/// What is read at both edges of a window, found beforehand so that an edge takes no longer than it must.
#[derive(Debug)]
pub struct Gauges {
    /// None where the server was attached to: it is observed by its own account alone.
    server: Option<u32>,
    postmaster: Option<u32>,
    cpus: Vec<usize>,
    throttling: Seen<Throttling>,
    pressure: Seen<Pressure>,
}

impl Gauges {
    pub fn of(server: &RunningServer, database: &Database, plan: &CpuPlan) -> Gauges {
        let (own, server) = (std::process::id(), server.pid());
        let postmaster = database.postmaster_pid;
        let others: Vec<u32> = server.into_iter().chain(postmaster).collect();
        let limited: Vec<u32> = std::iter::once(own).chain(server).collect();
        Gauges {
            server,
            postmaster,
            cpus: machine::cpus_of(plan),
            throttling: Throttling::of(&limited),
            pressure: Pressure::of(own, &others),
        }
    }

    /// # Errors
    /// The server does not answer, or the connection to the database is lost.
    pub fn read(&self, server: &RunningServer, monitor: &mut Monitor) -> Result<Edge> {
        let usage = server.usage()?;
        let by_its_account = usage
            .cpu_seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Edge {
            server_cpu: match self.server {
                Some(server) => cpu_time::of_process(server),
                None => by_its_account,
            },
            usage,
            server_seen: self.server.is_some(),
            database_cpu: self.postmaster.and_then(cpu_time::of_family),
            server_started: self.server.and_then(machine::started),
            ticks: CpuTicks::now(&self.cpus),
            throttled: self
                .throttling
                .as_ref()
                .map(Throttling::periods)
                .map_err(Clone::clone),
            waited_us: self
                .pressure
                .as_ref()
                .map_err(Clone::clone)
                .and_then(Pressure::waited_us),
            vitals: monitor.vitals()?,
            statements: monitor.statements()?,
            at: Instant::now(),
        })
    }
}

/// The readings at one edge.
#[derive(Debug)]
pub struct Edge {
    usage: Usage,
    server_cpu: Option<Duration>,
    /// Whether its process is one of ours.
    server_seen: bool,
    database_cpu: Option<Duration>,
    server_started: Option<u64>,
    ticks: Seen<CpuTicks>,
    throttled: Seen<u64>,
    waited_us: Seen<u64>,
    vitals: Vitals,
    statements: Option<Statements>,
    /// When the statements were read.
    at: Instant,
}

/// A trial's load, with what was seen around and within it.
#[derive(Debug)]
pub struct Measured {
    pub outcome: Outcome,
    /// The window of the load, second by second.
    pub seconds: Vec<LoadSecond>,
    /// The first failed request, in words.
    pub first_failure: Option<String>,
    /// Before the load.
    pub verified: Verified,
    /// What went on beside it.
    pub beside: Option<Beside>,
    pub start: Edge,
    pub end: Edge,
    pub sampled: Sampled,
    /// Before the server was started.
    pub before: Totals,
    /// Once the server was ready.
    pub when_ready: Option<Queries>,
}

impl Measured {
    /// What all requests over the server's whole life should have cost.
    fn asked(&self, answers: &Answers) -> Cost {
        let own = answers.cost(&self.by_request());
        match &self.beside {
            Some(beside) => own.plus(beside.cost),
            None => own,
        }
    }

    /// Every request over the server's whole life.
    fn by_request(&self) -> Vec<RequestCounts> {
        let sum = |(verified, loaded): (&RequestCounts, &RequestCounts)| RequestCounts {
            sent: verified.sent + loaded.sent,
            correct: verified
                .correct
                .iter()
                .zip(&loaded.correct)
                .map(|(verified, loaded)| verified + loaded)
                .collect(),
        };
        let both = self
            .verified
            .by_request
            .iter()
            .zip(&self.outcome.by_request);
        both.map(sum).collect()
    }

    /// Right answers over the server's whole life.
    fn answered(&self) -> u64 {
        self.verified.answered + self.outcome.warmup.correct + self.outcome.counts.correct
    }
}

/// What PostgreSQL counted over the server's whole life.
///
/// Of a server that was attached to it is the time of the trial, which no start or stop is part of.
struct WholeLife {
    /// Without what a start and a stop cost.
    statements: Option<Statements>,
    commits: Seen<u64>,
    since_ready: Option<Queries>,
}

impl WholeLife {
    fn read(subject: &Subject, measured: &Measured, monitor: &mut Monitor) -> Result<WholeLife> {
        let after = Totals::read(monitor)?;
        let startup = subject.startup;
        let statements = after
            .statements
            .zip(measured.before.statements)
            .zip(startup.statements)
            .map(|((after, before), startup)| after.since(before).since(startup));
        let commits = after.commits.saturating_sub(measured.before.commits);
        let queries = monitor.queries()?;
        Ok(WholeLife {
            statements,
            commits: match subject.server.attached {
                None => Ok(commits.saturating_sub(startup.transactions)),
                Some(_) => Err(attach::LATE_TRANSACTIONS.to_owned()),
            },
            since_ready: queries
                .zip(measured.when_ready.as_ref())
                .map(|(after, ready)| after.since(ready)),
        })
    }
}

/// Judges a trial whose server has ended.
///
/// # Errors
/// Sessions of the server stay open, the database is lost, or an interruption.
pub fn judge(
    subject: &Subject,
    (workload, answers): (&Workload, &Answers),
    rung: Rung,
    measured: Measured,
    monitor: &mut Monitor,
    stop: &AtomicBool,
) -> Result<(Vec<Check>, Window)> {
    monitor.wait_until_alone(stop)?;
    let life = WholeLife::read(subject, &measured, monitor)?;
    let unobserved = monitor.unobserved().unwrap_or("pg_stat_statements");
    let mut all = vec![checks::contract_kept(subject.server.attached.is_some())];
    all.extend(of_the_load(&measured, rung));
    all.extend(of_the_machine(&measured));
    all.extend(of_the_sessions(subject, workload, &measured));
    all.extend(of_the_statements(
        subject, answers, &measured, &life, unobserved,
    ));
    let audited = audit::applies(workload)
        .then(|| {
            let url = &subject.settings.database_url;
            audit::audit(workload, answers, &measured.by_request(), url)
        })
        .transpose()?;
    all.push(checks::audit(audited.as_ref()));
    all.push(ceiling(subject, answers.delay, rung, &measured, &life));
    let delay = answers
        .delay
        .filter(|delay| delay.holds != Holds::Nothing)
        .map(|delay| delay.milliseconds);
    let window = window(measured, &life, delay);
    Ok((checks::complete(all, "it was not looked at"), window))
}

fn ceiling(
    subject: &Subject,
    delay: Option<Delay>,
    rung: Rung,
    measured: &Measured,
    life: &WholeLife,
) -> Check {
    let at_a_time = match delay.map(|delay| delay.holds) {
        Some(Holds::Nothing) => rung.connections(),
        _ => rung.at_a_time(subject.settings.pool),
    };
    let throughput = Throughput {
        per_second: measured.outcome.achieved_rate(),
        window: measured.outcome.window,
        at_a_time,
    };
    let mean_ms = || life.since_ready.as_ref()?.longest()?.mean_ms();
    let service = &measured.outcome.service;
    let held = delay.map(|delay| Held {
        delay_ms: delay.milliseconds,
        mean_ms: match delay.holds {
            Holds::Statement => mean_ms(),
            Holds::Connection | Holds::Nothing => None,
        },
        fastest_ms: (!service.is_empty()).then(|| service.min() as f64 / 1e6),
    });
    checks::ceiling(throughput, held)
}

fn of_the_load(measured: &Measured, rung: Rung) -> Vec<Check> {
    let outcome = &measured.outcome;
    let counts = &outcome.counts;
    let generator = checks::generator(&outcome.checks, rung.is_open());
    let saturated = checks::tripped(&generator);
    let first_wrong = measured
        .first_failure
        .as_deref()
        .filter(|_| counts.wrong > 0);
    vec![
        generator,
        checks::rate(counts, &outcome.connections, rung.is_open(), saturated),
        checks::http(counts),
        checks::body(measured.verified.answered, counts.wrong, first_wrong),
        checks::little(outcome.little_residual),
    ]
}

fn of_the_machine(measured: &Measured) -> Vec<Check> {
    let Measured { start, end, .. } = measured;
    let between = (end.at - start.at).as_secs_f64();
    let server = lifetime(start, end, between);
    let stolen = both(&start.ticks, &end.ticks).map(|(start, end)| end.stolen_since(start));
    let throttled =
        both(&start.throttled, &end.throttled).map(|(start, end)| end.saturating_sub(start));
    let waited = both(&start.waited_us, &end.waited_us)
        .map(|(start, end)| end.saturating_sub(start) as f64 / (between * 1e6));
    vec![
        checks::restart(server, (start.vitals.started, end.vitals.started)),
        checks::steal(stolen),
        checks::throttle(throttled, start.server_seen),
        checks::pressure(waited),
    ]
}

fn lifetime(start: &Edge, end: &Edge, between: f64) -> Seen<Lifetime> {
    let uptimes = end.usage.uptime_seconds.zip(start.usage.uptime_seconds);
    match (start.server_started, uptimes) {
        (Some(started), _) => Ok(Lifetime::Ticks {
            start: started,
            end: end.server_started,
        }),
        (None, Some((now, before))) if !start.server_seen => Ok(Lifetime::Uptime {
            grew: now - before,
            between,
        }),
        (None, _) => Err("neither /proc nor /usage tells".to_owned()),
    }
}

fn both<T: Copy>(start: &Seen<T>, end: &Seen<T>) -> Seen<(T, T)> {
    match (start, end) {
        (Ok(start), Ok(end)) => Ok((*start, *end)),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    }
}

fn of_the_sessions(subject: &Subject, workload: &Workload, measured: &Measured) -> Vec<Check> {
    let activity = &measured.sampled.activity;
    let begun = measured.start.vitals.checkpoints;
    let checkpoints = measured.end.vitals.checkpoints.saturating_sub(begun);
    let pool = match subject.settings.profile {
        Profile::Parity => checks::pool(activity, subject.settings.pool),
        Profile::Defaults => checks::does_not_apply(
            Code::Pool,
            "as it ships a pool may open and close connections",
        ),
    };
    // Writing makes work for both: it is part of what a workload costs that writes.
    let own = |code| checks::does_not_apply(code, "the workload writes");
    let (checkpoints, vacuum) = match workload.writes() {
        true => (own(Code::Ckpt), own(Code::Vacuum)),
        false => (checks::checkpoints(checkpoints), checks::vacuum(activity)),
    };
    vec![checkpoints, vacuum, checks::foreign(activity), pool]
}

fn of_the_statements(
    subject: &Subject,
    answers: &Answers,
    measured: &Measured,
    life: &WholeLife,
    unobserved: &str,
) -> Vec<Check> {
    let Measured { start, end, .. } = measured;
    let unobserved = || unobserved.to_owned();
    let in_window = end
        .statements
        .zip(start.statements)
        .map(|(end, start)| end.since(start));
    let counted = life.statements.zip(life.since_ready.as_ref());
    let asked = measured.asked(answers);
    let regular = answers.statements_of_each.map(|statements| Regular {
        answered: measured.answered(),
        statements,
    });
    let transactions = match subject.settings.profile {
        Profile::Parity => checks::transactions(life.commits.clone(), asked.transactions),
        Profile::Defaults => checks::does_not_apply(Code::Xact, "as it ships a pool may ping"),
    };
    vec![
        checks::busy(
            in_window.ok_or_else(unobserved),
            end.at - start.at,
            subject.settings.pool,
        ),
        checks::queries(
            counted.ok_or_else(unobserved),
            asked,
            regular,
            subject.settings.profile,
        ),
        transactions,
    ]
}

fn window(measured: Measured, life: &WholeLife, delay_ms: Option<f64>) -> Window {
    let answered = measured.answered();
    let Measured {
        outcome,
        seconds,
        start,
        end,
        sampled,
        beside,
        ..
    } = measured;
    let per_request = |count: u64| count as f64 / answered.max(1) as f64;
    let cpu = |start: Option<Duration>, end: Option<Duration>| {
        Some(end?.saturating_sub(start?).as_secs_f64())
    };
    let response = outcome.response_with_bounds();
    Window {
        seconds: outcome.window.as_secs_f64(),
        requests_per_second: outcome.achieved_rate(),
        response_ns: latency(&response),
        service_ns: latency(&outcome.service),
        counts: outcome.counts,
        errors: outcome
            .errors
            .iter()
            .map(|(kind, &count)| (kind.to_string(), count))
            .collect(),
        server: server_use(&start, &end),
        stages: start
            .usage
            .timings
            .as_ref()
            .zip(end.usage.timings.as_ref())
            .and_then(|(start, end)| Stages::between(start, end)),
        database_cpu_seconds: cpu(start.database_cpu, end.database_cpu),
        database: end.statements.zip(start.statements).map(|(end, start)| {
            let Statements {
                calls,
                rows: _,
                execution_ms,
            } = end.since(start);
            DatabaseUse {
                calls,
                execution_ms,
            }
        }),
        sessions: SessionUse {
            samples: sampled.activity.samples,
            doing: sampled.activity.doing,
            sampler_cpu_seconds: sampled.cpu.as_secs_f64(),
        },
        delay_ms,
        beside: beside.map(|beside| beside.used),
        generator_cpu_seconds: outcome.cpu.as_secs_f64(),
        statements_per_request: life
            .statements
            .map(|statements| per_request(statements.calls)),
        transactions_per_request: life
            .commits
            .as_ref()
            .ok()
            .map(|&commits| per_request(commits)),
        series: sampled.seconds,
        load: seconds,
        response_percentiles: percentiles(&response),
        service_percentiles: percentiles(&outcome.service),
    }
}

fn server_use(start: &Edge, end: &Edge) -> ServerUse {
    let cpu = end
        .server_cpu
        .zip(start.server_cpu)
        .map_or(Duration::ZERO, |(end, start)| end.saturating_sub(start));
    let (before, now) = (&start.usage, &end.usage);
    ServerUse {
        cpu_seconds: cpu.as_secs_f64(),
        threads: now.threads,
        rss_bytes: now.rss_bytes,
        voluntary_switches: now
            .voluntary_switches
            .saturating_sub(before.voluntary_switches),
        involuntary_switches: now
            .involuntary_switches
            .saturating_sub(before.involuntary_switches),
    }
}

fn percentiles(times: &Histogram<u64>) -> Vec<Percentile> {
    times
        .iter_quantiles(STEPS_TO_HALF)
        .map(|step| Percentile {
            share: step.quantile_iterated_to(),
            ns: step.value_iterated_to(),
        })
        .collect()
}

fn latency(times: &Histogram<u64>) -> Latency {
    Latency {
        p50: times.value_at_quantile(0.50),
        p90: times.value_at_quantile(0.90),
        p99: times.value_at_quantile(0.99),
        p99_9: times.value_at_quantile(0.999),
        max: times.max(),
        mean: times.mean(),
    }
}
