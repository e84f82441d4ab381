//! A run from plan to outcome: starts the workers, keeps the clock of phases, merges what they record.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::LoadError;
use crate::clock::{self, MILLISECOND, Nanos, SECOND, nanos};
use crate::collect::Collector;
use crate::limits;
use crate::outcome::Outcome;
use crate::request::{Encoded, RequestTable, encode};
use crate::schedule::{self, Cursor, End, Pacer, Pacing, Phase, Phases, Stripe, Timetable};
use crate::worker::{Message, Shared, Worker, WorkerReport};

/// From the last worker's readiness to the start of the schedule: enough for every thread to wake up.
const LEAD: Nanos = 2 * MILLISECOND;

/// Everything that determines a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect.
    pub target: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// What to send, in which sequence.
    pub table: Arc<RequestTable>,
    /// Connections, spread evenly over the workers. One request at a time on each.
    pub connections: usize,
    /// When requests are due.
    pub pacing: Pacing,
    /// When the run ends.
    pub end: End,
    /// From the send to the last byte of the answer.
    pub request_timeout: Duration,
    /// For opening a connection, and for all of them before the start.
    pub connect_timeout: Duration,
    /// One worker thread pinned to each; empty: one worker, not pinned.
    pub cpus: Vec<usize>,
    /// How many failures to keep with their details.
    pub keep_failures: usize,
}

impl Plan {
    /// One unpinned worker, one connection, closed loop without think time for 10 s after 1 s of
    /// warm-up. Meant as the base of a struct update.
    pub fn new(target: SocketAddr, host: impl Into<String>, table: Arc<RequestTable>) -> Plan {
        Plan {
            target,
            host: host.into(),
            table,
            connections: 1,
            pacing: Pacing::Closed {
                think: Duration::ZERO,
            },
            end: End::Timed {
                warmup: Duration::from_secs(1),
                window: Duration::from_secs(10),
                drain: Duration::from_secs(2),
            },
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            cpus: Vec::new(),
            keep_failures: 8,
        }
    }

    fn validate(&self) -> Result<(), LoadError> {
        let invalid = |message: &str| Err(LoadError::Invalid(message.to_owned()));
        if self.connections == 0 {
            return invalid("0 connections can send nothing; ask for at least 1");
        }
        if u32::try_from(self.connections).is_err() {
            return invalid("more than 2^32 connections");
        }
        if self.request_timeout.is_zero() || self.connect_timeout.is_zero() {
            return invalid("a timeout of 0 leaves no time for an answer");
        }
        match self.end {
            End::Timed { window, .. } if window.is_zero() => {
                return invalid("a window of 0 s measures nothing");
            }
            End::EachOnce { limit } if limit.is_zero() => {
                return invalid("a limit of 0 s leaves no time to send");
            }
            End::EachOnce { .. } if matches!(self.pacing, Pacing::Open { .. }) => {
                return invalid("sending each request once has no rate: use the closed loop");
            }
            End::Timed { .. } | End::EachOnce { .. } => {}
        }
        schedule::validate(self.pacing)
    }

    fn workers(&self) -> usize {
        self.cpus.len().clamp(1, self.connections)
    }
}

/// What the coordinating thread reports while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// The warm-up is over. In `EachOnce`: the run starts.
    WindowStart,
    /// The window is over; the drain begins. Called once for every `WindowStart`.
    WindowEnd,
    /// A second is over.
    Second(Live),
}

/// Figures of the last second, over all workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Live {
    /// The phase that second was in.
    pub phase: Phase,
    /// Since the start of the run.
    pub elapsed: Duration,
    /// Until the window's end.
    pub remaining: Duration,
    /// Correct answers.
    pub correct: u64,
    /// Requests that ended otherwise.
    pub failed: u64,
    /// Median response time; `None` outside of the window.
    pub p50: Option<Duration>,
    /// 99th percentile of the response time.
    pub p99: Option<Duration>,
}

/// Runs `plan`. `observer` is called on the calling thread; `stop` ends the run within 100 ms with
/// what was found until then.
///
/// # Errors
/// If the plan makes no sense, the process may not do what it asks for, or no connection can be
/// opened. Anything that happens to single requests is in the outcome instead.
pub fn run(
    plan: &Plan,
    observer: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<Outcome, LoadError> {
    plan.validate()?;
    limits::allow_connections(plan.connections)?;
    let encoded: Vec<Encoded> = plan
        .table
        .requests
        .iter()
        .map(|request| encode(request, &plan.host))
        .collect();
    let shared = Shared {
        target: plan.target,
        table: &plan.table,
        encoded: &encoded,
        request_timeout: nanos(plan.request_timeout),
        connect_timeout: nanos(plan.connect_timeout),
        keep_failures: plan.keep_failures,
        stop,
    };
    thread::scope(|scope| {
        let (outbox, inbox) = mpsc::channel();
        let team: Vec<Member> = (0..plan.workers())
            .map(|index| Member::spawn(scope, plan, &shared, index, outbox.clone()))
            .collect();
        drop(outbox);
        let mut collector = Collector::new(plan.connections, team.len())?;
        let result = coordinate(plan, &team, &inbox, &mut collector, observer);
        let mut first_error = result.err();
        for member in team {
            drop((member.start, member.spares));
            match member.thread.join() {
                Ok(Ok(Some(report))) => collector.worker_ended(report)?,
                Ok(Ok(None)) => {}
                // What a thread says about itself explains more than what the others missed.
                Ok(Err(error)) => first_error = Some(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match first_error {
            Some(error) => Err(error),
            None => Ok(collector.outcome(plan, stop)),
        }
    })
}

/// A worker as the coordinating thread sees it.
struct Member<'s> {
    thread: ScopedJoinHandle<'s, Result<Option<WorkerReport>, LoadError>>,
    start: Sender<(Pacer, Phases)>,
    spares: Sender<Box<crate::measure::Interval>>,
}

impl<'s> Member<'s> {
    fn spawn<'e>(
        scope: &'s thread::Scope<'s, 'e>,
        plan: &'e Plan,
        shared: &'e Shared<'e>,
        index: usize,
        outbox: Sender<Message>,
    ) -> Member<'s> {
        let (start, wait_for_start) = mpsc::channel();
        let (spares, take_spare) = mpsc::channel();
        let share = plan.connections / plan.workers()
            + usize::from(index < plan.connections % plan.workers());
        let cpu = plan.cpus.get(index).copied();
        let thread = scope.spawn(move || {
            let live = || -> Result<Option<WorkerReport>, LoadError> {
                limits::prepare_thread(cpu)?;
                let mut worker = Worker::new(index, shared, share, outbox.clone(), take_spare)?;
                worker.establish()?;
                match wait_for_start.recv() {
                    Ok((pacer, phases)) => worker.run(pacer, phases).map(Some),
                    Err(mpsc::RecvError) => Ok(None),
                }
            };
            let result = live();
            let _ = outbox.send(Message::Ended);
            result
        });
        Member {
            thread,
            start,
            spares,
        }
    }
}

/// Keeps the run's clock on the calling thread until every worker has ended.
fn coordinate(
    plan: &Plan,
    team: &[Member],
    inbox: &Receiver<Message>,
    collector: &mut Collector,
    observer: &mut dyn FnMut(Event),
) -> Result<(), LoadError> {
    await_connections(plan, team.len(), inbox, collector)?;
    let timetable = timetable(plan);
    let phases = Phases::new(clock::now() + LEAD, plan.end);
    collector.started(phases, timetable);
    for (index, member) in team.iter().enumerate() {
        for _ in 0..2 {
            let _ = member
                .spares
                .send(Box::new(crate::measure::Interval::new()?));
        }
        let _ = member
            .start
            .send((pacer(plan, timetable, phases, index), phases));
    }
    let mut edges = [
        (phases.window_start, Event::WindowStart),
        (phases.window_end, Event::WindowEnd),
    ]
    .into_iter()
    .peekable();
    let mut ended = 0;
    while ended < team.len() {
        let now = clock::now();
        if let Some((_, event)) = edges.next_if(|&(instant, _)| instant <= now) {
            observer(event);
            continue;
        }
        let patience = edges.peek().map_or(SECOND, |&(instant, _)| instant - now);
        match inbox.recv_timeout(Duration::from_nanos(patience)) {
            Ok(Message::Interval {
                second,
                worker,
                mut interval,
            }) => {
                if let Some(live) = collector.interval(second, &interval)? {
                    observer(Event::Second(live));
                }
                interval.clear();
                let _ = team[worker].spares.send(interval);
            }
            Ok(Message::Ended) => ended += 1,
            Ok(Message::Ready { .. }) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Some((_, Event::WindowEnd)) = edges.next() {
        observer(Event::WindowEnd);
    }
    Ok(())
}

fn await_connections(
    plan: &Plan,
    workers: usize,
    inbox: &Receiver<Message>,
    collector: &mut Collector,
) -> Result<(), LoadError> {
    let mut cause = "no connection was accepted within the time allowed".to_owned();
    let mut established_total = 0;
    for _ in 0..workers {
        // Every worker keeps the deadline itself; the extra second is for one that died.
        match inbox.recv_timeout(plan.connect_timeout + Duration::from_secs(1)) {
            Ok(Message::Ready {
                established,
                last_error,
            }) => {
                established_total += established;
                if let Some(error) = last_error {
                    cause = error.to_string();
                }
            }
            Ok(Message::Interval { .. } | Message::Ended) | Err(_) => {
                cause = "a generator thread ended early".to_owned()
            }
        }
    }
    collector.established(established_total);
    if established_total == 0 {
        return Err(LoadError::Connect {
            target: plan.target,
            cause,
        });
    }
    Ok(())
}

fn timetable(plan: &Plan) -> Option<Timetable> {
    match (plan.pacing, plan.end) {
        (Pacing::Open { rate, arrivals }, End::Timed { warmup, window, .. }) => {
            Some(Timetable::new(rate, arrivals, nanos(warmup), nanos(window)))
        }
        (Pacing::Open { .. }, End::EachOnce { .. }) | (Pacing::Closed { .. }, _) => None,
    }
}

fn pacer(plan: &Plan, timetable: Option<Timetable>, phases: Phases, index: usize) -> Pacer {
    let stripe = Stripe {
        first: index as u64,
        stride: plan.workers() as u64,
    };
    let next = stripe.first;
    match (timetable, plan.end, plan.pacing) {
        (Some(timetable), ..) => Pacer::Open {
            start: phases.start,
            cursor: Cursor::new(timetable, stripe),
        },
        (None, End::EachOnce { .. }, _) => Pacer::Once {
            next,
            stripe,
            total: plan.table.order.len() as u64,
        },
        (None, End::Timed { .. }, Pacing::Closed { think }) => Pacer::Closed {
            think: nanos(think),
            next,
            stripe,
            until: phases.window_end,
        },
        // Unreachable by `timetable`, and harmless: nothing to send.
        (None, End::Timed { .. }, Pacing::Open { .. }) => Pacer::Once {
            next,
            stripe,
            total: 0,
        },
    }
}
