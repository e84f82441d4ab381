//! What the load engine's own figures say: whether it could keep up, what it sent, and what came back.

use load::{Bound, Connections, Counts};

use super::{Check, Code, Verdict, check, not_observed};

/// What METHOD calls completed, of what was scheduled in an open loop.
const COMPLETED_SHARE: f64 = 0.999;
const LITTLE_LIMIT: f64 = 0.02;
/// Names of the load engine's checks.
const LAG: &str = "generator lag p99 ms";
const LITTLE: &str = "Little's law residual";

/// GEN_SAT from the load engine's checks that blame the generator. In the closed loop nothing is due at an instant, so the
/// lag is given and does not decide. Little's law has a check of its own.
pub fn generator(engine: &[load::Check], is_open: bool) -> Check {
    let own = engine
        .iter()
        .filter(|figure| figure.blames == load::Verdict::GeneratorLimited && figure.name != LITTLE);
    let decides = |figure: &&load::Check| is_open || figure.name != LAG;
    let text: Vec<String> = own.clone().map(in_words).collect();
    let text = text.join(", ");
    let tripped = own
        .clone()
        .filter(decides)
        .any(|figure| figure.passed() == Some(false));
    let unseen = own
        .clone()
        .filter(decides)
        .find(|figure| figure.value.is_none());
    match unseen {
        Some(unseen) if !tripped => not_observed(
            Code::GenSat,
            &format!("{} is not known here ({text})", unseen.name),
        ),
        None if text.is_empty() => not_observed(Code::GenSat, "the load engine gave no figures"),
        _ => check(Code::GenSat, tripped, Verdict::Invalid, text),
    }
}

fn in_words(figure: &load::Check) -> String {
    let bound = match figure.bound {
        Bound::AtMost => "at most",
        Bound::AtLeast => "at least",
    };
    let value = figure
        .value
        .map_or_else(|| "?".to_owned(), |value| format!("{value:.4}"));
    format!("{} {value} ({bound} {})", figure.name, figure.limit)
}

/// RATE. Open loop: everything due was sent, and 99.9 % of it completed; a 503 does not complete a request. Closed loop:
/// everything that was begun ended. In both every connection asked for was there.
pub fn rate(
    counts: &Counts,
    connections: &Connections,
    is_open: bool,
    generator_saturated: bool,
) -> Check {
    let completed = counts.answered() - counts.shed;
    let share = completed as f64 / counts.scheduled.max(1) as f64;
    let short = if is_open {
        share < COMPLETED_SHARE
    } else {
        counts.unfinished > 0
    };
    let tripped = counts.scheduled == 0
        || counts.sent() != counts.scheduled
        || short
        || connections.established != connections.asked;
    let figure = format!(
        "{} of {} sent, {completed} completed ({:.2} %), {} of {} connections",
        counts.sent(),
        counts.scheduled,
        100.0 * share,
        connections.established,
        connections.asked
    );
    let blame = if generator_saturated {
        Verdict::Invalid
    } else {
        Verdict::Failed
    };
    check(Code::Rate, tripped, blame, figure)
}

/// HTTP: no unexpected status, reset or timeout. What was never sent or never ended is RATE's.
pub fn http(counts: &Counts) -> Check {
    let bad = counts.http_error + counts.shed + counts.timeout + counts.transport;
    let figure = format!(
        "{bad} of {} requests: {} unexpected statuses, {} shed, {} timeouts, {} transport errors",
        counts.scheduled, counts.http_error, counts.shed, counts.timeout, counts.transport,
    );
    check(Code::Http, bad > 0, Verdict::Failed, figure)
}

/// BODY. `first` describes the first wrong answer.
pub fn body(verified: u64, wrong: u64, first: Option<&str>) -> Check {
    let figure = match first {
        Some(first) => format!("{wrong} wrong answers; the first: {first}"),
        None => format!(
            "{wrong} wrong answers; {verified} distinct ones verified byte for byte beforehand"
        ),
    };
    let tripped = wrong > 0 || first.is_some();
    check(Code::Body, tripped, Verdict::Failed, figure)
}

/// LITTLE: the residual |L - lambda W| / L of the window.
pub fn little(residual: Option<f64>) -> Check {
    let Some(residual) = residual else {
        return not_observed(Code::Little, "no request in the window");
    };
    let figure = format!("L and lambda W differ by {:.3} %", 100.0 * residual);
    check(
        Code::Little,
        residual > LITTLE_LIMIT,
        Verdict::Invalid,
        figure,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Outcome;

    fn counts() -> Counts {
        Counts {
            scheduled: 10_000,
            correct: 10_000,
            ..Counts::default()
        }
    }

    const ALL_THERE: Connections = Connections {
        asked: 32,
        established: 32,
        served: 32,
        reopened: 0,
    };

    fn figure(name: &'static str, value: Option<f64>, limit: f64) -> load::Check {
        load::Check {
            name,
            value,
            limit,
            bound: Bound::AtMost,
            blames: load::Verdict::GeneratorLimited,
        }
    }

    fn engine(busy: f64, run_queue: Option<f64>, probe: f64, lag_ms: f64) -> Vec<load::Check> {
        vec![
            figure("generator busy share", Some(busy), 0.70),
            figure("generator run-queue share", run_queue, 0.01),
            figure("probe run-queue share", Some(probe), 0.10),
            figure(LAG, Some(lag_ms), 1.0),
            figure(LITTLE, Some(0.5), 0.02),
        ]
    }

    #[test]
    fn a_busy_a_waiting_and_a_late_generator_are_saturated() {
        let passes = engine(0.69, Some(0.009), 0.09, 0.9);
        assert_eq!(generator(&passes, true).outcome, Outcome::Passed);
        for tripping in [
            engine(0.71, Some(0.0), 0.0, 0.0),
            engine(0.0, Some(0.011), 0.0, 0.0),
            engine(0.0, Some(0.0), 0.11, 0.0),
            engine(0.0, Some(0.0), 0.0, 1.1),
            engine(0.71, None, 0.0, 0.0),
        ] {
            let check = generator(&tripping, true);
            assert_eq!(
                (check.outcome, check.verdict),
                (Outcome::Tripped, Verdict::Invalid),
                "{check:?}"
            );
        }
    }

    #[test]
    fn lag_is_told_and_does_not_decide_where_nothing_is_due() {
        let check = generator(&engine(0.5, Some(0.0), 0.0, 5.0), false);
        assert_eq!(check.outcome, Outcome::Passed);
        assert!(
            check
                .figure
                .contains("generator lag p99 ms 5.0000 (at most 1)"),
            "{}",
            check.figure
        );
    }

    #[test]
    fn a_generator_whose_waits_are_unknown_has_not_passed() {
        let check = generator(&engine(0.5, None, 0.0, 0.0), true);
        assert_eq!(check.outcome, Outcome::NotObserved);
        assert_eq!(generator(&[], true).outcome, Outcome::NotObserved);
    }

    /// The names are the load engine's; a check by a name it no longer has would never trip.
    #[test]
    fn the_load_engine_gives_the_figures_that_are_judged_here() {
        let outcome = load::ceiling(&[], None, 1, std::time::Duration::from_millis(50)).unwrap();
        let names: Vec<&str> = outcome.checks.iter().map(|check| check.name).collect();
        for name in [
            "generator busy share",
            "generator run-queue share",
            "probe run-queue share",
            LAG,
            LITTLE,
        ] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
    }

    #[test]
    fn a_rate_is_met_when_all_was_sent_and_a_thousandth_at_most_is_missing() {
        let met = Counts {
            correct: 9_990,
            timeout: 10,
            ..counts()
        };
        assert_eq!(rate(&met, &ALL_THERE, true, false).outcome, Outcome::Passed);
        let missed = Counts {
            correct: 9_989,
            shed: 11,
            ..counts()
        };
        let unsent = Counts {
            correct: 9_999,
            unsent: 1,
            ..counts()
        };
        for counts in [missed, unsent] {
            let check = rate(&counts, &ALL_THERE, true, false);
            assert_eq!(check.verdict, Verdict::Failed, "{check:?}");
        }
    }

    #[test]
    fn a_rate_missed_by_a_saturated_generator_says_nothing_about_the_server() {
        let unsent = Counts {
            correct: 9_000,
            unsent: 1_000,
            ..counts()
        };
        assert_eq!(
            rate(&unsent, &ALL_THERE, true, true).verdict,
            Verdict::Invalid
        );
        assert_eq!(
            rate(&counts(), &ALL_THERE, true, true).verdict,
            Verdict::Valid
        );
    }

    #[test]
    fn in_a_closed_loop_what_was_begun_has_to_end_on_all_connections() {
        assert_eq!(
            rate(&counts(), &ALL_THERE, false, false).outcome,
            Outcome::Passed
        );
        let unfinished = Counts {
            correct: 9_999,
            unfinished: 1,
            ..counts()
        };
        let one_missing = Connections {
            established: 31,
            ..ALL_THERE
        };
        for check in [
            rate(&unfinished, &ALL_THERE, false, false),
            rate(&counts(), &one_missing, false, false),
            rate(&Counts::default(), &ALL_THERE, false, false),
        ] {
            assert_eq!(check.verdict, Verdict::Failed, "{check:?}");
        }
    }

    #[test]
    fn each_kind_of_failed_request_trips_http() {
        assert_eq!(http(&counts()).outcome, Outcome::Passed);
        let failing: [fn(&mut Counts); 4] = [
            |counts| counts.http_error = 1,
            |counts| counts.shed = 1,
            |counts| counts.timeout = 1,
            |counts| counts.transport = 1,
        ];
        for fail in failing {
            let mut counts = counts();
            fail(&mut counts);
            assert_eq!(http(&counts).verdict, Verdict::Failed, "{counts:?}");
        }
    }

    #[test]
    fn one_wrong_answer_fails_a_trial() {
        assert_eq!(body(1024, 0, None).verdict, Verdict::Valid);
        assert_eq!(body(1024, 1, Some("/a")).verdict, Verdict::Failed);
        assert_eq!(body(0, 0, Some("/a")).verdict, Verdict::Failed);
    }

    #[test]
    fn requests_that_were_lost_or_booked_twice_break_littles_law() {
        assert_eq!(little(Some(0.019)).outcome, Outcome::Passed);
        assert_eq!(little(Some(0.021)).verdict, Verdict::Invalid);
        assert_eq!(little(None).outcome, Outcome::NotObserved);
    }
}
