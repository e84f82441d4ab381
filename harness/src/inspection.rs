//! Before any load: what one request of each server costs the database in statements, transactions and round trips,
//! and whether every answer is right to the byte.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use load::{End, Outcome, Pacing, RequestCounts};
use serde::{Deserialize, Serialize};
use url::Url;
use workloads::Workload;

use crate::audit;
use crate::expected::Answers;
use crate::monitor::Statements;
use crate::process::{Profile, RunningServer, Settings};
use crate::provision::Provisioned;
use crate::relay::Relay;
use crate::server::Server;
use crate::signals;

/// Connections of a verification pass: enough to use the whole of a usual pool.
const VERIFY_CONNECTIONS: usize = 8;
/// A request that takes longer fails the verification.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// All of them, at the latest.
const VERIFY_LIMIT: Duration = Duration::from_secs(120);

/// What one right answer cost, counted over a whole pass of distinct requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    pub workload: String,
    pub server: String,
    pub profile: Profile,
    pub distinct_requests: u64,
    /// Absent where `pg_stat_statements` cannot be read.
    pub statements_per_request: Option<f64>,
    /// Absent where the server was attached to: its sessions report them too late.
    pub transactions_per_request: Option<f64>,
    /// Absent where the connection cannot be relayed.
    pub round_trips_per_request: Option<f64>,
}

/// What starting and stopping a server costs the database without a single request; nothing where it was attached to.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartupCost {
    pub statements: Option<Statements>,
    pub transactions: u64,
}

/// Why a server is not fit for load.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongAnswers(String);

/// # Errors
/// The server does not keep its contract, or the database is lost.
pub fn startup_cost(
    server: &Server,
    settings: &Settings,
    provisioned: &mut Provisioned,
    stop: &AtomicBool,
) -> Result<(StartupCost, serde_json::Value)> {
    let Provisioned {
        monitor,
        run_folder,
        ..
    } = provisioned;
    monitor.wait_until_alone(stop)?;
    let (statements, commits) = (monitor.statements()?, monitor.commits()?);
    let running = RunningServer::start(server, settings, run_folder, stop)?;
    let about = running.about.clone();
    if server.attached.is_some() {
        let cost = StartupCost {
            statements: statements.map(|_| Statements::default()),
            transactions: 0,
        };
        return Ok((cost, about));
    }
    running.stop()?;
    monitor.wait_until_alone(stop)?;
    let cost = StartupCost {
        statements: monitor
            .statements()?
            .zip(statements)
            .map(|(after, before)| after.since(before)),
        transactions: monitor.commits()? - commits,
    };
    Ok((cost, about))
}

/// Starts the server behind a counting relay, unless it is attached to, asks for every distinct answer once, and counts.
///
/// # Errors
/// [`WrongAnswers`] where an answer is not as expected; otherwise as [`startup_cost`].
pub fn inspect(
    server: &Server,
    settings: &Settings,
    (workload, answers): (&Workload, &Answers),
    startup: StartupCost,
    provisioned: &mut Provisioned,
    stop: &AtomicBool,
) -> Result<Inspection> {
    provisioned.expect_load(server, workload);
    let Provisioned {
        database,
        monitor,
        run_folder,
        ..
    } = provisioned;
    let relay = match server.attached {
        Some(_) => None,
        None => relay_to(&settings.database_url)?,
    };
    let settings = match &relay {
        Some((_, url)) => Settings {
            database_url: url.clone(),
            ..settings.clone()
        },
        None => settings.clone(),
    };
    // Sessions report what they did when they end, and those of a restore may have a moment to go.
    monitor.wait_until_alone(stop)?;
    let (statements, commits) = (monitor.statements()?, monitor.commits()?);
    let running = RunningServer::start(server, &settings, run_folder, stop)?;
    // A driver may still be at work on connections that it has just opened.
    let before = relay.as_ref().map_or(0, |(relay, _)| settled(relay));
    let Verified {
        answered: verified,
        by_request,
        ..
    } = verify(running.address, answers, stop)?;
    let round_trips = relay.as_ref().map(|(relay, _)| settled(relay) - before);
    running.stop()?;
    monitor.wait_until_alone(stop)?;
    let per_request = |count: u64| count as f64 / verified as f64;
    let own_statements = monitor
        .statements()?
        .zip(statements)
        .zip(startup.statements);
    let inspection = Inspection {
        workload: workload.name.clone(),
        server: server.name.clone(),
        profile: settings.profile,
        distinct_requests: verified,
        statements_per_request: own_statements.map(|((after, before), startup)| {
            per_request(after.since(before).since(startup).calls)
        }),
        transactions_per_request: match server.attached {
            Some(_) => None,
            None => Some(per_request(
                (monitor.commits()? - commits).saturating_sub(startup.transactions),
            )),
        },
        round_trips_per_request: round_trips.map(per_request),
    };
    // After its statements have been read: those of the audit are not the server's.
    if audit::applies(workload) {
        let audited = audit::audit(workload, answers, &by_request, &database.url)?;
        if !audited.faults.is_empty() {
            return Err(WrongAnswers(audited.describe()).into());
        }
    }
    Ok(inspection)
}

/// A verification that found every answer right.
#[derive(Debug)]
pub struct Verified {
    /// Answers, each to another request.
    pub answered: u64,
    pub by_request: Vec<RequestCounts>,
    /// Above every number that its requests carried.
    pub next_unique: u64,
}

/// Asks for every distinct answer once and compares it byte for byte.
///
/// # Errors
/// [`WrongAnswers`] with the first difference.
pub fn verify(address: SocketAddr, answers: &Answers, stop: &AtomicBool) -> Result<Verified> {
    let plan = load::Plan {
        connections: VERIFY_CONNECTIONS,
        pacing: Pacing::Closed {
            think: Duration::ZERO,
        },
        end: End::EachOnce {
            limit: VERIFY_LIMIT,
        },
        request_timeout: VERIFY_TIMEOUT,
        keep_failures: 1,
        ..load::Plan::new(address, address.to_string(), answers.exact()?)
    };
    let outcome = load::run(&plan, &mut |_| {}, stop).map_err(signals::of_the_load)?;
    signals::check(stop)?;
    if outcome.counts.correct == outcome.counts.scheduled && outcome.counts.scheduled > 0 {
        return Ok(Verified {
            answered: outcome.counts.correct,
            by_request: outcome.by_request,
            next_unique: outcome.next_unique,
        });
    }
    let wrong = outcome.counts.scheduled - outcome.counts.correct;
    let first = first_failure(&outcome, answers).unwrap_or_else(|| "no answer at all".to_owned());
    Err(WrongAnswers(format!(
        "{wrong} of {} distinct answers are wrong; the first: {first}",
        outcome.counts.scheduled
    ))
    .into())
}

/// The first failed request of an outcome, in a line.
pub fn first_failure(outcome: &Outcome, answers: &Answers) -> Option<String> {
    let failure = outcome.failures.first();
    let described = failure.map(|failure| {
        let request = answers.distinct.get(failure.request as usize);
        let path = request.map_or("?", |known| known.request.path.as_str());
        let method = request.map_or("GET", |known| known.request.method.as_str());
        let status = failure
            .status
            .map_or_else(String::new, |status| format!(", status {status}"));
        format!(
            "{method} {path}: {}{status}; expected {}, got {}",
            failure.kind,
            failure.expected,
            String::from_utf8_lossy(&failure.got).escape_debug()
        )
    });
    described.or_else(|| {
        outcome
            .errors
            .iter()
            .next()
            .map(|(kind, count)| format!("{kind} ({count} times)"))
    })
}

/// Some drivers end their work on a connection after the answer is out; the count is read once it stands still.
fn settled(relay: &Relay) -> u64 {
    let mut last = relay.round_trips();
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(25));
        let now = relay.round_trips();
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// A relay to the database, and the URL that leads through it. `None` where the traffic would be encrypted.
fn relay_to(database_url: &str) -> Result<Option<(Relay, String)>> {
    let mut url = Url::parse(database_url).context("the database URL")?;
    let encrypted = url
        .query_pairs()
        .any(|(key, value)| key == "sslmode" && value != "disable" && value != "prefer");
    if encrypted {
        return Ok(None);
    }
    let host = url.host_str().unwrap_or("127.0.0.1").to_owned();
    let port = url.port().unwrap_or(5432);
    let Some(target) = (host.as_str(), port)
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
    else {
        bail!("the database's host `{host}` cannot be resolved");
    };
    let relay = Relay::start(target)?;
    let renamed =
        url.set_host(Some("127.0.0.1")).is_ok() && url.set_port(Some(relay.address.port())).is_ok();
    Ok(renamed.then(|| (relay, url.into())))
}
