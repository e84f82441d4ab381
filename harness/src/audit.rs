//! What the database holds once a server has gone, beside what the server acknowledged: nothing lost, nothing twice, and
//! nothing that was never asked for.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use load::RequestCounts;
use serde_json::value::RawValue;
use workloads::Workload;

use crate::database::connection::connect;
use crate::expected::{Answer, Answers, Bounds};

/// How many faults a line names.
const FAULTS_NAMED: usize = 3;

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audited {
    /// Effects that were acknowledged.
    pub acknowledged: u64,
    /// Effects that the database holds.
    pub held: u64,
    /// Each in words; none if all is well.
    pub faults: Vec<String>,
}

impl Audited {
    /// In a line.
    pub fn describe(&self) -> String {
        let Audited {
            acknowledged,
            held,
            faults,
        } = self;
        let mut line = format!("{acknowledged} effects acknowledged, {held} held");
        for fault in faults.iter().take(FAULTS_NAMED) {
            line.push_str("; ");
            line.push_str(fault);
        }
        if faults.len() > FAULTS_NAMED {
            line.push_str(&format!("; and {} more", faults.len() - FAULTS_NAMED));
        }
        line
    }
}

/// Whether a workload says how to be audited.
pub fn applies(workload: &Workload) -> bool {
    workload
        .parts()
        .iter()
        .any(|part| part.audit.effects.is_some() || part.audit.violations.is_some())
}

/// Asks the database at `url`. `counts` are those of every request since the rows were as they were seeded.
///
/// # Errors
/// The database does not answer, or a statement of an audit is refused.
pub fn audit(
    workload: &Workload,
    answers: &Answers,
    counts: &[RequestCounts],
    url: &str,
) -> Result<Audited> {
    let mut client = connect(url)?;
    client.batch_execute("SET timezone = 'UTC'; SET statement_timeout = 0")?;
    let mut audited = Audited::default();
    for (place, part) in workload.parts().into_iter().enumerate() {
        let name = &part.name;
        if let Some(effects) = &part.audit.effects {
            let rows = client.query(effects, &[]);
            let rows = rows.with_context(|| format!("the effects of workload `{name}`"))?;
            let held = rows
                .iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?)));
            let held = held.collect::<Result<BTreeMap<String, i64>>>()?;
            let expected = expected(answers, counts, place)?;
            audited.acknowledged += expected.values().map(|bounds| bounds.least).sum::<u64>();
            audited.held += held.values().map(|times| times.unsigned_abs()).sum::<u64>();
            audited.faults.extend(differences(&expected, &held));
        }
        if let Some(violations) = &part.audit.violations {
            let rows = client.query(violations, &[]);
            let rows = rows.with_context(|| format!("the violations of workload `{name}`"))?;
            for row in &rows {
                audited.faults.push(row.try_get(0)?);
            }
        }
    }
    Ok(audited)
}

/// How often the effect of each answer should be there.
fn expected(
    answers: &Answers,
    counts: &[RequestCounts],
    part: usize,
) -> Result<BTreeMap<String, Bounds>> {
    let mut expected: BTreeMap<String, Bounds> = BTreeMap::new();
    for (known, counts) in answers.distinct.iter().zip(counts) {
        if known.request.part != part {
            continue;
        }
        let certain = known.answers.iter().zip(&counts.correct);
        for (answer, &times) in certain.filter(|(answer, _)| answer.status < 300) {
            for effect in effects(answer)? {
                let bounds = expected.entry(effect).or_default();
                *bounds = bounds.plus(Bounds {
                    least: times,
                    most: times + counts.uncertain(),
                });
            }
        }
    }
    Ok(expected)
}

/// The body of an answer, or its elements if it is an array.
fn effects(answer: &Answer) -> Result<Vec<String>> {
    if answer.body.starts_with(b"[") {
        let elements: Vec<&RawValue> = serde_json::from_slice(&answer.body)?;
        return Ok(elements
            .into_iter()
            .map(|element| element.get().to_owned())
            .collect());
    }
    Ok(vec![String::from_utf8_lossy(&answer.body).into_owned()])
}

fn differences(expected: &BTreeMap<String, Bounds>, held: &BTreeMap<String, i64>) -> Vec<String> {
    let mut faults = Vec::new();
    for (effect, bounds) in expected {
        let times = held.get(effect).copied().unwrap_or(0).unsigned_abs();
        if times < bounds.least {
            faults.push(format!(
                "lost: {effect} was acknowledged {} times and is held {times} times",
                bounds.least
            ));
        } else if times > bounds.most {
            faults.push(format!(
                "twice: {effect} may be held {} times and is held {times} times",
                bounds.most
            ));
        }
    }
    for (effect, times) in held
        .iter()
        .filter(|(effect, _)| !expected.contains_key(*effect))
    {
        faults.push(format!("unasked: {effect} is held {times} times"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(least: u64, most: u64, held: &[(&str, i64)]) -> Vec<String> {
        let expected = BTreeMap::from([("a".to_owned(), Bounds { least, most })]);
        let held = held
            .iter()
            .map(|(effect, times)| ((*effect).to_owned(), *times));
        differences(&expected, &held.collect())
    }

    #[test]
    fn what_was_acknowledged_is_held_as_often() {
        assert_eq!(found(3, 3, &[("a", 3)]), [""; 0]);
        assert!(found(3, 3, &[("a", 2)])[0].starts_with("lost: a"));
        assert!(found(3, 3, &[])[0].starts_with("lost: a"));
        assert!(found(3, 3, &[("a", 4)])[0].starts_with("twice: a"));
        assert!(found(3, 3, &[("a", 3), ("b", 1)])[0].starts_with("unasked: b"));
    }

    #[test]
    fn what_got_no_answer_may_be_held_or_not() {
        assert_eq!(found(3, 5, &[("a", 3)]), [""; 0]);
        assert_eq!(found(3, 5, &[("a", 5)]), [""; 0]);
        assert!(found(3, 5, &[("a", 6)])[0].starts_with("twice: a"));
    }
}
