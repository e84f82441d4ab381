//! How far a campaign is, on stderr: a bar with the time left at a terminal, a line per trial elsewhere.

mod forecast;

use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forecast::Forecast;
pub use forecast::{Ahead, Step, Work};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::notice;

/// Counts trials and foresees the end.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Whether the bar is not seen, so that lines take its place.
    lines: bool,
    done: usize,
    clock: Clock,
}

/// The forecast with the time that it is asked at; the bar asks by itself, so that it runs down between trials.
#[derive(Debug, Clone)]
struct Clock {
    forecast: Arc<Mutex<Forecast>>,
    started: Instant,
}

impl Clock {
    fn with<T>(&self, use_it: impl FnOnce(&mut Forecast, Duration) -> T) -> T {
        let mut forecast = self.forecast.lock().unwrap_or_else(PoisonError::into_inner);
        use_it(&mut forecast, self.started.elapsed())
    }

    fn left(&self) -> Duration {
        self.with(|forecast, now| forecast.left(now))
    }
}

impl Progress {
    /// Of a campaign that begins now; [`Progress::reckon`] says what is ahead.
    pub fn start() -> Progress {
        let terminal = stderr().is_terminal();
        let clock = Clock {
            forecast: Arc::default(),
            started: Instant::now(),
        };
        let bar = if terminal && !notice::is_quiet() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        // The template is a constant; a mistake in it would fall back to the plain bar.
        let style =
            ProgressStyle::with_template("{bar:24} {pos}/{len} trials, {left} left   {wide_msg}");
        let of_bar = clock.clone();
        let left = move |_: &ProgressState, text: &mut dyn Write| {
            let _ = text.write_str(&in_words(of_bar.left()));
        };
        bar.set_style(style.map_or_else(
            |_| ProgressStyle::default_bar(),
            |style| style.with_key("left", left),
        ));
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress {
            bar,
            lines: !terminal,
            done: 0,
            clock,
        }
    }

    /// A campaign that goes on until it is precise learns on its way how many trials it takes.
    pub fn reckon(&mut self, ahead: Vec<Ahead>) {
        self.clock.with(|forecast, _| forecast.reckon(ahead));
        self.bar.set_length((self.done + self.trials_left()) as u64);
    }

    pub fn trial_ended(&mut self, summary: &str) {
        self.step_ended();
        self.done += 1;
        self.bar.inc(1);
        if self.lines {
            let all = self.done + self.trials_left();
            let left = in_words(self.left());
            notice::say(&format!("[{}/{all}, {left} left] {summary}", self.done));
        }
    }

    /// A trial, or what else takes its time.
    pub fn step_starts(&self, step: Step, what: &str) {
        self.clock.with(|forecast, _| forecast.starts(step));
        self.bar.set_message(what.to_owned());
    }

    pub fn step_ended(&mut self) {
        self.clock.with(Forecast::ended);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Trials that are ahead, the one under way included.
    pub fn trials_left(&self) -> usize {
        self.clock.with(|forecast, _| forecast.trials())
    }

    /// Until the end, as far as is known now.
    pub fn left(&self) -> Duration {
        self.clock.left()
    }
}

/// `1 h 05 m`, `1 m 05 s`, or `42 s`.
pub fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        // Nobody waits for the second by then.
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
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
        assert_eq!(in_words(Duration::from_secs(7_510)), "2 h 05 m");
    }
}
