//! The life of a worker's connections outside of requests: opened, freed, closed, opened again.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::clock::{self, MILLISECOND, Nanos};
use crate::connection::State;
use crate::outcome::ErrorKind;
use crate::worker::{Free, Worker};

/// Most connections one worker opens at the same time: below the listen backlog of usual servers, so
/// that no SYN is dropped and retried a second later.
const MAX_OPENING: usize = 64;
/// Longest time between two scans.
const LONGEST_SCAN: Nanos = 100 * MILLISECOND;

impl Worker<'_> {
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
        if matches!(connection.state, State::Connecting { .. }) {
            self.opening -= 1;
        }
        connection.close(now, failed);
        self.reopened += 1;
        match connection.state {
            State::Down { retry_at } if retry_at > now => {
                self.next_scan = self.next_scan.min(retry_at);
            }
            _ => self.queue(slot),
        }
        self.open_queued(now);
    }

    pub(crate) fn longest_free(&mut self) -> Option<Free> {
        while let Some(&free) = self.free.front() {
            let connection = &self.connections[free.slot as usize];
            if connection.generation == free.generation && connection.state == State::Idle {
                return Some(free);
            }
            self.free.pop_front();
        }
        None
    }

    /// An event of epoll, unless it is about an earlier socket of the slot.
    pub(crate) fn on_event(&mut self, slot: u32, generation: u32, flags: EventFlags) {
        let connection = &self.connections[slot as usize];
        if connection.generation != generation {
            return;
        }
        match connection.state {
            State::Down { .. } | State::Queued => {}
            State::Connecting { since } => self.on_connected(slot, since),
            State::Busy => self.on_ready(slot, flags),
            State::Idle => self.on_unasked(slot, flags),
        }
    }

    /// Looks for requests and attempts whose time is up, and for connections to open again.
    pub(crate) fn scan(&mut self, now: Nanos) {
        if now < self.next_scan {
            return;
        }
        let period = self.shared.request_timeout.min(self.shared.connect_timeout) / 20;
        self.next_scan = now + period.clamp(MILLISECOND, LONGEST_SCAN);
        for slot in 0..self.connections.len() as u32 {
            match self.connections[slot as usize].state {
                State::Down { retry_at } if retry_at <= now => self.queue(slot),
                State::Down { retry_at } => self.next_scan = self.next_scan.min(retry_at),
                State::Connecting { since }
                    if now.saturating_sub(since) >= self.shared.connect_timeout =>
                {
                    self.tally.error(ErrorKind::ConnectTimeout);
                    self.reopen(slot, now, true);
                }
                State::Busy => self.check_timeout(slot, now),
                State::Queued | State::Connecting { .. } | State::Idle => {}
            }
        }
        self.open_queued(now);
    }

    fn queue(&mut self, slot: u32) {
        self.connections[slot as usize].state = State::Queued;
        self.queued.push_back(slot);
    }

    fn open_queued(&mut self, now: Nanos) {
        while self.opening < MAX_OPENING
            && let Some(slot) = self.queued.pop_front()
        {
            self.open(slot, now);
        }
    }

    fn open(&mut self, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        match connection.open(self.shared.target, &self.epoll, slot, now) {
            Ok(()) => self.opening += 1,
            Err(errno) => {
                connection.close(now, true);
                self.tally.error(ErrorKind::Connect(errno.raw_os_error()));
            }
        }
    }

    fn on_connected(&mut self, slot: u32, since: Nanos) {
        let now = clock::now();
        match self.connections[slot as usize].connected() {
            Ok(()) => {
                self.opening -= 1;
                self.open_queued(now);
                self.connect.saturating_record(now.saturating_sub(since));
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
}
