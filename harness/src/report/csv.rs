//! `summary.csv`: every trial's figures as the record has them, tidy: one row for each trial and metric.

use anyhow::Result;
use csv::Writer;

use crate::blocks::counting;
use crate::campaign::{Campaign, Latency, Trial, Window};
use crate::rung::Rung;
use stats::{Firmness, firmness};

const HEADER: [&str; 14] = [
    "workload",
    "server",
    "profile",
    "loop",
    "rung",
    "connections",
    "rate",
    "block",
    "attempt",
    "counts",
    "verdict",
    "metric",
    "unit",
    "value",
];

/// A metric's name, its unit, and the figure as text.
type Figure = (&'static str, &'static str, String);

/// Blocks and attempts are counted from 1, as in print and in the names of interval logs. `counts` says whether the trial
/// is one of its block's latest attempt. A percentile beyond which fewer than 10 requests lie is left out. A trial without
/// a window has one row, without a metric.
///
/// # Errors
/// It cannot be written as UTF-8, which all of it is.
pub fn csv(campaign: &Campaign) -> Result<String> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    // In the order of the trials themselves.
    let mut counting = counting(&campaign.trials).peekable();
    for trial in &campaign.trials {
        let counts = counting.next_if(|of| std::ptr::eq(*of, trial)).is_some();
        let place = place(trial, counts)?;
        let none = || vec![("", "", String::new())];
        let figures = trial.window.as_ref().map_or_else(none, figures);
        for (metric, unit, value) in figures {
            let place = place.iter().map(String::as_str);
            writer.write_record(place.chain([metric, unit, &value]))?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn place(trial: &Trial, counts: bool) -> Result<[String; 11]> {
    let (kind, rate) = match trial.rung {
        Rung::Closed { .. } => ("closed", String::new()),
        Rung::Open { rate, .. } => ("open", rate.to_string()),
    };
    Ok([
        trial.workload.clone(),
        trial.server.clone(),
        word(&trial.profile)?,
        kind.to_owned(),
        trial.rung.to_string(),
        trial.rung.connections().to_string(),
        rate,
        (trial.block + 1).to_string(),
        (trial.attempt + 1).to_string(),
        counts.to_string(),
        word(&trial.verdict)?,
    ])
}

/// As in the record.
fn word(value: &impl serde::Serialize) -> Result<String> {
    let value = serde_json::to_value(value)?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}

fn figures(window: &Window) -> Vec<Figure> {
    let mut all: Vec<Figure> = vec![
        ("window", "s", window.seconds.to_string()),
        (
            "requests_per_second",
            "1/s",
            window.requests_per_second.to_string(),
        ),
    ];
    all.extend(latencies(window));
    all.extend(counts(window));
    all.extend(costs(window));
    all
}

fn latencies(window: &Window) -> Vec<Figure> {
    const RESPONSE: [&str; 6] = [
        "response_p50",
        "response_p90",
        "response_p99",
        "response_p99_9",
        "response_max",
        "response_mean",
    ];
    const SERVICE: [&str; 6] = [
        "service_p50",
        "service_p90",
        "service_p99",
        "service_p99_9",
        "service_max",
        "service_mean",
    ];
    let correct = window.counts.correct;
    let of = |names: [&'static str; 6], latency: &Latency| {
        let percentile = |quantile: f64, ns: u64| {
            (firmness(quantile, correct) != Firmness::Absent).then(|| ns.to_string())
        };
        let some = |text: String| (correct > 0).then_some(text);
        let values = [
            percentile(0.5, latency.p50),
            percentile(0.9, latency.p90),
            percentile(0.99, latency.p99),
            percentile(0.999, latency.p99_9),
            some(latency.max.to_string()),
            some(latency.mean.to_string()),
        ];
        let figures = names.into_iter().zip(values);
        figures
            .filter_map(|(name, value)| Some((name, "ns", value?)))
            .collect::<Vec<_>>()
    };
    let service = of(SERVICE, &window.service_ns);
    of(RESPONSE, &window.response_ns)
        .into_iter()
        .chain(service)
        .collect()
}

fn counts(window: &Window) -> Vec<Figure> {
    let load::Counts {
        scheduled,
        correct,
        wrong,
        http_error,
        shed,
        timeout,
        transport,
        unsent,
        unfinished,
    } = window.counts;
    let all = [
        ("scheduled", scheduled),
        ("correct", correct),
        ("wrong", wrong),
        ("http_error", http_error),
        ("shed", shed),
        ("timeout", timeout),
        ("transport", transport),
        ("unsent", unsent),
        ("unfinished", unfinished),
    ];
    all.into_iter()
        .map(|(name, count)| (name, "requests", count.to_string()))
        .collect()
}

fn costs(window: &Window) -> Vec<Figure> {
    let server = &window.server;
    let mut all = vec![
        ("server_cpu", "s", server.cpu_seconds.to_string()),
        ("server_threads", "threads", server.threads.to_string()),
        ("server_rss", "bytes", server.rss_bytes.to_string()),
        (
            "server_voluntary_switches",
            "switches",
            server.voluntary_switches.to_string(),
        ),
        (
            "server_involuntary_switches",
            "switches",
            server.involuntary_switches.to_string(),
        ),
        (
            "generator_cpu",
            "s",
            window.generator_cpu_seconds.to_string(),
        ),
    ];
    all.extend(
        window
            .transactions_per_request
            .map(|each| ("transactions_per_request", "1", each.to_string())),
    );
    all.extend(
        window
            .database_cpu_seconds
            .map(|seconds| ("database_cpu", "s", seconds.to_string())),
    );
    all.extend(
        window
            .statements_per_request
            .map(|each| ("statements_per_request", "1", each.to_string())),
    );
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::made_up::{self, closed, open};

    type Row = std::collections::HashMap<String, String>;

    fn rows(record: &Value) -> Vec<Row> {
        let text = csv(&serde_json::from_value(record.clone()).unwrap()).unwrap();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    fn record() -> Value {
        made_up::campaign(
            &["deadpool", "a \"b\", c"],
            &[closed(8), open(1_440.0)],
            2,
            &|server, rung, _| [10_000.5 + server as f64, 20.0][rung],
        )
    }

    #[test]
    fn a_figure_is_found_by_its_trial_and_metric_and_is_the_records_own() {
        let record = record();
        let rows = rows(&record);
        for trial in record["trials"].as_array().unwrap() {
            let of_trial = |row: &&Row| {
                row["server"] == trial["server"].as_str().unwrap()
                    && row["loop"] == trial["rung"]["loop"].as_str().unwrap()
                    && row["block"] == (trial["block"].as_u64().unwrap() + 1).to_string()
            };
            let of_trial: Vec<&Row> = rows.iter().filter(of_trial).collect();
            let value = |metric: &str| {
                let mut found = of_trial.iter().filter(|row| row["metric"] == metric);
                let (first, second) = (found.next().unwrap(), found.next());
                assert!(second.is_none(), "{metric} twice");
                first["value"].parse::<f64>().unwrap()
            };
            let window = &trial["window"];
            for (metric, figure) in [
                ("requests_per_second", &window["requests_per_second"]),
                ("response_p99", &window["response_ns"]["p99"]),
                ("service_mean", &window["service_ns"]["mean"]),
                ("correct", &window["counts"]["correct"]),
                ("server_cpu", &window["server"]["cpu_seconds"]),
            ] {
                assert_eq!(value(metric), figure.as_f64().unwrap(), "{metric}");
            }
        }
        let open = rows.iter().find(|row| row["loop"] == "open").unwrap();
        assert_eq!(
            [&open["rate"], &open["connections"], &open["rung"]],
            ["1440", "64", "1440/s"]
        );
    }

    #[test]
    fn an_attempt_that_does_not_count_and_a_trial_without_a_window_have_their_rows() {
        let mut record = record();
        let mut again = record["trials"][0].clone();
        again["attempt"] = json!(1);
        record["trials"].as_array_mut().unwrap().push(again);
        record["trials"][3]["window"] = Value::Null;
        record["trials"][3]["verdict"] = json!("failed");
        let rows = rows(&record);
        let first = |row: &&Row| {
            row["server"] == "deadpool"
                && row["loop"] == "closed"
                && row["block"] == "1"
                && row["metric"] == "correct"
        };
        let attempts: Vec<_> = rows
            .iter()
            .filter(first)
            .map(|row| (row["attempt"].as_str(), row["counts"].as_str()))
            .collect();
        assert_eq!(attempts, [("1", "false"), ("2", "true")]);
        let failed: Vec<&Row> = rows
            .iter()
            .filter(|row| row["verdict"] == "failed")
            .collect();
        assert_eq!(
            (
                failed.len(),
                failed[0]["metric"].as_str(),
                failed[0]["value"].as_str()
            ),
            (1, "", "")
        );
    }

    #[test]
    fn a_percentile_that_rests_on_too_few_requests_is_left_out() {
        let mut record = record();
        record["trials"][0]["window"]["counts"]["correct"] = json!(500);
        let csv = csv(&serde_json::from_value(record).unwrap()).unwrap();
        let first = csv
            .lines()
            .skip(1)
            .take_while(|line| line.contains("deadpool"))
            .collect::<Vec<_>>();
        assert!(first.iter().any(|line| line.contains("response_p90")));
        assert!(!first.iter().any(|line| line.contains("response_p99")));
    }
}
