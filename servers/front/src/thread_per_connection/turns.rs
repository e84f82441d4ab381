//! Who is served next: the connections that wait for a thread, and the threads.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bell::Bell;

#[derive(Debug)]
pub(super) struct Turns {
    line: Mutex<Line>,
    /// The line has changed: a connection for a free thread, the end, a thread gone.
    changed: Condvar,
    /// Somebody waits who is not about to be served: [`Line::unserved`] is not 0.
    pressed: AtomicBool,
    ending: AtomicBool,
    seats: Vec<Seat>,
    /// Wakes the thread that accepts.
    pub(super) door: Arc<Bell>,
    queue: usize,
    opened: Instant,
}

#[derive(Debug)]
struct Line {
    /// With the instant each came.
    waiting: VecDeque<(TcpStream, Instant)>,
    /// Connections on their way back to the door, and since when they have been silent.
    sent_back: Vec<(TcpStream, Instant)>,
    /// Threads with nothing to do. Some may have been told and not be awake yet.
    free: usize,
    /// Threads that have not ended.
    working: usize,
}

impl Line {
    fn unserved(&self) -> usize {
        self.waiting.len().saturating_sub(self.free)
    }
}

/// A thread's place: how to wake it, and since when its connection has been silent.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) bell: Arc<Bell>,
    /// Microseconds since the server opened, plus one; 0 while it is busy.
    idle_since: AtomicU64,
}

impl Seat {
    fn new() -> io::Result<Seat> {
        Ok(Seat {
            bell: Arc::new(Bell::new()?),
            idle_since: AtomicU64::new(0),
        })
    }

    /// The connection has been silent `since` these microseconds.
    pub(super) fn idle(&self, since: u64) {
        self.idle_since.store(since + 1, SeqCst);
    }

    /// Whether it has been idle.
    pub(super) fn busy(&self) -> bool {
        self.idle_since.swap(0, SeqCst) != 0
    }
}

impl Turns {
    /// # Errors
    /// No more files can be opened.
    pub(super) fn new(threads: usize, queue: usize) -> io::Result<Turns> {
        Ok(Turns {
            line: Mutex::new(Line {
                waiting: VecDeque::new(),
                sent_back: Vec::new(),
                // Those that are starting as well: nobody is to be refused for them.
                free: threads,
                working: threads,
            }),
            changed: Condvar::new(),
            pressed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            seats: (0..threads)
                .map(|_| Seat::new())
                .collect::<io::Result<_>>()?,
            door: Arc::new(Bell::new()?),
            queue,
            opened: Instant::now(),
        })
    }

    pub(super) fn seat(&self, number: usize) -> Option<&Seat> {
        self.seats.get(number)
    }

    /// An instant in the form the seats keep it.
    pub(super) fn microseconds(&self, instant: Instant) -> u64 {
        let since_opened = instant.saturating_duration_since(self.opened);
        u64::try_from(since_opened.as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// Gives a connection to a thread, now if one is free, or in its turn if it has a request and the queue has room.
    ///
    /// # Errors
    /// The connection itself, if neither.
    pub(super) fn offer(&self, stream: TcpStream, has_request: bool) -> Result<(), TcpStream> {
        let mut line = self.line();
        let queue = if has_request { self.queue } else { 0 };
        if self.is_ending() || line.waiting.len() >= line.free + queue {
            return Err(stream);
        }
        line.waiting.push_back((stream, Instant::now()));
        self.settle(&line);
        drop(line);
        self.changed.notify_one();
        Ok(())
    }

    /// The next connection for a free thread, as soon as there is one. None when the server ends.
    pub(super) fn take(&self) -> Option<TcpStream> {
        let mut line = self.line();
        let next = loop {
            if let Some((next, _)) = line.waiting.pop_front() {
                break Some(next);
            }
            if self.is_ending() {
                line.working -= 1;
                self.changed.notify_all();
                break None;
            }
            line = self
                .changed
                .wait(line)
                .unwrap_or_else(PoisonError::into_inner);
        };
        line.free -= 1;
        self.settle(&line);
        next
    }

    /// A thread has nobody to serve any more.
    pub(super) fn free(&self) {
        let mut line = self.line();
        line.free += 1;
        self.settle(&line);
    }

    /// The next connection, unless a free thread is about to serve it.
    pub(super) fn claim(&self) -> Option<TcpStream> {
        let mut line = self.line();
        if line.unserved() == 0 {
            return None;
        }
        let next = line.waiting.pop_front();
        self.settle(&line);
        next.map(|(next, _)| next)
    }

    /// The connections that have waited for as long as `queue_wait` and are not about to be served, and how long it is
    /// until there is another.
    pub(super) fn overdue(
        &self,
        now: Instant,
        queue_wait: Duration,
    ) -> (Vec<TcpStream>, Option<Duration>) {
        let mut line = self.line();
        let mut overdue = Vec::new();
        let mut next = None;
        while line.unserved() > 0
            && let Some((_, since)) = line.waiting.front()
        {
            let waited = now.saturating_duration_since(*since);
            next = queue_wait
                .checked_sub(waited)
                .filter(|left| !left.is_zero());
            if next.is_some() {
                break;
            }
            overdue.extend(line.waiting.pop_front().map(|(stream, _)| stream));
        }
        self.settle(&line);
        (overdue, next)
    }

    /// A silent connection that gave way: it needs a thread again when it speaks.
    pub(super) fn send_back(&self, stream: TcpStream, since: Instant) {
        self.line().sent_back.push((stream, since));
        self.door.ring();
    }

    pub(super) fn sent_back(&self) -> Vec<(TcpStream, Instant)> {
        std::mem::take(&mut self.line().sent_back)
    }

    /// Whether somebody waits for whom no thread is free.
    pub(super) fn is_pressed(&self) -> bool {
        self.pressed.load(SeqCst)
    }

    /// Asks as many silent connections to give way as there are others waiting, the longest silent first.
    pub(super) fn press(&self) {
        let unserved = self.line().unserved();
        let mut silent: Vec<_> = self
            .seats
            .iter()
            .map(|seat| (seat.idle_since.load(SeqCst), seat))
            .filter(|(since, _)| *since != 0)
            .collect();
        silent.sort_by_key(|(since, _)| *since);
        for (_, seat) in silent.into_iter().take(unserved) {
            seat.bell.ring();
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(SeqCst)
    }

    /// From now on every answer ends its connection, and a thread that has nobody to serve goes home.
    pub(super) fn begin_to_end(&self) {
        let line = self.line();
        self.ending.store(true, SeqCst);
        drop(line);
        self.changed.notify_all();
        for seat in &self.seats {
            seat.bell.ring();
        }
        self.door.ring();
    }

    /// Waits until every thread has gone home. False if that takes longer than `drain`; who waits then is dropped.
    pub(super) fn wait_for_the_end(&self, drain: Duration) -> bool {
        let line = self.line();
        let (mut line, _) = self
            .changed
            .wait_timeout_while(line, drain, |line| line.working > 0)
            .unwrap_or_else(PoisonError::into_inner);
        line.waiting.clear();
        line.sent_back.clear();
        line.working == 0
    }

    /// Nothing panics while it holds the lock, and the line is whole between any two lines of code.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, line: &Line) {
        self.pressed.store(line.unserved() > 0, SeqCst);
    }
}
