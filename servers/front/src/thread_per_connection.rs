//! HTTP for blocking handlers: at most `threads` connections are served at a time, each by a thread of its own, on
//! which the handlers may block. One more thread accepts.
//!
//! A connection keeps its thread from request to request. While others wait for a thread with a request, a silent
//! connection goes back to the door at once, the longest silent first and no more of them than there are others
//! waiting; one that has just been answered is silent. It queues again when it speaks, so that everybody gets a turn
//! and keeps the connection. A client that sends its requests without waiting for the answers is never silent: after
//! [`MOST_IN_A_ROW`] of them, its connection ends with an answer that says so.
//!
//! Whoever waits longer than it may, or finds the queue full, is refused by the thread that accepts. That thread also
//! answers what must never wait: what an operator asks of a server that is full.

mod bell;
mod connection;
mod door;
mod turns;
mod wire;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::Response;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_service::Service;

use connection::Connection;
use door::Door;
use turns::{Seat, Turns};

/// Requests that one connection has answered while others wait for its thread.
const MOST_IN_A_ROW: u32 = 64;

/// What the server puts up with.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Connections served at a time, at least 1.
    pub(crate) threads: usize,
    /// Connections that may wait for a thread with a request; the next one is refused.
    pub(crate) queue: usize,
    /// The longest it may wait there.
    pub(crate) queue_wait: Duration,
    /// How requests begin that the thread that accepts answers itself when they come to it, as in `GET /usage `. Their
    /// handlers must not block.
    pub(crate) never_queued: &'static [&'static str],
    /// The longest a connection may be silent between requests, or before the first.
    pub(crate) idle: Duration,
    /// The longest a request's head, and then its body, may take to arrive.
    pub(crate) request: Duration,
    /// The longest a client may not take anything of an answer.
    pub(crate) answer_stall: Duration,
    /// The longest that requests in flight are waited for after the shutdown.
    pub(crate) drain: Duration,
}

/// Why a request was not given to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    QueueFull,
    /// It has waited for [`Limits::queue_wait`].
    WaitedTooLong,
}

/// Serves `router` until `shutdown` completes and what was in flight has been answered, or `limits.drain` is over:
/// a handler that blocks beyond it keeps its thread until the process ends. `refusal` makes the answer to a
/// request that no thread will answer.
///
/// Everything but this future runs on threads of its own. They belong to the tokio runtime this is called in as far
/// as timers are concerned: a handler may use them.
///
/// # Errors
/// The threads cannot be started, or the listener broke.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    refusal: impl Fn(Refusal) -> Response + Send + 'static,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let turns = Arc::new(Turns::new(limits.threads, limits.queue)?);
    // From here on, whatever goes wrong sends the threads home.
    let stop = Stop(Arc::clone(&turns));
    let crew = hire(&router, &turns, &limits)?;
    let (tell, mut told) = oneshot::channel();
    let (stopped, runtime) = (stop.clone(), Handle::try_current().ok());
    thread::Builder::new()
        .name("http-accept".to_owned())
        .spawn(move || {
            let _timers = runtime.as_ref().map(Handle::enter);
            let drain = limits.drain;
            let door = Door::new(listener, Arc::clone(&turns), router, limits, refusal);
            let kept = door.keep();
            drop(stopped);
            if turns.wait_for_the_end(drain) {
                for worker in crew {
                    let _ = worker.join();
                }
            }
            let _ = tell.send(kept);
        })?;
    let ended = tokio::select! {
        ended = &mut told => ended,
        () = shutdown => {
            drop(stop);
            told.await
        }
    };
    ended.unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that accepts connections has died",
        ))
    })
}

/// Ends the server when it is dropped, by whom and why ever.
#[derive(Clone)]
struct Stop(Arc<Turns>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.begin_to_end();
    }
}

/// Starts the threads.
fn hire(
    router: &Router,
    turns: &Arc<Turns>,
    limits: &Limits,
) -> io::Result<Vec<thread::JoinHandle<()>>> {
    let runtime = Handle::try_current().ok();
    (0..limits.threads)
        .map(|number| {
            let worker = Worker {
                turns: Arc::clone(turns),
                router: router.clone(),
                limits: limits.clone(),
            };
            let runtime = runtime.clone();
            thread::Builder::new()
                .name(format!("http-{number}"))
                .spawn(move || {
                    let _timers = runtime.as_ref().map(Handle::enter);
                    worker.work(number);
                })
        })
        .collect()
}

/// One of the threads.
struct Worker {
    turns: Arc<Turns>,
    router: Router,
    limits: Limits,
}

impl Worker {
    fn work(self, number: usize) {
        let Some(seat) = self.turns.seat(number) else {
            return;
        };
        while let Some(mut stream) = self.turns.take() {
            // To the next one directly if that is whom this one gives way to.
            loop {
                let connection = Connection::new(stream, &self.limits, self.respond());
                // A handler that panics costs its connection; the thread has others to serve.
                let turn = catch_unwind(AssertUnwindSafe(|| self.serve(connection, seat)));
                match turn {
                    Ok(Some(next)) => stream = next,
                    Ok(None) | Err(_) => break,
                }
            }
            self.turns.free();
        }
    }

    /// Serves a connection to its end. Gives the next one if this one had to give way to it.
    fn serve(&self, mut connection: Connection, seat: &Seat) -> Option<TcpStream> {
        let waker = seat.bell.waker();
        seat.busy();
        loop {
            seat.bell.hush();
            if connection.advance(&waker) {
                return None;
            }
            if let Some(since) = connection.idle_since() {
                // Before looking who waits: whoever comes later sees it, and rings.
                seat.idle(self.turns.microseconds(since));
                if self.turns.is_ending() {
                    // A request that has arrived by now is answered.
                    if !connection.has_something_to_read() {
                        return None;
                    }
                } else if self.turns.is_pressed()
                    && let Some(next) = self.turns.claim()
                {
                    seat.busy();
                    if let Some(stream) = connection.into_stream() {
                        self.turns.send_back(stream, since);
                    }
                    return Some(next);
                }
            }
            let in_time = connection.wait(&seat.bell);
            self.leave_idleness(seat);
            if !in_time {
                return None;
            }
        }
    }

    /// Whoever has asked this seat to give way asks another one.
    fn leave_idleness(&self, seat: &Seat) {
        if seat.busy() && self.turns.is_pressed() {
            self.turns.press();
        }
    }

    /// The router, and the end of the connection when the server ends or others have waited for too many answers.
    fn respond(&self) -> impl Fn(hyper::Request<Incoming>) -> connection::Answering + 'static {
        let router = self.router.clone();
        let turns = Arc::clone(&self.turns);
        let in_a_row = Rc::new(Cell::new(0));
        move |request| {
            let answer = router.clone().call(request);
            let (turns, in_a_row) = (Arc::clone(&turns), Rc::clone(&in_a_row));
            Box::pin(async move {
                let response = answer.await.unwrap_or_else(|never| match never {});
                in_a_row.set(if turns.is_pressed() {
                    in_a_row.get() + 1
                } else {
                    0
                });
                if turns.is_ending() || in_a_row.get() >= MOST_IN_A_ROW {
                    return last(response);
                }
                response
            })
        }
    }
}

/// An answer that ends its connection.
fn last(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}
