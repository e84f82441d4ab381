//! The checks that decide a trial's verdict. Pure: figures in, verdict out.
//!
//! Every row has every check. One that trips says with which figure, and so does one that passes; what could not be seen
//! is `not observed`, and what has no meaning for the trial `does not apply`, each with its reason. Neither is a pass.

mod generator;
mod machine;
mod sessions;
mod statements;

use serde::{Deserialize, Serialize};

pub use generator::{body, generator, http, little, rate};
pub use machine::{Lifetime, pressure, restart, steal, throttle};
pub use sessions::{checkpoints, foreign, pool, vacuum};
pub use statements::{Held, Regular, Throughput, audit, busy, ceiling, queries, transactions};

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

/// In the order in which a row has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The server starts, keeps its contract and ends when asked.
    Contract,
    /// The generator had CPU to spare and sent when it meant to.
    GenSat,
    /// What was due was sent, and came back.
    Rate,
    /// Every answer, before the window and in it, has the right status.
    Http,
    /// Every answer is the expected one to the byte.
    Body,
    /// The server and PostgreSQL are the processes they were when the window began.
    Restart,
    /// The hypervisor left us our CPUs.
    Steal,
    /// No CPU limit of a control group took effect.
    Throttle,
    /// Nobody wanted the generator's CPUs at the same time.
    Psi,
    /// PostgreSQL wrote no checkpoint.
    Ckpt,
    /// PostgreSQL vacuumed and analysed nothing.
    Vacuum,
    /// Nobody else used PostgreSQL.
    Foreign,
    /// The requests that were counted are the requests that took the time.
    Little,
    /// The lane has exactly as many sessions as the pool, and keeps them.
    Pool,
    /// No more statements at a time than the pool has connections.
    Busy,
    /// Statements executed are statements asked for.
    Queries,
    /// Transactions committed are transactions asked for.
    Xact,
    /// What was acknowledged is in the database, once.
    Audit,
    /// No faster than the delay allows.
    Ceiling,
}

impl Code {
    pub const ALL: [Code; 19] = [
        Code::Contract,
        Code::GenSat,
        Code::Rate,
        Code::Http,
        Code::Body,
        Code::Restart,
        Code::Steal,
        Code::Throttle,
        Code::Psi,
        Code::Ckpt,
        Code::Vacuum,
        Code::Foreign,
        Code::Little,
        Code::Pool,
        Code::Busy,
        Code::Queries,
        Code::Xact,
        Code::Audit,
        Code::Ceiling,
    ];

    /// As in records and in print.
    pub fn name(self) -> &'static str {
        match self {
            Code::Contract => "CONTRACT",
            Code::GenSat => "GEN_SAT",
            Code::Rate => "RATE",
            Code::Http => "HTTP",
            Code::Body => "BODY",
            Code::Restart => "RESTART",
            Code::Steal => "STEAL",
            Code::Throttle => "THROTTLE",
            Code::Psi => "PSI",
            Code::Ckpt => "CKPT",
            Code::Vacuum => "VACUUM",
            Code::Foreign => "FOREIGN",
            Code::Little => "LITTLE",
            Code::Pool => "POOL",
            Code::Busy => "BUSY",
            Code::Queries => "QUERIES",
            Code::Xact => "XACT",
            Code::Audit => "AUDIT",
            Code::Ceiling => "CEILING",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    Tripped,
    /// It could not be seen. Never a pass.
    NotObserved,
    /// It has no meaning for this trial.
    DoesNotApply,
}

/// One check of one trial: what was seen, in words with figures, also when it passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub code: Code,
    pub outcome: Outcome,
    pub verdict: Verdict,
    pub figure: String,
}

/// What was seen, or why it could not be.
pub type Seen<T> = Result<T, String>;

/// The verdict of a row: the gravest of its checks.
pub fn verdict(checks: &[Check]) -> Verdict {
    checks
        .iter()
        .map(|check| check.verdict)
        .max()
        .unwrap_or(Verdict::Valid)
}

/// All checks of a row in their order; those that are missing were not observed, for the reason given.
pub fn complete(mut checks: Vec<Check>, why_missing: &str) -> Vec<Check> {
    for code in Code::ALL {
        if !checks.iter().any(|check| check.code == code) {
            checks.push(not_observed(code, why_missing));
        }
    }
    checks.sort_by_key(|check| check.code);
    checks
}

/// Whether a check tripped.
pub fn tripped(check: &Check) -> bool {
    check.outcome == Outcome::Tripped
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

/// A check that has no meaning for a trial, with the reason.
pub fn does_not_apply(code: Code, why: &str) -> Check {
    Check {
        code,
        outcome: Outcome::DoesNotApply,
        verdict: Verdict::Valid,
        figure: format!("does not apply: {why}"),
    }
}

/// The server did not start, broke off, or did not end as the contract says.
pub fn contract_broken(why: String) -> Check {
    check(Code::Contract, true, Verdict::Failed, why)
}

/// The server did what the contract says: from its start to its end, or while it was attached to.
pub fn contract_kept(attached: bool) -> Check {
    let figure = match attached {
        false => "ready in time, answered /about and /usage, ended with status 0 when asked",
        true => "answered /about and /usage; it ran before, and runs on",
    };
    check(Code::Contract, false, Verdict::Failed, figure.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_gravest_verdict_of_its_checks() {
        let checks = [
            check(Code::Http, true, Verdict::Failed, String::new()),
            check(Code::Pool, true, Verdict::Misconfigured, String::new()),
            check(Code::Psi, false, Verdict::Invalid, String::new()),
        ];
        assert_eq!(verdict(&checks), Verdict::Misconfigured);
        assert_eq!(verdict(&[]), Verdict::Valid);
    }

    #[test]
    fn codes_are_written_as_they_are_printed_and_every_one_has_its_place() {
        for (place, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(code as usize, place);
        }
    }

    #[test]
    fn what_is_missing_from_a_row_was_not_observed_and_did_not_pass() {
        let row = complete(vec![contract_broken("it died".into())], "no window");
        let codes: Vec<Code> = row.iter().map(|check| check.code).collect();
        assert_eq!(codes, Code::ALL);
        assert_eq!(verdict(&row), Verdict::Failed);
        for check in &row[1..] {
            assert_eq!(
                (check.outcome, check.figure.as_str()),
                (Outcome::NotObserved, "not observed: no window")
            );
        }
    }
}
