//! What a generator thread itself costs and suffers: CPU time, spinning, waiting for its CPU.

use std::io::{Read, Seek};

use crate::clock::{self, Nanos};

/// A generator thread within the window, as shares of the window's length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadUsage {
    /// The CPU it was pinned to.
    pub cpu: Option<usize>,
    /// CPU time without spinning.
    pub busy: f64,
    /// CPU time spent spinning shortly before due instants.
    pub spinning: f64,
    /// Runnable, but waiting for a CPU that did something else. `None` where the kernel does not tell.
    pub run_queue: Option<f64>,
}

/// Readings of a thread's counters at one instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    at: Nanos,
    pub(crate) cpu: Nanos,
    spun: Nanos,
    waited: Option<Nanos>,
}

/// Reads the counters of the thread it was made on.
#[derive(Debug)]
pub(crate) struct Meter {
    schedstat: Option<std::fs::File>,
    /// Time spent spinning since the start, counted by the worker's loop.
    pub(crate) spun: Nanos,
}

impl Meter {
    pub(crate) fn of_this_thread() -> Meter {
        Meter {
            schedstat: std::fs::File::open("/proc/thread-self/schedstat").ok(),
            spun: 0,
        }
    }

    pub(crate) fn read(&mut self, now: Nanos) -> Reading {
        Reading {
            at: now,
            cpu: clock::thread_cpu(),
            spun: self.spun,
            waited: self.waited(),
        }
    }

    /// The second field: nanoseconds spent waiting on a run queue (Documentation/scheduler/sched-stats).
    fn waited(&mut self) -> Option<Nanos> {
        let file = self.schedstat.as_mut()?;
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// The thread's usage between two readings.
pub(crate) fn usage(cpu: Option<usize>, from: Reading, to: Reading) -> ThreadUsage {
    let elapsed = to.at.saturating_sub(from.at).max(1) as f64;
    let spun = to.spun - from.spun;
    // Spinning is timed by the wall clock: what was taken away from it is not CPU time of this thread.
    let used = (to.cpu - from.cpu).saturating_sub(spun);
    let waited = to.waited.zip(from.waited);
    ThreadUsage {
        cpu,
        busy: used as f64 / elapsed,
        spinning: spun as f64 / elapsed,
        run_queue: waited.map(|(to, from)| to.saturating_sub(from) as f64 / elapsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_is_not_being_busy() {
        let from = Reading {
            at: 1_000,
            cpu: 100,
            spun: 10,
            waited: Some(5),
        };
        let to = Reading {
            at: 2_000,
            cpu: 800,
            spun: 510,
            waited: Some(25),
        };
        let usage = usage(Some(3), from, to);
        assert_eq!(
            (usage.busy, usage.spinning, usage.run_queue),
            (0.2, 0.5, Some(0.02))
        );
    }
}
