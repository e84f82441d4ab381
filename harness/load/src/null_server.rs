//! The server that does nothing: what the engine reaches against it is the engine's own ceiling.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::LoadError;
use crate::clock::{self, MILLISECOND};
use crate::expect::{Expect, ExpectBody, body_hash};
use crate::limits;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::request::{Request, RequestTable};
use crate::run::run;
use crate::schedule::End;

/// Answers every request without a body on loopback with the same bytes, from one thread. Stops when
/// dropped.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NullServer {
    /// Serves `body` as `media_type`, on `cpu` if one is given.
    ///
    /// # Errors
    /// If the CPU is not allowed, or no socket can be had.
    pub fn start(
        cpu: Option<usize>,
        media_type: &str,
        body: &[u8],
    ) -> Result<NullServer, LoadError> {
        let io = |cause| LoadError::Os {
            call: "listening on loopback",
            cause,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body].concat();
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(LoadError::os("epoll_create1"))?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )
        .map_err(LoadError::os("epoll_ctl"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (pinned, is_pinned) = std::sync::mpsc::channel();
        let mut server = Serving {
            epoll,
            listener,
            answer,
            peers: Vec::new(),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::spawn(move || {
            let prepared = limits::prepare_thread(cpu);
            let ready = prepared.is_ok();
            let _ = pinned.send(prepared);
            if ready {
                server.serve();
            }
        });
        is_pinned.recv().unwrap_or(Ok(()))?;
        Ok(NullServer {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed already, and there is nobody to tell in a drop.
            let _ = thread.join();
        }
    }
}

/// What the engine reaches against a null server that sends 1 KiB of JSON, every body verified, in a
/// closed loop: the ceiling of this machine for generator and server together.
///
/// # Errors
/// As `run`.
pub fn ceiling(
    generator_cpus: &[usize],
    server_cpu: Option<usize>,
    connections: usize,
    window: Duration,
) -> Result<Outcome, LoadError> {
    let body = kilobyte();
    let server = NullServer::start(server_cpu, "application/json", body.as_bytes())?;
    let expect = Expect {
        media_type: Some("application/json".to_owned()),
        body: ExpectBody::Hash(body_hash(body.as_bytes())),
        ..Expect::status(200)
    };
    let table = RequestTable::in_turn(vec![Request {
        expect,
        ..Request::get("/")
    }])?;
    let plan = Plan {
        connections,
        cpus: generator_cpus.to_vec(),
        end: End::Timed {
            warmup: window / 4,
            window,
            drain: Duration::from_secs(1),
        },
        ..Plan::new(server.address(), "localhost", Arc::new(table))
    };
    run(&plan, &mut |_| {}, &AtomicBool::new(false))
}

/// 1,024 bytes of JSON.
fn kilobyte() -> String {
    let frame = "{\"filler\":\"\"}".len();
    format!("{{\"filler\":\"{}\"}}", "x".repeat(1024 - frame))
}

const LISTENER: u64 = u64::MAX;

struct Serving {
    epoll: OwnedFd,
    listener: TcpListener,
    answer: Vec<u8>,
    peers: Vec<Peer>,
    stop: Arc<AtomicBool>,
}

struct Peer {
    socket: Option<OwnedFd>,
    /// How many bytes of the empty line that ends a request have come.
    matched: usize,
}

impl Serving {
    fn serve(&mut self) {
        let mut events = Vec::with_capacity(256);
        let mut buffer = vec![0; 16 * 1024];
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = clock::to_timespec(20 * MILLISECOND);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    // Indices into `peers`, which `accept` registered.
                    slot => self.answer(slot as usize, &mut buffer),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let data = EventData::new_u64(self.peers.len() as u64);
            let registered = stream
                .set_nonblocking(true)
                .and_then(|()| Ok(sockopt::set_tcp_nodelay(&stream, true)?))
                .and_then(|()| {
                    Ok(epoll::add(
                        &self.epoll,
                        &stream,
                        data,
                        EventFlags::IN | EventFlags::ET,
                    )?)
                });
            if registered.is_ok() {
                self.peers.push(Peer {
                    socket: Some(stream.into()),
                    matched: 0,
                });
            }
        }
    }

    fn answer(&mut self, slot: usize, buffer: &mut [u8]) {
        let peer = &mut self.peers[slot];
        let Some(socket) = &peer.socket else { return };
        let keep = loop {
            match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((_, 0)) => break false,
                Ok((_, count)) => {
                    let requests = ends(&buffer[..count], &mut peer.matched);
                    // Clients wait for an answer before they ask again, so that it fits the socket.
                    let sent = (0..requests).all(|_| {
                        rustix::net::send(socket, &self.answer, SendFlags::NOSIGNAL)
                            == Ok(self.answer.len())
                    });
                    if !sent {
                        break false;
                    }
                    if count < buffer.len() {
                        break true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break true,
                Err(_) => break false,
            }
        };
        if !keep {
            peer.socket = None;
        }
    }
}

/// How many requests end in these bytes.
fn ends(bytes: &[u8], matched: &mut usize) -> usize {
    let mut count = 0;
    for &byte in bytes {
        *matched = match (byte, *matched) {
            (b'\r', 0 | 2) | (b'\n', 1 | 3) => *matched + 1,
            (b'\r', _) => 1,
            _ => 0,
        };
        if *matched == 4 {
            *matched = 0;
            count += 1;
        }
    }
    count
}
