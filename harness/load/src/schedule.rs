//! When to send, as pure arithmetic: phases and pacing. Nothing here reads a clock.

use std::time::Duration;

use crate::LoadError;
use crate::clock::{Nanos, nanos};
use crate::timetable::Cursor;

/// What makes a request due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// A connection's next request is due `think` after the connection became free.
    Closed {
        /// Pause between an answer and the next request on that connection.
        think: Duration,
    },
    /// Requests are due at instants fixed beforehand, whatever the server does.
    Open {
        /// Requests per second, over all connections.
        rate: f64,
        /// How the instants are spread.
        arrivals: Arrivals,
    },
}

/// The spread of an open loop's instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal distances.
    Uniform,
    /// Exponential distances: independent users. One seed gives one sequence, however many workers.
    Poisson {
        /// Start of the pseudo-random sequence.
        seed: u64,
    },
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By the clock: warm-up, then the measured window, then at most `drain` for what is still under way.
    Timed {
        /// Sent, checked and counted apart.
        warmup: Duration,
        /// What is measured.
        window: Duration,
        /// Time for answers to requests of the window.
        drain: Duration,
    },
    /// When every request of the table was sent exactly once, in the table's sequence.
    EachOnce {
        /// The run ends here at the latest.
        limit: Duration,
    },
}

/// Where in a run a request belongs, by its intended instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the window.
    Warmup,
    /// Measured.
    Window,
}

/// The highest rate that is taken for a rate.
const MAX_RATE: f64 = 10_000_000.0;

/// A Poisson schedule is walked once beforehand: this many arrivals take a few seconds.
const MAX_POISSON: f64 = 300_000_000.0;

/// Refuses what no schedule can be made from.
pub(crate) fn validate(pacing: Pacing, end: End) -> Result<(), LoadError> {
    let Pacing::Open { rate, arrivals } = pacing else {
        return Ok(());
    };
    if !rate.is_finite() || !(0.001..=MAX_RATE).contains(&rate) {
        return Err(LoadError::Invalid(format!(
            "a rate of {rate}/s cannot be sent; allowed is 0.001 to 10,000,000 requests a second"
        )));
    }
    let phases = Phases::new(0, end);
    let requests = rate * phases.window_end as f64 / 1e9;
    if matches!(arrivals, Arrivals::Poisson { .. }) && requests > MAX_POISSON {
        return Err(LoadError::Invalid(format!(
            "a Poisson schedule of {requests:.0} requests takes too long to make; lower the rate or the duration"
        )));
    }
    Ok(())
}

/// No fewer than the requests such a run sends, if both were validated; `entries` is the order's length.
pub(crate) fn most_sends(pacing: Pacing, end: End, entries: u64) -> u64 {
    let seconds = match end {
        End::EachOnce { .. } => return entries,
        End::Timed { warmup, window, .. } => (warmup + window).as_secs_f64(),
    };
    let requests = match pacing {
        // Nothing but the machine bounds it.
        Pacing::Closed { .. } => MAX_RATE * seconds,
        Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        } => rate * seconds + 1.0,
        // Twice the mean is out of reach for many arrivals, and so is a hundred more for few.
        Pacing::Open {
            rate,
            arrivals: Arrivals::Poisson { .. },
        } => 2.0 * rate * seconds + 100.0,
    };
    requests.ceil() as u64
}

/// The edges of a run on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) start: Nanos,
    pub(crate) window_start: Nanos,
    pub(crate) window_end: Nanos,
    pub(crate) end: Nanos,
}

impl Phases {
    pub(crate) fn new(start: Nanos, end: End) -> Phases {
        let (warmup, window, drain) = match end {
            End::Timed {
                warmup,
                window,
                drain,
            } => (warmup, window, drain),
            End::EachOnce { limit } => (Duration::ZERO, limit, Duration::ZERO),
        };
        let window_start = start.saturating_add(nanos(warmup));
        let window_end = window_start.saturating_add(nanos(window));
        Phases {
            start,
            window_start,
            window_end,
            end: window_end.saturating_add(nanos(drain)),
        }
    }

    pub(crate) fn phase(&self, intended: Nanos) -> Phase {
        if intended < self.window_start {
            Phase::Warmup
        } else {
            Phase::Window
        }
    }

    /// The part of `from..to` that lies within the window.
    pub(crate) fn within_window(&self, from: Nanos, to: Nanos) -> Nanos {
        let clamp = |instant: Nanos| instant.clamp(self.window_start, self.window_end);
        clamp(to).saturating_sub(clamp(from))
    }
}

/// Which requests of a run one worker sends: every `stride`-th, from `first` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stripe {
    pub(crate) first: u64,
    pub(crate) stride: u64,
}

impl Stripe {
    /// How many indices below `total` belong to this stripe.
    pub(crate) fn count_below(&self, total: u64) -> u64 {
        total.saturating_sub(self.first).div_ceil(self.stride)
    }
}

/// Requests that were due, by phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) warmup: u64,
    pub(crate) window: u64,
}

/// What one worker sends next, and when.
#[derive(Debug)]
pub(crate) enum Pacer {
    Closed {
        think: Nanos,
        next: u64,
        stripe: Stripe,
        until: Nanos,
    },
    Open {
        start: Nanos,
        cursor: Cursor,
    },
    Once {
        next: u64,
        stripe: Stripe,
        total: u64,
    },
}

impl Pacer {
    /// The instant the next request is intended for, if the longest free connection became free at
    /// `free`. `None` when nothing is left to send.
    pub(crate) fn intended(&self, free: Nanos) -> Option<Nanos> {
        match self {
            Pacer::Closed { think, until, .. } => {
                Some(free + think).filter(|intended| intended < until)
            }
            Pacer::Open { start, cursor } => cursor.offset().map(|offset| start + offset),
            Pacer::Once { next, total, .. } => (next < total).then_some(free),
        }
    }

    /// How many requests were due before `now`, sent or not; `None` for a closed loop, where a request
    /// only comes to be when it is sent.
    pub(crate) fn due_before(&self, now: Nanos) -> Option<Due> {
        match self {
            Pacer::Closed { .. } => None,
            Pacer::Open { start, cursor } => Some(cursor.due_before(now.saturating_sub(*start))),
            Pacer::Once { stripe, total, .. } => Some(Due {
                warmup: 0,
                window: stripe.count_below(*total),
            }),
        }
    }

    /// The global index of that request; moves on to the one after it.
    pub(crate) fn take(&mut self) -> u64 {
        match self {
            Pacer::Closed { next, stripe, .. } | Pacer::Once { next, stripe, .. } => {
                let index = *next;
                *next += stripe.stride;
                index
            }
            Pacer::Open { cursor, .. } => {
                let index = cursor.index();
                cursor.advance();
                index
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_stops_at_the_windows_end() {
        let pacer = Pacer::Closed {
            think: 10,
            next: 0,
            stripe: Stripe {
                first: 0,
                stride: 1,
            },
            until: 100,
        };
        assert_eq!(pacer.intended(89), Some(99));
        assert_eq!(pacer.intended(90), None);
    }

    #[test]
    fn rates_that_make_no_sense_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9, 1e-9] {
            let pacing = Pacing::Open {
                rate,
                arrivals: Arrivals::Uniform,
            };
            let end = End::EachOnce {
                limit: Duration::from_secs(1),
            };
            assert!(validate(pacing, end).is_err(), "{rate}");
        }
    }
}
