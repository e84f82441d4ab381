//! Plots of requests per second: over the concurrency, and as a share of what the database alone allows.

use serde_json::Value;

use crate::plots::{assert_at_step, assert_near, at_step};
use crate::reading::Plot;
use crate::record::{Record, Row, is_open, median_of, number, rung_figure};

fn per_second(window: &Value) -> f64 {
    number(&window["requests_per_second"])
}

pub(crate) fn by_concurrency(plot: &Plot, rows: &[&Row<'_>], record: Record<'_>) -> usize {
    let mut checked = 0;
    for row in rows.iter().filter(|row| !is_open(row.rung)) {
        let step = rung_figure(row.rung);
        let valid = row.valid_windows();
        checked += assert_at_step(
            plot,
            (&row.label, "line", false),
            &step,
            median_of(&valid, per_second),
        );
        for hollow in [false, true] {
            let counts = |trial: &&&Value| {
                (trial["verdict"] != "valid") == hollow && trial["window"].is_object()
            };
            let expected: Vec<f64> = row
                .trials
                .iter()
                .filter(counts)
                .map(|trial| per_second(&trial["window"]))
                .collect();
            let mut series = plot.series.iter();
            let found = series
                .find(|of| of.name == row.label && of.form == "scatter" && of.hollow == hollow);
            let shown = found.map_or(Vec::new(), |found| at_step(plot, &found.points, &step));
            assert_near(
                &shown,
                &expected,
                &format!("{}: trials of {} at {step}", plot.title, row.label),
            );
            checked += expected.len();
        }
        assert_interval(plot, row, &step);
    }
    for (name, limits) in limits(record, rows) {
        for (step, limit) in limits {
            checked += assert_at_step(plot, (name, "line", true), &step, limit);
        }
    }
    checked
}

/// Student's t at 97.5 % for 1, 2, 3 ... degrees of freedom.
const STUDENT: [f64; 9] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
    2.262_157,
];

/// Of the geometric mean of the valid blocks.
fn assert_interval(plot: &Plot, row: &Row<'_>, step: &str) {
    let mut series = plot.series.iter();
    let custom = series.find(|series| series.form == "custom" && series.name == row.label);
    let place = plot.x.steps.iter().position(|of| of == step).unwrap() as f64;
    let points = custom.map_or(&[][..], |custom| &custom.points);
    let shown: Vec<&Vec<f64>> = points
        .iter()
        .filter(|point| point[0].round() == place)
        .collect();
    let logs: Vec<f64> = row
        .valid_windows()
        .into_iter()
        .map(|window| per_second(window).ln())
        .collect();
    let what = format!("{}: interval of {} at {step}", plot.title, row.label);
    if logs.len() < 2 {
        return assert!(shown.is_empty(), "{what}");
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = STUDENT[logs.len() - 2] * (variance / count).sqrt();
    let [shown] = shown[..] else {
        panic!("{what}: {shown:?}")
    };
    assert_near(
        &shown[1..],
        &[(mean - half).exp(), (mean + half).exp()],
        &what,
    );
}

/// What the database alone allows at each closed rung: by theory, and by pgbench.
fn limits(record: Record<'_>, rows: &[&Row<'_>]) -> Vec<(&'static str, Vec<(String, f64)>)> {
    let pool = number(&record.0["plan"]["pool"]);
    let mut ceilings = Vec::new();
    let mut of_pgbench = Vec::new();
    for row in rows.iter().filter(|row| !is_open(row.rung)) {
        let step = rung_figure(row.rung);
        if ceilings
            .iter()
            .chain(&of_pgbench)
            .any(|(of, _)| *of == step)
        {
            continue;
        }
        let windows = row.windows();
        let delay_ms = windows
            .iter()
            .find_map(|window| window["delay_ms"].as_f64());
        let at_a_time = number(&row.rung["connections"]).min(pool);
        ceilings.extend(delay_ms.map(|delay_ms| (step.clone(), at_a_time / delay_ms * 1e3)));
        let runs = record.0["pgbench"].as_array().unwrap().iter();
        let of_row = |run: &&Value| run["workload"] == row.workload && run["rung"] == *row.rung;
        let runs: Vec<&Value> = runs.filter(of_row).collect();
        if !runs.is_empty() && !row.scene.ends_with(", pipelined") {
            of_pgbench.push((
                step,
                median_of(&runs, |run| number(&run["statements_per_second"])),
            ));
        }
    }
    vec![("ceiling", ceilings), ("pgbench", of_pgbench)]
}

pub(crate) fn share_of_ceiling(plot: &Plot, rows: &[&Row<'_>], record: Record<'_>) -> usize {
    let limits = limits(record, rows);
    let (_, limits) = limits
        .iter()
        .find(|(_, limits)| !limits.is_empty())
        .unwrap();
    let mut checked = 0;
    for row in rows.iter().filter(|row| !is_open(row.rung)) {
        let step = rung_figure(row.rung);
        let (_, limit) = limits.iter().find(|(of, _)| *of == step).unwrap();
        let share = 100.0 * median_of(&row.valid_windows(), per_second) / limit;
        checked += assert_at_step(plot, (&row.label, "bar", false), &step, share);
    }
    checked
}
