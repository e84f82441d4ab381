//! The task of a connection, polled once the handlers that are ready have had their turn.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls a future one turn after it was woken.
///
/// A handler that sends a statement wakes the task of its connection, and tokio runs what was woken last before
/// everything else: the statement would be written at once, alone, with a system call of its own. A turn later, at the
/// end of the thread's queue, the statements of all handlers that were ready are there, and one call writes them. The
/// same holds for answers.
#[derive(Debug)]
pub(crate) struct Gathered<F> {
    inner: F,
    waited: bool,
}

impl<F> Gathered<F> {
    pub(crate) fn new(inner: F) -> Gathered<F> {
        Gathered {
            inner,
            waited: false,
        }
    }
}

impl<F: Future + Unpin> Future for Gathered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.waited = !self.waited;
        if self.waited {
            // A task that wakes itself goes to the end of the queue.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn all_who_are_ready_have_their_turn_before_it_is_polled() {
        let sent = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&sent);
        let connection = std::future::poll_fn(move |_| Poll::Ready(seen.load(Ordering::Relaxed)));
        let connection = tokio::spawn(Gathered::new(connection));
        for _ in 0..8 {
            let sent = Arc::clone(&sent);
            tokio::spawn(async move { sent.fetch_add(1, Ordering::Relaxed) });
        }
        assert_eq!(connection.await.unwrap(), 8);
    }
}
