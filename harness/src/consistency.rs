//! Whether a record says one thing: what was written by a run does, what was changed by hand seldom.

use crate::campaign::{Campaign, Trial};
use crate::checks;

/// What contradicts what, if anything does.
pub fn contradiction(campaign: &Campaign) -> Option<String> {
    let trials = campaign.trials.iter().enumerate();
    trials
        .filter_map(|(index, trial)| Some((index, of_trial(campaign, trial)?)))
        .map(|(index, what)| {
            format!(
                "trial {} ({}): {what}",
                index + 1,
                trial_name(&campaign.trials[index])
            )
        })
        .next()
}

fn trial_name(trial: &Trial) -> String {
    format!(
        "{} of {} at {}, block {}",
        trial.label(),
        trial.workload,
        trial.rung,
        trial.block + 1
    )
}

fn of_trial(campaign: &Campaign, trial: &Trial) -> Option<String> {
    let plan = &campaign.plan;
    let ladder = plan
        .ladders
        .iter()
        .find(|ladder| ladder.workload == trial.workload);
    let planned = ladder.is_some_and(|ladder| ladder.rungs.contains(&trial.rung))
        && plan.servers.contains(&trial.server)
        && plan.profiles.contains(&trial.profile);
    if !planned {
        return Some("it is in no plan".to_owned());
    }
    let follows = checks::verdict(&trial.checks);
    if follows != trial.verdict {
        let (said, follows) = (trial.verdict.name(), follows.name());
        return Some(format!(
            "its verdict is {said}, but its checks say {follows}"
        ));
    }
    let counts = trial.window.as_ref()?.counts;
    (!counts.is_exact()).then(|| "its counts of requests do not add up".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::made_up::{campaign, closed};

    type Change<'a> = &'a dyn Fn(&mut Value);

    fn found(change: impl Fn(&mut Value)) -> Option<String> {
        let mut record = campaign(&["deadpool", "sqlx"], &[closed(8)], 1, &|_, _, _| 1e4);
        change(&mut record);
        contradiction(&serde_json::from_value(record).unwrap())
    }

    #[test]
    fn a_record_that_was_changed_by_hand_contradicts_itself() {
        assert_eq!(found(|_| ()), None);
        let tripped = json!([{ "code": "GEN_SAT", "outcome": "tripped", "verdict": "invalid", "figure": "busy" }]);
        let cases: [(Change<'_>, &str); 4] = [
            (
                &|record| record["trials"][1]["checks"] = tripped.clone(),
                "its verdict is valid, but its checks say INVALID",
            ),
            (
                &|record| record["trials"][1]["window"]["counts"]["correct"] = json!(7),
                "its counts of requests do not add up",
            ),
            (
                &|record| record["trials"][1]["server"] = json!("mysql"),
                "it is in no plan",
            ),
            (
                &|record| record["trials"][1]["rung"] = closed(9),
                "it is in no plan",
            ),
        ];
        for (change, expected) in cases {
            let said = found(change).unwrap_or_default();
            assert!(
                said.starts_with("trial 2 (") && said.ends_with(expected),
                "{said}"
            );
        }
    }
}
