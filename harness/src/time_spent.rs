//! Where the time goes: the table of the stages of a request, and of what PostgreSQL's sessions were seen doing.

use std::collections::BTreeMap;

use stats::median;

use crate::campaign::{Campaign, Trial, Window};
use crate::class::Class;
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
    let windows: Vec<&Window> = trials
        .iter()
        .filter_map(|trial| trial.window.as_ref())
        .collect();
    let stages: Vec<_> = windows
        .iter()
        .map(|window| window.stages)
        .collect::<Option<_>>()?;
    let names = stages.first()?.named();
    let service: Vec<f64> = windows
        .iter()
        .map(|window| window.service_ns.mean)
        .collect();
    let mut row = vec![first.rung.figure(), first.label()];
    for index in 0..names.len() {
        let means: Vec<f64> = stages
            .iter()
            .map(|stages| stages.named()[index].1.mean)
            .collect();
        row.push(milliseconds(&means));
    }
    let outside: Vec<f64> = stages
        .iter()
        .zip(&service)
        .map(|(stages, service)| {
            let inside: f64 = stages.named().iter().map(|(_, stage)| stage.mean).sum();
            (service - inside).max(0.0)
        })
        .collect();
    row.push(milliseconds(&outside));
    row.push(milliseconds(&service));
    row.push(sessions(&windows));
    Some(row)
}

fn milliseconds(ns: &[f64]) -> String {
    cell(median(ns).map(|ns| ns / 1e6), 3)
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
