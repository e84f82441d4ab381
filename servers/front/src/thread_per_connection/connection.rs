//! One HTTP/1.1 connection: hyper's state machine, polled by a thread that waits for this socket with poll(2).
//!
//! The socket never blocks and hyper is never fed by a blocking read: it also reads where nothing need come, such as
//! for a body whose `100 Continue` is still in its buffer.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Limits;
use super::bell::Bell;
use super::wire::{Socket, Stage, Wire};

/// The answer to a request, to come.
pub(super) type Answering = Pin<Box<dyn Future<Output = Response>>>;

#[derive(Debug)]
pub(super) struct Connection {
    http: http1::Connection<Socket, Respond>,
    wire: Rc<Wire>,
    idle: Duration,
    request: Duration,
    answer_stall: Duration,
}

impl Connection {
    /// `stream` must not block.
    pub(super) fn new(
        stream: TcpStream,
        limits: &Limits,
        respond: impl Fn(Request<Incoming>) -> Answering + 'static,
    ) -> Connection {
        let wire = Rc::new(Wire::new(stream));
        let service = Respond {
            wire: Rc::clone(&wire),
            respond: Box::new(respond),
        };
        // With half-closing allowed hyper does not look for the client's end while a handler is at work. It could
        // not interrupt a handler that blocks; for one that does not, see `wait_for_the_handler`.
        let http = http1::Builder::new()
            .half_close(true)
            .serve_connection(Socket(Rc::clone(&wire)), service);
        Connection {
            http,
            wire,
            idle: limits.idle,
            request: limits.request,
            answer_stall: limits.answer_stall,
        }
    }

    /// The socket of an idle connection. None, and it is closed, if it is in the middle of something after all.
    pub(super) fn into_stream(self) -> Option<TcpStream> {
        let Connection { http, wire, .. } = self;
        let parts = http.into_parts();
        let idle = parts.read_buf.is_empty();
        drop(parts);
        Rc::into_inner(wire)
            .filter(|_| idle)
            .map(|wire| wire.stream)
    }

    /// Does all that can be done without waiting for the socket; handlers run, and block, in here. Whether the
    /// connection has ended.
    pub(super) fn advance(&mut self, waker: &Waker) -> bool {
        self.wire.wants_read.set(false);
        self.wire.wants_write.set(false);
        match Pin::new(&mut self.http).poll(&mut Context::from_waker(waker)) {
            // What went wrong with a client is not the operator's business.
            Poll::Ready(_) => {
                self.wire.discard();
                true
            }
            Poll::Pending => false,
        }
    }

    /// Since when the client owes us a request and we owe the client nothing.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let wire = &self.wire;
        // Without waiting for the socket hyper has more requests at hand, and only takes a breath between them.
        let waits = wire.wants_read.get() && !wire.wants_write.get();
        (waits && wire.stage.get() == Stage::Idle).then(|| wire.since.get())
    }

    /// Asks the socket itself, for the last moment before an idle connection is closed.
    pub(super) fn has_something_to_read(&self) -> bool {
        let mut socket = [PollFd::new(self.wire.stream.as_fd(), PollFlags::POLLIN)];
        match poll(&mut socket, PollTimeout::ZERO) {
            Ok(0) => false,
            Ok(_) | Err(_) => {
                self.wire.readable.set(true);
                true
            }
        }
    }

    /// What hyper waits for on the socket; nothing if a handler waits for something else.
    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::POLLIN, self.wire.wants_read.get());
        interest.set(PollFlags::POLLOUT, self.wire.wants_write.get());
        (!interest.is_empty()).then(|| PollFd::new(self.wire.stream.as_fd(), interest))
    }

    pub(super) fn note(&self, ready: PollFlags) {
        // An error is learned of by trying.
        let broken =
            ready.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL);
        if broken || ready.contains(PollFlags::POLLIN) {
            self.wire.readable.set(true);
        }
        if broken || ready.contains(PollFlags::POLLOUT) {
            self.wire.writable.set(true);
        }
    }

    /// When the client has had long enough; none while it is not the client that is waited for.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.wire.wants_write.get() {
            return Some(self.wire.stalled.get() + self.answer_stall);
        }
        let patience = match self.wire.stage.get() {
            Stage::Idle => self.idle,
            Stage::Receiving | Stage::Answering => self.request,
        };
        self.wire
            .wants_read
            .get()
            .then(|| self.wire.since.get() + patience)
    }

    /// Waits for the socket or the bell. False when the client has had long enough.
    pub(super) fn wait(&self, bell: &Bell) -> bool {
        let timeout = self
            .deadline()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if timeout == Some(Duration::ZERO) && self.wire.stage.get() != Stage::Idle {
            // A request that trickles in always has something more to read.
            return false;
        }
        let woken = match self.poll_fd() {
            Some(socket) => {
                let mut descriptors = [bell.poll_fd(), socket];
                let woken = bell.sleep(&mut descriptors, timeout);
                let [_, socket] = &descriptors;
                self.note(socket.revents().unwrap_or(PollFlags::empty()));
                woken
            }
            None => self.wait_for_the_handler(bell),
        };
        woken.unwrap_or(false)
    }

    /// Waits for the bell. False when the client goes away meanwhile: an answer may have no end of its own.
    fn wait_for_the_handler(&self, bell: &Bell) -> io::Result<bool> {
        let wire = &self.wire;
        if wire.readable.get() {
            // The next request has arrived, most likely. To be told so again and again would not help.
            return bell.sleep(&mut [bell.poll_fd()], None);
        }
        let socket = PollFd::new(wire.stream.as_fd(), PollFlags::POLLIN);
        let mut descriptors = [bell.poll_fd(), socket];
        let woken = bell.sleep(&mut descriptors, None)?;
        let [_, socket] = &descriptors;
        self.note(socket.revents().unwrap_or(PollFlags::empty()));
        let has_left = || match wire.stream.peek(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        Ok(woken && !(wire.readable.get() && has_left()))
    }
}

/// What hyper hands the requests to.
struct Respond {
    wire: Rc<Wire>,
    respond: Box<dyn Fn(Request<Incoming>) -> Answering>,
}

impl fmt::Debug for Respond {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Respond").finish_non_exhaustive()
    }
}

impl Service<Request<Incoming>> for Respond {
    type Response = Response<Watched>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Watched>, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let exchange = Exchange::begin(&self.wire);
        let answer = (self.respond)(request);
        Box::pin(async {
            let response = answer.await;
            Ok(response.map(|body| Watched {
                body,
                _exchange: exchange,
            }))
        })
    }
}

/// A request from its head to the last byte of its answer that hyper asks for.
struct Exchange(Rc<Wire>);

impl Exchange {
    fn begin(wire: &Rc<Wire>) -> Exchange {
        wire.enter(Stage::Answering);
        Exchange(Rc::clone(wire))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.enter(Stage::Idle);
    }
}

/// The body of an answer; hyper drops it when it has taken everything.
struct Watched {
    body: Body,
    _exchange: Exchange,
}

impl HttpBody for Watched {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
