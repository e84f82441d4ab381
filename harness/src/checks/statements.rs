//! What PostgreSQL executed: statements, rows, transactions, and how long connections were held.

use std::time::Duration;

use super::{Check, Code, Seen, Verdict, check, does_not_apply, not_observed};
use crate::audit::Audited;
use crate::expected::{Bounds, Cost};
use crate::monitor::{Queries, Statements};
use crate::process::Profile;

/// Statements are timed by another clock than the window.
const BUSY_TOLERANCE: f64 = 1.01;
/// pg_sleep never sleeps less than it is asked to; the rest is for the difference between two clocks.
const SHORTEST_OF_DELAY: f64 = 0.99;

/// BUSY: how many statements ran at a time on average, from the time PostgreSQL spent in them between two readings that are
/// `between` apart. A statement counts as a whole when it ends, so each connection may bring in one that began before.
pub fn busy(statements: Seen<Statements>, between: Duration, pool: usize) -> Check {
    let statements = match statements {
        Ok(statements) => statements,
        Err(why) => return not_observed(Code::Busy, &why),
    };
    let between_ms = between.as_secs_f64() * 1e3;
    let busy = statements.execution_ms / between_ms;
    let begun_before = pool as f64 * statements.mean_ms().unwrap_or(0.0) / between_ms;
    let limit = BUSY_TOLERANCE * pool as f64 + begun_before;
    let figure = format!("{busy:.3} statements at a time on average, at most {limit:.2}");
    check(Code::Busy, busy > limit, Verdict::Misconfigured, figure)
}

fn in_words(asked: Bounds) -> String {
    match asked {
        Bounds { least, most } if least == most => format!("{least} asked for"),
        Bounds { least, most } => format!("{least} to {most} asked for"),
    }
}

/// Right answers over the server's whole life, and the statements of each.
#[derive(Debug, Clone, Copy)]
pub struct Regular {
    pub answered: u64,
    pub statements: u32,
}

/// QUERIES. `total` is everything over the server's whole life without what a start and a stop cost; `since_ready` is each
/// query since the server was ready; `regular` is nothing where requests differ in their statements.
///
/// The workload's queries are those that were executed the same whole number of times for each request; they have to be all
/// that was asked for, so one answer in a thousand without its query shows. METHOD compares rows per call between lanes. Here
/// they are compared with the truth, which is stricter: the rows that the right answers are made of. A library as it ships
/// may ask for more, such as a ping that is a statement.
pub fn queries(
    counted: Seen<(Statements, &Queries)>,
    asked: Cost,
    regular: Option<Regular>,
    profile: Profile,
) -> Check {
    let (total, since_ready) = match counted {
        Ok(counted) => counted,
        Err(why) => return not_observed(Code::Queries, &why),
    };
    let certain = asked.statements.least == asked.statements.most;
    let irregular = regular.is_some_and(|regular| certain && !is_regular(since_ready, regular));
    let tripped = match profile {
        Profile::Parity => {
            !asked.statements.contains(total.calls) || !asked.rows.contains(total.rows) || irregular
        }
        Profile::Defaults => total.calls < asked.statements.least || total.rows < asked.rows.least,
    };
    let figure = format!(
        "{} statements executed, {}; {} rows, {}; {since_ready}",
        total.calls,
        in_words(asked.statements),
        total.rows,
        in_words(asked.rows)
    );
    check(Code::Queries, tripped, Verdict::Misconfigured, figure)
}

fn is_regular(queries: &Queries, regular: Regular) -> bool {
    let Regular {
        answered,
        statements,
    } = regular;
    let of_each: u64 = queries
        .calls()
        .filter(|calls| answered > 0 && calls % answered == 0)
        .sum();
    of_each == answered * u64::from(statements)
}

/// XACT: transactions may exceed what was asked for by 0.1 % and 20, since sessions commit a few of their own. For the parity
/// profile: the pings of a library as it ships are no fault.
pub fn transactions(commits: Seen<u64>, asked: Bounds) -> Check {
    let commits = match commits {
        Ok(commits) => commits,
        Err(why) => return not_observed(Code::Xact, &why),
    };
    let most = asked.most;
    let figure = format!("{commits} transactions committed, {}", in_words(asked));
    let tripped = commits > most + most / 1000 + 20;
    check(Code::Xact, tripped, Verdict::Misconfigured, figure)
}

/// AUDIT: what was acknowledged is what the database holds.
pub fn audit(audited: Option<&Audited>) -> Check {
    match audited {
        Some(audited) => check(
            Code::Audit,
            !audited.faults.is_empty(),
            Verdict::Failed,
            audited.describe(),
        ),
        None => does_not_apply(Code::Audit, "the workload writes nothing that it audits"),
    }
}

/// How fast a window went.
#[derive(Debug, Clone, Copy)]
pub struct Throughput {
    /// Right answers per second.
    pub per_second: f64,
    pub window: Duration,
    /// How many requests can be in the database at a time: the pool, or the closed loop's connections if they are fewer.
    pub at_a_time: usize,
}

/// How long a statement holds its connection.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// By the workload's own account.
    pub delay_ms: f64,
    /// As PostgreSQL measured it, where it did.
    pub mean_ms: Option<f64>,
    /// From the send of the request that was answered first to its last byte: no request can be shorter than its statement.
    pub fastest_ms: Option<f64>,
}

/// CEILING: `at_a_time / delay`. Each of them may bring one request into the window that began before. Statements that are
/// shorter than the delay on average, and a single answer that took less, trip it at any rate.
pub fn ceiling(throughput: Throughput, held: Option<Held>) -> Check {
    let Some(held) = held else {
        return does_not_apply(Code::Ceiling, "the workload names no delay");
    };
    let Throughput {
        per_second,
        window,
        at_a_time,
    } = throughput;
    let at_a_time = at_a_time as f64;
    let ceiling = at_a_time / held.delay_ms * 1e3;
    let begun_before = at_a_time / window.as_secs_f64().max(f64::MIN_POSITIVE);
    let too_short = [held.mean_ms, held.fastest_ms]
        .into_iter()
        .flatten()
        .any(|shortest_ms| shortest_ms < SHORTEST_OF_DELAY * held.delay_ms);
    let in_ms = |time: Option<f64>| {
        time.map_or_else(
            || "?".to_owned(),
            |milliseconds| format!("{milliseconds:.3}"),
        )
    };
    let figure = format!(
        "{per_second:.1}/s is {:.1} % of the ceiling of {ceiling:.0}/s; held for {} ms of {} on average, fastest answer after {} ms",
        100.0 * per_second / ceiling,
        in_ms(held.mean_ms),
        held.delay_ms,
        in_ms(held.fastest_ms),
    );
    let tripped = too_short || per_second > ceiling + begun_before;
    check(Code::Ceiling, tripped, Verdict::Misconfigured, figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Outcome;

    fn statements(calls: u64, rows: u64, execution_ms: f64) -> Statements {
        Statements {
            calls,
            rows,
            execution_ms,
        }
    }

    fn exactly(count: u64) -> Bounds {
        Bounds {
            least: count,
            most: count,
        }
    }

    /// Statements that give a row each.
    fn asked(statements: u64) -> Cost {
        Cost {
            statements: exactly(statements),
            rows: exactly(statements),
            transactions: exactly(statements),
        }
    }

    fn regular(answered: u64, statements: u32) -> Option<Regular> {
        Some(Regular {
            answered,
            statements,
        })
    }

    #[test]
    fn more_statements_at_a_time_than_connections_are_a_misconfiguration() {
        let second = Duration::from_secs(1);
        // 16 connections, 0.01 ms each: no more than 16.16 s of work in a second.
        let full = statements(1_616_000, 0, 16_159.0);
        let over = statements(1_620_000, 0, 16_200.0);
        assert_eq!(busy(Ok(full), second, 16).outcome, Outcome::Passed);
        assert_eq!(busy(Ok(over), second, 16).verdict, Verdict::Misconfigured);
        let unseen = busy(Err("no library".into()), second, 16);
        assert_eq!(unseen.outcome, Outcome::NotObserved);
    }

    #[test]
    fn statements_under_way_at_the_first_reading_are_not_held_against_a_lane() {
        // 4 connections, 100 ms each, 11 ends on each within a second: the first began before it.
        let check = busy(Ok(statements(44, 0, 4_400.0)), Duration::from_secs(1), 4);
        assert_eq!(check.outcome, Outcome::Passed, "{check:?}");
    }

    #[test]
    fn one_statement_or_row_more_or_fewer_is_a_misconfiguration() {
        let seen = |calls, rows| {
            let each = Queries::from([(7, statements(calls, rows, 1.0))]);
            queries(
                Ok((statements(calls, rows, 1.0), &each)),
                asked(1000),
                regular(1000, 1),
                Profile::Parity,
            )
        };
        assert_eq!(seen(1000, 1000).outcome, Outcome::Passed);
        for (calls, rows) in [(1001, 1001), (999, 999), (1000, 1001), (1000, 0)] {
            let check = seen(calls, rows);
            assert_eq!(check.verdict, Verdict::Misconfigured, "{check:?}");
        }
    }

    #[test]
    fn a_library_as_it_ships_may_ping_with_a_statement_but_leave_none_out() {
        let seen = |calls| {
            let each = Queries::from([(7, statements(calls, calls, 1.0))]);
            let total = statements(calls, calls, 1.0);
            queries(
                Ok((total, &each)),
                asked(1000),
                regular(1000, 1),
                Profile::Defaults,
            )
            .outcome
        };
        assert_eq!([seen(1000), seen(2000)], [Outcome::Passed; 2]);
        assert_eq!(seen(999), Outcome::Tripped);
    }

    #[test]
    fn a_statement_in_the_place_of_another_is_a_misconfiguration() {
        let each = Queries::from([(7, statements(999, 999, 1.0)), (8, statements(1, 1, 1.0))]);
        let total = statements(1000, 1000, 2.0);
        let check = queries(
            Ok((total, &each)),
            asked(1000),
            regular(1000, 1),
            Profile::Parity,
        );
        assert_eq!(check.verdict, Verdict::Misconfigured);
        assert!(
            check.figure.contains("query 8: 1 calls"),
            "{}",
            check.figure
        );
    }

    #[test]
    fn several_statements_a_request_may_be_one_query_or_several() {
        let one = Queries::from([(7, statements(2000, 2000, 1.0))]);
        let two = Queries::from([
            (7, statements(1000, 1000, 1.0)),
            (8, statements(1000, 1000, 1.0)),
        ]);
        for each in [one, two] {
            let total = statements(2000, 2000, 1.0);
            let check = queries(
                Ok((total, &each)),
                asked(2000),
                regular(1000, 2),
                Profile::Parity,
            );
            assert_eq!(check.outcome, Outcome::Passed, "{check:?}");
        }
    }

    #[test]
    fn a_workload_without_a_database_executes_nothing() {
        let nothing = queries(
            Ok((Statements::default(), &Queries::default())),
            asked(0),
            regular(1000, 0),
            Profile::Parity,
        );
        assert_eq!(nothing.outcome, Outcome::Passed, "{nothing:?}");
        let each = Queries::from([(7, statements(1, 0, 0.1))]);
        let total = statements(1, 0, 0.1);
        let something = queries(
            Ok((total, &each)),
            asked(0),
            regular(1000, 0),
            Profile::Parity,
        );
        assert_eq!(something.verdict, Verdict::Misconfigured);
    }

    #[test]
    fn requests_without_an_answer_may_have_been_executed() {
        let bounds = Bounds {
            least: 1000,
            most: 1010,
        };
        let asked = Cost {
            statements: bounds,
            rows: bounds,
            transactions: bounds,
        };
        let seen = |calls| {
            let each = Queries::from([(7, statements(calls, calls, 1.0))]);
            let total = statements(calls, calls, 1.0);
            queries(Ok((total, &each)), asked, regular(1000, 1), Profile::Parity).outcome
        };
        assert_eq!([seen(1000), seen(1010)], [Outcome::Passed; 2]);
        assert_eq!([seen(999), seen(1011)], [Outcome::Tripped; 2]);
    }

    #[test]
    fn requests_that_differ_in_their_statements_are_only_counted_together() {
        let each = Queries::from([(7, statements(990, 990, 1.0)), (8, statements(10, 10, 1.0))]);
        let seen = |regular| {
            queries(
                Ok((statements(1000, 1000, 2.0), &each)),
                asked(1000),
                regular,
                Profile::Parity,
            )
        };
        assert_eq!(seen(None).outcome, Outcome::Passed);
        assert_eq!(seen(regular(1000, 1)).outcome, Outcome::Tripped);
    }

    #[test]
    fn a_write_that_was_acknowledged_and_is_not_there_fails_the_lane() {
        let audited = |faults: &[&str]| Audited {
            acknowledged: 3,
            held: 2,
            faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
        };
        assert_eq!(audit(Some(&audited(&[]))).outcome, Outcome::Passed);
        assert_eq!(audit(Some(&audited(&["lost: a"]))).verdict, Verdict::Failed);
        assert_eq!(audit(None).outcome, Outcome::DoesNotApply);
    }

    #[test]
    fn what_was_not_observed_is_not_called_passed() {
        let check = queries(
            Err("no such library".into()),
            asked(1000),
            regular(1000, 1),
            Profile::Parity,
        );
        assert_eq!(
            (check.outcome, check.verdict),
            (Outcome::NotObserved, Verdict::Valid)
        );
        assert_eq!(check.figure, "not observed: no such library");
    }

    #[test]
    fn pings_show_as_transactions_nobody_asked_for() {
        let seen = |commits| transactions(Ok(commits), exactly(10_000)).verdict;
        assert_eq!(seen(10_030), Verdict::Valid);
        assert_eq!(seen(10_031), Verdict::Misconfigured);
        assert_eq!(seen(20_000), Verdict::Misconfigured);
        let unseen = transactions(Err("late".into()), exactly(1)).outcome;
        assert_eq!(unseen, Outcome::NotObserved);
    }

    fn at(per_second: f64, at_a_time: usize, mean_ms: Option<f64>) -> Check {
        at_with_fastest(per_second, at_a_time, mean_ms, Some(10.1))
    }

    fn at_with_fastest(
        per_second: f64,
        at_a_time: usize,
        mean_ms: Option<f64>,
        fastest_ms: Option<f64>,
    ) -> Check {
        let throughput = Throughput {
            per_second,
            window: Duration::from_secs(10),
            at_a_time,
        };
        let held = Held {
            delay_ms: 10.0,
            mean_ms,
            fastest_ms,
        };
        ceiling(throughput, Some(held))
    }

    #[test]
    fn nobody_is_faster_than_the_delay_allows() {
        assert_eq!(at(1_599.0, 16, None).outcome, Outcome::Passed);
        // 1,600/s, and one begun before the window on each of 16 connections.
        assert_eq!(at(1_601.5, 16, None).outcome, Outcome::Passed);
        assert_eq!(at(1_602.0, 16, None).verdict, Verdict::Misconfigured);
        // 9 ms instead of 10 at one connection.
        assert_eq!(at(109.0, 1, None).verdict, Verdict::Misconfigured);
    }

    #[test]
    fn a_delay_that_is_cut_short_is_a_misconfiguration_at_any_rate() {
        assert_eq!(at(50.0, 1, Some(10.06)).outcome, Outcome::Passed);
        let check = at(50.0, 1, Some(9.1));
        assert_eq!(check.verdict, Verdict::Misconfigured);
        assert!(
            check.figure.contains("held for 9.100 ms of 10 on average"),
            "{}",
            check.figure
        );
    }

    #[test]
    fn one_answer_faster_than_the_delay_did_not_wait_for_it() {
        let seen = |fastest_ms| at_with_fastest(50.0, 1, Some(10.06), fastest_ms).outcome;
        assert_eq!([seen(Some(10.0)), seen(None)], [Outcome::Passed; 2]);
        assert_eq!(seen(Some(0.2)), Outcome::Tripped);
    }

    #[test]
    fn without_a_delay_there_is_no_ceiling() {
        let throughput = Throughput {
            per_second: 1e6,
            window: Duration::from_secs(1),
            at_a_time: 1,
        };
        assert_eq!(ceiling(throughput, None).outcome, Outcome::DoesNotApply);
    }
}
