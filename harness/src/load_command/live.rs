//! The line on stderr while a load runs, at a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use load::{End, Event, Live, Phase, Plan};

use crate::progress::in_words;

/// One line that is written over each second.
#[derive(Debug)]
pub(super) struct LiveLine {
    is_shown: bool,
    failed: u64,
}

impl LiveLine {
    /// Shows at once how long it will take.
    pub(super) fn new(plan: &Plan) -> LiveLine {
        let mut line = LiveLine {
            is_shown: stderr().is_terminal(),
            failed: 0,
        };
        let total = match plan.end {
            End::Timed { warmup, window, .. } => warmup + window,
            End::EachOnce { limit } => limit,
        };
        line.write(&format!(
            "{} connections to {}, {} left",
            plan.connections,
            plan.target,
            in_words(total)
        ));
        line
    }

    pub(super) fn show(&mut self, event: Event) {
        match event {
            Event::Second(live) => {
                self.failed += live.failed;
                self.write(&text(&live, self.failed));
            }
            Event::WindowEnd => self.write("waiting for the last answers"),
            Event::WindowStart => {}
        }
    }

    pub(super) fn clear(&mut self) {
        self.write("");
    }

    fn write(&mut self, text: &str) {
        if self.is_shown {
            // Carriage return, erase to the end of the line. A terminal that went away is no reason to stop.
            let _ = write!(stderr(), "\r\x1b[K{text}");
        }
    }
}

fn text(live: &Live, failed: u64) -> String {
    let quantile = |value: Option<Duration>| match value {
        Some(value) => format!("{:.3} ms", value.as_secs_f64() * 1e3),
        None => "-".to_owned(),
    };
    let errors = if failed == 1 { "error" } else { "errors" };
    let phase = match live.phase {
        Phase::Warmup => "warm-up  ",
        Phase::Window => "",
    };
    format!(
        "{phase}{}/s  p50 {}  p99 {}  {failed} {errors}  {} left",
        live.correct,
        quantile(live.p50),
        quantile(live.p99),
        in_words(live.remaining)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_reads_as_rate_percentiles_errors_and_time_left() {
        let live = Live {
            phase: Phase::Window,
            elapsed: Duration::from_secs(3),
            remaining: Duration::from_secs(8),
            correct: 9_998,
            failed: 2,
            shed: 0,
            p50: Some(Duration::from_micros(210)),
            p99: None,
        };
        assert_eq!(
            text(&live, 5),
            "9998/s  p50 0.210 ms  p99 -  5 errors  8 s left"
        );
    }
}
