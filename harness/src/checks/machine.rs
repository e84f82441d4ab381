//! What the machine says: whether the processes stayed the same, and whether somebody took CPU time from them.

use std::time::SystemTime;

use super::{Check, Code, Seen, Verdict, check, not_observed};

const STEAL_LIMIT: f64 = 0.005;
const PRESSURE_LIMIT: f64 = 0.01;

/// A server that was started anew has been up for less long than the window by more than this; the rest is the time between
/// two readings that belong together.
const UPTIME_TOLERANCE: f64 = 0.5;

/// What tells a server from the same program started again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lifetime {
    /// When its process started, in ticks since the machine's boot, at the window's start and end; `None` once it is gone.
    Ticks { start: u64, end: Option<u64> },
    /// By how many seconds its uptime grew by its own account, and how many went by.
    Uptime { grew: f64, between: f64 },
}

/// RESTART. `postgresql` is when the postmaster started, at both edges.
///
/// A server that restarts is the lane's own doing; PostgreSQL is the environment's.
pub fn restart(server: Seen<Lifetime>, postgresql: (SystemTime, SystemTime)) -> Check {
    if postgresql.0 != postgresql.1 {
        let figure = "PostgreSQL was started anew within the window".to_owned();
        return check(Code::Restart, true, Verdict::Invalid, figure);
    }
    match server {
        Err(why) => not_observed(
            Code::Restart,
            &format!("of the server, {why}; PostgreSQL ran on"),
        ),
        Ok(Lifetime::Uptime { grew, between }) => {
            let figure = format!(
                "the server's uptime grew by {grew:.1} s in {between:.1} s; PostgreSQL ran on"
            );
            let tripped = grew < between - UPTIME_TOLERANCE;
            check(Code::Restart, tripped, Verdict::Failed, figure)
        }
        Ok(Lifetime::Ticks { start, end }) => {
            let figure = match end {
                Some(end) if end == start => {
                    format!("the server started at tick {start}, at both edges; PostgreSQL ran on")
                }
                Some(end) => format!("the server started at tick {start}, then again at {end}"),
                None => format!("the server started at tick {start} is gone"),
            };
            check(Code::Restart, end != Some(start), Verdict::Failed, figure)
        }
    }
}

/// STEAL: the share of the time of all CPUs of the plan. The kernel counts in ticks of 10 ms: in a window of 3 s on two CPUs
/// one tick is 0.17 %, so that the limit of 0.5 % is three of them, and in a window of 1 s a single one.
pub fn steal(share: Seen<f64>) -> Check {
    share_of(
        Code::Steal,
        share,
        STEAL_LIMIT,
        "of the CPUs' time was stolen",
    )
}

/// THROTTLE: how many periods of a CPU limit the generator or the server had to sit out within the window; the generator
/// alone where the server cannot be seen.
pub fn throttle(periods: Seen<u64>, server_seen: bool) -> Check {
    match periods {
        Err(why) => not_observed(Code::Throttle, &why),
        Ok(periods) => check(
            Code::Throttle,
            periods > 0,
            Verdict::Invalid,
            match server_seen {
                true => format!("throttled in {periods} periods"),
                false => format!(
                    "the generator was throttled in {periods} periods; the server is not observed"
                ),
            },
        ),
    }
}

/// PSI: the share of the window in which some task of the generator waited for a CPU.
pub fn pressure(share: Seen<f64>) -> Check {
    let what = "of the window some task of the generator waited for a CPU";
    share_of(Code::Psi, share, PRESSURE_LIMIT, what)
}

fn share_of(code: Code, share: Seen<f64>, limit: f64, what: &str) -> Check {
    match share {
        Err(why) => not_observed(code, &why),
        Ok(share) => check(
            code,
            share > limit,
            Verdict::Invalid,
            format!(
                "{:.2} % {what} (at most {:.1} %)",
                100.0 * share,
                100.0 * limit
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::checks::Outcome;

    const STARTED: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn a_server_that_started_twice_or_is_gone_has_failed() {
        let ticks = |end| Ok(Lifetime::Ticks { start: 4711, end });
        let same = restart(ticks(Some(4711)), (STARTED, STARTED));
        assert_eq!(same.outcome, Outcome::Passed);
        for end in [Some(4800), None] {
            let check = restart(ticks(end), (STARTED, STARTED));
            assert_eq!(check.verdict, Verdict::Failed, "{check:?}");
        }
    }

    #[test]
    fn a_server_whose_uptime_does_not_grow_with_the_window_was_started_again() {
        let grew = |grew| {
            let lifetime = Lifetime::Uptime { grew, between: 3.0 };
            restart(Ok(lifetime), (STARTED, STARTED)).verdict
        };
        assert_eq!([grew(3.01), grew(2.99)], [Verdict::Valid; 2]);
        assert_eq!([grew(1.0), grew(-40.0)], [Verdict::Failed; 2]);
    }

    #[test]
    fn a_postgresql_that_started_twice_makes_a_trial_invalid() {
        let later = STARTED + Duration::from_secs(1);
        for server in [
            Ok(Lifetime::Ticks {
                start: 4711,
                end: Some(4711),
            }),
            Ok(Lifetime::Ticks {
                start: 4711,
                end: None,
            }),
            Err("no /proc".into()),
        ] {
            let check = restart(server, (STARTED, later));
            assert_eq!(check.verdict, Verdict::Invalid, "{check:?}");
        }
        let unseen = restart(Err("no /proc".into()), (STARTED, STARTED));
        assert_eq!(unseen.outcome, Outcome::NotObserved);
    }

    #[test]
    fn stolen_time_above_half_a_percent_makes_a_trial_invalid() {
        assert_eq!(steal(Ok(0.005)).outcome, Outcome::Passed);
        assert_eq!(steal(Ok(0.0051)).verdict, Verdict::Invalid);
        assert_eq!(
            steal(Err("no /proc/stat".into())).outcome,
            Outcome::NotObserved
        );
    }

    #[test]
    fn one_throttled_period_makes_a_trial_invalid() {
        assert_eq!(throttle(Ok(0), true).outcome, Outcome::Passed);
        assert_eq!(throttle(Ok(1), false).verdict, Verdict::Invalid);
        assert_eq!(
            throttle(Err("no controller".into()), true).outcome,
            Outcome::NotObserved
        );
    }

    #[test]
    fn pressure_on_the_generator_above_a_percent_makes_a_trial_invalid() {
        assert_eq!(pressure(Ok(0.01)).outcome, Outcome::Passed);
        assert_eq!(pressure(Ok(0.011)).verdict, Verdict::Invalid);
        assert_eq!(
            pressure(Err("whole machine".into())).outcome,
            Outcome::NotObserved
        );
    }
}
