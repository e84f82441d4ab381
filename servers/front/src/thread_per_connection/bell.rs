//! Waking one thread out of poll(2).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Rung by anybody; heard by one thread that waits for sockets. Costs no system call while that thread is awake.
#[derive(Debug)]
pub(super) struct Bell {
    event: EventFd,
    rung: AtomicBool,
    asleep: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        Ok(Bell {
            event: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
            rung: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
        })
    }

    pub(super) fn ring(&self) {
        self.rung.store(true, SeqCst);
        // The listener says that it is asleep before it looks whether the bell was rung: one of the two is seen.
        if self.asleep.load(SeqCst) {
            // Fails only when it is signalled already.
            let _ = self.event.write(1);
        }
    }

    /// Forgets that it was rung: the listener is about to look at everything it could be rung for.
    pub(super) fn hush(&self) {
        self.rung.store(false, SeqCst);
    }

    pub(super) fn waker(self: &Arc<Bell>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// What [`Bell::sleep`] wants as the first of its descriptors.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(self.event.as_fd(), PollFlags::POLLIN)
    }

    /// Waits until the bell is rung, one of `descriptors` is ready, or `timeout` is over. Whether it was not the
    /// timeout.
    pub(super) fn sleep(
        &self,
        descriptors: &mut [PollFd<'_>],
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        self.asleep.store(true, SeqCst);
        let was_rung = self.rung.load(SeqCst);
        let timeout = if was_rung {
            PollTimeout::ZERO
        } else {
            timeout.map_or(PollTimeout::NONE, whole_milliseconds)
        };
        let ready = poll(descriptors, timeout);
        self.asleep.store(false, SeqCst);
        if descriptors.first().and_then(PollFd::any) == Some(true) {
            let _ = self.event.read();
        }
        match ready {
            Ok(ready) => Ok(ready > 0 || was_rung),
            Err(Errno::EINTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        self.ring();
    }
}

/// Rounded up: to wake before the time would only mean to sleep again.
fn whole_milliseconds(duration: Duration) -> PollTimeout {
    let milliseconds = duration.as_millis().saturating_add(1);
    i32::try_from(milliseconds)
        .ok()
        .and_then(|milliseconds| PollTimeout::try_from(milliseconds).ok())
        .unwrap_or(PollTimeout::MAX)
}
