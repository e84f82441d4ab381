//! The search for the highest rate that meets a service level objective (SLO).
//!
//! Pure logic over a closure that runs one trial at a rate. It has no state but the trials' outcomes, so that replaying
//! stored outcomes through the closure takes a search to where it was interrupted.

use crate::mean::Mean;

/// At least this share of the requests has to complete.
const LEAST_COMPLETED: f64 = 0.999;

/// The two ends of the result are at most this ratio apart.
const GRID: f64 = 1.02;

/// Where to look, in requests a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchedRates {
    /// The search goes no lower.
    pub least: f64,
    /// The first rate tried.
    pub start: f64,
    /// The search goes no higher.
    pub greatest: f64,
}

/// A search that is sure to end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapacitySearch {
    limit_seconds: f64,
    rates: SearchedRates,
    confirmations: usize,
}

/// What one trial at a rate showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateOutcome {
    /// The SLO's percentile of the response times. `None` where it could not be measured.
    pub percentile_seconds: Option<f64>,
    /// Wrong answers, sheds, timeouts, resets.
    pub errors: u64,
    /// Completed requests as a share of those scheduled.
    pub completed_share: f64,
    /// Whether more and more requests waited as the window went on.
    pub backlog_grew: bool,
}

/// Why a rate fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// At least one request went wrong.
    Errors,
    /// Fewer than 99.9 % of the requests completed.
    Incomplete,
    /// The backlog grew.
    Backlog,
    /// The percentile, or the upper bound of its mean, reaches the limit; or it was not measured.
    TooSlow,
}

/// A rate and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    pub rate: f64,
    /// `None`: it passes.
    pub miss: Option<Miss>,
    /// The trials it was judged by: the first one, or the reruns that took its place.
    pub outcomes: Vec<RateOutcome>,
    /// Whether it was judged by reruns.
    pub confirmed: bool,
}

/// Where the capacity lies: between two rates at most 2 % apart, both confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// The highest rate below every rate that fails. `None` where even the least rate fails.
    pub highest_pass: Option<Probe>,
    /// The lowest rate that fails. `None` where even the greatest rate passes.
    pub lowest_fail: Option<Probe>,
    /// All rates tried, in ascending order.
    pub probes: Vec<Probe>,
    /// How many trials were run.
    pub trials: usize,
}

impl CapacitySearch {
    /// `limit_seconds` is the SLO's X, e.g. 0.025 for p99 < 25 ms; each end of the result is confirmed by
    /// `confirmations` reruns. `None` unless all are above 0 and finite, `least <= start <= greatest`, and there are
    /// two confirmations or more, without which there is no upper bound.
    pub fn new(
        limit_seconds: f64,
        rates: SearchedRates,
        confirmations: usize,
    ) -> Option<CapacitySearch> {
        let SearchedRates {
            least,
            start,
            greatest,
        } = rates;
        let ordered = 0.0 < least && least <= start && start <= greatest && greatest.is_finite();
        let limited = limit_seconds > 0.0 && limit_seconds.is_finite();
        (ordered && limited && confirmations >= 2).then_some(CapacitySearch {
            limit_seconds,
            rates,
            confirmations,
        })
    }

    /// Runs trials until two rates at most 2 % apart are confirmed, one to pass and one to fail.
    ///
    /// 1. Double the rate until a trial fails, or halve it until one passes; then bisect. One trial judges a rate.
    /// 2. Rerun the highest pass and the lowest fail, interleaved. The reruns alone judge the two anew, since the first
    ///    trial chose the rate by its result: a rate passes if no rerun missed, and the one-sided 95 % upper bound of
    ///    the mean of the percentile's logarithm (Student's t) is below `ln X`.
    /// 3. Where a judgement changed, go on from 1 with what is known now. No rate is confirmed twice.
    ///
    /// A rate above one that fails never counts, whatever it showed.
    ///
    /// Simulated with 16 connections of 10 ms and windows of 70 s, 109 of 120 searches with 10 confirmations ended
    /// around the exact capacity, and the others one step of the grid below it. With 5 confirmations 83 of 120 did, and
    /// 3 ended one step above.
    ///
    /// # Errors
    ///
    /// What the closure returns.
    pub fn run<E>(
        &self,
        mut trial: impl FnMut(f64) -> Result<RateOutcome, E>,
    ) -> Result<Capacity, E> {
        let mut ladder = Ladder::default();
        loop {
            if let Some(rate) = self.next_rate(&ladder) {
                let outcome = ladder.run(rate, &mut trial)?;
                ladder.insert(Probe {
                    rate,
                    miss: self.judge_one(&outcome),
                    outcomes: vec![outcome],
                    confirmed: false,
                });
                continue;
            }
            let unconfirmed = ladder.unconfirmed_ends();
            if unconfirmed.is_empty() {
                return Ok(ladder.into_capacity());
            }
            self.confirm(&mut ladder, &unconfirmed, &mut trial)?;
        }
    }

    /// `None` where the ends are close enough, or are those of the range.
    fn next_rate(&self, ladder: &Ladder) -> Option<f64> {
        let SearchedRates {
            least,
            start,
            greatest,
        } = self.rates;
        match (ladder.highest_pass(), ladder.lowest_fail()) {
            (None, None) => Some(start),
            (Some(pass), None) => (pass.rate < greatest).then(|| (2.0 * pass.rate).min(greatest)),
            (None, Some(fail)) => (fail.rate > least).then(|| (fail.rate / 2.0).max(least)),
            (Some(pass), Some(fail)) => {
                (fail.rate / pass.rate > GRID).then(|| f64::midpoint(pass.rate, fail.rate))
            }
        }
    }

    /// Reruns the rates of `indices` in turn, and the other way round every second time.
    fn confirm<E>(
        &self,
        ladder: &mut Ladder,
        indices: &[usize],
        trial: &mut impl FnMut(f64) -> Result<RateOutcome, E>,
    ) -> Result<(), E> {
        let mut outcomes = vec![Vec::new(); indices.len()];
        for round in 0..self.confirmations {
            for turn in 0..indices.len() {
                let end = if round % 2 == 0 {
                    turn
                } else {
                    indices.len() - 1 - turn
                };
                outcomes[end].push(ladder.run(ladder.probes[indices[end]].rate, trial)?);
            }
        }
        for (&index, outcomes) in indices.iter().zip(outcomes) {
            let probe = &mut ladder.probes[index];
            probe.miss = self.judge_all(&outcomes);
            probe.outcomes = outcomes;
            probe.confirmed = true;
        }
        Ok(())
    }

    fn judge_one(&self, outcome: &RateOutcome) -> Option<Miss> {
        let meets = |seconds| seconds < self.limit_seconds;
        outcome
            .miss()
            .or_else(|| (!outcome.percentile_seconds.is_some_and(meets)).then_some(Miss::TooSlow))
    }

    fn judge_all(&self, outcomes: &[RateOutcome]) -> Option<Miss> {
        if let Some(miss) = outcomes.iter().find_map(RateOutcome::miss) {
            return Some(miss);
        }
        let logarithms: Option<Vec<f64>> = outcomes
            .iter()
            .map(|outcome| outcome.percentile_seconds.map(f64::ln))
            .collect();
        let bound = logarithms
            .and_then(|logarithms| Mean::of(&logarithms))
            .map(|mean| mean.upper_bound_95());
        let meets = |bound| bound < self.limit_seconds.ln();
        (!bound.is_some_and(meets)).then_some(Miss::TooSlow)
    }
}

impl RateOutcome {
    /// Whatever the percentile is.
    fn miss(&self) -> Option<Miss> {
        if self.errors > 0 {
            Some(Miss::Errors)
        } else if self.completed_share.is_nan() || self.completed_share < LEAST_COMPLETED {
            Some(Miss::Incomplete)
        } else if self.backlog_grew {
            Some(Miss::Backlog)
        } else {
            None
        }
    }
}

/// The rates tried so far.
#[derive(Debug, Default)]
struct Ladder {
    /// In ascending order of rates.
    probes: Vec<Probe>,
    trials: usize,
}

impl Ladder {
    fn run<E>(
        &mut self,
        rate: f64,
        trial: &mut impl FnMut(f64) -> Result<RateOutcome, E>,
    ) -> Result<RateOutcome, E> {
        self.trials += 1;
        trial(rate)
    }

    fn insert(&mut self, probe: Probe) {
        let place = self.probes.partition_point(|other| other.rate < probe.rate);
        self.probes.insert(place, probe);
    }

    /// How many rates pass before the first one fails.
    fn passing(&self) -> usize {
        self.probes
            .iter()
            .take_while(|probe| probe.miss.is_none())
            .count()
    }

    fn highest_pass(&self) -> Option<&Probe> {
        self.probes[..self.passing()].last()
    }

    fn lowest_fail(&self) -> Option<&Probe> {
        self.probes.get(self.passing())
    }

    /// The ends of the result that no rerun has judged yet, as indices.
    fn unconfirmed_ends(&self) -> Vec<usize> {
        let passing = self.passing();
        let ends = [passing.checked_sub(1), Some(passing)];
        let unconfirmed = |index: &usize| self.probes.get(*index).is_some_and(|end| !end.confirmed);
        ends.into_iter().flatten().filter(unconfirmed).collect()
    }

    fn into_capacity(self) -> Capacity {
        Capacity {
            highest_pass: self.highest_pass().cloned(),
            lowest_fail: self.lowest_fail().cloned(),
            probes: self.probes,
            trials: self.trials,
        }
    }
}
