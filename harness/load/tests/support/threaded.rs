//! A server of a few blocking threads. Each takes one connection and serves it until it closes; other
//! connections wait in the backlog, where connecting succeeds at once and an answer does not come.

// Each test binary uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Answers a request, head and body, with bytes. An empty answer closes the connection, and so does
/// one that says `Connection: close`.
pub trait Answer: Fn(&str) -> Vec<u8> + Send + Sync + 'static {}
impl<F: Fn(&str) -> Vec<u8> + Send + Sync + 'static> Answer for F {}

/// A running server; stops when dropped, after its clients.
pub struct Threaded {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Threaded {
    pub fn start(threads: usize, answer: impl Answer) -> Threaded {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(answer);
        let threads = (0..threads).map(|_| {
            let (listener, stop) = (Arc::clone(&listener), Arc::clone(&stop));
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                loop {
                    let (stream, _) = listener.accept().unwrap();
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    serve(stream, &*answer);
                }
            })
        });
        let threads = threads.collect();
        Threaded {
            address,
            stop,
            threads,
        }
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Kept open until the threads have ended, each woken by one.
        let wake: Vec<_> = self
            .threads
            .iter()
            .map(|_| TcpStream::connect(self.address))
            .collect();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        drop(wake);
    }
}

fn serve(mut stream: TcpStream, answer: &impl Answer) {
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream) {
        let bytes = answer(&request);
        let sent = stream.write_all(&bytes);
        let closes = String::from_utf8_lossy(&bytes).contains("Connection: close");
        if bytes.is_empty() || closes || sent.is_err() {
            return;
        }
    }
}

/// `None` at the connection's end.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut got = String::new();
    let mut part = [0; 64 * 1024];
    loop {
        let count = stream.read(&mut part).ok().filter(|&count| count > 0)?;
        got.push_str(std::str::from_utf8(&part[..count]).unwrap());
        let Some(head) = got.find("\r\n\r\n") else {
            continue;
        };
        let length = got[..head]
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        if got.len() >= head + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap()) {
            return Some(got);
        }
    }
}
