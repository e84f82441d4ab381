//! A run from plan to outcome: starts the workers, keeps the clock of phases, merges what they record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::LoadError;
use crate::clock::{self, MILLISECOND, Nanos, SECOND, nanos};
use crate::collect::Collector;
use crate::measure::Interval;
use crate::outcome::Outcome;
use crate::plan::{Event, Plan};
use crate::record::{Record, RecordKeeper, new_chunk, spare_chunks};
use crate::report::WorkerReport;
use crate::request::encode_all;
use crate::schedule::{End, Pacer, Pacing, Phases, Stripe};
use crate::timetable::{Cursor, Timetable};
use crate::worker::{Message, Place, Shared, Worker};
use crate::{limits, probe};

/// From the last worker's readiness to the start of the schedule: enough for every thread to wake up.
const LEAD: Nanos = 2 * MILLISECOND;

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
    let encoded = encode_all(&plan.table, &plan.host);
    let shared = Shared {
        target: plan.target,
        table: &plan.table,
        encoded: &encoded,
        request_timeout: nanos(plan.request_timeout),
        connect_timeout: nanos(plan.connect_timeout),
        keep_failures: plan.keep_failures,
        first_unique: plan.first_unique,
        stop,
    };
    let mut collector = Collector::new(plan)?;
    thread::scope(|scope| {
        let (outbox, inbox) = mpsc::channel();
        let team: Vec<Member> = (0..plan.workers())
            .map(|index| Member::spawn(scope, plan, &shared, index, outbox.clone()))
            .collect();
        drop(outbox);
        let mut first_error = coordinate(plan, &team, &inbox, &mut collector, observer).err();
        for member in team {
            drop((member.start, member.spares, member.spare_records));
            match member.thread.join() {
                Ok(Ok(Some(report))) => collector.worker_ended(report)?,
                Ok(Ok(None)) => {}
                // What a thread says about itself explains more than what the others missed.
                Ok(Err(error)) => first_error = Some(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match first_error {
            Some(LoadError::Connect { .. }) if stop.load(Ordering::Relaxed) => {
                Err(LoadError::Stopped)
            }
            Some(error) => Err(error),
            None => collector.outcome(plan),
        }
    })
}

/// A worker as the coordinating thread sees it.
struct Member<'s> {
    thread: ScopedJoinHandle<'s, Result<Option<WorkerReport>, LoadError>>,
    start: Sender<(Pacer, Phases)>,
    spares: Sender<Box<Interval>>,
    spare_records: Sender<Vec<Record>>,
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
        let (spare_records, take_spare_records) = mpsc::channel();
        let (each, more) = (
            plan.connections / plan.workers(),
            plan.connections % plan.workers(),
        );
        let place = Place {
            index,
            cpu: plan.cpus.get(index).copied(),
            first_connection: index * each + index.min(more),
            connections: each + usize::from(index < more),
            outbox: outbox.clone(),
            spares: take_spare,
            records: plan
                .records
                .as_ref()
                .map(|_| RecordKeeper::new(take_spare_records)),
        };
        let thread = scope.spawn(move || {
            let result = generate(plan, shared, place, &wait_for_start);
            let _ = outbox.send(Message::Ended);
            result
        });
        Member {
            thread,
            start,
            spares,
            spare_records,
        }
    }

    /// Gives the worker the intervals and chunks that will go round, and lets it go.
    fn start(&self, plan: &Plan, pacer: Pacer, phases: Phases) -> Result<(), LoadError> {
        // A send fails if the thread has ended, which is noticed when it is joined.
        for _ in 0..2 {
            let _ = self.spares.send(Box::new(Interval::new()?));
        }
        for _ in 0..plan
            .records
            .as_ref()
            .map_or(0, |records| spare_chunks(records, plan.workers()))
        {
            let _ = self.spare_records.send(new_chunk());
        }
        let _ = self.start.send((pacer, phases));
        Ok(())
    }
}

/// The life of a worker's thread. `None` if the run was given up before it started.
fn generate(
    plan: &Plan,
    shared: &Shared,
    place: Place,
    start: &Receiver<(Pacer, Phases)>,
) -> Result<Option<WorkerReport>, LoadError> {
    limits::prepare_thread(place.cpu)?;
    let jitter = probe::jitter_before_a_run(plan.jitter_probe)?;
    let mut worker = Worker::new(shared, place, jitter)?;
    worker.establish()?;
    match start.recv() {
        Ok((pacer, phases)) => worker.run(pacer, phases).map(Some),
        Err(mpsc::RecvError) => Ok(None),
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
    collector.started(phases);
    for (index, member) in team.iter().enumerate() {
        member.start(plan, pacer(plan, timetable, phases, index), phases)?;
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
            Ok(Message::Records {
                worker,
                mut records,
            }) => {
                collector.records(&records)?;
                records.clear();
                let _ = team[worker].spare_records.send(records);
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
        match inbox.recv_timeout(
            probe::PROBES * plan.jitter_probe + plan.connect_timeout + Duration::from_secs(1),
        ) {
            Ok(Message::Ready {
                established,
                last_error,
            }) => {
                established_total += established;
                if let Some(error) = last_error {
                    cause = error.to_string();
                }
            }
            Ok(Message::Interval { .. } | Message::Records { .. } | Message::Ended) | Err(_) => {
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
