//! The result as one JSON document. Its shape is described by docs/load.schema.json.

use std::collections::BTreeMap;

use anyhow::Result;
use load::{Arrivals, Counts, Histogram, Outcome, Pacing, Plan};
use serde::Serialize;

use crate::load_command::summary;

#[derive(Debug, Serialize)]
struct Document<'o> {
    schema_version: u32,
    url: &'o str,
    load: Load,
    /// Length of the window.
    seconds: f64,
    interrupted: bool,
    verdict: &'static str,
    checks: Vec<Check>,
    counts: &'o Counts,
    warmup_counts: &'o Counts,
    rate: Rate,
    connections: Connections,
    errors: BTreeMap<String, u64>,
    response_ns: Option<Percentiles>,
    /// How many of the response times are lower bounds: requests that got no answer.
    response_lower_bounds: u64,
    service_ns: Option<Percentiles>,
    first_byte_ns: Option<Percentiles>,
    wait_ns: Option<Percentiles>,
    lag_ns: Option<Percentiles>,
    connect_ns: Option<Percentiles>,
    jitter_ns: Option<Percentiles>,
    generator: Generator,
    records_dropped: u64,
}

/// What was asked for.
#[derive(Debug, Serialize)]
struct Load {
    #[serde(rename = "loop")]
    kind: &'static str,
    rate: Option<f64>,
    arrivals: Option<&'static str>,
    seed: Option<u64>,
    think_seconds: Option<f64>,
    connections: usize,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    value: Option<f64>,
    limit: f64,
    /// `null` where it could not be observed.
    passed: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Rate {
    offered: f64,
    achieved: f64,
}

#[derive(Debug, Serialize)]
struct Connections {
    asked: usize,
    established: usize,
    served: usize,
    reopened: u64,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    p50: u64,
    p90: u64,
    p99: u64,
    p99_9: u64,
    max: u64,
    mean: f64,
}

#[derive(Debug, Serialize)]
struct Generator {
    cpu_seconds: f64,
    little_residual: Option<f64>,
    threads: Vec<Thread>,
}

#[derive(Debug, Serialize)]
struct Thread {
    cpu: Option<usize>,
    busy: f64,
    spinning: f64,
    run_queue: Option<f64>,
}

/// The document, indented, ending with a line feed.
pub(super) fn document(url: &str, plan: &Plan, outcome: &Outcome) -> Result<String> {
    let connections = &outcome.connections;
    let document = Document {
        schema_version: 1,
        url,
        load: load(plan),
        seconds: outcome.window.as_secs_f64(),
        interrupted: outcome.interrupted,
        verdict: outcome.verdict.name(),
        checks: outcome.checks.iter().map(check).collect(),
        counts: &outcome.counts,
        warmup_counts: &outcome.warmup,
        rate: Rate {
            offered: summary::offered(outcome),
            achieved: outcome.achieved_rate(),
        },
        connections: Connections {
            asked: connections.asked,
            established: connections.established,
            served: connections.served,
            reopened: connections.reopened,
        },
        errors: outcome
            .errors
            .iter()
            .map(|(kind, count)| (kind.to_string(), *count))
            .collect(),
        response_ns: percentiles(&outcome.response_with_bounds()),
        response_lower_bounds: outcome.censored.len(),
        service_ns: percentiles(&outcome.service),
        first_byte_ns: percentiles(&outcome.first_byte),
        wait_ns: percentiles(&outcome.wait),
        lag_ns: percentiles(&outcome.lag),
        connect_ns: percentiles(&outcome.connect),
        jitter_ns: percentiles(&outcome.jitter),
        generator: generator(outcome),
        records_dropped: outcome.records_dropped,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn load(plan: &Plan) -> Load {
    let closed = Load {
        kind: "closed",
        rate: None,
        arrivals: None,
        seed: None,
        think_seconds: None,
        connections: plan.connections,
    };
    match plan.pacing {
        Pacing::Closed { think } => Load {
            think_seconds: Some(think.as_secs_f64()),
            ..closed
        },
        Pacing::Open { rate, arrivals } => {
            let (arrivals, seed) = match arrivals {
                Arrivals::Uniform => ("uniform", None),
                Arrivals::Poisson { seed } => ("poisson", Some(seed)),
            };
            Load {
                kind: "open",
                rate: Some(rate),
                arrivals: Some(arrivals),
                seed,
                ..closed
            }
        }
    }
}

fn check(check: &load::Check) -> Check {
    Check {
        name: check.name,
        value: check.value,
        limit: check.limit,
        passed: check.passed(),
    }
}

/// `None` without a value: no figure is not zero.
fn percentiles(histogram: &Histogram<u64>) -> Option<Percentiles> {
    (!histogram.is_empty()).then(|| Percentiles {
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p99_9: histogram.value_at_quantile(0.999),
        max: histogram.max(),
        mean: histogram.mean(),
    })
}

fn generator(outcome: &Outcome) -> Generator {
    let thread = |thread: &load::ThreadUsage| Thread {
        cpu: thread.cpu,
        busy: thread.busy,
        spinning: thread.spinning,
        run_queue: thread.run_queue,
    };
    Generator {
        cpu_seconds: outcome.cpu.as_secs_f64(),
        little_residual: outcome.little_residual,
        threads: outcome.threads.iter().map(thread).collect(),
    }
}
