//! One generator thread: what it owns, its loop, and the edges of its phases.
//!
//! `slots.rs` opens and closes its connections, `exchange.rs` sends requests and takes answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;

use crate::LoadError;
use crate::clock::{self, MILLISECOND, Nanos, SECOND};
use crate::connection::{Connection, State};
use crate::ledger::Ledger;
use crate::measure::{InFlight, Interval, Tally, histogram};
use crate::outcome::ErrorKind;
use crate::probe::Jitter;
use crate::probe::nap;
use crate::record::{Record, RecordKeeper};
use crate::report::WorkerReport;
use crate::request::{Encoded, RequestTable};
use crate::schedule::{Pacer, Phases, Stripe};
use crate::usage::{Meter, Reading};

/// Longest sleep, so that `stop` ends a run within 100 ms.
pub(crate) const LONGEST_SLEEP: Nanos = 25 * MILLISECOND;
/// Most events taken at once.
const EVENTS: usize = 256;
/// Most requests sent in a row before answers are looked at again.
const BURST: usize = 64;

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared<'r> {
    pub(crate) target: SocketAddr,
    pub(crate) table: &'r RequestTable,
    pub(crate) encoded: &'r [Encoded],
    pub(crate) request_timeout: Nanos,
    pub(crate) connect_timeout: Nanos,
    pub(crate) keep_failures: usize,
    pub(crate) first_unique: u64,
    pub(crate) stop: &'r AtomicBool,
}

/// What makes one worker differ from the others.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) cpu: Option<usize>,
    /// The number of its first connection, over all workers.
    pub(crate) first_connection: usize,
    pub(crate) connections: usize,
    pub(crate) outbox: Sender<Message>,
    /// Cleared intervals on their way back.
    pub(crate) spares: Receiver<Box<Interval>>,
    pub(crate) records: Option<RecordKeeper>,
}

/// What a worker tells the coordinating thread while it runs.
#[derive(Debug)]
pub(crate) enum Message {
    /// All connections are open, or the time for that is up.
    Ready {
        established: usize,
        last_error: Option<ErrorKind>,
    },
    /// A second is over.
    Interval {
        second: u64,
        worker: usize,
        interval: Box<Interval>,
    },
    /// A chunk of records is full.
    Records { worker: usize, records: Vec<Record> },
    /// The worker's thread is about to end.
    Ended,
}

/// A free connection, as it was when it became free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) since: Nanos,
}

#[derive(Debug)]
pub(crate) struct Worker<'r> {
    pub(crate) place: Place,
    pub(crate) shared: &'r Shared<'r>,
    pub(crate) epoll: OwnedFd,
    pub(crate) connections: Vec<Connection>,
    /// Longest free first. Entries of connections that were closed since are skipped.
    pub(crate) free: VecDeque<Free>,
    /// Connections that were left with more to read: slot, generation and the event to repeat.
    pub(crate) unread: Vec<(u32, u32, EventFlags)>,
    /// The connections in the state `Queued`, longest first. If there are any, as many as are allowed are
    /// being opened.
    pub(crate) queued: VecDeque<u32>,
    /// How many connections are being opened.
    pub(crate) opening: usize,
    pub(crate) next_scan: Nanos,
    pub(crate) pacer: Pacer,
    pub(crate) phases: Phases,
    pub(crate) tally: Tally,
    pub(crate) ledger: Ledger,
    /// Above every number that a request carried; 0 before the first.
    pub(crate) next_unique: u64,
    /// Where requests with a number are put together.
    pub(crate) scratch: Vec<u8>,
    pub(crate) interval: Box<Interval>,
    pub(crate) in_flight: InFlight,
    pub(crate) censored: Histogram<u64>,
    pub(crate) connect: Histogram<u64>,
    pub(crate) reopened: u64,
    pub(crate) jitter: Jitter,
    next_swap: Nanos,
    pub(crate) meter: Meter,
    pub(crate) at_window_start: Option<Reading>,
    pub(crate) at_window_end: Option<Reading>,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        shared: &'r Shared<'r>,
        place: Place,
        jitter: Jitter,
    ) -> Result<Worker<'r>, LoadError> {
        let connections = place.connections;
        Ok(Worker {
            place,
            shared,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(LoadError::os("epoll_create1"))?,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            free: VecDeque::with_capacity(2 * connections),
            unread: Vec::new(),
            queued: VecDeque::with_capacity(connections),
            opening: 0,
            next_scan: 0,
            // Nothing to send until the run starts.
            pacer: Pacer::Once {
                next: 0,
                stripe: Stripe {
                    first: 0,
                    stride: 1,
                },
                total: 0,
            },
            phases: Phases {
                start: Nanos::MAX,
                window_start: Nanos::MAX,
                window_end: Nanos::MAX,
                end: Nanos::MAX,
            },
            tally: Tally::new(shared.keep_failures),
            ledger: Ledger::new(shared.table),
            next_unique: 0,
            scratch: Vec::new(),
            interval: Box::new(Interval::new()?),
            in_flight: InFlight::default(),
            censored: histogram()?,
            connect: histogram()?,
            reopened: 0,
            next_swap: Nanos::MAX,
            jitter,
            meter: Meter::of_this_thread(),
            at_window_start: None,
            at_window_end: None,
        })
    }

    /// Opens all connections and reports how many are up when they all are, or time is.
    pub(crate) fn establish(&mut self) -> Result<(), LoadError> {
        let mut events = Vec::with_capacity(EVENTS);
        let deadline = clock::now().saturating_add(self.shared.connect_timeout);
        let established = loop {
            let now = clock::now();
            self.scan(now);
            let count = |wanted: fn(&State) -> bool| {
                self.connections
                    .iter()
                    .filter(|one| wanted(&one.state))
                    .count()
            };
            let idle = count(|state| matches!(state, State::Idle));
            let hopeless =
                count(|state| matches!(state, State::Down { .. })) == self.connections.len();
            if idle == self.connections.len() || hopeless || now >= deadline || self.is_stopped() {
                break idle;
            }
            self.poll(&mut events, MILLISECOND.min(deadline - now))?;
        };
        let last_error = self.tally.errors.keys().next_back().copied();
        self.reopened = 0;
        self.tell(Message::Ready {
            established,
            last_error,
        });
        Ok(())
    }

    /// Runs from the start to the end of the schedule.
    pub(crate) fn run(mut self, pacer: Pacer, phases: Phases) -> Result<WorkerReport, LoadError> {
        self.pacer = pacer;
        self.phases = phases;
        self.next_swap = phases.start.saturating_add(SECOND);
        self.in_flight.integrate(phases.start, &phases);
        // Nobody was served before the start: a connection counts as free from then on.
        for free in &mut self.free {
            free.since = phases.start;
        }
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = clock::now();
            // What is due comes first: at a whole second an edge is often due at the same instant.
            self.dispatch(now);
            self.pass_edges(now);
            if now >= phases.end || self.is_finished(now) {
                return Ok(self.finish(now, false));
            }
            if self.is_stopped() {
                return Ok(self.finish(now, true));
            }
            self.scan(now);
            self.wait(&mut events)?;
        }
    }

    /// Sends whatever is due and has a free connection.
    pub(crate) fn dispatch(&mut self, mut now: Nanos) {
        for _ in 0..BURST {
            let Some(free) = self.longest_free() else {
                return;
            };
            match self.pacer.intended(free.since) {
                Some(intended) if intended <= now => {
                    self.free.pop_front();
                    now = self.start_exchange(free, intended);
                }
                _ => return,
            }
        }
    }

    /// Sleeps until something happens or is due; close to a due instant it spins.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), LoadError> {
        let due = self
            .longest_free()
            .and_then(|free| self.pacer.intended(free.since))
            .unwrap_or(Nanos::MAX);
        let now = clock::now();
        let nap = nap(due.saturating_sub(now));
        if nap == 0 {
            return self.spin(events, now, due);
        }
        let edge = [
            self.phases.window_start,
            self.phases.window_end,
            self.phases.end,
        ];
        let next_edge = edge
            .into_iter()
            .filter(|&edge| edge > now)
            .min()
            .unwrap_or(now);
        let until = now
            .saturating_add(nap)
            .min(self.next_scan)
            .min(self.next_swap)
            .min(next_edge);
        self.poll(events, until.saturating_sub(now).min(LONGEST_SLEEP))?;
        Ok(())
    }

    /// Looks for answers, without sleeping, until one comes or a request is due.
    fn spin(
        &mut self,
        events: &mut Vec<Event>,
        mut now: Nanos,
        due: Nanos,
    ) -> Result<(), LoadError> {
        loop {
            if self.poll(events, 0)? {
                return Ok(());
            }
            let after = clock::now();
            if after >= due {
                return Ok(());
            }
            self.meter.spun += after - now;
            now = after;
        }
    }

    /// Takes what happened, waiting up to `timeout` for the first event. Whether there was any.
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Nanos) -> Result<bool, LoadError> {
        let timeout = clock::to_timespec(if self.unread.is_empty() { timeout } else { 0 });
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(LoadError::os("epoll_pwait2")(errno)),
        }
        let any = !events.is_empty() || !self.unread.is_empty();
        for (slot, generation, flags) in std::mem::take(&mut self.unread) {
            self.on_event(slot, generation, flags);
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            // The two halves of what `Connection::open` registered.
            let (slot, generation) = (data as u32, (data >> 32) as u32);
            self.on_event(slot, generation, event.flags);
        }
        Ok(any)
    }

    fn pass_edges(&mut self, now: Nanos) {
        if now >= self.phases.window_start && self.at_window_start.is_none() {
            self.at_window_start = Some(self.meter.read(now));
        }
        if now >= self.phases.window_end && self.at_window_end.is_none() {
            self.at_window_end = Some(self.meter.read(now));
        }
        if now >= self.next_swap {
            let second = (self.next_swap - self.phases.start) / SECOND - 1;
            self.next_swap += SECOND;
            // Without a spare the coordinating thread is late: this interval just gets longer.
            if let Ok(spare) = self.place.spares.try_recv() {
                let interval = std::mem::replace(&mut self.interval, spare);
                self.tell(Message::Interval {
                    second,
                    worker: self.place.index,
                    interval,
                });
            }
        }
    }

    /// Nothing left to send and nothing on the wire.
    fn is_finished(&self, now: Nanos) -> bool {
        let all_sent = match &self.pacer {
            Pacer::Once { next, total, .. } => next >= total,
            Pacer::Closed { .. } | Pacer::Open { .. } => {
                now >= self.phases.window_end && self.pacer.intended(now).is_none()
            }
        };
        all_sent
            && !self
                .connections
                .iter()
                .any(|connection| connection.state == State::Busy)
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, message: Message) {
        // If nobody listens any more the run is being given up, and this thread ends with it.
        let _ = self.place.outbox.send(message);
    }
}
