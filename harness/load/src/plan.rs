//! Everything that determines a run, and what is reported while it is under way.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::LoadError;
use crate::record::Records;
use crate::request::RequestTable;
use crate::schedule::{self, End, Pacing, Phase};
use crate::unique;

/// Longer than any run, and short enough that sums of instants cannot overflow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Everything that determines a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect.
    pub target: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// What to send, in which sequence.
    pub table: Arc<RequestTable>,
    /// Connections, spread evenly over the workers. One request at a time on each.
    pub connections: usize,
    /// When requests are due.
    pub pacing: Pacing,
    /// When the run ends.
    pub end: End,
    /// From the send to the last byte of the answer.
    pub request_timeout: Duration,
    /// For opening a connection, and for all of them before the start.
    pub connect_timeout: Duration,
    /// One worker thread pinned to each; empty: one worker, not pinned.
    pub cpus: Vec<usize>,
    /// The number of the run's first request, for requests that carry their number.
    pub first_unique: u64,
    /// How many failures to keep with their details.
    pub keep_failures: usize,
    /// How long to probe the generator's CPUs for jitter before connecting; zero: no probe.
    pub jitter_probe: Duration,
    /// Where to write the window's histograms second by second, as an HdrHistogram V2 interval log.
    pub interval_log: Option<PathBuf>,
    /// Where to write one row per request.
    pub records: Option<Records>,
}

impl Plan {
    /// One unpinned worker, one connection, closed loop without think time for 10 s after 1 s of
    /// warm-up. Meant as the base of a struct update.
    pub fn new(target: SocketAddr, host: impl Into<String>, table: Arc<RequestTable>) -> Plan {
        Plan {
            target,
            host: host.into(),
            table,
            connections: 1,
            pacing: Pacing::Closed {
                think: Duration::ZERO,
            },
            end: End::Timed {
                warmup: Duration::from_secs(1),
                window: Duration::from_secs(10),
                drain: Duration::from_secs(2),
            },
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            cpus: Vec::new(),
            first_unique: 0,
            keep_failures: 8,
            jitter_probe: Duration::from_millis(100),
            interval_log: None,
            records: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), LoadError> {
        let invalid = |message: &str| Err(LoadError::Invalid(message.to_owned()));
        if self.connections == 0 {
            return invalid("0 connections can send nothing; ask for at least 1");
        }
        if u32::try_from(self.connections).is_err() {
            return invalid("more than 2^32 connections");
        }
        if self
            .durations()
            .into_iter()
            .any(|duration| duration > LONGEST)
        {
            return invalid("a duration above 30 days");
        }
        if self.request_timeout.is_zero() || self.connect_timeout.is_zero() {
            return invalid("a timeout of 0 leaves no time for an answer");
        }
        match self.end {
            End::Timed { window, .. } if window.is_zero() => {
                return invalid("a window of 0 s measures nothing");
            }
            End::EachOnce { limit } if limit.is_zero() => {
                return invalid("a limit of 0 s leaves no time to send");
            }
            End::EachOnce { .. } if matches!(self.pacing, Pacing::Open { .. }) => {
                return invalid("sending each request once has no rate: use the closed loop");
            }
            End::Timed { .. } | End::EachOnce { .. } => {}
        }
        schedule::validate(self.pacing, self.end)?;
        let entries = self.table.order.len() as u64;
        let sends = schedule::most_sends(self.pacing, self.end, entries);
        unique::validate_range(&self.table.requests, self.first_unique, sends)
    }

    fn durations(&self) -> [Duration; 7] {
        let [warmup, window, drain] = match self.end {
            End::Timed {
                warmup,
                window,
                drain,
            } => [warmup, window, drain],
            End::EachOnce { limit } => [Duration::ZERO, limit, Duration::ZERO],
        };
        let think = match self.pacing {
            Pacing::Closed { think } => think,
            Pacing::Open { .. } => Duration::ZERO,
        };
        [
            warmup,
            window,
            drain,
            think,
            self.request_timeout,
            self.connect_timeout,
            self.jitter_probe,
        ]
    }

    pub(crate) fn workers(&self) -> usize {
        self.cpus.len().clamp(1, self.connections)
    }
}

/// What the coordinating thread reports while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// The warm-up is over. In `EachOnce`: the run starts.
    WindowStart,
    /// The window is over; the drain begins. Called once for every `WindowStart`.
    WindowEnd,
    /// A second is over.
    Second(Live),
}

/// Figures of the last second, over all workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Live {
    /// The phase that second was in.
    pub phase: Phase,
    /// Since the start of the run.
    pub elapsed: Duration,
    /// Until the window's end.
    pub remaining: Duration,
    /// Correct answers.
    pub correct: u64,
    /// Requests that ended otherwise.
    pub failed: u64,
    /// Of those, the ones that were shed.
    pub shed: u64,
    /// Median response time; `None` outside of the window.
    pub p50: Option<Duration>,
    /// 99th percentile of the response time.
    pub p99: Option<Duration>,
}
