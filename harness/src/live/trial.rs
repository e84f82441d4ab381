//! One fresh server with its subscribers: connected, told of every event, and left.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use load::Histogram;

use super::publisher::Agenda;
use super::record::{Footprint, Measured};
use super::stream::Fault;
use super::subscribers::Subscribers;
use crate::cpu_time;
use crate::database::connection;
use crate::database::leftovers::RunFolder;
use crate::process::{RunningServer, Settings};
use crate::server::{Lane, Server};
use crate::signals;

/// All subscribers have to be listening by then.
const LISTENING_LIMIT: Duration = Duration::from_secs(30);
/// An event that has not come so long after the last one that has, is lost.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// How long is waited for what must not come: an event once more.
const LINGER: Duration = Duration::from_millis(200);
/// What the server had to do for the connections is over by then.
const CALM: Duration = Duration::from_millis(500);
/// Longest time between two looks at the flag.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const DIGITS: u8 = 3;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim<'a> {
    pub(crate) workload: &'a str,
    pub(crate) channel: &'a str,
    pub(crate) subscribers: usize,
    pub(crate) events: usize,
    pub(crate) per_second: f64,
}

/// Why a server cannot serve so many subscribers: its threads are fixed, and each subscriber keeps one of them.
pub(crate) fn too_few_threads(server: &Server, subscribers: usize) -> Option<String> {
    let threads = server
        .threads
        .filter(|&fixed| fixed < needed(subscribers))?;
    Some(format!(
        "a subscriber keeps a thread for as long as it listens, and of those it has {threads}"
    ))
}

/// One for each subscriber, and two that go on answering others.
fn needed(subscribers: usize) -> usize {
    subscribers + 2
}

/// A blocking server may need a thread for each subscriber, so it is given them. One that hands its work to threads takes
/// as few as before: it has no more work.
pub(crate) fn threads(server: &Server, pool: usize, subscribers: usize) -> Option<usize> {
    let several = (server.lane == Lane::Blocking).then(|| needed(subscribers).max(pool));
    server.threads.or(several)
}

/// Starts the server, and sends events to its subscribers.
///
/// # Errors
/// The server cannot be started or observed, or does not drain; or the database or the harness fails. That events were
/// lost is no error, but in the record.
pub(crate) fn run(
    server: &Server,
    settings: &Settings,
    aim: Aim<'_>,
    run_folder: &RunFolder,
    stop: &AtomicBool,
) -> Result<Measured> {
    let running = RunningServer::start(server, settings, run_folder, stop)?;
    let alone = running.usage()?;
    let mut subscribers = subscribe(running.address, aim, stop)?;
    rest(&mut subscribers, CALM, stop)?;
    let idle = running.usage()?;
    let cpu = || {
        running
            .pid()
            .and_then(cpu_time::of_process)
            .ok_or_else(|| anyhow!("the server is gone"))
    };
    let cpu_before = cpu()?;
    let latency = deliver(&mut subscribers, &settings.database_url, aim, stop)?;
    let cpu_used = cpu()?.saturating_sub(cpu_before);
    let loaded = running.usage()?;
    let stopping = Instant::now();
    // With its subscribers connected: their streams have to end, or it does not drain.
    running.stop()?;
    let expected = aim.subscribers * aim.events;
    let delivered = subscribers.delivered();
    let per_delivery = |total: f64| (delivered > 0).then(|| total / delivered as f64);
    let ms = |quantile: f64| match latency.len() {
        0 => None,
        _ => Some(latency.value_at_quantile(quantile) as f64 / 1e6),
    };
    Ok(Measured {
        server: server.name.clone(),
        profile: settings.profile,
        threads_given: settings.threads,
        subscribers: aim.subscribers,
        events: aim.events,
        events_per_second: aim.per_second,
        expected,
        delivered,
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        max_ms: ms(1.0),
        cpu_us_per_delivery: per_delivery(cpu_used.as_secs_f64() * 1e6),
        alone: Footprint::of(&alone),
        idle: Footprint::of(&idle),
        loaded: Footprint::of(&loaded),
        stop_ms: stopping.elapsed().as_secs_f64() * 1e3,
        fault: fault(&subscribers, aim),
    })
}

/// What is wrong with what the subscribers got, in a line.
fn fault(subscribers: &Subscribers, aim: Aim<'_>) -> Option<String> {
    let all = aim.subscribers;
    if let Some(Fault(fault)) = subscribers.first_fault() {
        let faulty = subscribers.faulty();
        return Some(format!("{faulty} of {all} subscribers: {fault}"));
    }
    let short = all - subscribers.with(aim.events);
    (short > 0).then(|| {
        format!(
            "{short} of {all} subscribers did not get all {} events: {} of {} deliveries",
            aim.events,
            subscribers.delivered(),
            all * aim.events
        )
    })
}

/// Connects all subscribers, and waits until each is told that its server listens.
fn subscribe(address: SocketAddr, aim: Aim<'_>, stop: &AtomicBool) -> Result<Subscribers> {
    let path = format!("/{}", aim.workload);
    let mut subscribers = Subscribers::connect(address, &path, aim.subscribers)?;
    let end = Instant::now() + LISTENING_LIMIT;
    while subscribers.listening() < aim.subscribers {
        signals::check(stop)?;
        if let Some(Fault(fault)) = subscribers.first_fault() {
            bail!("a subscriber: {fault}");
        }
        if Instant::now() > end {
            bail!(
                "{} of {} subscribers were told that the server listens within {} s",
                subscribers.listening(),
                aim.subscribers,
                LISTENING_LIMIT.as_secs()
            );
        }
        subscribers.turn(LOOK_EVERY, &[], &mut |_, _| {})?;
    }
    Ok(subscribers)
}

/// Leaves everybody alone for a while.
fn rest(subscribers: &mut Subscribers, time: Duration, stop: &AtomicBool) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        signals::check(stop)?;
        subscribers.turn(LOOK_EVERY, &[], &mut |_, _| {})?;
    }
    Ok(())
}

/// Publishes all events, and reads until every subscriber has them, or will not get them. Gives what each delivery took,
/// in nanoseconds.
fn deliver(
    subscribers: &mut Subscribers,
    database_url: &str,
    aim: Aim<'_>,
    stop: &AtomicBool,
) -> Result<Histogram<u64>> {
    let agenda = Agenda::new(aim.events, aim.per_second);
    let mut client = connection::connect(database_url)?;
    let mut latency = Histogram::new(DIGITS).context("a histogram")?;
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| agenda.publish(&mut client, aim.channel, &enough));
        let read = read_all(
            subscribers,
            &agenda,
            aim,
            || publisher.is_finished(),
            &mut latency,
            stop,
        );
        enough.store(true, Ordering::Relaxed);
        let published = publisher.join();
        published.map_err(|_| anyhow!("the thread that publishes panicked"))??;
        read
    })?;
    Ok(latency)
}

fn read_all(
    subscribers: &mut Subscribers,
    agenda: &Agenda,
    aim: Aim<'_>,
    published: impl Fn() -> bool,
    latency: &mut Histogram<u64>,
    stop: &AtomicBool,
) -> Result<()> {
    let last = Cell::new(Instant::now());
    let mut deliver = |event: usize, now: Instant| {
        last.set(now);
        if let Some(taken) = agenda.since_sent(event, now) {
            // It grows as it has to, so that there is nothing it cannot count.
            let _ = latency.record(u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
        }
    };
    let mut all_sent = false;
    loop {
        signals::check(stop)?;
        subscribers.turn(LOOK_EVERY, &agenda.payloads, &mut deliver)?;
        if !all_sent && published() {
            all_sent = true;
            last.set(Instant::now());
        }
        let waiting = aim.subscribers - subscribers.faulty() - subscribers.with(aim.events);
        if waiting == 0 || (all_sent && last.get().elapsed() > LOST_AFTER) {
            break;
        }
    }
    let end = Instant::now() + LINGER;
    while Instant::now() < end {
        subscribers.turn(LOOK_EVERY, &agenda.payloads, &mut deliver)?;
    }
    Ok(())
}
