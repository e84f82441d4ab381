//! What PostgreSQL's sessions were while a window ran: the lane's, everybody else's, and PostgreSQL's own work.

use std::collections::BTreeMap;

use super::{Check, Code, Verdict, check, not_observed};
use crate::sampler::{Activity, ToldBy};

/// CKPT: checkpoints that began within the window. No workload writes so far, so one is always a disturbance.
pub fn checkpoints(count: u64) -> Check {
    let figure = format!("{count} checkpoints");
    check(Code::Ckpt, count > 0, Verdict::Invalid, figure)
}

/// VACUUM: autovacuum workers, and sessions that vacuum or analyse, in any sample.
pub fn vacuum(activity: &Activity) -> Check {
    let found = in_words(&activity.maintenance);
    if found.is_empty() {
        return unseen(Code::Vacuum, activity).unwrap_or_else(|| {
            let figure = format!("none in {} samples", activity.samples);
            check(Code::Vacuum, false, Verdict::Invalid, figure)
        });
    }
    check(Code::Vacuum, true, Verdict::Invalid, found)
}

/// FOREIGN: sessions that are neither the lane's nor the harness's own, in any sample.
pub fn foreign(activity: &Activity) -> Check {
    let found = in_words(&activity.foreign);
    if found.is_empty() {
        return unseen(Code::Foreign, activity).unwrap_or_else(|| {
            let told = match activity.told_by {
                ToldBy::Port => "the lane's told by their ports",
                ToldBy::Name => "the lane's told by their name, other servers' idle",
                ToldBy::Nothing => "all of the target database taken for the lane's",
            };
            let figure = format!("none in {} samples; {told}", activity.samples);
            check(Code::Foreign, false, Verdict::Invalid, figure)
        });
    }
    check(Code::Foreign, true, Verdict::Invalid, found)
}

/// Why samples cannot show that something was not there, if they cannot.
fn unseen(code: Code, activity: &Activity) -> Option<Check> {
    if let Some(failure) = &activity.failure {
        return Some(not_observed(code, &failed(activity, failure)));
    }
    (activity.hidden > 0).then(|| {
        let why = format!(
            "PostgreSQL hides what {} sessions do from this role; grant it pg_read_all_stats",
            activity.hidden
        );
        not_observed(code, &why)
    })
}

fn failed(activity: &Activity, failure: &str) -> String {
    format!("after {} samples: {failure}", activity.samples)
}

fn in_words(found: &BTreeMap<String, u32>) -> String {
    let found: Vec<String> = found
        .iter()
        .map(|(what, samples)| format!("{what} in {samples} samples"))
        .collect();
    found.join(", ")
}

/// POOL: as many sessions of the lane as the pool has connections in every sample, and none that was not in the first. For
/// the parity profile: a library may open connections when it likes.
pub fn pool(activity: &Activity, pool: usize) -> Check {
    let seen = match activity.lane_sessions {
        Some((fewest, most)) if fewest == most => fewest.to_string(),
        Some((fewest, most)) => format!("{fewest} to {most}"),
        None => {
            return not_observed(
                Code::Pool,
                activity.failure.as_deref().unwrap_or("no sample"),
            );
        }
    };
    let differs = activity
        .lane_sessions
        .is_some_and(|seen| seen != (pool, pool));
    let tripped = differs || !activity.opened.is_empty();
    if let (Some(failure), false) = (&activity.failure, tripped) {
        return not_observed(Code::Pool, &failed(activity, failure));
    }
    let figure = format!(
        "{seen} sessions in {} samples, {} opened meanwhile; {pool} asked for",
        activity.samples,
        activity.opened.len()
    );
    check(Code::Pool, tripped, Verdict::Misconfigured, figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Outcome;

    fn activity() -> Activity {
        Activity {
            samples: 15,
            lane_sessions: Some((16, 16)),
            told_by: ToldBy::Port,
            ..Activity::default()
        }
    }

    fn blind() -> Activity {
        Activity {
            failure: Some("the connection broke".into()),
            ..Activity::default()
        }
    }

    fn once(what: &str) -> BTreeMap<String, u32> {
        [(what.to_owned(), 1)].into()
    }

    #[test]
    fn one_checkpoint_makes_a_trial_invalid() {
        assert_eq!(checkpoints(0).outcome, Outcome::Passed);
        assert_eq!(checkpoints(1).verdict, Verdict::Invalid);
    }

    #[test]
    fn a_vacuum_in_one_sample_makes_a_trial_invalid() {
        assert_eq!(vacuum(&activity()).outcome, Outcome::Passed);
        let vacuumed = Activity {
            maintenance: once("autovacuum worker"),
            ..activity()
        };
        assert_eq!(vacuum(&vacuumed).verdict, Verdict::Invalid);
        assert_eq!(vacuum(&blind()).outcome, Outcome::NotObserved);
    }

    #[test]
    fn somebody_else_in_one_sample_makes_a_trial_invalid() {
        assert_eq!(foreign(&activity()).outcome, Outcome::Passed);
        let visited = Activity {
            foreign: once("psql in another database"),
            ..activity()
        };
        let check = foreign(&visited);
        assert_eq!(check.verdict, Verdict::Invalid);
        assert_eq!(check.figure, "psql in another database in 1 samples");
        let hidden = Activity {
            hidden: 1,
            ..activity()
        };
        for unseen in [blind(), hidden] {
            assert_eq!(foreign(&unseen).outcome, Outcome::NotObserved);
        }
    }

    #[test]
    fn one_session_too_many_or_too_few_in_any_sample_is_a_misconfiguration() {
        assert_eq!(pool(&activity(), 16).outcome, Outcome::Passed);
        for seen in [(16, 17), (15, 16), (17, 17)] {
            let differs = Activity {
                lane_sessions: Some(seen),
                ..activity()
            };
            assert_eq!(
                pool(&differs, 16).verdict,
                Verdict::Misconfigured,
                "{seen:?}"
            );
        }
    }

    #[test]
    fn a_session_opened_in_the_window_is_a_misconfiguration_though_the_number_is_right() {
        let replaced = Activity {
            opened: [(4711, None)].into(),
            ..activity()
        };
        assert_eq!(pool(&replaced, 16).verdict, Verdict::Misconfigured);
    }

    #[test]
    fn a_pool_that_was_seen_for_a_while_only_has_not_passed() {
        let broken = Activity {
            failure: Some("the connection broke".into()),
            ..activity()
        };
        assert_eq!(pool(&broken, 16).outcome, Outcome::NotObserved);
        assert_eq!(pool(&broken, 17).verdict, Verdict::Misconfigured);
        assert_eq!(pool(&blind(), 16).outcome, Outcome::NotObserved);
    }
}
