//! The tables at the end of a run, with the sentences that close them and what there is to know about them.

use stats::median;

use crate::blocks::counting;
use crate::campaign::{Campaign, Ladder, Trial, Window};
use crate::checks::{self, Check, Verdict};
use crate::class::Class;
use crate::figures::{log_ratios, windows};
use crate::layout::{Columns, Look, lay_out};
use crate::metric::Metric;
use crate::process::Profile;
use crate::rows::{self, cell};
use crate::rung::Rung;
use crate::verdicts::{NoiseFloors, Pair, apart, subjects};
use crate::{interference, sentences, stdout, theory, time_spent, verdicts};

/// Prints a campaign's tables and what there is to know about them on stdout.
pub fn print(campaign: &Campaign) {
    stdout::say(&shown(campaign, Look::of_stdout()));
}

/// As in a file.
pub fn text(campaign: &Campaign) -> String {
    shown(campaign, Look::PLAIN)
}

/// The tables, one for each class of servers and each closed by its sentences, and the notes on each workload.
pub fn shown(campaign: &Campaign, look: Look) -> String {
    let mut lines: Vec<String> = campaign
        .unpublishable
        .iter()
        .map(|obstacle| format!("not publishable: {obstacle}"))
        .collect();
    for ladder in &campaign.plan.ladders {
        let workload = &ladder.workload;
        let (open, closed): (Vec<Rung>, Vec<Rung>) =
            ladder.rungs.iter().partition(|rung| rung.is_open());
        for (kind, rungs) in [("closed", closed), ("open", open)] {
            for class in Class::in_campaign(campaign) {
                let Some(rows) = of_rungs(campaign, workload, &rungs, class, look) else {
                    continue;
                };
                lines.push(heading(campaign, workload, kind));
                lines.extend(class.remark().map(str::to_owned));
                lines.push(rows);
                lines.extend(sentences::of_table(campaign, workload, &rungs, class));
                lines.extend(time_spent::of_rungs(
                    campaign, workload, &rungs, class, look,
                ));
            }
        }
        for class in Class::in_campaign(campaign) {
            lines.extend(interference::shown(campaign, ladder, class, look));
        }
        lines.extend(tripped(campaign, workload));
        lines.extend(notes(campaign, ladder));
    }
    lines.extend(advice(campaign));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn heading(campaign: &Campaign, workload: &str, kind: &str) -> String {
    let plan = &campaign.plan;
    format!(
        "\n{workload}: {kind} loop, pool of {}, {} block(s) of {} s after {} s of warm-up; medians over the blocks",
        plan.pool, plan.blocks, plan.window_seconds, plan.warmup_seconds
    )
}

/// Of the trials that count.
pub fn gravest(campaign: &Campaign) -> Verdict {
    let verdicts = counting(&campaign.trials).map(|trial| trial.verdict);
    verdicts.max().unwrap_or(Verdict::Valid)
}

/// The rows of one workload's rungs of one kind, as text; nothing where the class has none.
fn of_rungs(
    campaign: &Campaign,
    workload: &str,
    rungs: &[Rung],
    class: Class,
    look: Look,
) -> Option<String> {
    let open = rungs.iter().any(|rung| rung.is_open());
    let columns = Columns {
        all: rows::header(open),
        dispensable: rows::dispensable(open),
    };
    let (mut all, mut any) = (Vec::new(), false);
    for (index, &rung) in rungs.iter().enumerate() {
        if index > 0 {
            all.push(vec![String::new(); columns.all.len()]);
        }
        let subjects = class.subjects(campaign, workload, rung);
        any |= !subjects.is_empty();
        all.extend(
            subjects
                .iter()
                .map(|trials| rows::measured(campaign, trials)),
        );
        let bounds = theory::bounds(campaign, workload, rung, class);
        all.extend(bounds.iter().map(|bound| rows::theoretical(rung, bound)));
    }
    any.then(|| lay_out(columns, &all, look))
}

/// What a reader of the tables has to know: which blocks stand apart, what a difference has to
/// exceed, how near the ceiling the servers came, how they scale, and what a library does that no setting turns off.
pub fn notes(campaign: &Campaign, ladder: &Ladder) -> Vec<String> {
    let Ladder {
        workload, rungs, ..
    } = ladder;
    let mut lines = blocks_apart(campaign, ladder);
    let classes = Class::in_campaign(campaign);
    lines.extend(classes.filter_map(|class| noise_floors(campaign, ladder, class)));
    lines.extend(shares_of_ceiling(campaign, ladder));
    lines.extend(theory::scaling(campaign, workload, rungs));
    lines.extend(library_notes(campaign));
    lines
}

fn blocks_apart(campaign: &Campaign, ladder: &Ladder) -> Vec<String> {
    let mut lines = Vec::new();
    for &rung in &ladder.rungs {
        for trials in subjects(campaign, &ladder.workload, rung) {
            let label = trials[0].label();
            let metric = Metric::primary(rung);
            lines.extend(apart(&trials).into_iter().map(|apart| {
                format!(
                    "* {label} at {rung}, block {}: {}, {:.0} robust standard deviations from the median of {}; it counts all the same",
                    apart.block + 1,
                    metric.show(apart.figure),
                    apart.modified_z.abs(),
                    metric.show(apart.median),
                )
            }));
        }
    }
    lines
}

/// What the campaign's A/A pairs of a class show, where there are any and other pairs to judge by it.
fn noise_floors(campaign: &Campaign, ladder: &Ladder, class: Class) -> Option<String> {
    let all = verdicts::pairs(campaign, &ladder.workload, &ladder.rungs, class);
    let is_measured = |pair: &Pair<'_>| {
        pair.identical && !log_ratios(&pair.a, &pair.b, Metric::Throughput).is_empty()
    };
    if !all.iter().any(is_measured) || all.iter().all(|pair| pair.identical) {
        return None;
    }
    let floors = NoiseFloors::of(&[campaign], &ladder.workload, class);
    let each = Metric::ALL.map(|metric| {
        let percent = 100.0 * (floors.in_metric(metric).ratio() - 1.0);
        format!("{} {percent:.1} %", metric.name())
    });
    Some(format!(
        "noise floor by the server that ran under two names: {}",
        each.join(", ")
    ))
}

/// For a workload that holds its connection for a known time: the share of `pool / delay`, and of the pool divided by
/// the mean time PostgreSQL measured for the statement.
fn shares_of_ceiling(campaign: &Campaign, ladder: &Ladder) -> Vec<String> {
    let pool = campaign.plan.pool as f64;
    let mut lines = Vec::new();
    // In an open loop the throughput is the rate that was asked for.
    for &rung in ladder.rungs.iter().filter(|rung| !rung.is_open()) {
        for trials in subjects(campaign, &ladder.workload, rung) {
            let windows = windows(&trials);
            let Some(delay_ms) = windows.iter().find_map(|window| window.delay_ms) else {
                continue;
            };
            let ceiling = pool / delay_ms * 1000.0;
            let share = |of: &dyn Fn(&Window) -> Option<f64>| {
                let shares: Option<Vec<f64>> = windows.iter().map(|window| of(window)).collect();
                cell(shares.and_then(|shares| median(&shares)), 1)
            };
            lines.push(format!(
                "{} at {rung}: {} % of the ceiling of {ceiling:.0}/s, {} % of the effective one (pool / measured query time)",
                trials[0].label(),
                share(&|window| Some(100.0 * window.requests_per_second / ceiling)),
                share(&|window| {
                    let mean_ms = window.database.and_then(|database| database.mean_execution_ms())?;
                    Some(100.0 * window.requests_per_second / (pool / mean_ms * 1000.0))
                }),
            ));
        }
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

/// What to do where the machine was not left alone; nothing where it was.
pub(crate) fn advice(campaign: &Campaign) -> Option<String> {
    let (mut invalid, mut all) = (0, 0);
    for trial in counting(&campaign.trials) {
        all += 1;
        invalid += usize::from(trial.verdict == Verdict::Invalid);
    }
    (invalid > 0).then(|| {
        format!(
            "{invalid} of {all} trials are INVALID: something disturbed the machine, so they say nothing of the servers. Close \
             other programs, look at `lanebench doctor`, and run again; the checks that tripped say what was seen."
        )
    })
}

/// Why rows are not valid: a line for each server, rung and check, with the figure of the first trial. Blocks that were
/// run again have theirs too.
pub(crate) fn tripped(campaign: &Campaign, workload: &str) -> Vec<String> {
    let mut reasons: Vec<(&Trial, &Check, usize)> = Vec::new();
    for trial in campaign
        .trials
        .iter()
        .filter(|trial| trial.workload == workload)
    {
        for check in trial.checks.iter().filter(|check| checks::tripped(check)) {
            let same = |(of, first, _): &&mut (&Trial, &Check, usize)| {
                first.code == check.code
                    && of.server == trial.server
                    && of.profile == trial.profile
                    && of.rung == trial.rung
            };
            match reasons.iter_mut().find(same) {
                Some((.., trials)) => *trials += 1,
                None => reasons.push((trial, check, 1)),
            }
        }
    }
    let line = |(trial, check, trials): &(&Trial, &Check, usize)| {
        let more = match trials - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{} {} at {}, block {}{more}: {}: {}",
            trial.label(),
            check.verdict.name(),
            trial.rung,
            trial.block + 1,
            check.code.name(),
            check.figure
        )
    };
    reasons.iter().map(line).collect()
}

/// The server's name; its profile only where it is not the usual one.
pub fn label(server: &str, profile: Profile) -> String {
    match profile {
        Profile::Parity => server.to_owned(),
        Profile::Defaults => format!("{server} (defaults)"),
    }
}

/// The labels of a campaign's servers, in the order of its tables.
pub fn labels(campaign: &Campaign) -> Vec<String> {
    let plan = &campaign.plan;
    let of_server = |server: &String| {
        let labels = plan.profiles.iter().map(|profile| label(server, *profile));
        labels.collect::<Vec<_>>()
    };
    plan.servers.iter().flat_map(of_server).collect()
}

/// A whole number where it is one to two decimals.
pub fn each(count: Option<f64>) -> String {
    match count {
        None => "?".to_owned(),
        Some(count) if (count - count.round()).abs() < 0.005 => format!("{count:.0}"),
        Some(count) => format!("{count:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::made_up::{campaign, closed, open, scatter};

    #[test]
    fn closed_and_open_rows_have_tables_of_their_own_each_closed_by_its_sentences() {
        let rungs = [closed(32), open(1_440.0)];
        let mut made_up = campaign(
            &["deadpool", "sqlx"],
            &rungs,
            6,
            &|server, rung, block| match (rung, server, block) {
                (0, 1, 4) => 1_200.0,
                (0, _, _) => 1_590.0 * scatter(block + server, 0.002),
                _ => 22.0 * scatter(block + server, 0.01),
            },
        );
        for trial in made_up["trials"].as_array_mut().unwrap() {
            trial["window"]["delay_ms"] = json!(10.0);
        }
        let text = text(&serde_json::from_value(made_up).unwrap());
        let shape: Vec<String> = text
            .lines()
            .map(|line| {
                line.split_whitespace()
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        let expected = [
            "",
            "point-read: closed loop,",
            "conns server req/s",
            "32 deadpool 1590",
            "32 sqlx 1591*",
            "32 ceiling 1600",
            "At 32 connections",
            "",
            "point-read: open loop,",
            "offered/s server achieved/s",
            "1440 deadpool 1440",
            "1440 sqlx 1440",
            "1440 M/D/16 expects",
            "At 1440/s the",
            "* sqlx at",
            "deadpool at 32",
            "sqlx at 32",
        ];
        assert_eq!(shape, expected, "{text}");
        let note = "* sqlx at 32 connections, block 5: 1200/s, ";
        assert!(
            text.contains(note) && text.contains("it counts all the same"),
            "{text}"
        );
    }

    #[test]
    fn pipelined_servers_have_a_table_of_their_own_that_says_why() {
        let names = ["deadpool", "pipelined", "sqlx"];
        let mut made_up = campaign(&names, &[closed(32)], 3, &|_, _, block| {
            1e4 * scatter(block, 0.01)
        });
        made_up["servers"][1]["lane"] = json!("pipelined");
        let run = json!({
            "workload": "point-read", "rung": closed(32), "block": 0, "connections": 16,
            "statements_per_second": 2e4, "mean_latency_ms": 1.0,
        });
        made_up["pgbench"] = json!([run]);
        let text = text(&serde_json::from_value(made_up).unwrap());
        let tables: Vec<&str> = text.split("\npoint-read: closed loop").collect();
        let [_, others, pipelined] = tables[..] else {
            panic!("{text}")
        };
        assert!(
            others.contains("32  sqlx")
                && others.contains("pgbench")
                && !others.contains("pipelined")
        );
        let own: Vec<&str> = pipelined.lines().skip(1).collect();
        assert!(own[0].starts_with("pipelined: several statements are in flight"));
        assert!(own[2].contains("32  pipelined"), "{pipelined}");
        assert_eq!(own.len(), 3, "{pipelined}");
    }

    #[test]
    fn what_a_server_differs_from_itself_is_told_where_it_was_measured() {
        let names = ["deadpool", "deadpool (again)", "sqlx"];
        let made_up = campaign(&names, &[closed(8)], 10, &|server, _, block| {
            1e4 * scatter(block + server, 0.01)
        });
        let text = text(&serde_json::from_value(made_up).unwrap());
        assert!(
            text.contains("noise floor by the server that ran under two names"),
            "{text}"
        );
    }

    #[test]
    fn a_check_that_trips_again_and_again_takes_one_line() {
        let mut made_up = campaign(&["deadpool", "sqlx"], &[closed(8)], 3, &|_, _, _| 1e4);
        for trial in made_up["trials"].as_array_mut().unwrap() {
            if trial["server"] == "sqlx" {
                trial["verdict"] = json!("invalid");
                trial["checks"] = json!([{ "code": "STEAL", "outcome": "tripped", "verdict": "invalid", "figure": "2 %" }]);
            }
        }
        let text = text(&serde_json::from_value(made_up).unwrap());
        let line = "sqlx INVALID at 8 connections, block 1 and 2 more: STEAL: 2 %";
        assert_eq!(
            text.lines().filter(|said| *said == line).count(),
            1,
            "{text}"
        );
        assert_eq!(text.matches("2 %").count(), 1, "{text}");
    }
}
