//! The events: what they are, and when each is sent.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;

/// Bytes of an event.
const EVENT_BYTES: usize = 200;
/// Each of so many has a line end in it, which a stream cannot carry as it is.
const BROKEN_IN_TWO: usize = 10;
/// Longest time between two looks at the flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Events to be sent; each knows when it was.
#[derive(Debug)]
pub(super) struct Agenda {
    pub(super) payloads: Vec<String>,
    sent: Vec<OnceLock<Instant>>,
    interval: Duration,
}

impl Agenda {
    pub(super) fn new(events: usize, per_second: f64) -> Agenda {
        Agenda {
            payloads: (0..events).map(payload).collect(),
            sent: (0..events).map(|_| OnceLock::new()).collect(),
            interval: Duration::from_secs_f64(1.0 / per_second),
        }
    }

    /// How long ago an event was sent; none if it has not been.
    pub(super) fn since_sent(&self, event: usize, now: Instant) -> Option<Duration> {
        let sent = self.sent.get(event)?.get()?;
        Some(now.saturating_duration_since(*sent))
    }

    /// Sends each event when it is due, or as soon after as the one before it is done; all of them, unless told to stop.
    ///
    /// # Errors
    /// The database refuses one, or is gone.
    pub(super) fn publish(
        &self,
        client: &mut Client,
        channel: &str,
        stop: &AtomicBool,
    ) -> Result<()> {
        let notify = client.prepare("SELECT pg_notify($1, $2)");
        let notify = notify.context("cannot publish events")?;
        let mut due = Instant::now();
        for (payload, sent) in self.payloads.iter().zip(&self.sent) {
            if !wait_until(due, stop) {
                return Ok(());
            }
            sent.get_or_init(Instant::now);
            client
                .execute(&notify, &[&channel, payload])
                .context("cannot publish an event")?;
            due += self.interval;
        }
        Ok(())
    }
}

/// Whether the time has come, rather than the end.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
    false
}

/// Its number, and text that is another one for each: no two are alike, and what is changed, cut or mixed up shows.
fn payload(event: usize) -> String {
    let mut text = format!("event {event:08}:  \u{e9}\u{20ac} ");
    let letters = (event..).map(|at| char::from(b'!' + (at * 7 % 94) as u8));
    let missing = EVENT_BYTES - text.len();
    text.extend(letters.take(missing));
    if event % BROKEN_IN_TWO == BROKEN_IN_TWO - 1 {
        text.replace_range(EVENT_BYTES / 2..=EVENT_BYTES / 2, "\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn events_are_of_one_size_and_all_different() {
        let events: BTreeSet<String> = (0..1000).map(payload).collect();
        assert_eq!(events.len(), 1000);
        assert!(events.iter().all(|event| event.len() == EVENT_BYTES));
        assert_eq!(
            events.iter().filter(|event| event.contains('\n')).count(),
            100
        );
        assert!(payload(usize::MAX / 8).len() == EVENT_BYTES);
    }

    #[test]
    fn an_event_that_was_not_sent_has_no_age() {
        let agenda = Agenda::new(1, 50.0);
        assert_eq!(agenda.since_sent(0, Instant::now()), None);
        assert_eq!(agenda.since_sent(1, Instant::now()), None);
    }
}
