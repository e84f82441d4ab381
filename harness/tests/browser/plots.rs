//! Every number on a report's page is the one in campaign.json: plots.

use serde_json::Value;

use crate::reading::{Page, Plot};
use crate::record::{
    MIB, Record, Row, each, is_open, median_of, number, rung_figure, rung_in_words, switches,
};
use crate::{plot_tables, throughput};

/// A page has its figures to six digits.
const PRECISION: f64 = 5.1e-6;

pub(crate) fn near(shown: f64, figure: f64) -> bool {
    (shown - figure).abs() <= PRECISION * figure.abs()
}

/// Sorted, so that an order does not matter.
#[track_caller]
pub(crate) fn assert_near(shown: &[f64], figures: &[f64], what: &str) {
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (shown, figures) = (sorted(shown), sorted(figures));
    let same = shown.len() == figures.len()
        && shown
            .iter()
            .zip(&figures)
            .all(|(shown, figure)| near(*shown, *figure));
    assert!(
        same,
        "{what}: {shown:?} in the plot, {figures:?} in the record"
    );
}

/// All plots, each by what its kind is to show, and each beside its table.
pub(crate) fn assert_plots(page: &Page, record: Record<'_>) {
    let rows = record.rows();
    let mut checked = 0;
    for plot in &page.plots {
        let (scene, _) = plot.title.rsplit_once(": ").unwrap();
        let scene = scene.split(" at ").next().unwrap();
        let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.scene == scene).collect();
        assert!(!rows.is_empty(), "{}: of nothing in the record", plot.title);
        checked += match plot.kind.as_str() {
            "throughput" => throughput::by_concurrency(plot, &rows, record),
            "ceiling" => throughput::share_of_ceiling(plot, &rows, record),
            "percentiles" => percentiles(plot, &rows),
            "rate" => rate(plot, &rows),
            "cost" => cost(plot, &rows),
            "stages" => stages(plot, &rows),
            "timeline" => timeline(plot, &rows),
            other => panic!("a plot that no test knows: {other}"),
        };
        if let Some(table) = &plot.table {
            plot_tables::assert_same(plot, table);
        }
    }
    assert!(checked > 0, "nothing was compared");
}

/// The y of a point of a plot with steps: where the step of this word is.
pub(crate) fn at_step(plot: &Plot, points: &[Vec<f64>], step: &str) -> Vec<f64> {
    let place = plot.x.steps.iter().position(|of| of == step);
    let place = place.unwrap_or_else(|| panic!("{}: no step {step}", plot.title));
    let there = points
        .iter()
        .filter(|point| point[0].round() == place as f64);
    there.map(|point| point[1]).collect()
}

/// What a plot has of a name at a step, and that the record has it too.
#[track_caller]
pub(crate) fn assert_at_step(
    plot: &Plot,
    (name, form, dashed): (&str, &str, bool),
    step: &str,
    figure: f64,
) -> usize {
    let points = plot.points(name, form, dashed).unwrap_or_default();
    let expected: Vec<f64> = Some(figure)
        .filter(|figure| figure.is_finite())
        .into_iter()
        .collect();
    let what = format!("{}: {name} at {step}", plot.title);
    assert_near(&at_step(plot, points, step), &expected, &what);
    expected.len()
}

/// Medians of the windows at each share of the requests that all of them have.
fn percentiles(plot: &Plot, rows: &[&Row<'_>]) -> usize {
    let mut checked = 0;
    for row in rows {
        if !plot
            .title
            .contains(&format!(" at {}: ", rung_in_words(row.rung)))
        {
            continue;
        }
        for (field, dashed) in [
            ("response_percentiles", false),
            ("service_percentiles", true),
        ] {
            let windows = row.windows();
            let all: Vec<(f64, f64)> = windows
                .iter()
                .flat_map(|window| window[field].as_array().unwrap())
                .map(|point| (number(&point["share"]), number(&point["ns"]) / 1e6))
                .collect();
            let points = plot.points(&row.label, "line", dashed).unwrap_or_default();
            let mut shares: Vec<f64> = all
                .iter()
                .map(|(share, _)| *share)
                .filter(|share| *share < 1.0)
                .collect();
            shares.sort_by(f64::total_cmp);
            shares.dedup();
            let of_share = |share: f64| {
                let times = all.iter().filter(|(of, _)| *of == share);
                times.map(|(_, ms)| *ms).collect::<Vec<_>>()
            };
            shares.retain(|share| of_share(*share).len() == windows.len());
            let what = format!("{}: {} {field}", plot.title, row.label);
            let places: Vec<f64> = shares.iter().map(|share| 1.0 / (1.0 - share)).collect();
            assert_near(
                &points.iter().map(|point| point[0]).collect::<Vec<_>>(),
                &places,
                &what,
            );
            for (point, share) in points.iter().zip(&shares) {
                assert_near(
                    &point[1..],
                    &[crate::record::median(of_share(*share))],
                    &what,
                );
            }
            checked += points.len();
        }
    }
    checked
}

fn rate(plot: &Plot, rows: &[&Row<'_>]) -> usize {
    let mut checked = 0;
    for row in rows.iter().filter(|row| is_open(row.rung)) {
        let step = rung_figure(row.rung);
        for (field, beyond, dashed) in [("p99", 0.01, false), ("p50", 0.5, true)] {
            let enough = |window: &&Value| {
                (beyond * number(&window["counts"]["correct"]) + 1e-6).floor() >= 10.0
            };
            let windows: Vec<&Value> = row.valid_windows().into_iter().filter(enough).collect();
            let middle = median_of(&windows, |window| {
                number(&window["response_ns"][field]) / 1e6
            });
            checked += assert_at_step(plot, (&row.label, "line", dashed), &step, middle);
        }
        let not_held = row.trials.iter().filter(|trial| {
            let mut checks = trial["checks"].as_array().unwrap().iter();
            checks.any(|check| check["code"] == "RATE" && check["outcome"] == "tripped")
                && trial["window"].is_object()
        });
        let slowest = not_held.map(|trial| number(&trial["window"]["response_ns"]["p99"]) / 1e6);
        let slowest: Vec<f64> = slowest.reduce(f64::max).into_iter().collect();
        let mut series = plot.series.iter();
        let hollow = series.find(|series| series.name == row.label && series.hollow);
        let shown = hollow.map_or(Vec::new(), |hollow| at_step(plot, &hollow.points, &step));
        assert_near(
            &shown,
            &slowest,
            &format!("{}: not held by {} at {step}", plot.title, row.label),
        );
        checked += slowest.len();
    }
    checked
}

fn cost(plot: &Plot, rows: &[&Row<'_>]) -> usize {
    let of = |window: &Value| match plot.title.rsplit_once(": ").unwrap().1 {
        "CPU time of the server for a request" => {
            each(window, number(&window["server"]["cpu_seconds"]) * 1e6)
        }
        "CPU time of PostgreSQL for a request" => window["database_cpu_seconds"]
            .as_f64()
            .map_or(f64::NAN, |seconds| each(window, seconds * 1e6)),
        "Threads of the server" => number(&window["server"]["threads"]),
        "Resident memory of the server" => number(&window["server"]["rss_bytes"]) / MIB,
        "Context switches of the server for a request" => each(window, switches(window)),
        other => panic!("a cost that no test knows: {other}"),
    };
    let mut checked = 0;
    for row in rows {
        let figures: Vec<f64> = row.windows().into_iter().map(of).collect();
        let middle = match figures.iter().any(|figure| figure.is_nan()) {
            true => f64::NAN,
            false => crate::record::median(figures),
        };
        checked += assert_at_step(
            plot,
            (&row.label, "bar", false),
            &rung_in_words(row.rung),
            middle,
        );
    }
    checked
}

const STAGES: [&str; 5] = [
    "admission",
    "connection",
    "database",
    "handover",
    "encoding",
];

fn stages(plot: &Plot, rows: &[&Row<'_>]) -> usize {
    let mut checked = 0;
    for row in rows {
        let windows = row.windows();
        if windows.iter().any(|window| window["stages"].is_null()) {
            continue;
        }
        let step = format!("{}, {}", row.label, rung_in_words(row.rung));
        let mean = |window: &Value, stage: &str| number(&window["stages"][stage]["mean"]);
        for stage in STAGES {
            let middle = median_of(&windows, |window| mean(window, stage) / 1e6);
            checked += assert_at_step(plot, (stage, "bar", false), &step, middle);
        }
        let rest = median_of(&windows, |window| {
            let inside: f64 = STAGES.iter().map(|stage| mean(window, stage)).sum();
            (number(&window["service_ns"]["mean"]) - inside).max(0.0) / 1e6
        });
        checked += assert_at_step(plot, ("HTTP and wire", "bar", false), &step, rest);
    }
    checked
}

/// The sums and the sizes of all seconds; where they stand is for the eye.
fn timeline(plot: &Plot, rows: &[&Row<'_>]) -> usize {
    let seconds = |row: &Row<'_>, field: &str| -> Vec<f64> {
        let windows = row.windows().into_iter();
        let seconds = windows.flat_map(|window| window["load"].as_array().unwrap());
        seconds.map(|second| number(&second[field])).collect()
    };
    let mut labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut checked = 0;
    let shown = |points: Option<&[Vec<f64>]>| -> Vec<f64> {
        points
            .unwrap_or_default()
            .iter()
            .map(|point| point[1])
            .collect()
    };
    for label in labels {
        let of_label = rows.iter().filter(|row| row.label == label);
        let expected: Vec<f64> = of_label.flat_map(|row| seconds(row, "correct")).collect();
        assert_near(
            &shown(plot.points(label, "scatter", false)),
            &expected,
            &format!("{}: {label}", plot.title),
        );
        checked += expected.len();
    }
    for field in ["shed", "failed"] {
        let all = rows.iter().flat_map(|row| seconds(row, field));
        let expected: Vec<f64> = all.filter(|count| *count > 0.0).collect();
        assert_near(
            &shown(plot.points(field, "bar", false)),
            &expected,
            &format!("{}: {field}", plot.title),
        );
        checked += expected.len();
    }
    let windows = rows.iter().flat_map(|row| row.windows());
    let begun = windows
        .flat_map(|window| window["series"].as_array().unwrap())
        .filter(|second| second["checkpoints"].as_u64() > Some(0))
        .count();
    let marks = plot.points("checkpoint", "mark", false).unwrap_or_default();
    assert_eq!(marks.len(), begun, "{}: checkpoints", plot.title);
    checked + begun
}
