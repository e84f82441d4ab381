//! The end of a worker: what it still owes is booked, and everything it found is handed back.

use hdrhistogram::Histogram;

use crate::clock::Nanos;
use crate::connection::State;
use crate::ledger::Ledger;
use crate::measure::{Interval, Tally};
use crate::probe::Jitter;
use crate::record::{Ending, Record, RecordKeeper};
use crate::schedule::Due;
use crate::usage::{ThreadUsage, usage};
use crate::worker::Worker;

/// What a worker hands back at the end.
#[derive(Debug)]
pub(crate) struct WorkerReport {
    pub(crate) tally: Tally,
    pub(crate) ledger: Ledger,
    pub(crate) next_unique: u64,
    /// What was recorded since the last swap.
    pub(crate) interval: Box<Interval>,
    pub(crate) records: Vec<Record>,
    pub(crate) records_dropped: u64,
    pub(crate) connect: Histogram<u64>,
    /// Lower bounds of the response times of requests of the window that got no answer.
    pub(crate) censored: Histogram<u64>,
    /// What the jitter probe found on this thread.
    pub(crate) jitter: Jitter,
    pub(crate) served: usize,
    pub(crate) reopened: u64,
    /// Whether `stop` ended it.
    pub(crate) stopped: bool,
    /// The instant the worker ended.
    pub(crate) ended: Nanos,
    pub(crate) in_flight_area: u64,
    /// Within the window, if the run got that far.
    pub(crate) usage: Option<ThreadUsage>,
    pub(crate) window_cpu: Nanos,
}

impl Worker<'_> {
    pub(crate) fn finish(mut self, now: Nanos, stopped: bool) -> WorkerReport {
        for slot in 0..self.connections.len() {
            if self.connections[slot].state == State::Busy {
                self.end_exchange(slot as u32, Ending::Unfinished, 0, now);
            }
        }
        self.in_flight.integrate(now, &self.phases);
        self.count_unsent(now);
        let start = self.at_window_start;
        let end = start.map(|_| {
            self.at_window_end
                .take()
                .unwrap_or_else(|| self.meter.read(now))
        });
        let window = start.zip(end);
        let (records, records_dropped) = self
            .place
            .records
            .take()
            .map(RecordKeeper::into_rest)
            .unwrap_or_default();
        WorkerReport {
            records,
            records_dropped,
            served: self
                .connections
                .iter()
                .filter(|connection| connection.served)
                .count(),
            tally: self.tally,
            ledger: self.ledger,
            next_unique: self.next_unique,
            interval: self.interval,
            connect: self.connect,
            censored: self.censored,
            jitter: self.jitter,
            reopened: self.reopened,
            stopped,
            ended: now,
            in_flight_area: self.in_flight.area,
            usage: window.map(|(start, end)| usage(self.place.cpu, start, end)),
            window_cpu: window.map_or(0, |(start, end)| end.cpu - start.cpu),
        }
    }

    /// Adds the requests that were due and never sent. A run that was interrupted owes only those due
    /// until then.
    fn count_unsent(&mut self, now: Nanos) {
        let last = now.min(self.phases.window_end);
        let Some(Due { warmup, window }) = self.pacer.due_before(last) else {
            return;
        };
        for (counts, due) in [
            (&mut self.tally.warmup, warmup),
            (&mut self.tally.window, window),
        ] {
            counts.unsent = due.saturating_sub(counts.scheduled);
            counts.scheduled += counts.unsent;
        }
        let first = self
            .pacer
            .intended(now)
            .unwrap_or(last)
            .clamp(self.phases.window_start, last.max(self.phases.window_start));
        let unsent = self.tally.window.unsent;
        // Their instants lie evenly between the first one's and the end. Ten thousand points tell as much
        // as a recording for each, and end on time however many there are.
        let points = unsent.min(10_000);
        for point in 0..points {
            let weight = unsent / points + u64::from(point < unsent % points);
            let distance =
                u128::from(last.saturating_sub(first)) * u128::from(point) / u128::from(points);
            // At most `last - first`.
            let age = now - first - distance as Nanos;
            self.censored.saturating_record_n(age, weight);
        }
    }
}
