//! What one worker records: an interval of histograms that is swapped each second, and totals.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::LoadError;
use crate::clock::Nanos;
use crate::outcome::{Counts, ErrorKind, Failure};
use crate::record::Ending;
use crate::schedule::{Phase, Phases};

/// Longest time a histogram tells apart from a longer one.
const HIGHEST_NS: u64 = 60 * crate::clock::SECOND;

/// An empty histogram of the kind used everywhere: 1 ns to 60 s, three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>, LoadError> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3)
        .map_err(|error| LoadError::Invalid(format!("histogram: {error}")))
}

/// Adds `part` to `sum`, both made by `histogram`.
pub(crate) fn merge(sum: &mut Histogram<u64>, part: &Histogram<u64>) -> Result<(), LoadError> {
    sum.add(part)
        .map_err(|error| LoadError::Invalid(format!("histogram: {error}")))
}

/// The instants of one request, from which everything else follows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exchange {
    /// Index into the table's requests.
    pub(crate) request: u32,
    pub(crate) intended: Nanos,
    /// When the connection that took it had become free.
    pub(crate) free: Nanos,
    pub(crate) sent: Nanos,
    /// 0 until a byte has come.
    pub(crate) first_byte: Nanos,
}

/// What happened between two swaps. Histograms hold requests of the window only.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) response: Histogram<u64>,
    pub(crate) service: Histogram<u64>,
    pub(crate) first_byte: Histogram<u64>,
    pub(crate) wait: Histogram<u64>,
    pub(crate) lag: Histogram<u64>,
    /// Correct answers that arrived in this interval, of whatever phase.
    pub(crate) correct: u64,
    /// Of those, the ones that arrived within the window.
    pub(crate) correct_in_window: u64,
    /// Requests that ended otherwise in this interval.
    pub(crate) failed: u64,
    /// Of those, the ones that were shed.
    pub(crate) shed: u64,
}

impl Interval {
    pub(crate) fn new() -> Result<Interval, LoadError> {
        Ok(Interval {
            response: histogram()?,
            service: histogram()?,
            first_byte: histogram()?,
            wait: histogram()?,
            lag: histogram()?,
            correct: 0,
            correct_in_window: 0,
            failed: 0,
            shed: 0,
        })
    }

    pub(crate) fn clear(&mut self) {
        let Interval {
            response,
            service,
            first_byte,
            wait,
            lag,
            correct,
            correct_in_window,
            failed,
            shed,
        } = self;
        for histogram in [response, service, first_byte, wait, lag] {
            histogram.reset();
        }
        (*correct, *correct_in_window, *failed, *shed) = (0, 0, 0, 0);
    }

    pub(crate) fn add(&mut self, other: &Interval) -> Result<(), LoadError> {
        let pairs = [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.wait, &other.wait),
            (&mut self.lag, &other.lag),
        ];
        for (sum, part) in pairs {
            sum.add(part)
                .map_err(|error| LoadError::Invalid(format!("histogram: {error}")))?;
        }
        self.correct += other.correct;
        self.correct_in_window += other.correct_in_window;
        self.failed += other.failed;
        self.shed += other.shed;
        Ok(())
    }

    pub(crate) fn record_sent(&mut self, exchange: &Exchange) {
        let able = exchange.intended.max(exchange.free);
        self.wait.saturating_record(able - exchange.intended);
        self.lag
            .saturating_record(exchange.sent.saturating_sub(able));
    }

    pub(crate) fn record_correct(&mut self, exchange: &Exchange, done: Nanos) {
        self.response.saturating_record(done - exchange.intended);
        self.service.saturating_record(done - exchange.sent);
        self.first_byte
            .saturating_record(exchange.first_byte - exchange.sent);
    }
}

/// What one worker counts over the whole run.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) warmup: Counts,
    pub(crate) window: Counts,
    pub(crate) errors: BTreeMap<ErrorKind, u64>,
    pub(crate) failures: Vec<Failure>,
    /// Time that requests spent on the wire within the window, from their own instants: the lambda * W
    /// of Little's law over the window.
    pub(crate) wire_ns: u64,
    keep_failures: usize,
}

impl Tally {
    pub(crate) fn new(keep_failures: usize) -> Tally {
        Tally {
            warmup: Counts::default(),
            window: Counts::default(),
            errors: BTreeMap::new(),
            failures: Vec::new(),
            wire_ns: 0,
            keep_failures,
        }
    }

    pub(crate) fn counts(&mut self, phase: Phase) -> &mut Counts {
        match phase {
            Phase::Warmup => &mut self.warmup,
            Phase::Window => &mut self.window,
        }
    }

    pub(crate) fn ended(&mut self, phase: Phase, ending: Ending) {
        let counts = self.counts(phase);
        match ending {
            Ending::Judged(judgement) => counts.judged(judgement),
            Ending::Timeout => counts.timeout += 1,
            Ending::Transport => counts.transport += 1,
            Ending::Unfinished => counts.unfinished += 1,
        }
    }

    /// Counts a failure by kind, and keeps it if it is among the first.
    pub(crate) fn failure(
        &mut self,
        phase: Phase,
        kind: ErrorKind,
        describe: impl FnOnce() -> Failure,
    ) {
        if phase == Phase::Window {
            self.error(kind);
        }
        if self.failures.len() < self.keep_failures {
            self.failures.push(describe());
        }
    }

    pub(crate) fn error(&mut self, kind: ErrorKind) {
        *self.errors.entry(kind).or_insert(0) += 1;
    }
}

/// Requests on the wire, integrated over the window from send and end events alone: the L of Little's
/// law, independent of the latencies.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    current: u64,
    changed: Nanos,
    /// Request-nanoseconds within the window.
    pub(crate) area: u64,
}

impl InFlight {
    pub(crate) fn sent(&mut self, now: Nanos, phases: &Phases) {
        self.integrate(now, phases);
        self.current += 1;
    }

    pub(crate) fn ended(&mut self, now: Nanos, phases: &Phases) {
        self.integrate(now, phases);
        self.current = self.current.saturating_sub(1);
    }

    pub(crate) fn integrate(&mut self, now: Nanos, phases: &Phases) {
        self.area += self.current * phases.within_window(self.changed, now);
        self.changed = now;
    }
}
