//! The tables of a page: every row of servers and rungs, and behind each its trials with the figure of every check.

use crate::campaign::{Campaign, Latency, Trial, Window};
use crate::checks::{Check, Code, Outcome};
use crate::report::scene::{Scene, Step};
use crate::rows;
use crate::theory;

/// A table as a page shows it.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) header: Vec<Cell>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// How it is shown; empty for a plain figure.
    pub(crate) class: &'static str,
}

/// The trials behind one row.
#[derive(Debug)]
pub(crate) struct Trials {
    pub(crate) summary: String,
    pub(crate) figures: Table,
    pub(crate) checks: Table,
}

const TEXT: &str = "text";

impl Cell {
    fn figure(text: String) -> Cell {
        Cell { text, class: "" }
    }

    fn text(text: String) -> Cell {
        Cell { text, class: TEXT }
    }

    fn verdict(text: String) -> Cell {
        let class = match text.as_str() {
            "valid" => "valid",
            "FAILED" => "failed",
            "" => TEXT,
            _ => "doubtful",
        };
        Cell { text, class }
    }
}

/// The rows of the closed loop and of the open one, medians over the blocks, with what theory and pgbench say.
pub(crate) fn rows(scene: &Scene<'_>) -> Vec<Table> {
    let kinds = [("closed", &scene.closed), ("open", &scene.open)];
    let of_kind = |(kind, steps): (&str, &Vec<Step<'_>>)| {
        let open = kind == "open";
        (!steps.is_empty()).then(|| Table {
            caption: format!("{}, {kind} loop: medians over the blocks", scene.name()),
            header: rows::header(open).iter().map(column).collect(),
            rows: steps.iter().flat_map(|step| of_step(scene, step)).collect(),
        })
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// A column's name stands as its cells do.
fn column((name, is_text): &(&str, bool)) -> Cell {
    match is_text {
        true => Cell::text((*name).to_owned()),
        false => Cell::figure((*name).to_owned()),
    }
}

fn of_step(scene: &Scene<'_>, step: &Step<'_>) -> Vec<Vec<Cell>> {
    let header = rows::header(step.rung.is_open());
    let cells = |row: Vec<String>| {
        let cell = |(text, (name, is_text)): (String, &(&str, bool))| match (*name, is_text) {
            ("verdict", _) => Cell::verdict(text),
            (_, true) => Cell::text(text),
            (_, false) => Cell::figure(text),
        };
        row.into_iter().zip(header).map(cell).collect::<Vec<_>>()
    };
    let servers = scene.servers.iter().filter_map(|(label, _)| step.of(label));
    let measured = servers.map(|trials| cells(rows::measured(scene.campaign, trials)));
    let bounds = theory::bounds(scene.campaign, scene.workload(), step.rung, scene.class);
    let bounds = bounds
        .iter()
        .map(|bound| cells(rows::theoretical(step.rung, bound)));
    measured.chain(bounds).collect()
}

/// Every trial, also of blocks that were run again, by rung and server.
pub(crate) fn trials(scene: &Scene<'_>) -> Vec<Trials> {
    let mut groups = Vec::new();
    for step in scene.steps() {
        for (label, _) in &scene.servers {
            let of = |trial: &&Trial| {
                trial.workload == scene.workload()
                    && trial.rung == step.rung
                    && trial.label() == *label
            };
            let trials: Vec<&Trial> = scene.campaign.trials.iter().filter(of).collect();
            if !trials.is_empty() {
                let what = format!("{label} at {}, {}", step.rung, scene.workload());
                groups.push(group(what, &trials));
            }
        }
    }
    groups
}

fn group(what: String, trials: &[&Trial]) -> Trials {
    let many = if trials.len() == 1 { "trial" } else { "trials" };
    Trials {
        summary: format!("{what}: {} {many} and their checks", trials.len()),
        figures: Table {
            caption: format!("{what}: trials"),
            header: FIGURES
                .map(|name| column(&(name, name == "verdict")))
                .into(),
            rows: trials.iter().map(|trial| figures(trial)).collect(),
        },
        checks: Table {
            caption: format!("{what}: checks (✓ passed, ✗ tripped)"),
            header: ["block", "attempt"]
                .map(|name| column(&(name, false)))
                .into_iter()
                .chain(Code::ALL.map(|code| column(&(code.name(), true))))
                .collect(),
            rows: trials.iter().map(|trial| checks(trial)).collect(),
        },
    }
}

const FIGURES: [&str; 25] = [
    "block",
    "attempt",
    "position",
    "req/s",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "service p50",
    "service p99",
    "scheduled",
    "correct",
    "wrong",
    "http error",
    "shed",
    "timeout",
    "transport",
    "unsent",
    "unfinished",
    "CPU s",
    "switches",
    "threads",
    "RSS MiB",
    "verdict",
];

fn figures(trial: &Trial) -> Vec<Cell> {
    let place = [trial.block + 1, trial.attempt + 1, trial.position + 1];
    let mut row: Vec<Cell> = place.map(|place| Cell::figure(place.to_string())).into();
    match &trial.window {
        Some(window) => row.extend(measured(window).map(Cell::figure)),
        None => row.extend((row.len()..FIGURES.len() - 1).map(|_| Cell::figure("-".to_owned()))),
    }
    row.push(Cell::verdict(trial.verdict.name().to_owned()));
    row
}

fn measured(window: &Window) -> [String; 21] {
    let Latency {
        p50,
        p90,
        p99,
        p99_9,
        max,
        mean: _,
    } = window.response_ns;
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    let counts = &window.counts;
    let server = &window.server;
    [
        format!("{:.1}", window.requests_per_second),
        ms(p50),
        ms(p90),
        ms(p99),
        ms(p99_9),
        ms(max),
        ms(window.service_ns.p50),
        ms(window.service_ns.p99),
        counts.scheduled.to_string(),
        counts.correct.to_string(),
        counts.wrong.to_string(),
        counts.http_error.to_string(),
        counts.shed.to_string(),
        counts.timeout.to_string(),
        counts.transport.to_string(),
        counts.unsent.to_string(),
        counts.unfinished.to_string(),
        format!("{:.3}", server.cpu_seconds),
        server.switches().to_string(),
        server.threads.to_string(),
        format!("{:.1}", server.rss_mib()),
    ]
}

fn checks(trial: &Trial) -> Vec<Cell> {
    let place = [trial.block + 1, trial.attempt + 1];
    let place = place.map(|place| Cell::figure(place.to_string()));
    let of_code = |code: Code| {
        let found = trial.checks.iter().find(|check| check.code == code);
        found.map_or_else(|| Cell::text("-".to_owned()), outcome)
    };
    place.into_iter().chain(Code::ALL.map(of_code)).collect()
}

fn outcome(check: &Check) -> Cell {
    let (mark, class) = match check.outcome {
        Outcome::Passed => ("✓ ", TEXT),
        Outcome::Tripped => ("✗ ", "failed"),
        Outcome::NotObserved | Outcome::DoesNotApply => ("", "absent"),
    };
    Cell {
        text: format!("{mark}{}", check.figure),
        class,
    }
}

/// Trials that have no window, with the reason.
pub(crate) fn without_window(campaign: &Campaign) -> Vec<String> {
    let trials = campaign
        .trials
        .iter()
        .filter(|trial| trial.window.is_none());
    let line = |trial: &Trial| {
        let mut checks = trial.checks.iter();
        let why = checks.find(|check| check.outcome == Outcome::Tripped);
        format!(
            "{} {} at {}, block {}: no figures; {}",
            trial.workload,
            trial.label(),
            trial.rung,
            trial.block + 1,
            why.map_or("no check says why", |check| &check.figure)
        )
    };
    trials.map(line).collect()
}
