//! The connections of all subscribers, read by one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::stream::{Fault, Stream};

/// A server that does not take a connection by then is not there.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 64 * 1024;
const EVENTS_AT_ONCE: usize = 1024;

/// Subscribers of one server.
#[derive(Debug)]
pub(super) struct Subscribers {
    epoll: OwnedFd,
    all: Vec<Subscriber>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Subscriber {
    socket: TcpStream,
    stream: Stream,
    /// What went wrong with it first. It is not listened to any more.
    fault: Option<Fault>,
}

impl Subscribers {
    /// Connects so many, and sends their requests.
    ///
    /// # Errors
    /// There are not as many files to be had, or the server does not take a connection.
    pub(super) fn connect(address: SocketAddr, path: &str, count: usize) -> Result<Subscribers> {
        load::allow_connections(count).with_context(|| format!("--subscribers {count}"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("epoll")?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
        let mut all = Vec::with_capacity(count);
        for index in 0..count {
            let what = || format!("subscriber {} cannot connect", index + 1);
            let mut socket =
                TcpStream::connect_timeout(&address, CONNECT_LIMIT).with_context(what)?;
            socket.write_all(request.as_bytes()).with_context(what)?;
            socket.set_nonblocking(true).with_context(what)?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, &socket, data, EventFlags::IN).context("epoll")?;
            all.push(Subscriber {
                socket,
                stream: Stream::new(),
                fault: None,
            });
        }
        Ok(Subscribers {
            epoll,
            all,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Reads once from every connection that has something, waiting no longer than `limit` for one. `deliver` is told of
    /// each event that a subscriber got, by its place in `sent`, with the instant after its last byte was read.
    ///
    /// # Errors
    /// The operating system.
    pub(super) fn turn(
        &mut self,
        limit: Duration,
        sent: &[String],
        deliver: &mut impl FnMut(usize, Instant),
    ) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
        let timeout = Timespec::try_from(limit).context("epoll")?;
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll"),
        }
        for event in events {
            // The index it was registered with.
            let Some(subscriber) = self.all.get_mut(event.data.u64() as usize) else {
                continue;
            };
            if let Err(fault) = subscriber.read(&mut self.buffer, sent, deliver) {
                subscriber.fault = Some(fault);
                let _ = epoll::delete(&self.epoll, &subscriber.socket);
                let _ = subscriber.socket.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }

    /// How many are right so far, and listening.
    pub(super) fn listening(&self) -> usize {
        self.right()
            .filter(|subscriber| subscriber.stream.listening)
            .count()
    }

    /// How many are right and have got so many events.
    pub(super) fn with(&self, events: usize) -> usize {
        self.right()
            .filter(|subscriber| subscriber.stream.received == events)
            .count()
    }

    /// Events that came when they had to, of all subscribers.
    pub(super) fn delivered(&self) -> usize {
        let received = self.all.iter().map(|subscriber| subscriber.stream.received);
        received.sum()
    }

    pub(super) fn faulty(&self) -> usize {
        self.all.len() - self.right().count()
    }

    pub(super) fn first_fault(&self) -> Option<&Fault> {
        self.all
            .iter()
            .find_map(|subscriber| subscriber.fault.as_ref())
    }

    fn right(&self) -> impl Iterator<Item = &Subscriber> {
        self.all
            .iter()
            .filter(|subscriber| subscriber.fault.is_none())
    }
}

impl Subscriber {
    fn read(
        &mut self,
        buffer: &mut [u8],
        sent: &[String],
        deliver: &mut impl FnMut(usize, Instant),
    ) -> Result<(), Fault> {
        let length = match self.socket.read(buffer) {
            Ok(0) => return Err(self.stream.ended()),
            Ok(length) => length,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => {
                let Fault(ended) = self.stream.ended();
                return Err(Fault(format!("{ended}: {error}")));
            }
        };
        let now = Instant::now();
        let first = self.stream.received;
        let taken = self.stream.take(&buffer[..length], sent);
        for event in first..self.stream.received {
            deliver(event, now);
        }
        taken
    }
}
