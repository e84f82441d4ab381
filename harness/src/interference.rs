//! What a workload's latency is alone and beside another one that fills the pool: one table.

use stats::median;

use crate::campaign::{BesideUse, Campaign, Ladder, Trial, Window};
use crate::class::Class;
use crate::figures::windows;
use crate::layout::{Columns, Look, lay_out};
use crate::rung::Rung;

const COLUMNS: Columns<'_> = Columns {
    all: &[
        ("rung", true),
        ("server", true),
        ("p50 alone ms", false),
        ("p50 beside ms", false),
        ("p99 alone ms", false),
        ("p99 beside ms", false),
        ("p99 ratio", false),
        ("beside it", true),
        ("req/s", false),
    ],
    dispensable: &["req/s", "beside it", "p50 alone ms", "p50 beside ms"],
};

/// The table of a class, with its heading; nothing for a workload that has none beside it, or was not measured alone.
pub fn lines(campaign: &Campaign, ladder: &Ladder, class: Class) -> Vec<String> {
    shown(campaign, ladder, class, Look::PLAIN)
}

/// The same for a terminal.
pub fn shown(campaign: &Campaign, ladder: &Ladder, class: Class, look: Look) -> Vec<String> {
    let Some(alone) = &ladder.alone else {
        return Vec::new();
    };
    let rows: Vec<Vec<String>> = ladder
        .rungs
        .iter()
        .flat_map(|&rung| of_rung(campaign, (&ladder.workload, alone), rung, class))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let heading = format!(
        "\n{}: {alone} alone and beside what fills the pool; medians over the blocks",
        ladder.workload
    );
    let remark = class.remark().map(str::to_owned);
    [heading]
        .into_iter()
        .chain(remark)
        .chain([lay_out(COLUMNS, &rows, look)])
        .collect()
}

fn of_rung(
    campaign: &Campaign,
    (beside, alone): (&str, &str),
    rung: Rung,
    class: Class,
) -> Vec<Vec<String>> {
    let alone = class.subjects(campaign, alone, rung);
    let row = |trials: &Vec<&Trial>| {
        let first = trials[0];
        let alone = alone
            .iter()
            .find(|of| of[0].server == first.server && of[0].profile == first.profile)?;
        let (p50, p99) = (
            |window: &Window| window.response_ns.p50,
            |window: &Window| window.response_ns.p99,
        );
        let [alone_p99, beside_p99] = [middle_ms(alone, p99)?, middle_ms(trials, p99)?];
        let beside: Vec<&BesideUse> = windows(trials)
            .into_iter()
            .filter_map(|window| window.beside.as_ref())
            .collect();
        let rates: Vec<f64> = beside
            .iter()
            .map(|beside| beside.requests_per_second)
            .collect();
        let what = beside.first()?;
        Some(vec![
            rung.to_string(),
            first.label(),
            format!("{:.3}", middle_ms(alone, p50)?),
            format!("{:.3}", middle_ms(trials, p50)?),
            format!("{alone_p99:.3}"),
            format!("{beside_p99:.3}"),
            format!("{:.1}", beside_p99 / alone_p99),
            format!("{} at {} connections", what.workload, what.connections),
            format!("{:.0}", median(&rates)?),
        ])
    };
    class
        .subjects(campaign, beside, rung)
        .iter()
        .filter_map(row)
        .collect()
}

fn middle_ms(trials: &[&Trial], of: impl Fn(&Window) -> u64) -> Option<f64> {
    let times: Vec<f64> = windows(trials)
        .into_iter()
        .map(|window| of(window) as f64 / 1e6)
        .collect();
    median(&times)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::made_up::{campaign, open};

    #[test]
    fn each_server_has_a_row_with_its_latency_alone_and_beside() {
        let mut made_up = campaign(&["deadpool", "r2d2"], &[open(100.0)], 3, &|_, _, _| 100.0);
        let mut beside = made_up["trials"].clone();
        for trial in beside.as_array_mut().unwrap() {
            trial["workload"] = json!("isolation");
            let p99 = trial["window"]["response_ns"]["p99"].as_u64().unwrap();
            trial["window"]["response_ns"]["p99"] = json!(3 * p99);
            trial["window"]["beside"] = json!({
                "workload": "ten-ms", "connections": 64, "requests_per_second": 1_500.0,
                "counts": trial["window"]["counts"],
            });
        }
        let trials = made_up["trials"].as_array_mut().unwrap();
        trials.extend(beside.as_array().unwrap().iter().cloned());
        let mut ladder = made_up["plan"]["ladders"][0].clone();
        ladder["workload"] = json!("isolation");
        ladder["alone"] = json!("point-read");
        let campaign = serde_json::from_value(made_up).unwrap();
        let text = lines(
            &campaign,
            &serde_json::from_value(ladder).unwrap(),
            Class::OneAtATime,
        )
        .join("\n");
        for expected in [
            "deadpool",
            "r2d2",
            "3.0",
            "ten-ms at 64 connections",
            "1500",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        let plain = &campaign.plan.ladders[0];
        assert_eq!(lines(&campaign, plain, Class::OneAtATime), [""; 0]);
    }
}
