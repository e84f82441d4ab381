//! One trial: a fresh server, verification, warm-up, one window, drain, and the judgement. The only module that knows
//! all the parts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::Result;
use load::{Arrivals, End, Event, LoadError, Pacing, Records};
use workloads::Workload;

use crate::beside::MARGIN;
use crate::campaign::{LoadSecond, Plan, Trial};
use crate::checks::{self, Check};
use crate::expected::Answers;
use crate::inspection::{self, WrongAnswers};
use crate::judgement::{self, Gauges, Measured, Totals};
use crate::notice;
use crate::process::RunningServer;
use crate::provision::Provisioned;
use crate::rung::Rung;
use crate::sampler::{Sampler, Watched};
use crate::signals::{self, Interrupted};
use crate::subject::Subject;

/// A request that takes longer than any sane queue is a timeout.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the requests in flight at the window's end may take.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
/// Memory for per-request records that are not written yet.
const RECORD_MEMORY: usize = 32 << 20;

/// Where a trial stands in its campaign.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub rung: Rung,
    pub block: usize,
    pub attempt: usize,
    pub position: usize,
}

/// Who looks on while a trial runs.
#[derive(Default)]
pub struct Witness<'a> {
    /// Where the load's interval log goes.
    pub interval_log: Option<&'a Path>,
    /// Hears of each second and edge of the load, after the figures of that instant have been read.
    pub observer: Option<&'a mut dyn FnMut(Event)>,
}

impl fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("interval_log", &self.interval_log)
            .finish_non_exhaustive()
    }
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
    witness: Witness<'_>,
) -> Result<Trial> {
    let started_at = jiff::Timestamp::now().to_string();
    bench.provisioned.monitor.wait_until_alone(bench.stop)?;
    bench.provisioned.expect_load(&subject.server, workload);
    let (checks, window) = match measure(bench, subject, (workload, answers), place, witness) {
        Ok(measured) => {
            let monitor = &mut bench.provisioned.monitor;
            let of = (workload, answers);
            let (checks, window) =
                judgement::judge(subject, of, place.rung, measured, monitor, bench.stop)?;
            (checks, Some(window))
        }
        Err(error) => (
            checks::complete(vec![blame(error)?], "no window took place"),
            None,
        ),
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

/// A server's failure is a row; an interruption, a lost database or a load that could not be made is not.
fn blame(error: anyhow::Error) -> Result<Check> {
    let is_ours = |cause: &(dyn std::error::Error + 'static)| {
        let of_the_load = cause.downcast_ref::<LoadError>();
        let refused = matches!(of_the_load, Some(LoadError::Connect { .. }));
        cause.is::<postgres::Error>() || (of_the_load.is_some() && !refused)
    };
    if error.is::<Interrupted>() || error.chain().any(is_ours) {
        return Err(error);
    }
    if let Some(wrong) = error.downcast_ref::<WrongAnswers>() {
        return Ok(checks::body(0, 0, Some(&wrong.to_string())));
    }
    Ok(checks::contract_broken(format!("{error:#}")))
}

fn measure(
    bench: &mut Bench<'_>,
    subject: &Subject,
    (workload, answers): (&Workload, &Answers),
    place: Place,
    mut witness: Witness<'_>,
) -> Result<Measured> {
    let Provisioned {
        database,
        monitor,
        run_folder,
        ..
    } = &mut *bench.provisioned;
    let before = Totals::read(monitor)?;
    let server = RunningServer::start(&subject.server, &subject.settings, run_folder, bench.stop)?;
    let when_ready = monitor.queries()?;
    let verified = inspection::verify(server.address, answers, bench.stop)?;
    let beside = answers.beside.as_deref();
    let beside = beside
        .map(|beside| {
            let verified = inspection::verify(server.address, &beside.answers, bench.stop)?;
            anyhow::Ok((beside, verified))
        })
        .transpose()?;
    let gauges = Gauges::of(&server, database, &bench.plan.cpus);
    let watched = Watched {
        server: server.pid(),
        session_name: server.session_name().filter(|_| server.pid().is_none()),
        postmaster: database.postmaster_pid,
        cpus: bench.plan.cpus.clone(),
    };
    let sampler = Sampler::start(database, monitor, watched)?;
    let plan = load::Plan {
        first_unique: verified.next_unique,
        ..load_plan(bench.plan, &server, answers, place, witness.interval_log)?
    };
    let mut edges = Vec::with_capacity(2);
    let mut seconds = Vec::new();
    let warmup = Duration::from_secs_f64(bench.plan.warmup_seconds);
    let mut on_event = |event| {
        match event {
            Event::WindowStart | Event::WindowEnd => {
                sampler.edge();
                edges.push(gauges.read(&server, monitor));
            }
            Event::Second(live) => seconds.extend(LoadSecond::of(&live, warmup)),
        }
        if let Some(observer) = &mut witness.observer {
            observer(event);
        }
    };
    let (bench_plan, stop) = (bench.plan, bench.stop);
    let (outcome, beside) = thread::scope(|scope| {
        let beside = beside.as_ref().map(|(beside, verified)| {
            let on = (server.address, bench_plan.cpus.generator.as_slice());
            let spanned = bench_plan.warmup_seconds + bench_plan.window_seconds;
            let spanned = Duration::from_secs_f64(spanned) + 2 * MARGIN;
            let running = scope.spawn(move || beside.run(on, verified, spanned, stop));
            thread::sleep(MARGIN);
            running
        });
        let outcome = load::run(&plan, &mut on_event, stop);
        (outcome, beside.map(ScopedJoinHandle::join))
    });
    let outcome = outcome.map_err(signals::of_the_load)?;
    let beside = beside.map(|ended| {
        ended.unwrap_or_else(|_| Err(anyhow::anyhow!("the load beside the window broke off")))
    });
    let beside = beside.transpose()?;
    signals::check(bench.stop)?;
    if outcome.records_dropped > 0 {
        notice::say(&format!(
            "{} requests are in no Parquet file: the disk did not keep up",
            outcome.records_dropped
        ));
    }
    let sampled = sampler.collect();
    let mut edges = edges.into_iter();
    let (Some(start), Some(end)) = (edges.next(), edges.next()) else {
        anyhow::bail!(
            "workload `{}`: the window did not take place",
            workload.name
        )
    };
    let (start, end) = (start?, end?);
    server.stop()?;
    Ok(Measured {
        first_failure: inspection::first_failure(&outcome, answers),
        outcome,
        seconds,
        verified,
        beside,
        start,
        end,
        sampled,
        before,
        when_ready,
    })
}

fn load_plan(
    plan: &Plan,
    server: &RunningServer,
    answers: &Answers,
    place: Place,
    interval_log: Option<&Path>,
) -> Result<load::Plan> {
    let (address, table) = (server.address, answers.hashed()?);
    Ok(load::Plan {
        connections: place.rung.connections(),
        pacing: pacing(plan, place),
        end: End::Timed {
            warmup: Duration::from_secs_f64(plan.warmup_seconds),
            window: Duration::from_secs_f64(plan.window_seconds),
            drain: DRAIN,
        },
        request_timeout: REQUEST_TIMEOUT,
        cpus: plan.cpus.generator.clone(),
        keep_failures: 1,
        interval_log: interval_log.map(Path::to_owned),
        records: interval_log.filter(|_| plan.records).map(|log| Records {
            path: observations(log),
            memory_bytes: RECORD_MEMORY,
        }),
        ..load::Plan::new(address, address.to_string(), table)
    })
}

/// Beside the interval log, with its name in it.
fn observations(interval_log: &Path) -> PathBuf {
    let name = interval_log.file_stem().unwrap_or_default();
    interval_log.with_file_name(format!("observations-{}.parquet", name.to_string_lossy()))
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
