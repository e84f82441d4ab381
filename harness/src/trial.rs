//! One trial: a fresh server, verification, warm-up, one window, drain, and the checks. The only module that knows
//! all the parts.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use load::{Arrivals, End, Event, Histogram, LoadError, Outcome, Pacing};
use workloads::Workload;

use crate::campaign::{DatabaseUse, Latency, Plan, ServerUse, Trial, Window};
use crate::checks::{self, Check};
use crate::cpu_time;
use crate::expected::Answers;
use crate::inspection::{self, WrongAnswers};
use crate::monitor::{Monitor, Statements};
use crate::process::{Profile, RunningServer, Usage};
use crate::provision::Provisioned;
use crate::rung::Rung;
use crate::signals::Interrupted;
use crate::subject::Subject;

/// A request that takes longer than any sane queue is a timeout.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the requests in flight at the window's end may take.
const DRAIN: Duration = Duration::from_secs(10);

/// Where a trial stands in its campaign.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub rung: Rung,
    pub block: usize,
    pub attempt: usize,
    pub position: usize,
}

/// What all trials of a campaign share.
#[derive(Debug)]
pub struct Bench<'a> {
    pub plan: &'a Plan,
    pub provisioned: &'a mut Provisioned,
    pub stop: &'a AtomicBool,
}

/// Runs one trial. What the server does wrong becomes the trial's verdict.
///
/// # Errors
/// An interruption, or a failure of the harness or the database.
pub fn run(
    bench: &mut Bench<'_>,
    subject: &Subject,
    (workload, answers): (&Workload, &Answers),
    place: Place,
    interval_log: Option<&Path>,
) -> Result<Trial> {
    let started_at = jiff::Timestamp::now().to_string();
    bench.provisioned.monitor.wait_until_alone(bench.stop)?;
    let before = Totals::read(&mut bench.provisioned.monitor)?;
    let (checks, window) = match measure(bench, subject, (workload, answers), place, interval_log) {
        Ok(measured) => judge(bench, subject, (workload, answers), measured, before)?,
        Err(error) => (vec![blame(error)?], None),
    };
    Ok(Trial {
        workload: workload.name.clone(),
        server: subject.server.name.clone(),
        profile: subject.settings.profile,
        rung: place.rung,
        block: place.block,
        attempt: place.attempt,
        position: place.position,
        started_at,
        verdict: checks::verdict(&checks),
        checks,
        window,
    })
}

/// A server's failure is a row; an interruption or a lost database is not.
fn blame(error: anyhow::Error) -> Result<Check> {
    let is_ours = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<postgres::Error>()
            || matches!(cause.downcast_ref(), Some(LoadError::Invalid(_)))
    };
    if error.is::<Interrupted>() || error.chain().any(is_ours) {
        return Err(error);
    }
    if let Some(wrong) = error.downcast_ref::<WrongAnswers>() {
        return Ok(checks::body(0, 0, Some(&wrong.to_string())));
    }
    Ok(checks::contract_broken(format!("{error:#}")))
}

/// Counters that run for the whole life of the database.
#[derive(Debug, Clone, Copy)]
struct Totals {
    statements: Option<Statements>,
    commits: u64,
}

impl Totals {
    fn read(monitor: &mut Monitor) -> Result<Totals> {
        Ok(Totals {
            statements: monitor.statements()?,
            commits: monitor.commits()?,
        })
    }
}

/// What the window's two edges saw, and the load between them.
#[derive(Debug)]
struct Measured {
    outcome: Outcome,
    first_failure: Option<String>,
    /// Right answers over the server's whole life.
    answered: u64,
    verified: u64,
    start: Edge,
    end: Edge,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    usage: Usage,
    server_cpu: Option<Duration>,
    database_cpu: Option<Duration>,
    statements: Option<Statements>,
    sessions: u64,
}

fn measure(
    bench: &mut Bench<'_>,
    subject: &Subject,
    (workload, answers): (&Workload, &Answers),
    place: Place,
    interval_log: Option<&Path>,
) -> Result<Measured> {
    let server = RunningServer::start(
        &subject.server,
        &subject.settings,
        &bench.provisioned.run_folder,
        bench.stop,
    )?;
    let verified = inspection::verify(server.address, answers, bench.stop)?;
    let plan = load::Plan {
        connections: place.rung.connections(),
        pacing: pacing(bench.plan, place),
        end: End::Timed {
            warmup: Duration::from_secs_f64(bench.plan.warmup_seconds),
            window: Duration::from_secs_f64(bench.plan.window_seconds),
            drain: DRAIN,
        },
        request_timeout: REQUEST_TIMEOUT,
        cpus: bench.plan.cpus.generator.clone(),
        keep_failures: 1,
        interval_log: interval_log.map(Path::to_owned),
        ..load::Plan::new(
            server.address,
            server.address.to_string(),
            answers.hashed()?,
        )
    };
    let mut edges = Vec::with_capacity(2);
    let outcome = load::run(
        &plan,
        &mut |event| {
            if matches!(event, Event::WindowStart | Event::WindowEnd) {
                edges.push(edge(&server, bench.provisioned));
            }
        },
        bench.stop,
    )?;
    crate::signals::check(bench.stop)?;
    let first_failure = inspection::first_failure(&outcome, answers);
    let mut edges = edges.into_iter();
    let (Some(start), Some(end)) = (edges.next(), edges.next()) else {
        anyhow::bail!(
            "workload `{}`: the window did not take place",
            workload.name
        )
    };
    let (start, end) = (start?, end?);
    let answered = verified + outcome.warmup.correct + outcome.counts.correct;
    server.stop()?;
    Ok(Measured {
        outcome,
        first_failure,
        answered,
        verified,
        start,
        end,
    })
}

fn pacing(plan: &Plan, place: Place) -> Pacing {
    match place.rung {
        Rung::Closed { .. } => Pacing::Closed {
            think: Duration::ZERO,
        },
        Rung::Open { rate, .. } if plan.poisson => Pacing::Open {
            rate,
            // The same instants for every server of a block.
            arrivals: Arrivals::Poisson {
                seed: plan.seed.wrapping_add(place.block as u64),
            },
        },
        Rung::Open { rate, .. } => Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        },
    }
}

fn edge(server: &RunningServer, provisioned: &mut Provisioned) -> Result<Edge> {
    let Provisioned {
        database, monitor, ..
    } = provisioned;
    Ok(Edge {
        usage: server.usage()?,
        server_cpu: cpu_time::of_process(server.pid()),
        database_cpu: database.postmaster_pid.and_then(cpu_time::of_family),
        statements: monitor.statements()?,
        sessions: monitor.sessions()?,
    })
}

fn judge(
    bench: &mut Bench<'_>,
    subject: &Subject,
    (workload, answers): (&Workload, &Answers),
    measured: Measured,
    before: Totals,
) -> Result<(Vec<Check>, Option<Window>)> {
    bench.provisioned.monitor.wait_until_alone(bench.stop)?;
    let after = Totals::read(&mut bench.provisioned.monitor)?;
    let startup = subject.startup;
    let calls = after
        .statements
        .zip(before.statements)
        .zip(startup.statements)
        .map(|((after, before), startup)| after.since(before).since(startup).calls);
    let commits = (after.commits - before.commits).saturating_sub(startup.transactions);
    let window = window(&measured, calls, commits, answers.delay_ms);
    let counts = &measured.outcome.counts;
    let mut all = vec![
        checks::http(counts),
        checks::body(
            measured.verified as usize,
            counts.wrong,
            measured
                .first_failure
                .as_deref()
                .filter(|_| counts.wrong > 0),
        ),
        checks::queries(
            calls,
            measured.answered,
            workload.expect.statements,
            bench
                .provisioned
                .monitor
                .unobserved()
                .unwrap_or("pg_stat_statements"),
        ),
    ];
    if subject.settings.profile == Profile::Parity {
        all.push(checks::pool(
            &[measured.start.sessions, measured.end.sessions],
            subject.settings.pool,
        ));
        all.push(checks::transactions(
            commits,
            measured.answered,
            workload.expect.transactions,
        ));
    }
    if let Some(delay_ms) = answers.delay_ms {
        all.push(checks::ceiling(
            window.requests_per_second,
            subject.settings.pool,
            delay_ms,
        ));
    }
    Ok((all, Some(window)))
}

fn window(measured: &Measured, calls: Option<u64>, commits: u64, delay_ms: Option<f64>) -> Window {
    let Measured {
        outcome,
        start,
        end,
        ..
    } = measured;
    let seconds = outcome.window.as_secs_f64();
    let per_request = |count: u64| count as f64 / measured.answered.max(1) as f64;
    let cpu = |start: Option<Duration>, end: Option<Duration>| {
        Some(end?.saturating_sub(start?).as_secs_f64())
    };
    Window {
        seconds,
        requests_per_second: outcome.achieved_rate(),
        response_ns: latency(&outcome.response_with_bounds()),
        service_ns: latency(&outcome.service),
        counts: outcome.counts,
        errors: outcome
            .errors
            .iter()
            .map(|(kind, &count)| (kind.to_string(), count))
            .collect(),
        server: ServerUse {
            cpu_seconds: cpu(start.server_cpu, end.server_cpu).unwrap_or(0.0),
            threads: end.usage.threads,
            rss_bytes: end.usage.rss_bytes,
            voluntary_switches: end
                .usage
                .voluntary_switches
                .saturating_sub(start.usage.voluntary_switches),
            involuntary_switches: end
                .usage
                .involuntary_switches
                .saturating_sub(start.usage.involuntary_switches),
        },
        database_cpu_seconds: cpu(start.database_cpu, end.database_cpu),
        database: end.statements.zip(start.statements).map(|(end, start)| {
            let Statements {
                calls,
                execution_ms,
            } = end.since(start);
            DatabaseUse {
                calls,
                execution_ms,
            }
        }),
        delay_ms,
        generator_cpu_seconds: outcome.cpu.as_secs_f64(),
        statements_per_request: calls.map(per_request),
        transactions_per_request: per_request(commits),
    }
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
