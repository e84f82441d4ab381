//! The thread that accepts: connections until they have a request and find a thread or a place in the queue, and the
//! answers that are given without a thread: to what is refused, and to what never waits.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use nix::poll::{PollFd, PollFlags};
use tower_service::Service;

use super::connection::{Answering, Connection};
use super::turns::Turns;
use super::{Limits, Refusal, last};

/// How often connections are looked at that have been silent for long, or cannot be accepted now.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Accepted before others are looked at.
const ACCEPTS: usize = 64;

/// Read of a request to tell whether it may wait: its method, and a short path.
const START_BYTES: usize = 32;

pub(super) struct Door<F> {
    listener: TcpListener,
    turns: Arc<Turns>,
    router: Router,
    limits: Limits,
    refusal: Rc<F>,
    /// Connections without a request, which therefore wait for nothing: new ones, and those that gave way.
    silent: Vec<Silent>,
    /// Connections that get one answer here, and then end.
    answered: Vec<Connection>,
    /// Accepting failed, most likely for want of open files.
    resting: bool,
}

struct Silent {
    stream: TcpStream,
    since: Instant,
}

/// What a wait ended with.
struct Happened {
    /// Somebody wants to connect.
    knocked: bool,
    /// For each of the silent connections, whether it has spoken.
    spoke: Vec<bool>,
}

impl<F: Fn(Refusal) -> Response + 'static> Door<F> {
    /// `listener` must not block.
    pub(super) fn new(
        listener: TcpListener,
        turns: Arc<Turns>,
        router: Router,
        limits: Limits,
        refusal: F,
    ) -> Door<F> {
        Door {
            listener,
            turns,
            router,
            limits,
            refusal: Rc::new(refusal),
            silent: Vec::new(),
            answered: Vec::new(),
            resting: false,
        }
    }

    /// Accepts until the server ends.
    pub(super) fn keep(mut self) -> io::Result<()> {
        let waker = self.turns.door.waker();
        loop {
            self.turns.door.hush();
            if self.turns.is_ending() {
                return Ok(());
            }
            let now = Instant::now();
            let (overdue, next_overdue) = self.turns.overdue(now, self.limits.queue_wait);
            for stream in overdue {
                self.refuse(stream, Refusal::WaitedTooLong);
            }
            self.answered.retain_mut(|connection| {
                !connection.advance(&waker) && connection.deadline().is_none_or(|end| now < end)
            });
            let sent_back = self.turns.sent_back().into_iter();
            self.silent
                .extend(sent_back.map(|(stream, since)| Silent { stream, since }));
            let Happened { knocked, spoke } = self.wait(next_overdue)?;
            self.admit(&spoke);
            if self.turns.is_pressed() {
                self.turns.press();
            }
            if knocked || self.resting {
                self.accept();
            }
        }
    }

    /// Waits for something to happen, until somebody has waited too long.
    fn wait(&mut self, next_overdue: Option<Duration>) -> io::Result<Happened> {
        let nothing = self.silent.is_empty() && self.answered.is_empty();
        let look_again = (self.resting || !nothing).then_some(LOOK_AGAIN);
        let timeout = look_again.into_iter().chain(next_overdue).min();
        let listens = if self.resting {
            PollFlags::empty()
        } else {
            PollFlags::POLLIN
        };
        let mut descriptors = vec![
            self.turns.door.poll_fd(),
            PollFd::new(self.listener.as_fd(), listens),
        ];
        descriptors.extend(
            self.silent
                .iter()
                .map(|silent| PollFd::new(silent.stream.as_fd(), PollFlags::POLLIN)),
        );
        let answered_start = descriptors.len();
        let mut polled = Vec::with_capacity(self.answered.len());
        for connection in &self.answered {
            if let Some(descriptor) = connection.poll_fd() {
                descriptors.push(descriptor);
                polled.push(connection);
            }
        }
        self.turns.door.sleep(&mut descriptors, timeout)?;
        let happened = |descriptor: &PollFd<'_>| descriptor.revents().unwrap_or(PollFlags::empty());
        for (connection, descriptor) in polled.iter().zip(descriptors.iter().skip(answered_start)) {
            connection.note(happened(descriptor));
        }
        let mut happened = descriptors
            .iter()
            .take(answered_start)
            .skip(1)
            .map(|descriptor| !happened(descriptor).is_empty());
        Ok(Happened {
            knocked: happened.next().unwrap_or(false),
            spoke: happened.collect(),
        })
    }

    /// Lets those of the silent connections in that have `spoken`, and drops those that have been silent for too long.
    fn admit(&mut self, spoke: &[bool]) {
        let now = Instant::now();
        let waited = std::mem::take(&mut self.silent);
        for (connection, spoke) in waited.into_iter().zip(spoke) {
            if !spoke {
                if now < connection.since + self.limits.idle {
                    self.silent.push(connection);
                }
            } else {
                self.let_in(connection.stream);
            }
        }
    }

    /// To a thread, or to the queue, or not at all; and a connection that the client has closed to its end.
    fn let_in(&mut self, stream: TcpStream) {
        let mut start = [0; START_BYTES];
        let Ok(length @ 1..) = stream.peek(&mut start) else {
            return;
        };
        let start = start.get(..length).unwrap_or_default();
        let mut never_queued = self.limits.never_queued.iter();
        if never_queued.any(|beginning| start.starts_with(beginning.as_bytes())) {
            self.answer_here(stream);
        } else if let Err(stream) = self.turns.offer(stream, true) {
            self.refuse(stream, Refusal::QueueFull);
        }
    }

    fn accept(&mut self) {
        self.resting = false;
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.resting = true;
                        return;
                    }
                },
            }
        }
    }

    fn welcome(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        // An answer is one write; waiting to fill a segment could only delay it.
        let _ = stream.set_nodelay(true);
        if let Err(stream) = self.turns.offer(stream, false) {
            let since = Instant::now();
            self.silent.push(Silent { stream, since });
        }
    }

    fn refuse(&mut self, stream: TcpStream, why: Refusal) {
        let refusal = Rc::clone(&self.refusal);
        self.answer(stream, move |_| {
            Box::pin(std::future::ready(last(refusal(why))))
        });
    }

    fn answer_here(&mut self, stream: TcpStream) {
        let router = self.router.clone();
        self.answer(stream, move |request| {
            let answer = router.clone().call(request);
            Box::pin(async { last(answer.await.unwrap_or_else(|never| match never {})) })
        });
    }

    fn answer(
        &mut self,
        stream: TcpStream,
        respond: impl Fn(Request<Incoming>) -> Answering + 'static,
    ) {
        let connection = Connection::new(stream, &self.limits, respond);
        self.answered.push(connection);
    }
}
