//! What a page says beside its figures: what is not there and why, where it was measured, how to measure it again.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::campaign::{Campaign, Trial};
use crate::checks::{Code, Outcome};
use crate::figures::windows;
use crate::report::scene::Scene;
use crate::report::tables;
use crate::table;

/// A name and what it is.
pub(crate) type Fact = (String, String);

/// Cells that have no figure, a line for each reason.
pub(crate) fn absent(campaign: &Campaign, scenes: &[Scene<'_>]) -> Vec<String> {
    let mut lines = not_served(campaign);
    for scene in scenes {
        lines.extend(not_seen(scene));
    }
    lines.extend(tables::without_window(campaign));
    lines.extend(not_observed(campaign));
    lines
}

fn not_served(campaign: &Campaign) -> Vec<String> {
    let of = |server: &crate::campaign::ServerRecord| {
        let skips = server.skips.iter();
        let lines = skips
            .map(|(workload, why)| format!("{workload} by {}: not supported; {why}", server.name));
        lines.collect::<Vec<_>>()
    };
    campaign.servers.iter().flat_map(of).collect()
}

fn not_seen(scene: &Scene<'_>) -> Vec<String> {
    let name = scene.name();
    let mut lines = Vec::new();
    let mut say = |what: &str| lines.push(format!("{name}: {what}"));
    let pgbench = |of: &crate::pgbench::PgbenchRun| of.workload == scene.workload();
    if !scene.closed.is_empty() && !scene.campaign.pgbench.iter().any(pgbench) {
        say("no row of pgbench; it was not found, or the workload has no single statement for it");
    }
    let all: Vec<&Trial> = scene
        .steps()
        .flat_map(|step| {
            let of = |(label, _): &(String, usize)| step.of(label).unwrap_or_default();
            scene.servers.iter().flat_map(of)
        })
        .copied()
        .collect();
    let windows = windows(&all);
    if windows.iter().any(|window| window.stages.is_none()) {
        say("no account of where the time goes; a server gives none");
    }
    if windows
        .iter()
        .any(|window| window.database_cpu_seconds.is_none())
    {
        say("no CPU time of PostgreSQL; its processes cannot be seen from here");
    }
    if windows
        .iter()
        .any(|window| window.response_percentiles.is_empty())
    {
        say("no percentile plot or timeline; it was recorded by an earlier version");
    }
    lines
}

/// Checks that could not be seen or do not apply, with how many trials that concerns.
fn not_observed(campaign: &Campaign) -> Vec<String> {
    let mut reasons: BTreeMap<(Code, &str), usize> = BTreeMap::new();
    for check in campaign.trials.iter().flat_map(|trial| &trial.checks) {
        if matches!(check.outcome, Outcome::NotObserved | Outcome::DoesNotApply) {
            *reasons.entry((check.code, &check.figure)).or_default() += 1;
        }
    }
    let of_all = campaign.trials.len();
    let line = |((code, figure), trials): (&(Code, &str), &usize)| {
        format!("{} in {trials} of {of_all} trials: {figure}", code.name())
    };
    reasons.iter().map(line).collect()
}

/// What a reader has to know of each workload, as below the printed tables.
pub(crate) fn notes(campaign: &Campaign) -> Vec<String> {
    let ladders = campaign.plan.ladders.iter();
    let mut lines: Vec<String> = ladders
        .flat_map(|ladder| table::notes(campaign, ladder))
        .collect();
    // What a library does is said once, not once a workload.
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

/// The machine, the plan, the database, the servers.
pub(crate) fn environment(campaign: &Campaign) -> Vec<(&'static str, Vec<Fact>)> {
    let plan = &campaign.plan;
    let lengths = vec![
        ("preset".to_owned(), plan.preset.clone()),
        ("pool".to_owned(), plan.pool.to_string()),
        (
            "blocks".to_owned(),
            format!("{} to {}", plan.blocks, plan.most_blocks),
        ),
        ("warm-up".to_owned(), format!("{} s", plan.warmup_seconds)),
        ("window".to_owned(), format!("{} s", plan.window_seconds)),
        ("seed".to_owned(), plan.seed.to_string()),
        ("CPUs".to_owned(), plan.cpus.note.clone()),
        ("begun".to_owned(), campaign.started_at.clone()),
        ("lanebench".to_owned(), campaign.lanebench.clone()),
    ];
    let database = &campaign.database;
    let mut of_database = vec![
        ("source".to_owned(), database.source.clone()),
        ("version".to_owned(), database.version.clone()),
        ("scale".to_owned(), database.scale.clone()),
        ("content".to_owned(), database.content.clone()),
        ("between trials".to_owned(), database.between_trials.clone()),
    ];
    of_database.extend(database.settings.iter().cloned());
    let servers = campaign.servers.iter().map(|server| {
        let program = server.binary_sha256.as_deref();
        let program = program.map_or_else(String::new, |sha| format!(" (program {sha})"));
        (server.name.clone(), format!("{}{program}", server.about))
    });
    vec![
        ("Plan", lengths),
        ("Machine and build", fields(&campaign.environment)),
        ("Load generator", fields(&campaign.generator)),
        ("Database", of_database),
        ("Servers", servers.collect()),
    ]
}

/// The fields of a record, by their names.
fn fields(record: &impl Serialize) -> Vec<Fact> {
    let value = serde_json::to_value(record).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    let fact = |(name, value): (&String, &Value)| {
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Null => "not known".to_owned(),
            other => other.to_string(),
        };
        (name.replace('_', " "), shown)
    };
    fields.map(fact).collect()
}

/// As one command for a shell; of a campaign that was resumed, the one that began it.
pub(crate) fn reproduce(campaign: &Campaign) -> String {
    let arguments = campaign.commands.first().into_iter().flatten().skip(1);
    let words = ["cargo", "lanebench"].map(str::to_owned);
    let command: Vec<String> = words
        .into_iter()
        .chain(arguments.map(|word| quoted(word)))
        .collect();
    let command = command.join(" ");
    match &campaign.environment.git_commit {
        Some(commit) => format!("git checkout {} && {command}", quoted(commit)),
        None => command,
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_read_otherwise_are_quoted() {
        assert_eq!(quoted("--closed"), "--closed");
        assert_eq!(quoted("50%,80%"), "50%,80%");
        assert_eq!(quoted("p99<25ms"), "'p99<25ms'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
