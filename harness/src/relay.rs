//! A relay between a server and PostgreSQL that counts round trips.
//!
//! PostgreSQL ends each of a client's requests with ReadyForQuery, also where nothing was executed. A driver that
//! tests its connection with an empty query shows in `xact_commit`, but one that sends a bare Sync shows in no
//! statistics view at all; on the wire both are seen. The relay is for counting only: no load is measured through it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

/// Type byte of the backend's ReadyForQuery message (PostgreSQL documentation, "Message Formats").
const READY_FOR_QUERY: u8 = b'Z';
/// First word of the startup packets that are answered with one byte instead of messages.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// A listening relay. Dropping it closes the listener; open connections end with their clients.
#[derive(Debug)]
pub struct Relay {
    pub address: SocketAddr,
    round_trips: Arc<AtomicU64>,
    closing: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens on a free port of the loopback interface and passes every connection on to `target`.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(target: SocketAddr) -> Result<Relay> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .context("cannot open a port for counting round trips")?;
        let address = listener.local_addr()?;
        let round_trips = Arc::new(AtomicU64::new(0));
        let closing = Arc::new(AtomicBool::new(false));
        let acceptor = {
            let (round_trips, closing) = (Arc::clone(&round_trips), Arc::clone(&closing));
            thread::spawn(move || accept(&listener, target, &round_trips, &closing))
        };
        Ok(Relay {
            address,
            round_trips,
            closing,
            acceptor: Some(acceptor),
        })
    }

    /// ReadyForQuery messages passed on so far, over all connections.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the acceptor out of `accept`.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    target: SocketAddr,
    round_trips: &Arc<AtomicU64>,
    closing: &AtomicBool,
) {
    for client in listener.incoming().map_while(Result::ok) {
        if closing.load(Ordering::Relaxed) {
            return;
        }
        // A connection that cannot be passed on is closed, which the server under test reports as it sees fit.
        let _ = pass_on(client, target, Arc::clone(round_trips));
    }
}

fn pass_on(client: TcpStream, target: SocketAddr, round_trips: Arc<AtomicU64>) -> io::Result<()> {
    let backend = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    backend.set_nodelay(true)?;
    let (mut from_client, mut to_backend) = (client.try_clone()?, backend.try_clone()?);
    let (mut from_backend, mut to_client) = (backend, client);
    let (sender, single_bytes) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let _ = copy_requests(&mut from_client, &mut to_backend, &sender);
        let _ = to_backend.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = copy_answers(
            &mut from_backend,
            &mut to_client,
            &single_bytes,
            &round_trips,
        );
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Passes the client's bytes on. Before the startup packet proper, says how many one-byte answers to expect.
fn copy_requests(
    from: &mut TcpStream,
    to: &mut TcpStream,
    single_bytes: &std::sync::mpsc::Sender<bool>,
) -> io::Result<()> {
    loop {
        let mut head = [0; 8];
        from.read_exact(&mut head)?;
        let [a, b, c, d, code @ ..] = head;
        let length = u32::from_be_bytes([a, b, c, d]);
        let code = u32::from_be_bytes(code);
        let asks_for_encryption = code == SSL_REQUEST || code == GSS_REQUEST;
        let _ = single_bytes.send(asks_for_encryption);
        to.write_all(&head)?;
        io::copy(
            &mut Read::by_ref(from).take(u64::from(length).saturating_sub(8)),
            to,
        )?;
        if !asks_for_encryption {
            break;
        }
    }
    io::copy(from, to).map(drop)
}

fn copy_answers(
    from: &mut TcpStream,
    to: &mut TcpStream,
    single_bytes: &std::sync::mpsc::Receiver<bool>,
    round_trips: &AtomicU64,
) -> io::Result<()> {
    while single_bytes.recv().unwrap_or(false) {
        let mut answer = [0];
        from.read_exact(&mut answer)?;
        to.write_all(&answer)?;
    }
    let mut messages = Messages::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        // Counted before it is passed on: whoever has seen the answer finds it counted.
        round_trips.fetch_add(messages.count_ready(&buffer[..read]), Ordering::Relaxed);
        to.write_all(&buffer[..read])?;
    }
}

/// Follows the backend's messages (a type byte, a length that includes itself, a payload) across reads.
#[derive(Debug, Default)]
struct Messages {
    head: Vec<u8>,
    payload_left: usize,
}

impl Messages {
    fn count_ready(&mut self, mut bytes: &[u8]) -> u64 {
        let mut count = 0;
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let skipped = self.payload_left.min(bytes.len());
                self.payload_left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            if let [kind, a, b, c, d] = self.head[..] {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                self.payload_left = length.saturating_sub(4);
                count += u64::from(kind == READY_FOR_QUERY);
                self.head.clear();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), payload].concat()
    }

    proptest! {
        #[test]
        fn every_ready_for_query_is_counted_however_the_bytes_are_cut(
            kinds in proptest::collection::vec((prop_oneof![Just(b'Z'), Just(b'D'), Just(b'C')], 0usize..40), 0..30),
            cut in 1usize..64,
        ) {
            // Payloads full of Z must not be taken for messages.
            let stream: Vec<u8> = kinds.iter().flat_map(|(kind, length)| message(*kind, &vec![b'Z'; *length])).collect();
            let mut messages = Messages::default();
            let counted: u64 = stream.chunks(cut).map(|chunk| messages.count_ready(chunk)).sum();
            let ready = kinds.iter().filter(|(kind, _)| *kind == b'Z').count();
            prop_assert_eq!(counted, u64::try_from(ready).unwrap());
        }
    }
}
