//! The rows of one table: a server at a rung, medians over the blocks; and beside them what theory allows.

use stats::{Firmness, Spread, firmness, median};

use crate::campaign::{Campaign, Trial, Window};
use crate::checks::Verdict;
use crate::figures::windows;
use crate::rung::Rung;
use crate::table::each;
use crate::theory::Bound;
use crate::verdicts::apart;

/// Columns, each with whether it is text rather than a figure.
pub type Header = &'static [(&'static str, bool)];

const CLOSED: Header = &[
    ("conns", false),
    ("server", true),
    ("req/s", false),
    ("±", false),
    ("p50 ms", false),
    ("p99 ms", false),
    ("p99.9 ms", false),
    ("CPU µs/req", false),
    ("DB µs/req", false),
    ("switches/req", false),
    ("threads", false),
    ("RSS MiB", false),
    ("SQL/tx/trips", false),
    ("verdict", true),
];

const OPEN: Header = &[
    ("offered/s", false),
    ("server", true),
    ("achieved/s", false),
    ("completed", false),
    ("p50 ms", false),
    ("p99 ms", false),
    ("p99.9 ms", false),
    ("service p99", false),
    ("CPU µs/req", false),
    ("DB µs/req", false),
    ("switches/req", false),
    ("threads", false),
    ("RSS MiB", false),
    ("verdict", true),
];

/// Of the table of closed or of open rungs.
pub fn header(open: bool) -> Header {
    if open { OPEN } else { CLOSED }
}

/// The columns that a narrow terminal does without, the least important first. Rung, server, what is compared and the
/// verdict always stay.
pub fn dispensable(open: bool) -> &'static [&'static str] {
    if open {
        &[
            "RSS MiB",
            "threads",
            "switches/req",
            "DB µs/req",
            "service p99",
            "p50 ms",
            "p99.9 ms",
            "CPU µs/req",
            "completed",
        ]
    } else {
        &[
            "SQL/tx/trips",
            "RSS MiB",
            "threads",
            "switches/req",
            "DB µs/req",
            "p50 ms",
            "p99.9 ms",
            "CPU µs/req",
            "±",
            "p99 ms",
        ]
    }
}

/// The row of one server at one rung. `trials` are never none.
pub fn measured(campaign: &Campaign, trials: &[&Trial]) -> Vec<String> {
    let first = trials[0];
    let windows = windows(trials);
    let verdict = trials.iter().map(|trial| trial.verdict).max();
    let verdict = verdict.unwrap_or(Verdict::Invalid).name().to_owned();
    let mark = if apart(trials).is_empty() { "" } else { "*" };
    let mut row = vec![first.rung.figure(), first.label()];
    let p99 = percentile(&windows, 0.99, |window| window.response_ns.p99);
    if first.rung.is_open() {
        row.push(cell(rate(&windows).map(|rate| rate.median), 0));
        row.push(completed(&windows));
        row.push(percentile(&windows, 0.50, |window| window.response_ns.p50));
        row.push(format!("{p99}{mark}"));
        row.push(percentile(&windows, 0.999, |window| {
            window.response_ns.p99_9
        }));
        row.push(percentile(&windows, 0.99, |window| window.service_ns.p99));
        row.extend(costs(&windows));
    } else {
        row.push(format!(
            "{}{mark}",
            cell(rate(&windows).map(|rate| rate.median), 0)
        ));
        row.push(half_range(&windows));
        row.push(percentile(&windows, 0.50, |window| window.response_ns.p50));
        row.push(p99);
        row.push(percentile(&windows, 0.999, |window| {
            window.response_ns.p99_9
        }));
        row.extend(costs(&windows));
        row.push(round_trips(campaign, first, &windows));
    }
    row.push(verdict);
    row
}

/// The row of what no server made.
pub fn theoretical(rung: Rung, bound: &Bound) -> Vec<String> {
    let header = header(rung.is_open());
    let mut row = vec![String::new(); header.len()];
    row[0] = rung.figure();
    row[1].clone_from(&bound.label);
    row[2] = cell(bound.requests_per_second, 0);
    for (index, name) in ["p50 ms", "p99 ms", "p99.9 ms"].into_iter().enumerate() {
        let column = header.iter().position(|(column, _)| *column == name);
        if let Some(column) = column {
            row[column] = bound
                .response_ms
                .map_or_else(String::new, |response| format!("{:.3}", response[index]));
        }
    }
    row
}

fn rate(windows: &[&Window]) -> Option<Spread> {
    let rates: Vec<f64> = windows
        .iter()
        .map(|window| window.requests_per_second)
        .collect();
    Spread::of(&rates)
}

fn half_range(windows: &[&Window]) -> String {
    let spread = rate(windows).filter(|_| windows.len() > 1);
    spread.map_or_else(dash, |rate| format!("{:.1} %", 100.0 * rate.half_range()))
}

/// Of all blocks together, so that one bad block shows.
fn completed(windows: &[&Window]) -> String {
    let scheduled: u64 = windows.iter().map(|window| window.counts.scheduled).sum();
    let correct: u64 = windows.iter().map(|window| window.counts.correct).sum();
    if scheduled == 0 {
        return dash();
    }
    if correct == scheduled {
        return "100 %".to_owned();
    }
    // Never rounded up to all.
    let share = (1e4 * correct as f64 / scheduled as f64).floor() / 1e2;
    format!("{share:.2} %")
}

fn costs(windows: &[&Window]) -> [String; 5] {
    // Without a right answer every cost is infinite, and one such block among others does not hide them.
    let of = |figure: fn(&Window) -> Option<f64>| {
        let costs = windows.iter().map(|window| figure(window));
        let costs: Vec<f64> = costs.map(|cost| cost.unwrap_or(f64::INFINITY)).collect();
        median(&costs)
    };
    [
        cell(of(Window::cpu_us_each), 1),
        cell(of(Window::database_cpu_us_each), 1),
        cell(of(Window::switches_each), 2),
        cell(of(|window| Some(window.server.threads as f64)), 0),
        cell(of(|window| Some(window.server.rss_mib())), 0),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

/// A dash where there is no figure.
pub fn cell(figure: Option<f64>, decimals: usize) -> String {
    figure
        .filter(|figure| figure.is_finite())
        .map_or_else(dash, |figure| format!("{figure:.decimals$}"))
}

/// The median over the trials of a percentile; `~` where too few requests lie beyond it to be firm.
fn percentile(windows: &[&Window], quantile: f64, latency_ns: fn(&Window) -> u64) -> String {
    let fewest = windows
        .iter()
        .map(|window| window.counts.correct)
        .min()
        .unwrap_or(0);
    let mark = match firmness(quantile, fewest) {
        Firmness::Firm => "",
        Firmness::Tentative => "~",
        Firmness::Absent => return dash(),
    };
    let milliseconds: Vec<f64> = windows
        .iter()
        .map(|window| latency_ns(window) as f64 / 1e6)
        .collect();
    median(&milliseconds).map_or_else(dash, |value| format!("{mark}{value:.3}"))
}

/// Statements, transactions and round trips per request: the first two counted in the trials, the last beforehand.
fn round_trips(campaign: &Campaign, trial: &Trial, windows: &[&Window]) -> String {
    let statements: Option<Vec<f64>> = windows
        .iter()
        .map(|window| window.statements_per_request)
        .collect();
    let transactions: Option<Vec<f64>> = windows
        .iter()
        .map(|window| window.transactions_per_request)
        .collect();
    let inspected = campaign.inspections.iter().find(|inspection| {
        inspection.workload == trial.workload
            && inspection.server == trial.server
            && inspection.profile == trial.profile
    });
    format!(
        "{}/{}/{}",
        each(statements.and_then(|statements| median(&statements))),
        each(transactions.and_then(|transactions| median(&transactions))),
        each(inspected.and_then(|inspection| inspection.round_trips_per_request)),
    )
}
