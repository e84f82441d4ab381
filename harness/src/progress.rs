//! How far a campaign is, on stderr: a bar with the time left at a terminal, a line per trial elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Counts trials and foresees the end from the plan, corrected by what the trials so far really took.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    trials: u32,
    done: u32,
    planned_trial: Duration,
    started: Instant,
}

impl Progress {
    /// For trials of about `planned_trial` each; [`Progress::reckon`] says how many.
    pub fn start(planned_trial: Duration) -> Progress {
        let terminal = stderr().is_terminal();
        let bar = if terminal {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        // The template is a constant; a mistake in it would fall back to the plain bar.
        let style =
            ProgressStyle::with_template("{bar:24} {pos}/{len} trials, {prefix} left   {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress {
            bar,
            terminal,
            trials: 0,
            done: 0,
            planned_trial,
            started: Instant::now(),
        }
    }

    /// A campaign that goes on until it is precise learns on its way how many trials it takes.
    pub fn reckon(&mut self, left: usize) {
        self.trials = self
            .done
            .saturating_add(u32::try_from(left).unwrap_or(u32::MAX));
        self.bar.set_length(self.trials.into());
    }

    pub fn trial_starts(&self, what: &str) {
        self.bar.set_prefix(in_words(self.left()));
        self.bar.set_message(what.to_owned());
    }

    pub fn trial_ended(&mut self, summary: &str) {
        self.done += 1;
        self.bar.set_prefix(in_words(self.left()));
        self.bar.inc(1);
        if !self.terminal {
            eprintln!(
                "[{}/{}, {} left] {summary}",
                self.done,
                self.trials,
                in_words(self.left())
            );
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn left(&self) -> Duration {
        let trial = if self.done == 0 {
            self.planned_trial
        } else {
            self.started.elapsed() / self.done
        };
        trial * self.trials.saturating_sub(self.done)
    }
}

/// `1 m 05 s`, or `42 s`.
pub fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} m {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(in_words(Duration::from_millis(41_600)), "42 s");
        assert_eq!(in_words(Duration::from_secs(65)), "1 m 05 s");
        assert_eq!(in_words(Duration::from_millis(59_700)), "1 m 00 s");
    }
}
