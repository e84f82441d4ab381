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
    /// Runnable, but waiting for a CPU that did something else: without [`WAKE_UP`] for each time it got the CPU.
    /// `None` where the kernel does not tell.
    pub run_queue: Option<f64>,
}

/// Readings of a thread's counters at one instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    at: Nanos,
    pub(crate) cpu: Nanos,
    spun: Nanos,
    waited: Option<Waited>,
}

/// What the kernel counts of a thread's time on run queues.
#[derive(Debug, Clone, Copy)]
struct Waited {
    total: Nanos,
    /// How often the thread got a CPU.
    turns: u64,
}

/// A thread that is woken counts as waiting until the scheduler has switched to it, also on a CPU that was idle: about
/// 2 us each time on a virtual machine, so that 10,000 answers a second look like 2 % of waiting. Waits of this length
/// are the scheduler's own and nobody's turn.
const WAKE_UP: Nanos = 5_000;

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

    /// The second and third field: nanoseconds spent waiting on a run queue, and how often it got a CPU
    /// (Documentation/scheduler/sched-stats).
    fn waited(&mut self) -> Option<Waited> {
        let file = self.schedstat.as_mut()?;
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let mut fields = text.split_ascii_whitespace().skip(1);
        Some(Waited {
            total: fields.next()?.parse().ok()?,
            turns: fields.next()?.parse().ok()?,
        })
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
        run_queue: waited.map(|(to, from)| behind_others(from, to) as f64 / elapsed),
    }
}

fn behind_others(from: Waited, to: Waited) -> Nanos {
    let turns = to.turns.saturating_sub(from.turns);
    let waited = to.total.saturating_sub(from.total);
    waited.saturating_sub(turns.saturating_mul(WAKE_UP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(total: Nanos, turns: u64) -> Waited {
        Waited { total, turns }
    }

    #[test]
    fn being_woken_is_not_waiting_behind_others() {
        let start = waited(1_000, 7);
        // 1,000 wake-ups of 2 us, then 10 turns behind something of 3 ms.
        assert_eq!(behind_others(start, waited(2_001_000, 1_007)), 0);
        assert_eq!(behind_others(start, waited(30_001_000, 17)), 29_950_000);
    }

    #[test]
    fn spinning_is_not_being_busy() {
        let from = Reading {
            at: 1_000,
            cpu: 100,
            spun: 10,
            waited: Some(waited(5, 0)),
        };
        let to = Reading {
            at: 2_000,
            cpu: 800,
            spun: 510,
            waited: Some(waited(25, 0)),
        };
        let usage = usage(Some(3), from, to);
        assert_eq!(
            (usage.busy, usage.spinning, usage.run_queue),
            (0.2, 0.5, Some(0.02))
        );
    }
}
