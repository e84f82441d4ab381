//! Over real sockets, with handlers that block.

#![allow(clippy::unwrap_used)]

mod client;
mod ending;
mod exchange;
mod patience;
mod sharing;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::oneshot;

use self::client::Client;
use super::{Limits, Refusal, serve};

/// Far more than anything here takes, far less than a client that is forgotten.
const PATIENCE: Duration = Duration::from_secs(20);

fn limits(threads: usize, queue: usize) -> Limits {
    Limits {
        threads,
        queue,
        queue_wait: Duration::from_secs(60),
        never_queued: &["GET /unqueued "],
        idle: Duration::from_secs(60),
        request: Duration::from_secs(60),
        answer_stall: Duration::from_secs(60),
        drain: Duration::from_secs(5),
    }
}

/// Handlers that wait here do so until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn await_inside(&self, count: usize) {
        until(|| self.inside.load(Ordering::SeqCst) == count);
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

struct Server {
    address: SocketAddr,
    gate: Arc<Gate>,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    fn start(limits: Limits) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::new(Gate::default());
        let router = router(&gate);
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            runtime.block_on(serve(listener, router, limits, refusal, async {
                let _ = stopped.await;
            }))
        });
        Server {
            address,
            gate,
            stop: Some(stop),
            ended: Some(ended),
        }
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    fn stop(&mut self) {
        drop(self.stop.take());
    }

    fn finish(&mut self) {
        self.stop();
        self.ended.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gate.open();
        self.stop();
    }
}

fn router(gate: &Arc<Gate>) -> Router {
    let gate = Arc::clone(gate);
    Router::new()
        .route("/hello", get(async || "hello"))
        .route("/unqueued", get(async || "never queued"))
        .route("/ten-ms", get(ten_ms))
        .route("/echo", post(async |body: Bytes| body))
        .route("/unread", post(async || "unread"))
        .route("/numbers", get(async || Body::new(Numbers(1..=1000))))
        .route("/zeros", get(async || vec![0_u8; 32 << 20]))
        .route("/endless", get(async || Body::new(Endless)))
        .route("/panic", get(panics))
        .route("/timer", get(timer))
        .route(
            "/gate",
            get(async move || {
                gate.pass();
                "passed"
            }),
        )
}

async fn panics() {
    std::panic::resume_unwind(Box::new("a handler's fault"));
}

async fn ten_ms() {
    thread::sleep(Duration::from_millis(10));
}

async fn timer() -> &'static str {
    tokio::time::sleep(Duration::from_millis(20)).await;
    "woken"
}

fn refusal(why: Refusal) -> axum::response::Response {
    let why = match why {
        Refusal::QueueFull => "full",
        Refusal::WaitedTooLong => "waited too long",
    };
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], why).into_response()
}

/// A body without a length, a frame for each number.
struct Numbers(std::ops::RangeInclusive<u32>);

impl HttpBody for Numbers {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let number = self.0.next();
        std::task::Poll::Ready(number.map(|number| Ok(Frame::data(format!("{number}\n").into()))))
    }
}

/// A body that never comes.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}
