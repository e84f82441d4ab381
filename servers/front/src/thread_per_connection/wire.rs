//! A socket as hyper sees it, and what the thread needs to know of it: what hyper waits for, and since when.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::rt::ReadBufCursor;

/// Bytes taken from the socket at a time; a request's head rarely has more.
const READ_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct Wire {
    /// Never blocks: waiting is the business of poll(2), which can be woken.
    pub(super) stream: TcpStream,
    scratch: RefCell<Box<[u8]>>,
    /// What is known of the socket; when it is known that there is nothing, no system call is spent on asking.
    pub(super) readable: Cell<bool>,
    pub(super) writable: Cell<bool>,
    /// What hyper waits for.
    pub(super) wants_read: Cell<bool>,
    pub(super) wants_write: Cell<bool>,
    pub(super) stage: Cell<Stage>,
    /// When the stage began.
    pub(super) since: Cell<Instant>,
    /// When the client was last found not to take any more.
    pub(super) stalled: Cell<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Between requests.
    Idle,
    /// Some of a request's head has arrived.
    Receiving,
    /// A request is with its handler, or its answer is not complete.
    Answering,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Wire {
        let now = Instant::now();
        Wire {
            stream,
            scratch: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()),
            readable: Cell::new(true),
            writable: Cell::new(true),
            wants_read: Cell::new(false),
            wants_write: Cell::new(false),
            stage: Cell::new(Stage::Idle),
            since: Cell::new(now),
            stalled: Cell::new(now),
        }
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.stage.set(stage);
        self.since.set(Instant::now());
    }

    fn read(&self, buffer: &mut ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut scratch = self.scratch.borrow_mut();
        let room = buffer.remaining().min(scratch.len());
        let Some(scratch) = scratch.get_mut(..room) else {
            return Poll::Ready(Ok(()));
        };
        let read = self.attempt(&self.readable, &self.wants_read, || {
            (&self.stream).read(scratch)
        });
        read.map_ok(|length| {
            // Less than there was room for is all there was. The end of the stream stays readable.
            self.readable.set(length == room || length == 0);
            if length > 0 && self.stage.get() == Stage::Idle {
                self.enter(Stage::Receiving);
            }
            buffer.put_slice(scratch.get(..length).unwrap_or_default());
        })
    }

    fn write(&self, write: impl FnMut() -> io::Result<usize>) -> Poll<io::Result<usize>> {
        let could_write = self.writable.get();
        let written = self.attempt(&self.writable, &self.wants_write, write);
        if could_write && written.is_pending() {
            self.stalled.set(Instant::now());
        }
        written
    }

    /// Does it, unless the socket is known not to be `able`, or turns out not to be.
    fn attempt(
        &self,
        able: &Cell<bool>,
        wants: &Cell<bool>,
        mut operation: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while able.get() {
            match operation() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => able.set(false),
                done => {
                    wants.set(false);
                    return Poll::Ready(done);
                }
            }
        }
        wants.set(true);
        Poll::Pending
    }

    /// Takes what has arrived and nobody will read: closing with it unread would reset the connection, and the
    /// client might lose the end of the answer.
    pub(super) fn discard(&self) {
        const READS: usize = 16;
        let mut scratch = self.scratch.borrow_mut();
        for _ in 0..READS {
            if !matches!((&self.stream).read(&mut scratch), Ok(1..)) {
                return;
            }
        }
    }
}

/// hyper's end of the [`Wire`].
#[derive(Debug)]
pub(super) struct Socket(pub(super) Rc<Wire>);

impl hyper::rt::Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.read(&mut buffer)
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.write(|| (&self.0.stream).write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.write(|| (&self.0.stream).write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.stream.shutdown(Shutdown::Write))
    }
}
