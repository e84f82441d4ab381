//! What a running campaign says of itself, as data.

use std::collections::VecDeque;
use std::time::Duration;

use load::{Live, Phase};
use serde::{Deserialize, Serialize};

use crate::blocks::counting;
use crate::campaign::{Campaign, Plan, State, Trial};
use crate::checks::{Code, Verdict, tripped};

/// Trials that are kept: those before are in `campaign.json`.
const TRIALS_KEPT: usize = 100;

/// The content of `progress.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub workloads: Vec<String>,
    pub servers: Vec<String>,
    pub preset: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// What is being done, in words: `building the servers`, `measuring`.
    pub state: String,
    pub trials_done: usize,
    /// As far as is known now.
    pub trials_left: usize,
    /// Absent until the measuring begins.
    pub seconds_left: Option<f64>,
    /// Verdicts of the trials that count, of the whole campaign.
    pub counts: VerdictCounts,
    pub trial: Option<UnderWay>,
    /// The latest trials, oldest first.
    pub fallen: VecDeque<Fallen>,
}

/// The trial under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    pub workload: String,
    /// As in tables.
    pub server: String,
    /// In words: `8 connections`, `500/s`.
    pub rung: String,
    /// From 1.
    pub block: usize,
    /// In words: `starting the server`, `warm-up`, `window`, `judging`.
    pub phase: String,
    /// Oldest first.
    pub seconds: VecDeque<OneSecond>,
}

/// What the load saw in one second of the trial under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OneSecond {
    /// Its end, from the start of the load.
    pub at: f64,
    /// Whether it is in the window rather than in the warm-up.
    pub measured: bool,
    pub correct: u64,
    pub shed: u64,
    /// Requests that ended otherwise, those that were shed not among them.
    pub failed: u64,
    /// Response times; absent in the warm-up.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// A trial that has been judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallen {
    /// In the order of the campaign, from 1.
    pub number: usize,
    pub workload: String,
    /// As in tables.
    pub server: String,
    /// In words: `8 connections`, `500/s`.
    pub rung: String,
    /// From 1.
    pub block: usize,
    /// From 1.
    pub attempt: usize,
    /// Absent where no window took place.
    pub requests_per_second: Option<f64>,
    pub p99_ms: Option<f64>,
    pub verdict: Verdict,
    pub tripped: Vec<Code>,
}

/// How many trials have which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub valid: usize,
    pub failed: usize,
    pub misconfigured: usize,
    pub invalid: usize,
}

impl VerdictCounts {
    /// Of the latest attempt at each block.
    pub fn of(trials: &[Trial]) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for trial in counting(trials) {
            *match trial.verdict {
                Verdict::Valid => &mut counts.valid,
                Verdict::Failed => &mut counts.failed,
                Verdict::Misconfigured => &mut counts.misconfigured,
                Verdict::Invalid => &mut counts.invalid,
            } += 1;
        }
        counts
    }
}

impl Published {
    pub(super) fn of(plan: &Plan, started_at: String) -> Published {
        let ladders = plan.ladders.iter();
        Published {
            workloads: ladders.map(|ladder| ladder.workload.clone()).collect(),
            servers: plan.servers.clone(),
            preset: plan.preset.clone(),
            started_at,
            state: "starting".to_owned(),
            trials_done: 0,
            trials_left: 0,
            seconds_left: None,
            counts: VerdictCounts::default(),
            trial: None,
            fallen: VecDeque::new(),
        }
    }

    /// The same when the campaign has ended and left this record.
    pub fn closed_by(mut self, campaign: &Campaign) -> Published {
        let all = self.trials_done + self.trials_left;
        self.recall(&campaign.trials);
        let (state, left) = match campaign.state {
            State::Complete => ("complete", 0),
            State::Interrupted => ("interrupted", all.saturating_sub(self.trials_done)),
            State::Running => ("broken off", all.saturating_sub(self.trials_done)),
        };
        state.clone_into(&mut self.state);
        self.trials_left = left;
        self.seconds_left = None;
        self.trial = None;
        self
    }

    /// What has been measured: the counts, and the latest trials.
    pub(super) fn recall(&mut self, trials: &[Trial]) {
        self.trials_done = trials.len();
        self.counts = VerdictCounts::of(trials);
        let first = trials.len().saturating_sub(TRIALS_KEPT);
        let latest = trials.iter().enumerate().skip(first);
        self.fallen = latest
            .map(|(index, trial)| Fallen::of(index + 1, trial))
            .collect();
    }
}

impl Fallen {
    fn of(number: usize, trial: &Trial) -> Fallen {
        let window = trial.window.as_ref();
        let checks = trial.checks.iter().filter(|check| tripped(check));
        Fallen {
            number,
            workload: trial.workload.clone(),
            server: trial.label(),
            rung: trial.rung.to_string(),
            block: trial.block + 1,
            attempt: trial.attempt + 1,
            requests_per_second: window.map(|window| window.requests_per_second),
            p99_ms: window.map(|window| window.response_ns.p99 as f64 / 1e6),
            verdict: trial.verdict,
            tripped: checks.map(|check| check.code).collect(),
        }
    }
}

impl OneSecond {
    pub(super) fn of(live: &Live) -> OneSecond {
        let milliseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        OneSecond {
            at: live.elapsed.as_secs_f64(),
            measured: live.phase == Phase::Window,
            correct: live.correct,
            shed: live.shed,
            failed: live.failed.saturating_sub(live.shed),
            p50_ms: milliseconds(live.p50),
            p99_ms: milliseconds(live.p99),
        }
    }
}
