//! The thread that accepts: new connections until they have a request and find a thread or a place in the queue,
//! and the refusal of those that find neither.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::Response;
use nix::poll::{PollFd, PollFlags};

use super::Limits;
use super::connection::Connection;
use super::turns::Turns;

/// How often connections are looked at that have been silent for long, or cannot be accepted now.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Accepted before others are looked at.
const ACCEPTS: usize = 64;

pub(super) struct Door<F> {
    listener: TcpListener,
    turns: Arc<Turns>,
    limits: Limits,
    refusal: Rc<F>,
    /// Connections without a request, which therefore wait for nothing: new ones, and those that gave way.
    silent: Vec<Silent>,
    /// Connections that are being told that the queue is full.
    refused: Vec<Connection>,
    /// Accepting failed, most likely for want of open files.
    resting: bool,
}

struct Silent {
    stream: TcpStream,
    since: Instant,
}

impl<F: Fn() -> Response + 'static> Door<F> {
    /// `listener` must not block.
    pub(super) fn new(
        listener: TcpListener,
        turns: Arc<Turns>,
        limits: Limits,
        refusal: F,
    ) -> Door<F> {
        Door {
            listener,
            turns,
            limits,
            refusal: Rc::new(refusal),
            silent: Vec::new(),
            refused: Vec::new(),
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
            self.refused.retain_mut(|connection| {
                !connection.advance(&waker) && connection.deadline().is_none_or(|end| now < end)
            });
            let sent_back = self.turns.sent_back().into_iter();
            self.silent
                .extend(sent_back.map(|(stream, since)| Silent { stream, since }));
            let spoke = self.wait()?;
            self.admit(&spoke);
            if self.turns.is_pressed() {
                self.turns.press();
            }
            self.accept();
        }
    }

    /// Waits for something to happen. Tells for each of the silent connections whether it has spoken.
    fn wait(&mut self) -> io::Result<Vec<bool>> {
        let nothing = self.silent.is_empty() && self.refused.is_empty();
        let timeout = (self.resting || !nothing).then_some(LOOK_AGAIN);
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
        let refused_start = descriptors.len();
        let mut polled = Vec::with_capacity(self.refused.len());
        for connection in &self.refused {
            if let Some(descriptor) = connection.poll_fd() {
                descriptors.push(descriptor);
                polled.push(connection);
            }
        }
        self.turns.door.sleep(&mut descriptors, timeout)?;
        let happened = |descriptor: &PollFd<'_>| descriptor.revents().unwrap_or(PollFlags::empty());
        for (connection, descriptor) in polled.iter().zip(descriptors.iter().skip(refused_start)) {
            connection.note(happened(descriptor));
        }
        let silent = descriptors.iter().take(refused_start).skip(2);
        Ok(silent
            .map(|descriptor| !happened(descriptor).is_empty())
            .collect())
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
            } else if matches!(connection.stream.peek(&mut [0]), Ok(1..))
                && let Err(stream) = self.turns.offer(connection.stream, true)
            {
                self.refuse(stream);
            }
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

    fn refuse(&mut self, stream: TcpStream) {
        let refusal = Rc::clone(&self.refusal);
        self.refused
            .push(Connection::new(stream, &self.limits, move |_| {
                let mut response = refusal();
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                Box::pin(std::future::ready(response))
            }));
    }
}
