//! Running the search's trials on real servers.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use stats::{Capacity, CapacitySearch, Firmness, RateOutcome, SearchedRates, firmness};
use workloads::Workload;

use super::record::{CapacityRecord, RateRecord, SearchRecord};
use crate::campaign::{Plan, Trial, Window};
use crate::checks::{Verdict, tripped};
use crate::expected::Answers;
use crate::notice;
use crate::process::READY_LIMIT;
use crate::progress::{Ahead, Progress, Step, Work};
use crate::results::ResultsFolder;
use crate::rig::Rig;
use crate::rung::Rung;
use crate::session::serving;
use crate::slo::Slo;
use crate::stdout::{self, OutputArgs};
use crate::subject::Subject;
use crate::trial::{Place, Witness};

/// In the results folder.
const FILE: &str = "capacity.json";
/// How often a trial that says nothing about the lane is run again.
const RERUNS: usize = 2;
/// No window is made longer than this for want of requests.
const LONGEST_WINDOW: f64 = 70.0;
/// Trials of a search as a rule, for the time left: doubling and bisecting, before the confirmations.
const USUAL_PROBES: usize = 10;

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    /// The results folder.
    results: &'a Path,
    slo: Slo,
    searches: &'a [SearchRecord],
    /// One a server.
    sentences: &'a [String],
}

/// A search under way.
pub(super) struct Search {
    pub(super) record: CapacityRecord,
    pub(super) results: ResultsFolder,
    /// Beyond this rate the generator would measure itself.
    pub(super) greatest: f64,
    pub(super) workload: Workload,
}

impl Search {
    /// Every server in turn.
    pub(super) fn all(&mut self, rig: &mut Rig, stop: &AtomicBool) -> Result<()> {
        let plan = self.record.plan.clone();
        let subjects = rig.subjects(&plan, READY_LIMIT, stop)?;
        let answers = Answers::derive(&self.workload, &rig.provisioned.database.url, plan.seed)?;
        let subjects = serving(&subjects, &self.workload);
        if subjects.is_empty() {
            bail!("no server serves {}", self.workload.name);
        }
        let mut progress = Progress::start();
        for (index, subject) in subjects.iter().enumerate() {
            let mut lane = Lane {
                rig,
                subject,
                answers: &answers,
                stop,
                progress: &mut progress,
                servers_after: subjects.len() - index - 1,
                trials: 0,
                doubtful: 0,
            };
            let found = self.of(&mut lane)?;
            self.record.searches.push(found);
            self.save()?;
        }
        progress.finish();
        Ok(())
    }

    fn of(&mut self, lane: &mut Lane<'_>) -> Result<SearchRecord> {
        let connections = 2 * self.record.plan.pool;
        let closed = self.trial(
            lane,
            Rung::Closed { connections },
            self.record.plan.window_seconds,
        )?;
        let closed_loop = self.window(lane, &closed)?.requests_per_second;
        let greatest = self.greatest.min(2.0 * closed_loop);
        let rates = SearchedRates {
            least: (closed_loop / 256.0).min(greatest),
            start: (closed_loop / 2.0).min(greatest),
            greatest,
        };
        let limit = self.record.slo.limit_seconds;
        let search = CapacitySearch::new(limit, rates, self.record.confirmations);
        let search = search.with_context(|| {
            format!(
                "{} answered nothing, so there is nothing to search",
                lane.subject.label()
            )
        })?;
        let capacity: Capacity = search.run(|rate| self.at(lane, rate))?;
        Ok(SearchRecord {
            server: lane.subject.label(),
            closed_loop,
            passes: capacity.highest_pass.as_ref().map(RateRecord::of),
            fails: capacity.lowest_fail.as_ref().map(RateRecord::of),
            trials: lane.trials,
            doubtful: lane.doubtful,
        })
    }

    /// One trial at a rate; again where it says nothing about the lane.
    fn at(&mut self, lane: &mut Lane<'_>, rate: f64) -> Result<RateOutcome> {
        let connections = self.record.plan.open_connections;
        let seconds = self.window_seconds(rate);
        let mut trial = self.trial(lane, Rung::Open { rate, connections }, seconds)?;
        for _ in 0..RERUNS {
            if trial.verdict == Verdict::Invalid {
                trial = self.trial(lane, Rung::Open { rate, connections }, seconds)?;
            }
        }
        lane.doubtful += usize::from(trial.verdict == Verdict::Invalid);
        let slo = self.record.slo;
        Ok(outcome(self.window(lane, &trial)?, rate, slo))
    }

    /// Long enough for ten requests beyond the percentile.
    fn window_seconds(&self, rate: f64) -> f64 {
        let beyond = 1.0 - self.record.slo.percentile.quantile();
        let needed = 10.5 / beyond / rate;
        needed.clamp(
            self.record.plan.window_seconds,
            LONGEST_WINDOW.max(self.record.plan.window_seconds),
        )
    }

    fn trial(&mut self, lane: &mut Lane<'_>, rung: Rung, seconds: f64) -> Result<Trial> {
        let plan = Plan {
            window_seconds: seconds,
            ..self.record.plan.clone()
        };
        let place = Place {
            rung,
            // Another seed of the instants each time, and the same for every server.
            block: lane.trials,
            attempt: 0,
            position: 0,
        };
        // A longer window is a low rate's; the rates to come are not known.
        let step = Step {
            work: Work::Trial,
            ladder: 0,
            rung: usize::from(rung.is_open()),
        };
        lane.progress.reckon(vec![Ahead {
            step,
            count: lane.expected(self.record.confirmations),
            planned: Duration::from_secs_f64(plan.warmup_seconds + seconds),
        }]);
        let what = format!("{} {}, {rung}", self.workload.name, lane.subject.label());
        lane.progress.step_starts(step, &what);
        let of = (&self.workload, lane.answers);
        let trial = lane.rig.trial(
            &plan,
            lane.subject,
            of,
            place,
            Witness::default(),
            lane.stop,
        )?;
        lane.trials += 1;
        lane.progress
            .trial_ended(&format!("{what}: {}", self.summary(&trial)));
        self.record.trials.push(trial.clone());
        self.save()?;
        Ok(trial)
    }

    fn summary(&self, trial: &Trial) -> String {
        let slo = self.record.slo;
        let seen = trial.window.as_ref().map_or("-".to_owned(), |window| {
            let seen = slo.percentile.of(window.response_ns).as_secs_f64() * 1e3;
            format!(
                "{:.0}/s, {} {seen:.2} ms",
                window.requests_per_second,
                slo.percentile.name()
            )
        });
        format!("{seen}, {}", trial.verdict.name())
    }

    /// A lane that breaks its contract has no capacity.
    fn window<'t>(&self, lane: &Lane<'_>, trial: &'t Trial) -> Result<&'t Window> {
        let mut tripped = trial.checks.iter().filter(|check| tripped(check));
        let broken = tripped
            .clone()
            .find(|check| check.verdict == Verdict::Misconfigured);
        match (&trial.window, broken) {
            (Some(window), None) => Ok(window),
            (_, broken) => {
                let why = broken
                    .or_else(|| tripped.next())
                    .map_or("no window took place", |check| check.figure.as_str());
                bail!(
                    "{} at {}: {}: {why}",
                    lane.subject.label(),
                    trial.rung,
                    trial.verdict.name()
                )
            }
        }
    }

    fn save(&self) -> Result<()> {
        self.results.write(FILE, &self.record)
    }

    /// Says what was found. INVALID if a search had to use trials that are.
    pub(super) fn close(self, ended: Result<()>, output: OutputArgs) -> Result<Verdict> {
        let searches = self.record.searches.iter();
        let sentences: Vec<String> = searches
            .map(|search| self.record.sentence(search))
            .collect();
        if output.json {
            stdout::say_json(&Found {
                results: self.results.path(),
                slo: self.record.slo,
                searches: &self.record.searches,
                sentences: &sentences,
            })?;
        } else {
            for sentence in &sentences {
                stdout::say(&format!("{sentence}\n"));
            }
        }
        if !self.record.trials.is_empty() {
            notice::say(&format!(
                "results: {}",
                self.results.path().join(FILE).display()
            ));
        }
        ended?;
        let doubtful = self
            .record
            .searches
            .iter()
            .any(|search| search.doubtful > 0);
        Ok(if doubtful {
            Verdict::Invalid
        } else {
            Verdict::Valid
        })
    }
}

/// One server under search.
struct Lane<'a> {
    rig: &'a mut Rig,
    subject: &'a Subject,
    answers: &'a Answers,
    stop: &'a AtomicBool,
    progress: &'a mut Progress,
    servers_after: usize,
    trials: usize,
    doubtful: usize,
}

impl Lane<'_> {
    /// Trials to come, as far as can be foreseen.
    fn expected(&self, confirmations: usize) -> usize {
        let usual = USUAL_PROBES + 2 * confirmations;
        usual.saturating_sub(self.trials).max(1) + self.servers_after * usual
    }
}

/// What the search needs to know of a window.
fn outcome(window: &Window, rate: f64, slo: Slo) -> RateOutcome {
    let counts = &window.counts;
    let quantile = slo.percentile.quantile();
    let enough = firmness(quantile, counts.scheduled) != Firmness::Absent;
    let percentile = slo.percentile.of(window.response_ns).as_secs_f64();
    RateOutcome {
        percentile_seconds: enough.then_some(percentile),
        errors: counts.failed(),
        completed_share: counts.correct as f64 / counts.scheduled.max(1) as f64,
        backlog_grew: backlog_grew(window, rate),
    }
}

/// Whether more requests were under way at the window's end than at its start, by more than chance: 1 % of all of them,
/// and four standard deviations of the difference of two Poisson numbers with the mean that Little's law gives.
fn backlog_grew(window: &Window, rate: f64) -> bool {
    let arrived = window.counts.scheduled as f64;
    let left = window.requests_per_second * window.seconds + window.counts.failed() as f64;
    let under_way = rate * window.response_ns.mean / 1e9;
    arrived - left > 0.01 * arrived + 4.0 * (2.0 * under_way).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Latency;
    use crate::made_up;

    fn window(scheduled: u64, in_window: f64, mean_ms: f64) -> Window {
        let rung = made_up::open(1_000.0);
        let window: Window = serde_json::from_value(made_up::window(0, &rung, 24.0)).unwrap();
        Window {
            requests_per_second: in_window / window.seconds,
            response_ns: Latency {
                mean: mean_ms * 1e6,
                ..window.response_ns
            },
            counts: load::Counts {
                scheduled,
                correct: scheduled,
                ..load::Counts::default()
            },
            ..window
        }
    }

    #[test]
    fn a_backlog_grows_when_more_is_left_than_chance_explains() {
        // 1,440/s of 12 ms: 17 under way on average, so that 24 more or fewer are chance, and 43 are 1 %.
        assert!(!backlog_grew(&window(4_320, 4_320.0, 12.0), 1_440.0));
        assert!(!backlog_grew(&window(4_320, 4_270.0, 12.0), 1_440.0));
        // 1,700/s offered to a pool that can do 1,600.
        assert!(backlog_grew(&window(5_100, 4_800.0, 90.0), 1_700.0));
    }

    #[test]
    fn a_percentile_that_rests_on_too_few_requests_is_not_measured() {
        let slo: Slo = "p99<25ms".parse().unwrap();
        assert_eq!(
            outcome(&window(900, 900.0, 12.0), 300.0, slo).percentile_seconds,
            None
        );
        let enough = outcome(&window(1_100, 1_100.0, 12.0), 367.0, slo);
        assert_eq!(enough.percentile_seconds, Some(0.024));
        assert_eq!((enough.errors, enough.completed_share), (0, 1.0));
    }
}
