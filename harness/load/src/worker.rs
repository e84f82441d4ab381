//! One generator thread: its loop, its phases, and the connections' life outside of requests.
//!
//! `exchange.rs` holds the other half: sending a request and taking its answer.

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
use crate::measure::{InFlight, Interval, Tally, histogram};
use crate::outcome::ErrorKind;
use crate::request::{Encoded, RequestTable};
use crate::schedule::{Due, Pacer, Phases, Stripe};

/// Longest sleep, so that `stop` ends a run within 100 ms.
const LONGEST_SLEEP: Nanos = 25 * MILLISECOND;
/// Before a due instant the thread stops sleeping this early and spins: about what a wake-up can cost.
const SPIN: Nanos = 60_000;
/// Most events taken at once.
const EVENTS: usize = 256;

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared<'r> {
    pub(crate) target: SocketAddr,
    pub(crate) table: &'r RequestTable,
    pub(crate) encoded: &'r [Encoded],
    pub(crate) request_timeout: Nanos,
    pub(crate) connect_timeout: Nanos,
    pub(crate) keep_failures: usize,
    pub(crate) stop: &'r AtomicBool,
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
    /// The worker's thread is about to end.
    Ended,
}

/// What a worker hands back at the end.
#[derive(Debug)]
pub(crate) struct WorkerReport {
    pub(crate) tally: Tally,
    /// What was recorded since the last swap.
    pub(crate) interval: Box<Interval>,
    pub(crate) connect: Histogram<u64>,
    pub(crate) served: usize,
    pub(crate) reopened: u64,
    /// The instant the worker stopped.
    pub(crate) ended: Nanos,
    pub(crate) window_cpu: Nanos,
}

/// A free connection, as it was when it became free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free {
    pub(crate) slot: u32,
    generation: u32,
    pub(crate) since: Nanos,
}

#[derive(Debug)]
pub(crate) struct Worker<'r> {
    index: usize,
    pub(crate) shared: &'r Shared<'r>,
    epoll: OwnedFd,
    pub(crate) connections: Vec<Connection>,
    /// Longest free first. Entries of connections that were closed since are skipped.
    free: VecDeque<Free>,
    pub(crate) pacer: Pacer,
    pub(crate) phases: Phases,
    pub(crate) tally: Tally,
    pub(crate) interval: Box<Interval>,
    pub(crate) in_flight: InFlight,
    connect: Histogram<u64>,
    reopened: u64,
    outbox: Sender<Message>,
    /// Cleared intervals on their way back.
    spares: Receiver<Box<Interval>>,
    next_scan: Nanos,
    next_swap: Nanos,
    window_cpu: CpuMeter,
}

/// CPU time of this thread between the window's edges.
#[derive(Debug, Default)]
struct CpuMeter {
    at_start: Option<Nanos>,
    at_end: Option<Nanos>,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        index: usize,
        shared: &'r Shared<'r>,
        connections: usize,
        outbox: Sender<Message>,
        spares: Receiver<Box<Interval>>,
    ) -> Result<Worker<'r>, LoadError> {
        let never = Phases {
            start: Nanos::MAX,
            window_start: Nanos::MAX,
            window_end: Nanos::MAX,
            end: Nanos::MAX,
        };
        Ok(Worker {
            index,
            shared,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(LoadError::os("epoll_create1"))?,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            free: VecDeque::with_capacity(2 * connections),
            // Nothing to send until the run starts.
            pacer: Pacer::Once {
                next: 0,
                stripe: Stripe {
                    first: 0,
                    stride: 1,
                },
                total: 0,
            },
            phases: never,
            tally: Tally::new(shared.keep_failures),
            interval: Box::new(Interval::new()?),
            in_flight: InFlight::default(),
            connect: histogram()?,
            reopened: 0,
            outbox,
            spares,
            next_scan: 0,
            next_swap: Nanos::MAX,
            window_cpu: CpuMeter::default(),
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
            let down = count(|state| matches!(state, State::Down { .. }));
            let hopeless = down == self.connections.len();
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
            self.pass_edges(now);
            if now >= phases.end || self.is_stopped() || self.is_finished(now) {
                return self.finish(now);
            }
            self.dispatch(now);
            self.scan(now);
            self.wait(&mut events)?;
        }
    }

    /// Sends whatever is due and has a free connection.
    pub(crate) fn dispatch(&mut self, mut now: Nanos) {
        while let Some(free) = self.longest_free() {
            match self.pacer.intended(free.since) {
                Some(intended) if intended <= now => {
                    self.free.pop_front();
                    now = self.start_exchange(free, intended);
                }
                _ => return,
            }
        }
    }

    /// The connection is ready for its next request.
    pub(crate) fn release(&mut self, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Idle;
        let generation = connection.generation;
        self.free.push_back(Free {
            slot,
            generation,
            since: now,
        });
    }

    /// Closes a connection and, unless it keeps failing, opens it again at once.
    pub(crate) fn reopen(&mut self, slot: u32, now: Nanos, failed: bool) {
        let connection = &mut self.connections[slot as usize];
        connection.close(now, failed);
        self.reopened += 1;
        if connection.state == (State::Down { retry_at: now }) {
            self.open(slot, now);
        }
    }

    fn open(&mut self, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        if let Err(errno) = connection.open(self.shared.target, &self.epoll, slot, now) {
            connection.close(now, true);
            self.tally.error(ErrorKind::Connect(errno.raw_os_error()));
        }
    }

    fn longest_free(&mut self) -> Option<Free> {
        while let Some(&free) = self.free.front() {
            let connection = &self.connections[free.slot as usize];
            if connection.generation == free.generation && connection.state == State::Idle {
                return Some(free);
            }
            self.free.pop_front();
        }
        None
    }

    /// Sleeps until something happens or is due; close to a due instant it spins.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), LoadError> {
        let due = self
            .longest_free()
            .and_then(|free| self.pacer.intended(free.since));
        let edge = [
            self.phases.window_start,
            self.phases.window_end,
            self.phases.end,
        ];
        let now = clock::now();
        let next_edge = edge
            .into_iter()
            .filter(|&edge| edge > now)
            .min()
            .unwrap_or(now);
        let wake = due.map_or(Nanos::MAX, |due| due.saturating_sub(SPIN));
        let until = wake.min(self.next_scan).min(self.next_swap).min(next_edge);
        self.poll(events, until.saturating_sub(now).min(LONGEST_SLEEP))
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Nanos) -> Result<(), LoadError> {
        let timeout = clock::to_timespec(timeout);
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(LoadError::os("epoll_pwait2")(errno)),
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            // The two halves of what `Connection::open` registered.
            let (slot, generation) = (data as u32, (data >> 32) as u32);
            self.on_event(slot, generation, event.flags);
        }
        Ok(())
    }

    fn on_event(&mut self, slot: u32, generation: u32, flags: EventFlags) {
        let connection = &self.connections[slot as usize];
        if connection.generation != generation {
            return;
        }
        match connection.state {
            State::Down { .. } => {}
            State::Connecting { since } => self.on_connected(slot, since),
            State::Busy => self.on_ready(slot, flags),
            State::Idle => self.on_unasked(slot, flags),
        }
    }

    fn on_connected(&mut self, slot: u32, since: Nanos) {
        let now = clock::now();
        match self.connections[slot as usize].connected() {
            Ok(()) => {
                self.connect.saturating_record(now - since);
                self.release(slot, now);
                self.dispatch(now);
            }
            Err(errno) => {
                self.tally.error(ErrorKind::Connect(errno.raw_os_error()));
                self.reopen(slot, now, true);
            }
        }
    }

    /// Something on a connection without a request: the server closed it, or talks out of turn.
    fn on_unasked(&mut self, slot: u32, flags: EventFlags) {
        if flags == EventFlags::OUT {
            return;
        }
        let connection = &mut self.connections[slot as usize];
        connection.reader.begin();
        let failed = match connection.receive() {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((0, _)) => false,
            Ok(_) => {
                self.tally.error(ErrorKind::Unasked);
                true
            }
            Err(errno) => {
                self.tally.error(ErrorKind::Receive(errno.raw_os_error()));
                true
            }
        };
        self.reopen(slot, clock::now(), failed);
    }

    /// Looks for requests and attempts whose time is up, and for connections to open again.
    fn scan(&mut self, now: Nanos) {
        if now < self.next_scan {
            return;
        }
        let period = self.shared.request_timeout.min(self.shared.connect_timeout) / 20;
        self.next_scan = now + period.clamp(MILLISECOND, LONGEST_SLEEP);
        for slot in 0..self.connections.len() as u32 {
            match self.connections[slot as usize].state {
                State::Down { retry_at } if now >= retry_at => self.open(slot, now),
                State::Connecting { since }
                    if now.saturating_sub(since) >= self.shared.connect_timeout =>
                {
                    self.tally.error(ErrorKind::ConnectTimeout);
                    self.reopen(slot, now, true);
                }
                State::Busy => self.check_timeout(slot, now),
                State::Down { .. } | State::Connecting { .. } | State::Idle => {}
            }
        }
    }

    fn pass_edges(&mut self, now: Nanos) {
        if now >= self.phases.window_start {
            self.window_cpu
                .at_start
                .get_or_insert_with(clock::thread_cpu);
        }
        if now >= self.phases.window_end {
            self.window_cpu.at_end.get_or_insert_with(clock::thread_cpu);
        }
        if now >= self.next_swap {
            let second = (self.next_swap - self.phases.start) / SECOND;
            self.next_swap += SECOND;
            // Without a spare the coordinating thread is late: this interval just gets longer.
            if let Ok(spare) = self.spares.try_recv() {
                let interval = std::mem::replace(&mut self.interval, spare);
                self.tell(Message::Interval {
                    second,
                    worker: self.index,
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

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn finish(mut self, now: Nanos) -> Result<WorkerReport, LoadError> {
        self.in_flight.integrate(now, &self.phases);
        for slot in 0..self.connections.len() {
            if self.connections[slot].state == State::Busy {
                let phase = self.phases.phase(self.connections[slot].exchange.intended);
                self.tally.counts(phase).unfinished += 1;
            }
        }
        self.count_unsent(now);
        let cpu_end = self.window_cpu.at_end.unwrap_or_else(clock::thread_cpu);
        Ok(WorkerReport {
            served: self
                .connections
                .iter()
                .filter(|connection| connection.served)
                .count(),
            tally: self.tally,
            interval: self.interval,
            connect: self.connect,
            reopened: self.reopened,
            ended: now,
            window_cpu: self.window_cpu.at_start.map_or(0, |start| cpu_end - start),
        })
    }

    /// Adds the requests that were due and never sent. A run that was interrupted owes only those due
    /// until then.
    fn count_unsent(&mut self, now: Nanos) {
        let due = self.pacer.due_before(now.min(self.phases.window_end));
        let Some(Due { warmup, window }) = due else {
            return;
        };
        for (counts, due) in [
            (&mut self.tally.warmup, warmup),
            (&mut self.tally.window, window),
        ] {
            counts.unsent = due.saturating_sub(counts.scheduled);
            counts.scheduled += counts.unsent;
        }
    }

    fn tell(&self, message: Message) {
        // If nobody listens any more the run is being given up, and this thread ends with it.
        let _ = self.outbox.send(message);
    }
}
