//! The checks that decide a trial's verdict. Pure: figures in, verdict out.

use serde::{Deserialize, Serialize};

/// What a trial's figures are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Valid,
    /// The lane's own behaviour: published as its result.
    Failed,
    /// The contract is broken, so the trial measured something else than it says.
    Misconfigured,
    /// The environment or the harness: the trial says nothing about the lane.
    Invalid,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Failed => "FAILED",
            Verdict::Misconfigured => "MISCONFIGURED",
            Verdict::Invalid => "INVALID",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Code {
    /// The server starts, keeps its contract and ends when asked.
    Contract,
    /// Every answer, before the window and in it, has the right status.
    Http,
    /// Every answer is the expected one to the byte.
    Body,
    /// The lane has exactly as many sessions as the pool.
    Pool,
    /// Statements executed are statements asked for.
    Queries,
    /// Transactions committed are transactions asked for.
    Xact,
    /// No faster than pool / delay allows.
    Ceiling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    Tripped,
    NotObserved,
}

/// One check of one trial: what was seen, in words with figures, also when it passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub code: Code,
    pub outcome: Outcome,
    pub verdict: Verdict,
    pub figure: String,
}

/// The verdict of a row: the gravest of its checks.
pub fn verdict(checks: &[Check]) -> Verdict {
    checks
        .iter()
        .map(|check| check.verdict)
        .max()
        .unwrap_or(Verdict::Valid)
}

fn check(code: Code, tripped: bool, when_tripped: Verdict, figure: String) -> Check {
    let (outcome, verdict) = if tripped {
        (Outcome::Tripped, when_tripped)
    } else {
        (Outcome::Passed, Verdict::Valid)
    };
    Check {
        code,
        outcome,
        verdict,
        figure,
    }
}

fn not_observed(code: Code, why: &str) -> Check {
    Check {
        code,
        outcome: Outcome::NotObserved,
        verdict: Verdict::Valid,
        figure: format!("not observed: {why}"),
    }
}

/// The server did not start, broke off, or did not end as the contract says.
pub fn contract_broken(why: String) -> Check {
    check(Code::Contract, true, Verdict::Failed, why)
}

/// Every request of the window ended with an accepted status.
pub fn http(counts: &load::Counts) -> Check {
    let bad = counts.http_error
        + counts.shed
        + counts.timeout
        + counts.transport
        + counts.unfinished
        + counts.unsent;
    let figure = format!(
        "{} of {} requests: {} unexpected statuses, {} shed, {} timeouts, {} transport errors, {} unfinished, {} unsent",
        bad,
        counts.scheduled,
        counts.http_error,
        counts.shed,
        counts.timeout,
        counts.transport,
        counts.unfinished,
        counts.unsent
    );
    check(Code::Http, bad > 0, Verdict::Failed, figure)
}

/// `first` describes the first wrong answer.
pub fn body(verified: usize, wrong: u64, first: Option<&str>) -> Check {
    let figure = match first {
        Some(first) => format!("{wrong} wrong answers; the first: {first}"),
        None => format!(
            "{wrong} wrong answers; {verified} distinct ones verified byte for byte beforehand"
        ),
    };
    check(
        Code::Body,
        wrong > 0 || first.is_some(),
        Verdict::Failed,
        figure,
    )
}

/// `sessions` are samples taken in the window.
pub fn pool(sessions: &[u64], pool: usize) -> Check {
    let differs = sessions.iter().any(|&seen| seen != pool as u64);
    let seen = sessions
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    check(
        Code::Pool,
        differs,
        Verdict::Misconfigured,
        format!("{seen} sessions seen, {pool} asked for"),
    )
}

/// `calls` are all of the lane's statements after its start, for `answered` right answers.
pub fn queries(calls: Option<u64>, answered: u64, per_request: u32, why_unobserved: &str) -> Check {
    let Some(calls) = calls else {
        return not_observed(Code::Queries, why_unobserved);
    };
    let asked = answered * u64::from(per_request);
    check(
        Code::Queries,
        calls != asked,
        Verdict::Misconfigured,
        format!("{calls} statements executed, {asked} asked for"),
    )
}

/// Transactions may exceed what was asked for by 0.1 % and 20: sessions commit a few of their own.
pub fn transactions(commits: u64, answered: u64, per_request: u32) -> Check {
    let asked = answered * u64::from(per_request);
    let limit = asked + asked / 1000 + 20;
    check(
        Code::Xact,
        commits > limit,
        Verdict::Misconfigured,
        format!("{commits} transactions committed, {asked} asked for"),
    )
}

/// `rate` against the ceiling that `pool` connections have when each is held for `delay_ms`.
pub fn ceiling(rate: f64, pool: usize, delay_ms: f64) -> Check {
    let ceiling = pool as f64 / (delay_ms / 1000.0);
    let figure = format!(
        "{rate:.1}/s is {:.1} % of the ceiling of {ceiling:.0}/s",
        100.0 * rate / ceiling
    );
    check(
        Code::Ceiling,
        rate > ceiling,
        Verdict::Misconfigured,
        figure,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> load::Counts {
        load::Counts {
            scheduled: 100,
            correct: 100,
            ..load::Counts::default()
        }
    }

    #[test]
    fn each_kind_of_failed_request_trips_http() {
        assert_eq!(http(&counts()).outcome, Outcome::Passed);
        let failing: [fn(&mut load::Counts); 6] = [
            |counts| counts.http_error = 1,
            |counts| counts.shed = 1,
            |counts| counts.timeout = 1,
            |counts| counts.transport = 1,
            |counts| counts.unfinished = 1,
            |counts| counts.unsent = 1,
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
    }

    #[test]
    fn one_session_too_many_or_too_few_in_any_sample_is_a_misconfiguration() {
        assert_eq!(pool(&[16, 16], 16).verdict, Verdict::Valid);
        assert_eq!(pool(&[16, 17], 16).verdict, Verdict::Misconfigured);
        assert_eq!(pool(&[15, 16], 16).verdict, Verdict::Misconfigured);
    }

    #[test]
    fn one_statement_more_or_fewer_is_a_misconfiguration() {
        assert_eq!(queries(Some(2000), 1000, 2, "").verdict, Verdict::Valid);
        assert_eq!(
            queries(Some(2001), 1000, 2, "").verdict,
            Verdict::Misconfigured
        );
        assert_eq!(
            queries(Some(999), 1000, 1, "").verdict,
            Verdict::Misconfigured
        );
    }

    #[test]
    fn what_was_not_observed_is_not_called_passed() {
        let check = queries(None, 1000, 1, "no such library");
        assert_eq!(
            (check.outcome, check.verdict),
            (Outcome::NotObserved, Verdict::Valid)
        );
        assert_eq!(check.figure, "not observed: no such library");
    }

    #[test]
    fn pings_show_as_transactions_nobody_asked_for() {
        assert_eq!(transactions(10_030, 10_000, 1).verdict, Verdict::Valid);
        assert_eq!(
            transactions(10_031, 10_000, 1).verdict,
            Verdict::Misconfigured
        );
        assert_eq!(
            transactions(20_000, 10_000, 1).verdict,
            Verdict::Misconfigured
        );
    }

    #[test]
    fn nobody_is_faster_than_the_pool_allows() {
        assert_eq!(ceiling(1_599.0, 16, 10.0).verdict, Verdict::Valid);
        assert_eq!(ceiling(1_601.0, 16, 10.0).verdict, Verdict::Misconfigured);
    }

    #[test]
    fn a_row_has_the_gravest_verdict_of_its_checks() {
        let checks = [
            pool(&[16], 16),
            body(1, 1, None),
            transactions(20_000, 10_000, 1),
        ];
        assert_eq!(verdict(&checks), Verdict::Misconfigured);
        assert_eq!(verdict(&[]), Verdict::Valid);
    }
}
