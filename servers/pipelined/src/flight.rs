//! A statement on its way on a shared connection, and what statements of its kind are expected to take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use front::CONNECT_TIMEOUT;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::choice::DEEP_ENOUGH;
use crate::link::{Link, nanoseconds};

/// What a statement keeps its connection busy for, learnt from its answers.
///
/// It is a low quantile: an answer that came sooner than expected counts sixteen times as much as one that came later. What
/// an answer takes beyond the least is mostly the wait for a CPU that all connections compete for, and the more so the more
/// connections are in use. An average would grow with that, and spread the requests still wider.
#[derive(Debug)]
pub(crate) struct Cost(AtomicU64);

impl Cost {
    /// Nothing is known yet: one such statement is enough for a connection.
    pub(crate) fn unknown() -> Cost {
        Cost(AtomicU64::new(nanoseconds(DEEP_ENOUGH)))
    }

    fn expected_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Two threads at once may lose one of their lessons, which does no harm.
    fn learn(&self, took: Duration) {
        let (expected, took) = (self.expected_ns(), nanoseconds(took));
        let learnt = if took < expected {
            expected - (expected - took) / 4
        } else {
            expected + (took - expected) / 64
        };
        self.0.store(learnt, Ordering::Relaxed);
    }
}

/// A statement that has been sent.
///
/// If it is dropped before it has landed, PostgreSQL executes it all the same, and those behind it wait. So it counts until
/// a Sync behind it, which is no statement and no transaction, has been answered.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    link: &'a Arc<Link>,
    cost: &'a Cost,
    expected_ns: u64,
    sent: Instant,
    landed: bool,
}

impl<'a> Flight<'a> {
    pub(crate) fn begin(link: &'a Arc<Link>, cost: &'a Cost) -> Flight<'a> {
        let expected_ns = cost.expected_ns();
        link.expect(expected_ns);
        Flight {
            link,
            cost,
            expected_ns,
            sent: Instant::now(),
            landed: false,
        }
    }

    /// Its answer is complete.
    pub(crate) fn land(mut self) {
        self.landed = true;
        self.link.done(self.expected_ns);
        self.cost.learn(self.link.answered(self.sent));
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        let (link, expected_ns) = (Arc::clone(self.link), self.expected_ns);
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            // A database that has gone silent is not waited for without end.
            let _ = timeout(CONNECT_TIMEOUT, link.client.check_connection()).await;
            link.done(expected_ns);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_expected_to_take_what_most_of_its_answers_take_at_least() {
        let cost = Cost::unknown();
        for _ in 0..32 {
            cost.learn(Duration::from_micros(20));
        }
        assert!((20_000..21_000).contains(&cost.expected_ns()), "{cost:?}");
        // Half of the answers wait for a CPU.
        for _ in 0..500 {
            cost.learn(Duration::from_micros(800));
            cost.learn(Duration::from_micros(20));
        }
        assert!(cost.expected_ns() < 100_000, "{cost:?}");
    }

    #[test]
    fn a_statement_that_always_takes_long_is_known_to() {
        let cost = Cost::unknown();
        for _ in 0..300 {
            cost.learn(Duration::from_millis(10));
        }
        assert!(cost.expected_ns() > 9_000_000, "{cost:?}");
    }
}
