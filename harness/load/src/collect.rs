//! Merging what the workers record into figures of the last second and, at the end, the outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::LoadError;
use crate::clock::{Nanos, SECOND};
use crate::measure::{Interval, histogram};
use crate::outcome::{Connections, Counts, ErrorKind, Failure, Outcome};
use crate::run::{Live, Plan};
use crate::schedule::{Phases, Timetable};
use crate::worker::WorkerReport;

#[derive(Debug)]
pub(crate) struct Collector {
    workers: usize,
    phases: Phases,
    timetable: Option<Timetable>,
    connections: Connections,
    total: Interval,
    /// The second under way: its number, its sum, and how many workers have reported it.
    second: u64,
    second_sum: Interval,
    second_reports: usize,
    warmup: Counts,
    window: Counts,
    errors: BTreeMap<ErrorKind, u64>,
    failures: Vec<Failure>,
    connect: Histogram<u64>,
    cpu: Nanos,
    ended: Nanos,
}

impl Collector {
    pub(crate) fn new(connections: usize, workers: usize) -> Result<Collector, LoadError> {
        Ok(Collector {
            workers,
            phases: Phases {
                start: 0,
                window_start: 0,
                window_end: 0,
                end: 0,
            },
            timetable: None,
            connections: Connections {
                asked: connections,
                ..Connections::default()
            },
            total: Interval::new()?,
            second: 0,
            second_sum: Interval::new()?,
            second_reports: 0,
            warmup: Counts::default(),
            window: Counts::default(),
            errors: BTreeMap::new(),
            failures: Vec::new(),
            connect: histogram()?,
            cpu: 0,
            ended: 0,
        })
    }

    pub(crate) fn established(&mut self, established: usize) {
        self.connections.established = established;
    }

    pub(crate) fn started(&mut self, phases: Phases, timetable: Option<Timetable>) {
        self.phases = phases;
        self.timetable = timetable;
    }

    /// Takes one worker's interval; the figures of its second, once all workers have reported it.
    pub(crate) fn interval(
        &mut self,
        second: u64,
        interval: &Interval,
    ) -> Result<Option<Live>, LoadError> {
        self.total.add(interval)?;
        if second != self.second {
            self.second_sum.clear();
            self.second = second;
            self.second_reports = 0;
        }
        self.second_sum.add(interval)?;
        self.second_reports += 1;
        Ok((self.second_reports == self.workers).then(|| self.live()))
    }

    fn live(&self) -> Live {
        let now = self.phases.start + (self.second + 1) * SECOND;
        let response = &self.second_sum.response;
        let quantile = |share: f64| {
            (!response.is_empty()).then(|| Duration::from_nanos(response.value_at_quantile(share)))
        };
        Live {
            phase: self.phases.phase(now - 1),
            elapsed: Duration::from_nanos(now - self.phases.start),
            remaining: Duration::from_nanos(self.phases.window_end.saturating_sub(now)),
            correct: self.second_sum.correct,
            failed: self.second_sum.failed,
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }

    pub(crate) fn worker_ended(&mut self, report: WorkerReport) -> Result<(), LoadError> {
        self.total.add(&report.interval)?;
        self.warmup.add(&report.tally.warmup);
        self.window.add(&report.tally.window);
        for (kind, count) in report.tally.errors {
            *self.errors.entry(kind).or_insert(0) += count;
        }
        self.failures.extend(report.tally.failures);
        self.connect
            .add(report.connect)
            .map_err(|error| LoadError::Invalid(format!("histogram: {error}")))?;
        self.connections.served += report.served;
        self.connections.reopened += report.reopened;
        self.cpu += report.window_cpu;
        self.ended = self.ended.max(report.ended);
        Ok(())
    }

    pub(crate) fn outcome(mut self, plan: &Plan, stop: &AtomicBool) -> Outcome {
        assert!(
            self.window.is_exact() && self.warmup.is_exact(),
            "the accounting identity is broken: {:?} {:?}",
            self.window,
            self.warmup
        );
        self.failures.truncate(plan.keep_failures);
        let window_end = self.ended.min(self.phases.window_end);
        let Interval {
            response,
            service,
            first_byte,
            wait,
            lag,
            correct_in_window,
            ..
        } = self.total;
        Outcome {
            counts: self.window,
            warmup: self.warmup,
            correct_in_window,
            window: Duration::from_nanos(window_end.saturating_sub(self.phases.window_start)),
            interrupted: stop.load(Ordering::Relaxed) && self.ended < self.phases.end,
            response,
            service,
            first_byte,
            wait,
            lag,
            connect: self.connect,
            connections: self.connections,
            errors: self.errors,
            failures: self.failures,
            cpu: Duration::from_nanos(self.cpu),
        }
    }
}
