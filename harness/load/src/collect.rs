//! Merging what the workers record: figures of the last second, files, and at the end the outcome.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;

use crate::LoadError;
use crate::clock::{Nanos, SECOND};
use crate::interval_log::IntervalLog;
use crate::ledger::Ledger;
use crate::measure::{Interval, histogram, merge};
use crate::outcome::{Connections, Counts, ErrorKind, Failure, Outcome};
use crate::parquet::RecordFile;
use crate::plan::{Live, Plan};
use crate::record::Record;
use crate::report::WorkerReport;
use crate::schedule::{Pacing, Phases};
use crate::usage::ThreadUsage;
use crate::verdict::{self, Verdict};

#[derive(Debug)]
pub(crate) struct Collector {
    workers: usize,
    phases: Phases,
    total: Interval,
    current: Second,
    log: Option<IntervalLog>,
    records: Option<RecordFile>,
    ended: Ended,
}

/// The second under way.
#[derive(Debug)]
struct Second {
    number: u64,
    sum: Interval,
    /// How many workers have reported it.
    reports: usize,
    /// Up to where the log is written.
    logged: Nanos,
}

/// The sum of the workers' reports.
#[derive(Debug)]
struct Ended {
    connections: Connections,
    warmup: Counts,
    window: Counts,
    ledger: Ledger,
    next_unique: u64,
    errors: BTreeMap<ErrorKind, u64>,
    failures: Vec<Failure>,
    connect: Histogram<u64>,
    censored: Histogram<u64>,
    jitter: Histogram<u64>,
    jitter_run_queue: Option<f64>,
    threads: Vec<ThreadUsage>,
    cpu: Nanos,
    wire_ns: u64,
    in_flight_area: u64,
    records_dropped: u64,
    stopped: bool,
    at: Nanos,
}

impl Collector {
    pub(crate) fn new(plan: &Plan) -> Result<Collector, LoadError> {
        let log = plan
            .interval_log
            .as_deref()
            .map(|path| IntervalLog::create(path, SystemTime::now()))
            .transpose()?;
        let records = plan
            .records
            .as_ref()
            .map(|records| RecordFile::create(&records.path))
            .transpose()?;
        Ok(Collector {
            workers: plan.workers(),
            phases: Phases {
                start: 0,
                window_start: 0,
                window_end: 0,
                end: 0,
            },
            total: Interval::new()?,
            current: Second {
                number: 0,
                sum: Interval::new()?,
                reports: 0,
                logged: 0,
            },
            log,
            records,
            ended: Ended::new(plan)?,
        })
    }

    pub(crate) fn established(&mut self, established: usize) {
        self.ended.connections.established = established;
    }

    pub(crate) fn started(&mut self, phases: Phases) {
        self.phases = phases;
        self.current.logged = phases.start;
    }

    /// Takes one worker's interval; the figures of its second, once all workers have reported it.
    pub(crate) fn interval(
        &mut self,
        second: u64,
        interval: &Interval,
    ) -> Result<Option<Live>, LoadError> {
        if second != self.current.number {
            self.close_second(self.phases.start + second * SECOND)?;
            self.current.number = second;
        }
        self.current.sum.add(interval)?;
        self.current.reports += 1;
        if self.current.reports < self.workers {
            return Ok(None);
        }
        let live = self.live();
        self.close_second(self.phases.start + (second + 1) * SECOND)?;
        Ok(Some(live))
    }

    pub(crate) fn records(&mut self, records: &[Record]) -> Result<(), LoadError> {
        match &mut self.records {
            Some(file) => file.append(records, self.phases.start),
            None => Ok(()),
        }
    }

    /// Moves the second's sum to the total and the log.
    fn close_second(&mut self, until: Nanos) -> Result<(), LoadError> {
        let Second {
            sum,
            reports,
            logged,
            ..
        } = &mut self.current;
        self.total.add(sum)?;
        if let Some(log) = &mut self.log {
            let since_start =
                |instant: Nanos| Duration::from_nanos(instant.saturating_sub(self.phases.start));
            log.append(sum, since_start(*logged), since_start(until))?;
        }
        sum.clear();
        *reports = 0;
        *logged = until;
        Ok(())
    }

    fn live(&self) -> Live {
        let Second { number, sum, .. } = &self.current;
        let now = self.phases.start + (number + 1) * SECOND;
        let quantile = |share: f64| {
            let response = &sum.response;
            (!response.is_empty()).then(|| Duration::from_nanos(response.value_at_quantile(share)))
        };
        Live {
            phase: self.phases.phase(now - 1),
            elapsed: Duration::from_nanos(now - self.phases.start),
            remaining: Duration::from_nanos(self.phases.window_end.saturating_sub(now)),
            correct: sum.correct,
            failed: sum.failed,
            shed: sum.shed,
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }

    pub(crate) fn worker_ended(&mut self, report: WorkerReport) -> Result<(), LoadError> {
        self.current.sum.add(&report.interval)?;
        self.records(&report.records)?;
        self.ended.add(report)
    }

    pub(crate) fn outcome(mut self, plan: &Plan) -> Result<Outcome, LoadError> {
        self.close_second(self.ended.at.max(self.current.logged))?;
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        if let Some(records) = self.records.take() {
            records.finish(&self.phases)?;
        }
        let mut outcome = self.assemble(plan);
        outcome.checks = verdict::checks(&outcome, matches!(plan.pacing, Pacing::Open { .. }));
        outcome.verdict = verdict::verdict(&outcome.checks);
        Ok(outcome)
    }

    fn assemble(self, plan: &Plan) -> Outcome {
        let Collector {
            phases,
            total,
            ended,
            ..
        } = self;
        assert!(
            ended.window.is_exact() && ended.warmup.is_exact(),
            "the accounting identity is broken: {:?} {:?}",
            ended.window,
            ended.warmup
        );
        let window_end = ended.at.min(phases.window_end);
        let little_residual = ended.little_residual();
        let Interval {
            response,
            service,
            first_byte,
            wait,
            lag,
            correct_in_window,
            correct: _,
            failed: _,
            shed: _,
        } = total;
        Outcome {
            counts: ended.window,
            warmup: ended.warmup,
            by_request: ended.ledger.counts(&plan.table),
            next_unique: ended.next_unique,
            correct_in_window,
            window: Duration::from_nanos(window_end.saturating_sub(phases.window_start)),
            interrupted: ended.stopped,
            response,
            service,
            first_byte,
            wait,
            lag,
            connect: ended.connect,
            connections: ended.connections,
            errors: ended.errors,
            failures: ended
                .failures
                .into_iter()
                .take(plan.keep_failures)
                .collect(),
            censored: ended.censored,
            cpu: Duration::from_nanos(ended.cpu),
            threads: ended.threads,
            jitter: ended.jitter,
            jitter_run_queue: ended.jitter_run_queue,
            little_residual,
            records_dropped: ended.records_dropped,
            checks: Vec::new(),
            verdict: Verdict::Valid,
        }
    }
}

impl Ended {
    fn new(plan: &Plan) -> Result<Ended, LoadError> {
        Ok(Ended {
            connections: Connections {
                asked: plan.connections,
                ..Connections::default()
            },
            warmup: Counts::default(),
            window: Counts::default(),
            ledger: Ledger::new(&plan.table),
            next_unique: plan.first_unique,
            errors: BTreeMap::new(),
            failures: Vec::new(),
            connect: histogram()?,
            censored: histogram()?,
            jitter: histogram()?,
            jitter_run_queue: None,
            threads: Vec::new(),
            cpu: 0,
            wire_ns: 0,
            in_flight_area: 0,
            records_dropped: 0,
            stopped: false,
            at: 0,
        })
    }

    fn add(&mut self, report: WorkerReport) -> Result<(), LoadError> {
        self.warmup.add(&report.tally.warmup);
        self.window.add(&report.tally.window);
        self.ledger.add(&report.ledger);
        self.next_unique = self.next_unique.max(report.next_unique);
        for (kind, count) in report.tally.errors {
            *self.errors.entry(kind).or_insert(0) += count;
        }
        self.failures.extend(report.tally.failures);
        merge(&mut self.connect, &report.connect)?;
        merge(&mut self.censored, &report.censored)?;
        merge(&mut self.jitter, &report.jitter.lateness)?;
        let worst = [self.jitter_run_queue, report.jitter.run_queue]
            .into_iter()
            .flatten()
            .reduce(f64::max);
        self.jitter_run_queue = worst;
        self.connections.served += report.served;
        self.connections.reopened += report.reopened;
        self.threads.extend(report.usage);
        self.cpu += report.window_cpu;
        self.wire_ns += report.tally.wire_ns;
        self.in_flight_area += report.in_flight_area;
        self.records_dropped += report.records_dropped;
        self.stopped |= report.stopped;
        self.at = self.at.max(report.ended);
        Ok(())
    }

    fn little_residual(&self) -> Option<f64> {
        let area = self.in_flight_area;
        (area > 0).then(|| area.abs_diff(self.wire_ns) as f64 / area as f64)
    }
}
