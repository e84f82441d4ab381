//! Every number on a report's page is the one in campaign.json: tables.

use serde_json::Value;

use crate::reading::{Page, Table};
use crate::record::{
    MIB, Record, Row, each, is_open, label, median_of, number, rung_figure, rung_in_words,
    switches, verdict_in_words,
};

/// Whether a text shows this figure, to as many decimals as it has.
pub(crate) fn shows(text: &str, figure: f64) -> bool {
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let step = 10_f64.powi(-i32::try_from(decimals).unwrap());
    text.parse::<f64>()
        .is_ok_and(|shown| (shown - figure).abs() <= 0.500_001 * step)
}

#[track_caller]
fn assert_shows(text: &str, figure: f64, what: &str) {
    if figure.is_nan() {
        assert_eq!(text, "-", "{what}");
    } else {
        assert!(
            shows(text, figure),
            "{what}: {text} on the page, {figure} in the record"
        );
    }
}

#[track_caller]
fn table<'p>(page: &'p Page, caption: &str) -> &'p Table {
    let mut tables = page.tables.iter();
    let found = tables.find(|table| table.caption == caption);
    found.unwrap_or_else(|| panic!("no table {caption:?}"))
}

/// The trials of a row, attempts that do not count among them, with the figure of every check.
pub(crate) fn assert_trials(page: &Page, record: Record<'_>) {
    let mut shown = 0;
    for row in record.rows() {
        let what = format!(
            "{} at {}, {}",
            row.label,
            rung_in_words(row.rung),
            row.workload
        );
        let figures = table(page, &format!("{what}: trials"));
        let checks = table(page, &format!("{what}: checks (✓ passed, ✗ tripped)"));
        assert_eq!(figures.rows.len(), checks.rows.len(), "{what}");
        shown += figures.rows.len();
        for (figures_row, checks_row) in figures.rows.iter().zip(&checks.rows) {
            let trial = trial_of(record, &row, figures_row);
            assert_eq!(figures_row[..2], checks_row[..2], "{what}");
            for (name, text) in figures.header.iter().zip(figures_row) {
                assert_figure_of_trial(name, text, trial, &what);
            }
            let outcomes = checks.header.iter().zip(checks_row).skip(2);
            for (code, text) in outcomes {
                assert_check(code, text, trial, &what);
            }
            let kept = trial["checks"].as_array().unwrap().len();
            assert_eq!(
                checks_row[2..].iter().filter(|text| *text != "-").count(),
                kept,
                "{what}"
            );
        }
    }
    assert_eq!(shown, record.trials().count(), "trials on the page");
}

fn trial_of<'a>(record: Record<'a>, row: &Row<'_>, cells: &[String]) -> &'a Value {
    let place = [&cells[0], &cells[1]].map(|text| text.parse::<u64>().unwrap() - 1);
    let mut trials = record.trials();
    let found = trials.find(|trial| {
        trial["workload"] == row.workload
            && trial["rung"] == *row.rung
            && label(trial) == row.label
            && [&trial["block"], &trial["attempt"]].map(|at| at.as_u64().unwrap()) == place
    });
    found.unwrap_or_else(|| panic!("{cells:?} is no trial of the record"))
}

#[track_caller]
fn assert_figure_of_trial(name: &str, text: &str, trial: &Value, what: &str) {
    let what = format!("{what}: {name}");
    let window = &trial["window"];
    let of_window = |pointer: &str, divisor: f64| match window.is_object() {
        true => number(window.pointer(pointer).unwrap()) / divisor,
        false => f64::NAN,
    };
    let figure = match name {
        "block" | "attempt" | "position" => number(&trial[name]) + 1.0,
        "req/s" => of_window("/requests_per_second", 1.0),
        "p50 ms" => of_window("/response_ns/p50", 1e6),
        "p90 ms" => of_window("/response_ns/p90", 1e6),
        "p99 ms" => of_window("/response_ns/p99", 1e6),
        "p99.9 ms" => of_window("/response_ns/p99_9", 1e6),
        "max ms" => of_window("/response_ns/max", 1e6),
        "service p50" => of_window("/service_ns/p50", 1e6),
        "service p99" => of_window("/service_ns/p99", 1e6),
        "scheduled" | "correct" | "wrong" | "http error" | "shed" | "timeout" | "transport"
        | "unsent" | "unfinished" => of_window(&format!("/counts/{}", name.replace(' ', "_")), 1.0),
        "CPU s" => of_window("/server/cpu_seconds", 1.0),
        "switches" if window.is_object() => switches(window),
        "switches" => f64::NAN,
        "threads" => of_window("/server/threads", 1.0),
        "RSS MiB" => of_window("/server/rss_bytes", MIB),
        "verdict" => return assert_eq!(text, verdict_in_words(&trial["verdict"]), "{what}"),
        other => panic!("a column that no test knows: {other}"),
    };
    assert_shows(text, figure, &what);
}

#[track_caller]
fn assert_check(code: &str, text: &str, trial: &Value, what: &str) {
    let mut checks = trial["checks"].as_array().unwrap().iter();
    let expected = match checks.find(|check| check["code"] == code) {
        None => "-".to_owned(),
        Some(check) => {
            let mark = match check["outcome"].as_str() {
                Some("passed") => "✓ ",
                Some("tripped") => "✗ ",
                _ => "",
            };
            // The browser's text has no spaces at its ends.
            format!("{mark}{}", check["figure"].as_str().unwrap().trim())
        }
    };
    assert_eq!(text, expected, "{what}: {code}");
}

/// Every server at every rung, and what theory and pgbench say beside it.
pub(crate) fn assert_rows(page: &Page, record: Record<'_>) {
    let mut measured = 0;
    for row in record.rows() {
        let kind = if is_open(row.rung) { "open" } else { "closed" };
        let table = table(
            page,
            &format!("{}, {kind} loop: medians over the blocks", row.scene),
        );
        let is = |cells: &&Vec<String>| cells[0] == rung_figure(row.rung) && cells[1] == row.label;
        let found: Vec<&Vec<String>> = table.rows.iter().filter(is).collect();
        let [cells] = found[..] else {
            panic!("{} at {}: {} rows", row.label, row.rung, found.len())
        };
        measured += 1;
        for (name, text) in table.header.iter().zip(cells).skip(2) {
            let what = format!("{} at {}: {name}", row.label, rung_in_words(row.rung));
            assert_figure_of_row(name, text, &row, record, &what);
        }
    }
    let tables = page.tables.iter();
    let rows = tables
        .filter(|table| table.caption.ends_with(": medians over the blocks"))
        .flat_map(|table| &table.rows);
    let others: Vec<&Vec<String>> = rows
        .clone()
        .filter(|cells| is_of_no_server(&cells[1]))
        .collect();
    assert_eq!(
        rows.count(),
        measured + others.len(),
        "rows of neither server nor theory"
    );
    for cells in others {
        assert_bound(cells, record);
    }
}

fn is_of_no_server(name: &str) -> bool {
    ["ceiling", "pgbench, ", "M/D/"]
        .iter()
        .any(|of| name.starts_with(of))
}

#[track_caller]
fn assert_figure_of_row(name: &str, text: &str, row: &Row<'_>, record: Record<'_>, what: &str) {
    let windows = row.windows();
    let median = |pointer: &'static str, divisor: f64| {
        median_of(&windows, |window| {
            number(window.pointer(pointer).unwrap()) / divisor
        })
    };
    let correct: Vec<f64> = windows
        .iter()
        .map(|window| number(&window["counts"]["correct"]))
        .collect();
    let fewest = correct.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let plain = text.trim_end_matches('*').trim_start_matches('~');
    let percentile = |pointer, quantile: f64| {
        let beyond = (1.0 - quantile) * fewest + 1e-6;
        assert_eq!(
            text.starts_with('~'),
            (10.0..100.0).contains(&beyond.floor()),
            "{what}: {text}, {beyond} beyond"
        );
        if beyond.floor() < 10.0 {
            f64::NAN
        } else {
            median(pointer, 1e6)
        }
    };
    let figure = match name {
        "req/s" | "achieved/s" => median("/requests_per_second", 1.0),
        "±" => return assert_half_range(text, &windows, what),
        "completed" => return assert_completed(text, &windows, what),
        "p50 ms" => percentile("/response_ns/p50", 0.5),
        "p99 ms" => percentile("/response_ns/p99", 0.99),
        "p99.9 ms" => percentile("/response_ns/p99_9", 0.999),
        "service p99" => percentile("/service_ns/p99", 0.99),
        "CPU µs/req" => median_of(&windows, |window| {
            each(window, number(&window["server"]["cpu_seconds"]) * 1e6)
        }),
        "DB µs/req"
            if windows
                .iter()
                .any(|window| window["database_cpu_seconds"].is_null()) =>
        {
            f64::NAN
        }
        "DB µs/req" => median_of(&windows, |window| {
            each(window, number(&window["database_cpu_seconds"]) * 1e6)
        }),
        "switches/req" => median_of(&windows, |window| each(window, switches(window))),
        "threads" => median("/server/threads", 1.0),
        "RSS MiB" => median("/server/rss_bytes", MIB),
        "SQL/tx/trips" => return assert_trips(text, row, record, what),
        "verdict" => {
            let gravest = ["invalid", "misconfigured", "failed", "valid"]
                .into_iter()
                .find(|verdict| row.trials.iter().any(|trial| trial["verdict"] == *verdict));
            let gravest = Value::from(gravest.unwrap());
            return assert_eq!(text, verdict_in_words(&gravest), "{what}");
        }
        other => panic!("a column that no test knows: {other}"),
    };
    assert_shows(plain, figure, what);
}

#[track_caller]
fn assert_half_range(text: &str, windows: &[&Value], what: &str) {
    let rates: Vec<f64> = windows
        .iter()
        .map(|window| number(&window["requests_per_second"]))
        .collect();
    if rates.len() < 2 {
        return assert_eq!(text, "-", "{what}");
    }
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    let half = 50.0 * (greatest - least) / crate::record::median(rates);
    assert_shows(text.trim_end_matches(" %"), half, what);
}

#[track_caller]
fn assert_completed(text: &str, windows: &[&Value], what: &str) {
    let sum = |of: &str| {
        windows
            .iter()
            .map(|window| number(&window["counts"][of]))
            .sum::<f64>()
    };
    let share = 100.0 * sum("correct") / sum("scheduled");
    if share.is_nan() {
        return assert_eq!(text, "-", "{what}");
    }
    // Rounded down: what is not all is never shown as all.
    let shown: f64 = text.trim_end_matches(" %").parse().unwrap();
    assert!(
        (0.0..0.010_001).contains(&(share - shown + 1e-9)),
        "{what}: {text}, {share}"
    );
    assert_eq!(text == "100 %", share == 100.0, "{what}");
}

#[track_caller]
fn assert_trips(text: &str, row: &Row<'_>, record: Record<'_>, what: &str) {
    let windows = row.windows();
    let figures: Vec<&str> = text.split('/').collect();
    for (shown, field) in figures
        .iter()
        .zip(["statements_per_request", "transactions_per_request"])
    {
        match windows.iter().any(|window| window[field].is_null()) {
            true => assert_eq!(*shown, "?", "{what}"),
            // A whole number is shown as one, if it is near enough.
            false => {
                let figure = median_of(&windows, |window| number(&window[field]));
                let near = shown
                    .parse::<f64>()
                    .is_ok_and(|shown| (shown - figure).abs() <= 0.005_001);
                assert!(near, "{what}: {text}, {figure}");
            }
        }
    }
    let mut inspections = record.0["inspections"].as_array().unwrap().iter();
    let inspected = inspections.find(|of| {
        of["workload"] == row.workload
            && of["server"] == row.server
            && of["profile"] == row.trials[0]["profile"]
    });
    let trips = inspected.and_then(|of| of["round_trips_per_request"].as_f64());
    match trips {
        Some(trips) => {
            let near = figures[2]
                .parse::<f64>()
                .is_ok_and(|shown| (shown - trips).abs() <= 0.005_001);
            assert!(near, "{what}: {text}, {trips}");
        }
        None => assert_eq!(figures[2], "?", "{what}"),
    }
}

/// What theory says is tested where it is said; here what it says of closed rungs, and pgbench.
#[track_caller]
fn assert_bound(cells: &[String], record: Record<'_>) {
    let what = format!("{} at {}", cells[1], cells[0]);
    if let Some(connections) = cells[1].strip_prefix("pgbench, ") {
        let runs = record.0["pgbench"].as_array().unwrap().iter();
        let of_rung = runs.filter(|run| rung_figure(&run["rung"]) == cells[0]);
        let runs: Vec<&Value> = of_rung.collect();
        assert_shows(
            &cells[2],
            median_of(&runs, |run| number(&run["statements_per_second"])),
            &what,
        );
        let connections: u64 = connections.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(runs[0]["connections"], connections, "{what}");
    } else if cells[1] == "ceiling" {
        let pool = number(&record.0["plan"]["pool"]);
        let at_a_time = cells[0].parse::<f64>().unwrap().min(pool);
        let mut windows = record.trials().map(|trial| &trial["window"]);
        let delay_ms = windows
            .find_map(|window| window["delay_ms"].as_f64())
            .unwrap();
        assert_shows(&cells[2], at_a_time / delay_ms * 1e3, &what);
    }
}

/// Environment, plan, database: every value that the record has, also where it is folded away.
pub(crate) fn assert_environment(page: &Page, record: Record<'_>) {
    let places = [
        "/environment",
        "/generator",
        "/database/source",
        "/database/version",
        "/database/scale",
        "/database/content",
        "/database/between_trials",
        "/database/settings",
        "/plan/preset",
        "/plan/pool",
        "/plan/seed",
        "/plan/cpus/note",
        "/started_at",
        "/lanebench",
        "/unpublishable",
    ];
    let mut missing = Vec::new();
    for place in places {
        let value = record
            .0
            .pointer(place)
            .unwrap_or_else(|| panic!("no {place}"));
        leaves(value, &mut |text| {
            if !page.text.contains(&text) {
                missing.push(format!("{place}: {text}"));
            }
        });
    }
    assert_eq!(missing, [""; 0], "in the record and not on the page");
}

fn leaves(value: &Value, say: &mut impl FnMut(String)) {
    match value {
        Value::Null => {}
        Value::String(text) => say(text.clone()),
        Value::Bool(_) | Value::Number(_) => say(value.to_string()),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, say)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, say)),
    }
}
