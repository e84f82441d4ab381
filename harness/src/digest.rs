//! `lanebench run --json`: what a campaign says, as one JSON document. The record has everything; this has the answer.

use std::path::Path;

use serde::Serialize;

use crate::campaign::{Campaign, Ladder, State, Trial};
use crate::checks::Verdict;
use crate::class::Class;
use crate::figures::median_of;
use crate::metric::Metric;
use crate::rung::Rung;
use crate::{sentences, table, verdicts};

#[derive(Debug, Serialize)]
pub struct Digest<'a> {
    /// The results folder.
    pub results: &'a Path,
    pub state: State,
    /// The gravest of the rows' verdicts.
    pub verdict: Verdict,
    /// What keeps it from being publishable, if anything does.
    pub unpublishable: &'a [String],
    pub rows: Vec<Row>,
    pub sentences: Vec<Sentence>,
}

/// One server at one rung.
#[derive(Debug, Serialize)]
pub struct Row {
    pub workload: String,
    /// As in tables: with the profile where it is not the usual one.
    pub server: String,
    pub rung: Rung,
    /// The gravest of its trials' verdicts.
    pub verdict: Verdict,
    pub valid_blocks: usize,
    /// Over the valid blocks; a metric that they do not have is left out.
    pub medians: Vec<Median>,
}

#[derive(Debug, Serialize)]
pub struct Median {
    pub metric: Metric,
    pub value: f64,
    pub unit: &'static str,
}

/// What closes a rung, or all rungs of a table.
#[derive(Debug, Serialize)]
pub struct Sentence {
    pub workload: String,
    pub text: String,
}

impl Digest<'_> {
    pub fn of<'a>(campaign: &'a Campaign, results: &'a Path) -> Digest<'a> {
        let ladders = || campaign.plan.ladders.iter();
        Digest {
            results,
            state: campaign.state,
            verdict: table::gravest(campaign),
            unpublishable: &campaign.unpublishable,
            rows: ladders()
                .flat_map(|ladder| rows(campaign, ladder))
                .collect(),
            sentences: ladders()
                .flat_map(|ladder| said(campaign, ladder))
                .collect(),
        }
    }
}

fn rows(campaign: &Campaign, ladder: &Ladder) -> Vec<Row> {
    let of_rung = |&rung: &Rung| verdicts::subjects(campaign, &ladder.workload, rung);
    let subjects = ladder.rungs.iter().flat_map(of_rung);
    subjects.map(|trials| row(&trials)).collect()
}

fn row(trials: &[&Trial]) -> Row {
    let valid = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid);
    let verdict = trials.iter().map(|trial| trial.verdict).max();
    let of_metric = |metric: Metric| {
        Some(Median {
            metric,
            value: median_of(trials, metric)?,
            unit: metric.unit(),
        })
    };
    Row {
        workload: trials[0].workload.clone(),
        server: trials[0].label(),
        rung: trials[0].rung,
        verdict: verdict.unwrap_or(Verdict::Invalid),
        valid_blocks: valid.count(),
        medians: Metric::ALL.into_iter().filter_map(of_metric).collect(),
    }
}

fn said(campaign: &Campaign, ladder: &Ladder) -> Vec<Sentence> {
    let (open, closed): (Vec<Rung>, Vec<Rung>) =
        ladder.rungs.iter().partition(|rung| rung.is_open());
    let workload = &ladder.workload;
    let of_kind = |rungs: Vec<Rung>| {
        let classes = Class::in_campaign(campaign);
        let texts = classes
            .flat_map(|class| sentences::of_table(campaign, workload, &rungs, class))
            .collect::<Vec<_>>();
        texts.into_iter().map(|text| Sentence {
            workload: workload.clone(),
            text,
        })
    };
    [closed, open].into_iter().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::made_up::{campaign, closed, scatter};

    #[test]
    fn a_digest_has_every_row_with_its_medians_and_every_sentence() {
        let mut made_up = campaign(
            &["deadpool", "sqlx"],
            &[closed(8)],
            3,
            &|server, _, block| 1e4 * (1.0 + server as f64) * scatter(block, 0.01),
        );
        made_up["trials"][1]["verdict"] = json!("failed");
        made_up["unpublishable"] = json!(["made up"]);
        let campaign: Campaign = serde_json::from_value(made_up).unwrap();
        let digest = serde_json::to_value(Digest::of(&campaign, Path::new("results/x"))).unwrap();
        assert_eq!(digest["results"], "results/x");
        assert_eq!(
            (&digest["state"], &digest["verdict"]),
            (&json!("complete"), &json!("failed"))
        );
        assert_eq!(digest["unpublishable"], json!(["made up"]));
        let sqlx = &digest["rows"][1];
        assert_eq!(
            (&sqlx["server"], &sqlx["valid_blocks"]),
            (&json!("sqlx"), &json!(2))
        );
        let first = &sqlx["medians"][0];
        assert_eq!(
            (&first["metric"], &first["unit"]),
            (&json!("throughput"), &json!("requests/s"))
        );
        assert!(first["value"].as_f64() > Some(1.9e4));
        let text = digest["sentences"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("At 8 connections "), "{text}");
    }
}
