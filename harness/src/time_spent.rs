//! Where the time goes: the table of the stages of a request, and of what PostgreSQL's sessions were seen doing.

use std::collections::BTreeMap;

use stats::median;

use crate::campaign::{Campaign, Trial, Window};
use crate::class::Class;
use crate::figures::{median_over, windows};
use crate::layout::{Columns, Look, lay_out};
use crate::rows::cell;
use crate::rung::Rung;

/// What a session was doing less often than this is left out of the table.
const LEAST_SHARE: f64 = 0.005;

const COLUMNS: [(&str, bool); 10] = [
    ("conns", false),
    ("server", true),
    ("admission", false),
    ("connection", false),
    ("database", false),
    ("handover", false),
    ("encoding", false),
    ("HTTP and wire", false),
    ("service, ms", false),
    ("sessions in PostgreSQL", true),
];
/// The least important first.
const DISPENSABLE: [&str; 4] = [
    "sessions in PostgreSQL",
    "encoding",
    "admission",
    "HTTP and wire",
];

/// A row for each server of a class and rung: the means of the stages, medians over the blocks. `None` where no server tells.
pub fn of_rungs(
    campaign: &Campaign,
    workload: &str,
    rungs: &[Rung],
    class: Class,
    look: Look,
) -> Option<String> {
    let mut rows = Vec::new();
    for &rung in rungs {
        for trials in class.subjects(campaign, workload, rung) {
            rows.push(row(&trials)?);
        }
    }
    let mut all = COLUMNS;
    if rungs.iter().any(|rung| rung.is_open()) {
        all[0].0 = "offered/s";
    }
    let columns = Columns {
        all: &all,
        dispensable: &DISPENSABLE,
    };
    Some(format!(
        "where the time of a request goes, ms on average:\n{}",
        lay_out(columns, &rows, look)
    ))
}

/// `None` where a window has no stages.
fn row(trials: &[&Trial]) -> Option<Vec<String>> {
    let first = trials.first()?;
    let windows = windows(trials);
    let mut row = vec![first.rung.figure(), first.label()];
    let stages = stages_ms(&windows)?.into_iter();
    row.extend(stages.map(|(_, mean)| cell(Some(mean), 3)));
    let service = median_over(&windows, |window| Some(window.service_ns.mean / 1e6));
    row.push(cell(service, 3));
    row.push(sessions(&windows));
    Some(row)
}

/// The mean time in ms that a request spends in each stage, and last outside of them all; medians over the windows.
/// `None` where a window has no stages.
pub(crate) fn stages_ms(windows: &[&Window]) -> Option<Vec<(&'static str, f64)>> {
    let names = windows.first()?.stages?.named().map(|(name, _)| name);
    let mut means: Vec<(&'static str, Vec<f64>)> =
        names.into_iter().map(|name| (name, Vec::new())).collect();
    let mut outside = Vec::new();
    for window in windows {
        let named = window.stages?.named();
        for ((_, means), (_, stage)) in means.iter_mut().zip(named) {
            means.push(stage.mean / 1e6);
        }
        let inside: f64 = named.iter().map(|(_, stage)| stage.mean).sum();
        outside.push((window.service_ns.mean - inside).max(0.0) / 1e6);
    }
    means.push(("HTTP and wire", outside));
    let middle = means.into_iter();
    middle
        .map(|(name, means)| Some((name, median(&means)?)))
        .collect()
}

/// What the sessions were seen doing over all samples, most frequent first.
fn sessions(windows: &[&Window]) -> String {
    let mut doing: BTreeMap<&str, u64> = BTreeMap::new();
    for (what, count) in windows.iter().flat_map(|window| &window.sessions.doing) {
        *doing.entry(what).or_default() += count;
    }
    let all: u64 = doing.values().sum();
    let mut shares: Vec<(&str, f64)> = doing
        .into_iter()
        .map(|(what, count)| (what, count as f64 / all as f64))
        .filter(|(_, share)| *share >= LEAST_SHARE)
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = shares
        .iter()
        .map(|(what, share)| format!("{what} {:.0} %", 100.0 * share))
        .collect();
    words.join(", ")
}
