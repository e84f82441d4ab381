//! A server on loopback whose every answer a test decides: what, when, and what becomes of the
//! connection. One thread, timers instead of sleeps, so that thousands of connections can wait.

// Each test binary uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
    Reset,
    /// Sends the same bytes again and again.
    Repeat,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub after: Duration,
    pub bytes: Arc<[u8]>,
    pub then: Then,
}

impl Reply {
    pub fn now(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply {
            after: Duration::ZERO,
            bytes: bytes.into().into(),
            then: Then::Keep,
        }
    }
}

/// A complete answer with this body.
pub fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The first CPU this process may use.
pub fn first_cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU)
        .find(|&cpu| allowed.is_set(cpu))
        .unwrap()
}

/// Decides an answer from the number of the request and the time since the server's start.
pub type Behaviour = Box<dyn FnMut(u64, Duration) -> Reply + Send>;

/// A running server; stops when dropped.
pub struct Stub {
    pub address: SocketAddr,
    /// The instant each request came.
    arrivals: Receiver<Instant>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stub {
    pub fn start(behaviour: impl FnMut(u64, Duration) -> Reply + Send + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, arrivals) = channel();
        let mut serving = Serving::new(
            listener,
            Box::new(behaviour),
            Arc::clone(&stop),
            Some(sender),
        );
        let thread = std::thread::spawn(move || serving.serve());
        Stub {
            address,
            arrivals,
            stop,
            thread: Some(thread),
        }
    }

    /// Instants of the requests since the last call.
    pub fn arrivals(&self) -> Vec<Instant> {
        self.arrivals.try_iter().collect()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

const LISTENER: u64 = u64::MAX;

pub struct Serving {
    epoll: OwnedFd,
    listener: TcpListener,
    behaviour: Behaviour,
    stop: Arc<AtomicBool>,
    arrivals: Option<Sender<Instant>>,
    peers: Vec<Option<OwnedFd>>,
    started: Instant,
    requests: u64,
    due: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    replies: Vec<Option<Reply>>,
}

impl Serving {
    pub fn new(
        listener: TcpListener,
        behaviour: Behaviour,
        stop: Arc<AtomicBool>,
        arrivals: Option<Sender<Instant>>,
    ) -> Serving {
        // Client and server of a test share the limit.
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(8192, |maximum| maximum.min(8192));
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.current.max(Some(wanted)),
                maximum: limit.maximum,
            },
        )
        .unwrap();
        listener.set_nonblocking(true).unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )
        .unwrap();
        Serving {
            epoll,
            listener,
            behaviour,
            stop,
            arrivals,
            peers: Vec::new(),
            started: Instant::now(),
            requests: 0,
            due: BinaryHeap::new(),
            replies: Vec::new(),
        }
    }

    pub fn serve(&mut self) {
        let mut events = Vec::with_capacity(256);
        while !self.stop.load(Ordering::Relaxed) {
            let next = self
                .due
                .peek()
                .map(|Reverse((due, ..))| due.saturating_duration_since(Instant::now()));
            let timeout = next.unwrap_or(Duration::MAX).min(Duration::from_millis(20));
            let _ = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout.try_into().unwrap()),
            );
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    slot => self.read(usize::try_from(slot).unwrap()),
                }
            }
            self.send_due();
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).unwrap();
            stream.set_nodelay(true).unwrap();
            let data = EventData::new_u64(self.peers.len() as u64);
            epoll::add(&self.epoll, &stream, data, EventFlags::IN | EventFlags::ET).unwrap();
            self.peers.push(Some(stream.into()));
            self.replies.push(None);
        }
    }

    /// Every read is one request: the tests send small ones, one at a time.
    fn read(&mut self, slot: usize) {
        let mut buffer = [0; 4096];
        let Some(socket) = &self.peers[slot] else {
            return;
        };
        match rustix::net::recv(socket, &mut buffer, RecvFlags::empty()) {
            Ok((_, 0)) => self.peers[slot] = None,
            Ok(_) => {
                let now = Instant::now();
                if let Some(arrivals) = &self.arrivals {
                    let _ = arrivals.send(now);
                }
                let reply = (self.behaviour)(self.requests, now - self.started);
                self.due
                    .push(Reverse((now + reply.after, self.requests, slot)));
                self.replies[slot] = Some(reply);
                self.requests += 1;
            }
            Err(rustix::io::Errno::AGAIN) => {}
            Err(_) => self.peers[slot] = None,
        }
    }

    fn send_due(&mut self) {
        let now = Instant::now();
        while let Some(&Reverse((due, number, slot))) = self.due.peek() {
            if due > now {
                return;
            }
            self.due.pop();
            let (Some(socket), Some(reply)) = (&self.peers[slot], &self.replies[slot]) else {
                continue;
            };
            let sent = rustix::net::send(socket, &reply.bytes, SendFlags::NOSIGNAL);
            match reply.then {
                Then::Keep => {}
                Then::Close => self.peers[slot] = None,
                Then::Reset => {
                    sockopt::set_socket_linger(socket, Some(Duration::ZERO)).unwrap();
                    self.peers[slot] = None;
                }
                Then::Repeat if matches!(sent, Ok(_) | Err(rustix::io::Errno::AGAIN)) => {
                    self.due
                        .push(Reverse((now + Duration::from_millis(1), number, slot)));
                }
                Then::Repeat => self.peers[slot] = None,
            }
        }
    }
}
