//! How long a campaign still takes: the plan's figures, and on top of them what each kind of step has been seen to take
//! beyond its plan. Pure: instants come in as time since the start.

use std::time::Duration;

/// What a step takes beyond its plan before one like it has been seen: a trial starts a server, a ceiling a program.
const TRIAL_OVERHEAD: Duration = Duration::from_millis(800);
const CEILING_OVERHEAD: Duration = Duration::from_millis(500);

/// A kind of step. Steps of one kind take the same time, nearly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub work: Work,
    /// Indices into the plan's ladders and the ladder's rungs.
    pub ladder: usize,
    pub rung: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Trial,
    /// pgbench, after a block.
    Ceiling,
}

/// Steps that are still to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ahead {
    pub step: Step,
    pub count: usize,
    /// What each takes by the plan: the load alone.
    pub planned: Duration,
}

/// Learns on the way. All time belongs to some step: what passes between two belongs to the later one.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    ahead: Vec<Ahead>,
    under_way: Option<(Step, Duration)>,
    /// When the step under way, or the time before it, began.
    since: Duration,
    /// Seconds beyond the plan of each step so far; negative: it was broken off.
    beyond_plan: Vec<(Step, f64)>,
}

impl Forecast {
    /// What is ahead by now, in place of what was thought before.
    pub(super) fn reckon(&mut self, ahead: Vec<Ahead>) {
        self.ahead = ahead;
    }

    /// Trials that are ahead, the one under way included.
    pub(super) fn trials(&self) -> usize {
        let trials = |step: &Step| step.work == Work::Trial;
        let ahead = self.ahead.iter().filter(|ahead| trials(&ahead.step));
        let under_way = self.under_way.iter().filter(|(step, _)| trials(step));
        ahead.map(|ahead| ahead.count).sum::<usize>() + under_way.count()
    }

    /// One of the steps ahead begins.
    pub(super) fn starts(&mut self, step: Step) {
        let found = self.ahead.iter_mut().find(|ahead| ahead.step == step);
        if let Some(ahead) = found {
            ahead.count = ahead.count.saturating_sub(1);
            self.under_way = Some((step, ahead.planned));
        }
    }

    pub(super) fn ended(&mut self, now: Duration) {
        if let Some((step, planned)) = self.under_way.take() {
            let took = now.saturating_sub(self.since);
            let beyond = took.as_secs_f64() - planned.as_secs_f64();
            self.beyond_plan.push((step, beyond));
        }
        self.since = now;
    }

    /// The step under way, as far as it is not over, and all that are ahead.
    pub(super) fn left(&self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.since).as_secs_f64();
        let ahead = self.ahead.iter();
        let ahead =
            ahead.map(|ahead| ahead.count as f64 * self.expected(ahead.step, ahead.planned));
        let ahead: f64 = ahead.sum();
        let left = match self.under_way {
            Some((step, planned)) => (self.expected(step, planned) - passed).max(0.0) + ahead,
            None => (ahead - passed).max(0.0),
        };
        Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX)
    }

    /// Seconds. By steps of the very kind, else of the workload, else by all that do the same work.
    fn expected(&self, step: Step, planned: Duration) -> f64 {
        let same = [
            self.mean(|of| *of == step),
            self.mean(|of| of.work == step.work && of.ladder == step.ladder),
            self.mean(|of| of.work == step.work),
        ];
        let unseen = match step.work {
            Work::Trial => TRIAL_OVERHEAD,
            Work::Ceiling => CEILING_OVERHEAD,
        };
        let beyond = same.into_iter().flatten().next();
        (planned.as_secs_f64() + beyond.unwrap_or(unseen.as_secs_f64())).max(0.0)
    }

    fn mean(&self, of: impl Fn(&Step) -> bool) -> Option<f64> {
        let seen = self.beyond_plan.iter().filter(|(step, _)| of(step));
        let seen: Vec<f64> = seen.map(|(_, beyond)| *beyond).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step as it will really go, in seconds.
    struct Real {
        step: Step,
        planned: f64,
        takes: f64,
    }

    fn step(work: Work, ladder: usize, rung: usize) -> Step {
        Step { work, ladder, rung }
    }

    /// Blocks in rounds over three rungs, three servers each, pgbench after each block for a third of a window.
    /// `overhead` gives a trial's seconds beyond its plan by rung and number.
    fn course(blocks: usize, window: f64, overhead: &dyn Fn(usize, usize) -> f64) -> Vec<Real> {
        let mut steps = Vec::new();
        for _ in 0..blocks {
            for rung in 0..3 {
                for _ in 0..3 {
                    let beyond = overhead(rung, steps.len());
                    steps.push(Real {
                        step: step(Work::Trial, 0, rung),
                        planned: window + 1.0,
                        takes: window + 1.0 + beyond,
                    });
                }
                let planned = (window / 3.0).round().max(1.0);
                steps.push(Real {
                    step: step(Work::Ceiling, 0, rung),
                    planned,
                    takes: planned + 0.7,
                });
            }
        }
        steps
    }

    fn ahead(steps: &[Real]) -> Vec<Ahead> {
        let mut all: Vec<Ahead> = Vec::new();
        for Real { step, planned, .. } in steps {
            match all.iter_mut().find(|ahead| ahead.step == *step) {
                Some(ahead) => ahead.count += 1,
                None => all.push(Ahead {
                    step: *step,
                    count: 1,
                    planned: Duration::from_secs_f64(*planned),
                }),
            }
        }
        all
    }

    /// By what share of what is left the forecast is wrong, when so much of the time has passed.
    fn error(steps: &[Real], share: f64) -> f64 {
        let all: f64 = steps.iter().map(|step| step.takes).sum();
        let (mut forecast, mut now) = (Forecast::default(), 0.0);
        let at = Duration::from_secs_f64(share * all);
        forecast.reckon(ahead(steps));
        for Real { step, takes, .. } in steps {
            forecast.starts(*step);
            if now + takes >= share * all {
                break;
            }
            now += takes;
            forecast.ended(Duration::from_secs_f64(now));
        }
        let left = (1.0 - share) * all;
        (forecast.left(at).as_secs_f64() - left).abs() / left
    }

    #[track_caller]
    fn within_a_tenth(steps: &[Real]) {
        for share in [0.2, 0.5, 0.8] {
            let error = error(steps, share);
            assert!(error < 0.1, "{share}: {:.1} % off", 100.0 * error);
        }
    }

    #[test]
    fn the_time_left_is_right_within_a_tenth_though_pgbench_runs_between_the_blocks() {
        for (blocks, window) in [(3, 3.0), (10, 70.0), (2, 1.0)] {
            within_a_tenth(&course(blocks, window, &|_, _| 1.4));
        }
    }

    #[test]
    fn the_time_left_is_right_within_a_tenth_though_a_rung_takes_longer_and_none_the_same_twice() {
        let scatter = |number: usize| 0.4 * (2.4 * number as f64).sin();
        within_a_tenth(&course(6, 3.0, &|rung, number| {
            1.0 + rung as f64 + scatter(number)
        }));
    }

    #[test]
    fn putting_rows_back_before_each_trial_is_learnt_from_the_first() {
        let steps = course(3, 3.0, &|_, _| 9.0);
        assert!(error(&steps, 0.2) < 0.1);
    }

    #[test]
    fn the_time_left_runs_down_like_a_clock_and_waits_for_a_step_that_takes_too_long() {
        let mut forecast = Forecast::default();
        let trial = step(Work::Trial, 0, 0);
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds);
        forecast.reckon(vec![Ahead {
            step: trial,
            count: 2,
            planned: seconds(4.2),
        }]);
        assert_eq!(
            (forecast.left(seconds(0.0)), forecast.trials()),
            (seconds(10.0), 2)
        );
        forecast.starts(trial);
        assert_eq!(
            (forecast.left(seconds(2.0)), forecast.trials()),
            (seconds(8.0), 2)
        );
        assert_eq!(forecast.left(seconds(7.0)), seconds(5.0));
        forecast.ended(seconds(7.0));
        assert_eq!(
            (forecast.left(seconds(7.0)), forecast.trials()),
            (seconds(7.0), 1)
        );
    }

    #[test]
    fn a_second_workload_begins_with_what_the_first_has_shown() {
        let mut forecast = Forecast::default();
        let second = step(Work::Trial, 1, 0);
        let planned = Duration::from_secs(4);
        forecast.reckon(vec![
            Ahead {
                step: step(Work::Trial, 0, 0),
                count: 1,
                planned,
            },
            Ahead {
                step: second,
                count: 3,
                planned,
            },
        ]);
        forecast.starts(step(Work::Trial, 0, 0));
        forecast.ended(Duration::from_secs(6));
        assert_eq!(
            forecast.left(Duration::from_secs(6)),
            Duration::from_secs(18)
        );
    }
}
