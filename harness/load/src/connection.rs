//! One connection: its socket, its state, and the answer being read on it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

use crate::answer::AnswerReader;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::measure::Exchange;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Closed, until this instant.
    Down {
        retry_at: Nanos,
    },
    /// Closed, and opened as soon as no more than a certain number are being opened.
    Queued,
    Connecting {
        since: Nanos,
    },
    /// Ready to take a request.
    Idle,
    /// A request is on the wire.
    Busy,
}

/// A slot for one connection, which may be opened many times during a run.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Option<OwnedFd>,
    pub(crate) state: State,
    pub(crate) reader: AnswerReader,
    pub(crate) exchange: Exchange,
    /// The number that the request carries, if it is one with a number.
    pub(crate) number: u64,
    /// How much of the request went out.
    pub(crate) written: usize,
    /// Whether an answer ever came through this slot.
    pub(crate) served: bool,
    /// Counts the openings, so that events of an earlier socket can be told apart.
    pub(crate) generation: u32,
    /// Openings or requests that failed since the last answer.
    failures: u32,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            socket: None,
            state: State::Down { retry_at: 0 },
            reader: AnswerReader::new(),
            exchange: Exchange::default(),
            number: 0,
            written: 0,
            served: false,
            generation: 0,
            failures: 0,
        }
    }

    /// Starts to connect. Events will carry `slot` and the generation.
    pub(crate) fn open(
        &mut self,
        target: SocketAddr,
        epoll: &OwnedFd,
        slot: u32,
        now: Nanos,
    ) -> Result<(), Errno> {
        self.generation = self.generation.wrapping_add(1);
        let family = if target.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &target) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno),
        }
        // Edge-triggered and registered once: the kernel reports writability only after a send would
        // have blocked, so no call is needed to arm or disarm it.
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(u64::from(self.generation) << 32 | u64::from(slot));
        epoll::add(epoll, &socket, data, interest)?;
        self.socket = Some(socket);
        self.state = State::Connecting { since: now };
        Ok(())
    }

    /// What became of the attempt to connect.
    pub(crate) fn connected(&self) -> Result<(), Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        sockopt::socket_error(socket)?
    }

    /// Closes the socket, and waits before the next attempt if the last ones failed too.
    pub(crate) fn close(&mut self, now: Nanos, failed: bool) {
        self.socket = None;
        self.failures = if failed {
            self.failures.saturating_add(1)
        } else {
            0
        };
        let pause = match self.failures {
            0 | 1 => 0,
            failures => (MILLISECOND << failures.min(10)).min(SECOND),
        };
        self.state = State::Down {
            retry_at: now + pause,
        };
    }

    /// An answer came: earlier failures no longer matter.
    pub(crate) fn answered(&mut self) {
        self.served = true;
        self.failures = 0;
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
    }

    /// Receives into the reader's buffer; returns the bytes received and those asked for.
    pub(crate) fn receive(&mut self) -> Result<(usize, usize), Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        let spare = self.reader.spare();
        let room = spare.len();
        let (_, received) = rustix::net::recv(socket, spare, RecvFlags::empty())?;
        Ok((received, room))
    }
}
