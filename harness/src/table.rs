//! The table at the end of a run: a row for each server and rung, medians over the blocks.

use comfy_table::{CellAlignment, Table, presets};
use stats::{Firmness, Spread, firmness, median};

use crate::blocks::counting;
use crate::campaign::{Campaign, Trial, Window};
use crate::checks::{Check, Outcome, Verdict};
use crate::process::Profile;
use crate::rung::Rung;

const HEADER: [&str; 14] = [
    "conns",
    "server",
    "req/s",
    "±",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "CPU µs/req",
    "DB µs/req",
    "switches/req",
    "threads",
    "RSS MiB",
    "SQL/tx/trips",
    "verdict",
];
/// Columns of text; the others are figures.
const TEXT_COLUMNS: [usize; 2] = [1, 13];

/// Prints a campaign's tables and what there is to know about them on stdout.
pub fn print(campaign: &Campaign) {
    for obstacle in &campaign.unpublishable {
        println!("not publishable: {obstacle}");
    }
    for ladder in &campaign.plan.ladders {
        let (open, closed): (Vec<Rung>, Vec<Rung>) =
            ladder.rungs.iter().partition(|rung| rung.is_open());
        for (kind, rungs) in [("closed", closed), ("open", open)] {
            if !rungs.is_empty() {
                print_rungs(campaign, &ladder.workload, kind, &rungs);
            }
        }
        for line in notes(campaign, &ladder.workload) {
            println!("{line}");
        }
    }
}

fn print_rungs(campaign: &Campaign, workload: &str, kind: &str, rungs: &[Rung]) {
    let plan = &campaign.plan;
    println!(
        "\n{workload}: {kind} loop, pool of {}, {} block(s) of {} s after {} s of warm-up; medians over the blocks",
        plan.pool, plan.blocks, plan.window_seconds, plan.warmup_seconds
    );
    println!("{}", of_rungs(campaign, workload, rungs));
}

/// Of the trials that count.
pub fn gravest(campaign: &Campaign) -> Verdict {
    let verdicts = counting(&campaign.trials).map(|trial| trial.verdict);
    verdicts.max().unwrap_or(Verdict::Valid)
}

/// The rows of one workload's rungs of one kind, as text.
fn of_rungs(campaign: &Campaign, workload: &str, rungs: &[Rung]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for (index, &rung) in rungs.iter().enumerate() {
        if index > 0 {
            table.add_row([""; HEADER.len()]);
        }
        for server in &campaign.plan.servers {
            for &profile in &campaign.plan.profiles {
                let trials = trials_of(campaign, workload, server, profile, rung);
                if !trials.is_empty() {
                    table.add_row(row(campaign, &trials));
                }
            }
        }
    }
    for column in table
        .column_iter_mut()
        .enumerate()
        .filter(|(index, _)| !TEXT_COLUMNS.contains(index))
    {
        column.1.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// What a reader of the table has to know: why rows are not valid, how near the ceiling they came, and what a library
/// does that no setting turns off.
fn notes(campaign: &Campaign, workload: &str) -> Vec<String> {
    let trials = || {
        campaign
            .trials
            .iter()
            .filter(|trial| trial.workload == workload)
    };
    let tripped = trials().flat_map(|trial| {
        let tripped = trial
            .checks
            .iter()
            .filter(|check| check.outcome == Outcome::Tripped);
        tripped.map(move |check| reason(trial, check))
    });
    let mut lines: Vec<String> = tripped.collect();
    lines.extend(ceilings(campaign, workload));
    lines.extend(library_notes(campaign));
    lines
}

/// For a workload that holds its connection for a known time: the share of `pool / delay`, and of the pool divided by
/// the mean time PostgreSQL measured for the statement.
fn ceilings(campaign: &Campaign, workload: &str) -> Vec<String> {
    let pool = campaign.plan.pool as f64;
    let mut lines = Vec::new();
    for trial in campaign
        .trials
        .iter()
        .filter(|trial| trial.workload == workload && trial.block == 0)
    {
        let all = trials_of(
            campaign,
            workload,
            &trial.server,
            trial.profile,
            trial.rung,
        );
        let figure = |of: &dyn Fn(&Window) -> Option<f64>| {
            let values: Option<Vec<f64>> = all
                .iter()
                .filter_map(|trial| trial.window.as_ref())
                .map(of)
                .collect();
            values.and_then(|values| median(&values))
        };
        let Some(delay_ms) = trial.window.as_ref().and_then(|window| window.delay_ms) else {
            continue;
        };
        let ceiling = pool / delay_ms * 1000.0;
        let share = figure(&|window| Some(100.0 * window.requests_per_second / ceiling));
        let effective = figure(&|window| {
            let mean_ms = window
                .database
                .and_then(|database| database.mean_execution_ms())?;
            Some(100.0 * window.requests_per_second / (pool / mean_ms * 1000.0))
        });
        lines.push(format!(
            "{} at {}: {} % of the ceiling of {ceiling:.0}/s, {} % of the effective one (pool / measured query time)",
            label(&trial.server, trial.profile),
            trial.rung,
            cell(share, 1),
            cell(effective, 1),
        ));
    }
    lines
}

/// The notes that a server gives in `/about`.
fn library_notes(campaign: &Campaign) -> Vec<String> {
    let mut lines = Vec::new();
    for server in &campaign.servers {
        for (profile, about) in &server.says {
            let notes = about["notes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|note| note.as_str());
            lines.extend(notes.map(|note| format!("{}: {note}", label(&server.name, *profile))));
        }
    }
    lines
}

fn reason(trial: &Trial, check: &Check) -> String {
    format!(
        "{} {} at {}, block {}: {:?}: {}",
        label(&trial.server, trial.profile),
        check.verdict.name(),
        trial.rung,
        trial.block + 1,
        check.code,
        check.figure
    )
}

fn trials_of<'a>(
    campaign: &'a Campaign,
    workload: &str,
    server: &str,
    profile: Profile,
    rung: Rung,
) -> Vec<&'a Trial> {
    let wanted = |trial: &&Trial| {
        trial.workload == workload
            && trial.server == server
            && trial.profile == profile
            && trial.rung == rung
    };
    counting(&campaign.trials).filter(wanted).collect()
}

/// The server's name; its profile only where it is not the usual one.
pub fn label(server: &str, profile: Profile) -> String {
    match profile {
        Profile::Parity => server.to_owned(),
        Profile::Defaults => format!("{server} (defaults)"),
    }
}

fn row(campaign: &Campaign, trials: &[&Trial]) -> Vec<String> {
    let first = trials[0];
    let windows: Vec<&Window> = trials
        .iter()
        .filter_map(|trial| trial.window.as_ref())
        .collect();
    let of = |figure: fn(&Window) -> f64| {
        median(
            &windows
                .iter()
                .map(|window| figure(window))
                .collect::<Vec<_>>(),
        )
    };
    let rate = Spread::of(
        &windows
            .iter()
            .map(|window| window.requests_per_second)
            .collect::<Vec<_>>(),
    );
    vec![
        first.rung.figure(),
        label(&first.server, first.profile),
        cell(rate.map(|rate| rate.median), 0),
        rate.filter(|_| windows.len() > 1)
            .map_or_else(dash, |rate| format!("{:.1} %", 100.0 * rate.half_range())),
        percentile(&windows, 0.50, |window| window.response_ns.p50),
        percentile(&windows, 0.99, |window| window.response_ns.p99),
        percentile(&windows, 0.999, |window| window.response_ns.p99_9),
        cell(
            of(|window| microseconds_each(window, window.server.cpu_seconds)),
            1,
        ),
        cell(
            of(|window| microseconds_each(window, window.database_cpu_seconds.unwrap_or(f64::NAN))),
            1,
        ),
        cell(of(switches_each), 2),
        cell(of(|window| window.server.threads as f64), 0),
        cell(
            of(|window| window.server.rss_bytes as f64 / f64::from(1 << 20)),
            0,
        ),
        round_trips(campaign, first, &windows),
        trials
            .iter()
            .map(|trial| trial.verdict)
            .max()
            .unwrap_or(Verdict::Invalid)
            .name()
            .to_owned(),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn cell(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(dash, |figure| format!("{figure:.decimals$}"))
}

fn microseconds_each(window: &Window, seconds: f64) -> f64 {
    seconds * 1e6 / window.counts.correct as f64
}

fn switches_each(window: &Window) -> f64 {
    let switches = window.server.voluntary_switches + window.server.involuntary_switches;
    switches as f64 / window.counts.correct as f64
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
    let transactions: Vec<f64> = windows
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
        each(median(&transactions)),
        each(inspected.and_then(|inspection| inspection.round_trips_per_request)),
    )
}

/// A whole number where it is one to two decimals.
pub fn each(count: Option<f64>) -> String {
    match count {
        None => "?".to_owned(),
        Some(count) if (count - count.round()).abs() < 0.005 => format!("{count:.0}"),
        Some(count) => format!("{count:.2}"),
    }
}
