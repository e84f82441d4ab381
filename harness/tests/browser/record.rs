//! A campaign's record read as plain JSON, with medians and words of the tests' own: nothing of the harness that makes
//! the pages is used to check them.

use serde_json::Value;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a>(pub(crate) &'a Value);

/// The trials of one row.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) scene: String,
    pub(crate) workload: &'a str,
    pub(crate) server: &'a str,
    pub(crate) label: String,
    pub(crate) rung: &'a Value,
    pub(crate) trials: Vec<&'a Value>,
}

impl<'a> Record<'a> {
    pub(crate) fn trials(self) -> impl Iterator<Item = &'a Value> {
        self.0["trials"].as_array().unwrap().iter()
    }

    /// Of each block those of its latest attempt.
    pub(crate) fn counting(self) -> impl Iterator<Item = &'a Value> {
        let block =
            |trial: &Value| ["workload", "rung", "block"].map(|field| trial[field].to_string());
        self.trials().filter(move |trial| {
            let later = |other: &Value| {
                block(other) == block(trial)
                    && other["attempt"].as_u64() > trial["attempt"].as_u64()
            };
            !self.trials().any(later)
        })
    }

    /// Every server at every rung.
    pub(crate) fn rows(self) -> Vec<Row<'a>> {
        let mut rows: Vec<Row<'a>> = Vec::new();
        for trial in self.counting() {
            let (label, rung) = (label(trial), &trial["rung"]);
            let workload = trial["workload"].as_str().unwrap();
            let same = |row: &&mut Row<'_>| {
                row.label == label && row.rung == rung && row.workload == workload
            };
            match rows.iter_mut().find(same) {
                Some(row) => row.trials.push(trial),
                None => rows.push(Row {
                    scene: self.scene(trial),
                    workload,
                    server: trial["server"].as_str().unwrap(),
                    label,
                    rung,
                    trials: vec![trial],
                }),
            }
        }
        rows
    }

    /// Servers of a class of their own are shown by themselves.
    pub(crate) fn scene(self, trial: &Value) -> String {
        let workload = trial["workload"].as_str().unwrap();
        let mut servers = self.0["servers"].as_array().unwrap().iter();
        let server = servers.find(|server| server["name"] == trial["server"]);
        match server.is_some_and(|server| server["lane"] == "pipelined") {
            true => format!("{workload}, pipelined"),
            false => workload.to_owned(),
        }
    }
}

impl Row<'_> {
    pub(crate) fn windows(&self) -> Vec<&Value> {
        let windows = self.trials.iter().map(|trial| &trial["window"]);
        windows.filter(|window| window.is_object()).collect()
    }

    /// Of the trials that nothing is said against.
    pub(crate) fn valid_windows(&self) -> Vec<&Value> {
        let valid = self
            .trials
            .iter()
            .filter(|trial| trial["verdict"] == "valid");
        let windows = valid.map(|trial| &trial["window"]);
        windows.filter(|window| window.is_object()).collect()
    }
}

pub(crate) fn is_open(rung: &Value) -> bool {
    rung["loop"] == "open"
}

pub(crate) fn label(trial: &Value) -> String {
    let server = trial["server"].as_str().unwrap();
    match trial["profile"] == "defaults" {
        true => format!("{server} (defaults)"),
        false => server.to_owned(),
    }
}

/// As a table's first column has it: `32`, or `1440`.
pub(crate) fn rung_figure(rung: &Value) -> String {
    match is_open(rung) {
        true => format!("{:.0}", number(&rung["rate"])),
        false => rung["connections"].to_string(),
    }
}

/// `32 connections`, or `1440/s`.
pub(crate) fn rung_in_words(rung: &Value) -> String {
    match (is_open(rung), rung["connections"].as_u64()) {
        (true, _) => format!("{:.0}/s", number(&rung["rate"])),
        (false, Some(1)) => "1 connection".to_owned(),
        (false, _) => format!("{} connections", rung["connections"]),
    }
}

pub(crate) fn verdict_in_words(verdict: &Value) -> &'static str {
    match verdict.as_str() {
        Some("valid") => "valid",
        Some("failed") => "FAILED",
        Some("misconfigured") => "MISCONFIGURED",
        Some("invalid") => "INVALID",
        other => panic!("an unknown verdict {other:?}"),
    }
}

#[track_caller]
pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Not a number where there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => (values[half - 1] + values[half]) / 2.0,
        _ => values[half],
    }
}

pub(crate) fn median_of(windows: &[&Value], figure: impl Fn(&Value) -> f64) -> f64 {
    median(windows.iter().map(|window| figure(window)).collect())
}

pub(crate) fn switches(window: &Value) -> f64 {
    number(&window["server"]["voluntary_switches"])
        + number(&window["server"]["involuntary_switches"])
}

pub(crate) fn each(window: &Value, whole: f64) -> f64 {
    whole / number(&window["counts"]["correct"])
}

pub(crate) const MIB: f64 = 1_048_576.0;
