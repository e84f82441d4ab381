//! Server-sent events: streams that share a session, and none of them with a gap.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use front::{
    Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, StartError, Work,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::Client;

const LIMIT: Duration = Duration::from_secs(20);
/// A body that ends with this is whole.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const LISTENING: &str = ": listening\n\n";

/// What a test sends on.
#[derive(Debug, Default)]
struct Station {
    /// To the session that listens now.
    wire: Mutex<Option<mpsc::UnboundedSender<String>>>,
    opened: AtomicU32,
    closed: AtomicU32,
    off_the_air: AtomicBool,
}

impl Station {
    fn send(&self, payload: impl Into<String>) {
        let wire = self.wire.lock().unwrap();
        wire.as_ref().unwrap().send(payload.into()).unwrap();
    }

    fn sessions(&self) -> (u32, u32) {
        let count = |counter: &AtomicU32| counter.load(Ordering::SeqCst);
        (count(&self.opened), count(&self.closed))
    }

    async fn sessions_are(&self, opened_and_closed: (u32, u32)) {
        let begun = Instant::now();
        while self.sessions() != opened_and_closed {
            assert!(begun.elapsed() < LIMIT, "{:?}", self.sessions());
            tokio::task::yield_now().await;
        }
    }
}

/// Closes when it is dropped.
struct Session<'a>(&'a Station);

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
    }
}

static STATIONS: LazyLock<Mutex<HashMap<String, Arc<Station>>>> = LazyLock::new(Mutex::default);

/// A lane that does nothing but listen.
#[derive(Debug)]
struct Radio(Arc<Station>);

impl Lane for Radio {
    const NAME: &'static str = "radio";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &[];

    async fn open(config: &Config, _: &[String]) -> Result<Radio, OpenError> {
        Ok(Radio(Arc::clone(
            &STATIONS.lock().unwrap()[&config.database_url],
        )))
    }

    async fn run<W: Work>(&self, _: W, _: Laps) -> Result<(W::Answer, Laps), Failure> {
        Err(Failure::NoConnection)
    }

    async fn wait(&self, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        assert_eq!(channel, "news");
        if self.0.off_the_air.load(Ordering::SeqCst) {
            return Err(Failure::ConnectionLost("no aerial".into()));
        }
        let (wire, mut heard) = mpsc::unbounded_channel();
        *self.0.wire.lock().unwrap() = Some(wire);
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        let _session = Session(&self.0);
        events.listening();
        while let Some(payload) = heard.recv().await {
            events.send(&payload).await;
        }
        Err(Failure::ConnectionLost("the station is gone".into()))
    }

    fn pool_use(&self) -> PoolUse {
        PoolUse { size: 1, in_use: 0 }
    }

    fn notes(_: Profile) -> &'static [&'static str] {
        &[]
    }

    async fn close(&self) {}
}

struct Server {
    address: SocketAddr,
    station: Arc<Station>,
    stop: oneshot::Sender<()>,
    finished: JoinHandle<Result<(), StartError>>,
    _definitions: TempDir,
}

impl Server {
    async fn start() -> Server {
        let definitions = tempfile::tempdir().unwrap();
        let live = "about = \"News.\"\nshape = \"live\"\nchannel = \"news\"\n";
        std::fs::write(definitions.path().join("live.toml"), live).unwrap();
        let folder = definitions.path().to_str().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("radio://{address}");
        let station = Arc::new(Station::default());
        let known = Arc::clone(&station);
        STATIONS.lock().unwrap().insert(url.clone(), known);
        let flags = ["server", "--database-url", &url, "--workloads", folder];
        let config = Config::parse_from(flags.into_iter().chain(["--sql", folder]));
        let (stop, stopped) = oneshot::channel();
        let finished = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            front::run::<Radio>(&config, listener, shutdown, &mut io::sink()).await
        });
        Server {
            address,
            station,
            stop,
            finished,
            _definitions: definitions,
        }
    }

    /// A subscriber that has been told that the server listens.
    async fn subscriber(&self) -> Subscriber {
        let socket = TcpStream::connect(self.address).await.unwrap();
        Subscriber::on(socket).await
    }

    async fn subscribers(&self) -> u64 {
        let usage = Client::connect(self.address).await.get("/usage").await;
        usage.json()["subscribers"].as_u64().unwrap()
    }
}

struct Subscriber {
    socket: TcpStream,
    received: Vec<u8>,
}

impl Subscriber {
    async fn on(mut socket: TcpStream) -> Subscriber {
        let request = b"GET /live HTTP/1.1\r\nhost: test\r\n\r\n";
        socket.write_all(request).await.unwrap();
        let mut subscriber = Subscriber {
            socket,
            received: Vec::new(),
        };
        subscriber.until(LISTENING).await;
        let head = String::from_utf8_lossy(&subscriber.received).into_owned();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        for header in [
            "content-type: text/event-stream\r\n",
            "cache-control: no-store\r\n",
        ] {
            assert!(head.contains(header), "{head}");
        }
        subscriber
    }

    /// Reads until this has come.
    async fn until(&mut self, text: &str) {
        let text = text.as_bytes();
        let mut from = 0;
        while !self.received[from..]
            .windows(text.len())
            .any(|part| part == text)
        {
            from = self.received.len().saturating_sub(text.len());
            let read = self.socket.read_buf(&mut self.received);
            let read = tokio::time::timeout(LIMIT, read).await.unwrap().unwrap();
            let said = String::from_utf8_lossy(&self.received);
            assert_ne!(read, 0, "the stream ended: {said}");
        }
    }

    /// Reads to the end of the body, or of the connection; whether it was the body's.
    async fn end(&mut self) -> bool {
        while !self.received.ends_with(LAST_CHUNK) {
            let read = self.socket.read_buf(&mut self.received);
            if !matches!(tokio::time::timeout(LIMIT, read).await.unwrap(), Ok(1..)) {
                return false;
            }
        }
        true
    }

    /// The body so far, without the chunks around it.
    fn body(&self) -> String {
        let head = self
            .received
            .windows(4)
            .position(|part| part == b"\r\n\r\n");
        let (mut rest, mut body) = (&self.received[head.unwrap() + 4..], Vec::new());
        while let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(rest) {
            let end = start + usize::try_from(size).unwrap();
            let Some(chunk) = rest.get(start..end) else {
                break;
            };
            body.extend_from_slice(chunk);
            rest = rest.get(end + 2..).unwrap_or_default();
        }
        String::from_utf8(body).unwrap()
    }
}

#[tokio::test]
async fn all_subscribers_get_the_same_events_in_order_by_one_session() {
    let server = Server::start().await;
    let mut first = server.subscriber().await;
    server.station.send("one");
    first.until("data: one\n\n").await;
    let mut second = server.subscriber().await;
    for payload in ["two", "thr\nee", "four"] {
        server.station.send(payload);
    }
    let then = "data: two\n\ndata: thr\ndata: ee\n\ndata: four\n\n";
    first.until("data: four\n\n").await;
    second.until("data: four\n\n").await;
    assert_eq!(first.body(), format!("{LISTENING}data: one\n\n{then}"));
    assert_eq!(second.body(), format!("{LISTENING}{then}"));
    assert_eq!(server.subscribers().await, 2);
    assert_eq!(server.station.sessions(), (1, 0));
}

#[tokio::test]
async fn the_session_is_closed_after_the_last_subscriber_and_opened_for_the_next_one() {
    let server = Server::start().await;
    let first = server.subscriber().await;
    let mut second = server.subscriber().await;
    drop(first);
    server.station.send("still here");
    second.until("data: still here\n\n").await;
    assert_eq!(server.station.sessions(), (1, 0));
    drop(second);
    server.station.sessions_are((1, 1)).await;
    let mut third = server.subscriber().await;
    server.station.send("again");
    third.until("data: again\n\n").await;
    assert_eq!(third.body(), format!("{LISTENING}data: again\n\n"));
    server.station.sessions_are((2, 1)).await;
    assert_eq!(server.subscribers().await, 1);
}

#[tokio::test]
async fn a_lost_session_ends_every_stream_after_what_it_heard() {
    let server = Server::start().await;
    let mut subscribers = [server.subscriber().await, server.subscriber().await];
    server.station.send("last words");
    *server.station.wire.lock().unwrap() = None;
    for subscriber in &mut subscribers {
        assert!(subscriber.end().await);
        assert_eq!(
            subscriber.body(),
            format!("{LISTENING}data: last words\n\n")
        );
    }
    let mut again = server.subscriber().await;
    server.station.send("back");
    again.until("data: back\n\n").await;
    assert_eq!(server.station.sessions(), (2, 1));
}

#[tokio::test]
async fn a_subscriber_that_lags_behind_is_broken_off_where_it_is_and_the_others_go_on() {
    const EVENTS: usize = 4000;
    let server = Server::start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let socket = socket.connect(server.address).await.unwrap();
    let mut slow = Subscriber::on(socket).await;
    let mut quick = server.subscriber().await;
    let filler = "x".repeat(8 * 1024);
    // More than any buffer on the way takes, and no faster than who reads can follow.
    for hundred in 0..EVENTS / 100 {
        quick.received.clear();
        for event in 0..100 {
            server
                .station
                .send(format!("{:06} {filler}", hundred * 100 + event));
        }
        quick
            .until(&format!("data: {:06} ", hundred * 100 + 99))
            .await;
    }
    assert!(!slow.end().await, "it was not broken off");
    let body = slow.body();
    let got = body.matches("data: ").count();
    assert!(got < EVENTS, "it got all");
    for event in 0..got {
        assert!(
            body.contains(&format!("data: {event:06} ")),
            "{event} of {got} is missing"
        );
    }
    server.station.send("the end");
    quick.until("data: the end\n\n").await;
    assert_eq!(server.subscribers().await, 1);
}

#[tokio::test]
async fn a_burst_breaks_off_nobody_who_reads() {
    const EVENTS: usize = 20_000;
    let server = Server::start().await;
    let mut subscribers = [server.subscriber().await, server.subscriber().await];
    for event in 1..=EVENTS {
        server.station.send(event.to_string());
    }
    let all: String = (1..=EVENTS)
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    for subscriber in &mut subscribers {
        subscriber.until(&format!("data: {EVENTS}\n\n")).await;
        assert!(subscriber.body() == format!("{LISTENING}{all}"));
    }
}

#[tokio::test]
async fn a_channel_that_cannot_be_listened_on_is_a_503() {
    let server = Server::start().await;
    server.station.off_the_air.store(true, Ordering::SeqCst);
    let answer = Client::connect(server.address).await.get("/live").await;
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    assert!(!answer.body.contains("aerial"), "{}", answer.body);
    let usage = Client::connect(server.address).await.get("/usage").await;
    assert_eq!(usage.json()["failed"]["connection_lost"], 1);
    assert_eq!(server.subscribers().await, 0);
    server.station.off_the_air.store(false, Ordering::SeqCst);
    server.subscriber().await;
}

#[tokio::test]
async fn streams_end_at_once_when_the_server_stops() {
    let server = Server::start().await;
    let mut subscribers = [server.subscriber().await, server.subscriber().await];
    let begun = Instant::now();
    server.stop.send(()).unwrap();
    for subscriber in &mut subscribers {
        assert!(subscriber.end().await, "the stream was broken off");
    }
    assert!(server.finished.await.unwrap().is_ok());
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(server.station.sessions(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_channel_has_a_heartbeat() {
    let server = Server::start().await;
    let mut subscriber = server.subscriber().await;
    let begun = tokio::time::Instant::now();
    while subscriber.body() != format!("{LISTENING}:\n\n:\n\n") {
        let read = subscriber.socket.read_buf(&mut subscriber.received);
        assert_ne!(read.await.unwrap(), 0);
    }
    assert!(begun.elapsed() >= Duration::from_secs(30));
}
