//! The server's own words, on stderr: one line an event, and at most one event of a failing database a second.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Whoever reads stderr may be slow or gone, and a database that is down fails every request.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lines about failing requests, thinned out.
#[derive(Debug, Default)]
pub(crate) struct Log {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl Log {
    pub(crate) fn failure(&self, error: &dyn Error) {
        let Some(suppressed) = self.take_turn(Instant::now()) else {
            return;
        };
        match suppressed {
            0 => line(&chain(error)),
            more => line(&format!(
                "{} (and {more} more since the last line)",
                chain(error)
            )),
        }
    }

    /// How many lines were suppressed before this one, or nothing if this one is to be.
    fn take_turn(&self, now: Instant) -> Option<u64> {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if state
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < INTERVAL)
        {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

/// One write, so that lines stay whole. `eprintln!` panics when stderr is gone; a server does not stop for that.
pub(crate) fn line(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// An error and its causes as one line. A cause that its parent already quotes is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_of_failures_is_one_line_a_second_and_says_how_many_it_hides() {
        let log = Log::default();
        let start = Instant::now();
        assert_eq!(log.take_turn(start), Some(0));
        for milliseconds in [1, 500, 999] {
            assert_eq!(
                log.take_turn(start + Duration::from_millis(milliseconds)),
                None
            );
        }
        assert_eq!(log.take_turn(start + INTERVAL), Some(3));
        assert_eq!(log.take_turn(start + 2 * INTERVAL), Some(0));
    }

    #[test]
    fn a_chain_is_one_line_and_does_not_repeat_itself() {
        let inner = io::Error::other("refused\n  by peer");
        let error = crate::Failure::ConnectionLost(inner.into());
        let text = chain(&error);
        assert_eq!(text.matches("refused").count(), 1);
        assert!(text.ends_with("refused; by peer"), "{text}");
    }
}
