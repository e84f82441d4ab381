//! Records of campaigns that nobody measured, for pages to be made of.

use harness::campaign;
use serde_json::{Value, json};

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../../src/made_up.rs"]
mod made_up;

use made_up::{closed, open};

/// Executes, or breaks the page, wherever a text is not written as text.
pub(crate) const HOSTILE: &str = r#"</script><script>window.hacked = true</script><img src=x onerror="window.hacked=true">'&amp;"`${window.hacked=true}"#;

/// Where a plot of percentiles has its points.
const SHARES: [f64; 6] = [0.5, 0.75, 0.875, 0.99, 0.999, 1.0];

/// Of a publishable campaign.
const WINDOW_SECONDS: u32 = 70;

/// With everything that a page shows: both loops, two classes, two profiles, a block that was run again, a trial that
/// failed, one without a window, theory and pgbench. No two figures are equal, so that one in the wrong place shows.
pub(crate) fn rich() -> Value {
    let servers = ["deadpool", "r2d2", "pipelined"];
    let rungs = [closed(1), closed(32), open(500.0), open(1_440.0)];
    let mut record = of_delayed(&servers, &rungs, 3);
    record["servers"][1]["lane"] = json!("blocking");
    record["servers"][2]["lane"] = json!("pipelined");
    record["servers"][0]["says"] =
        json!([["parity", { "notes": ["it says something of itself"] }]]);
    record["plan"]["profiles"] = json!(["parity", "defaults"]);
    record["unpublishable"] = json!(["a made-up campaign", "one more obstacle"]);
    let trials = record["trials"].as_array_mut().unwrap();
    let defaults: Vec<Value> = trials
        .iter()
        .filter(|trial| trial["server"] == "r2d2")
        .map(|trial| {
            let mut trial = trial.clone();
            trial["profile"] = json!("defaults");
            trial["position"] = json!(3);
            trial
        })
        .collect();
    trials.extend(defaults);
    spoil(trials);
    finish(record)
}

/// Of many trials, as long as those of a publishable one.
pub(crate) fn large(trials: usize) -> Value {
    let servers = ["deadpool", "sqlx", "r2d2", "threads"];
    let rungs = [closed(1), closed(8), closed(32), open(500.0), open(1_440.0)];
    let blocks = trials / servers.len() / rungs.len();
    let mut record = finish(of_delayed(&servers, &rungs, blocks));
    for trial in record["trials"].as_array_mut().unwrap() {
        let load = &mut trial["window"]["load"];
        let seconds = (1..=WINDOW_SECONDS).map(|at| {
            let mut second = load[0].clone();
            second["at"] = json!(at);
            second
        });
        *load = seconds.collect();
    }
    record
}

/// Texts that come from files and programs, each of them meant to do harm.
pub(crate) fn hostile() -> Value {
    let names = [HOSTILE, "deadpool"];
    let mut record = finish(of_delayed(&names, &[closed(8), open(1_440.0)], 2));
    record["plan"]["ladders"][0]["workload"] = json!(HOSTILE);
    for list in ["trials", "pgbench", "inspections"] {
        for entry in record[list].as_array_mut().unwrap() {
            entry["workload"] = json!(HOSTILE);
        }
    }
    for check in record["trials"][0]["checks"].as_array_mut().unwrap() {
        check["figure"] = json!(HOSTILE);
    }
    let texts = [
        "/lanebench",
        "/started_at",
        "/plan/preset",
        "/plan/cpus/note",
        "/environment/git_commit",
        "/environment/kernel",
        "/environment/cpu_model",
        "/environment/rustc",
        "/database/source",
        "/database/version",
        "/database/scale",
        "/database/content",
        "/database/between_trials",
        "/servers/0/about",
        "/servers/0/binary_sha256",
    ];
    for text in texts {
        *record.pointer_mut(text).unwrap() = json!(HOSTILE);
    }
    record["unpublishable"] = json!([HOSTILE]);
    record["commands"] = json!([["lanebench", "run", HOSTILE]]);
    record["database"]["settings"] = json!([[HOSTILE, HOSTILE]]);
    record["servers"][0]["says"] = json!([["parity", { "notes": [HOSTILE] }]]);
    record
}

/// A workload whose statement holds its connection for 10 ms, so that theory has something to say.
fn of_delayed(servers: &[&str], rungs: &[Value], blocks: usize) -> Value {
    let mut record = made_up::campaign(servers, rungs, blocks, &|server, rung, block| {
        let scatter = made_up::scatter(7 * block + 3 * server + rung, 0.02);
        match rungs[rung]["connections"].as_f64() {
            Some(connections) if rungs[rung]["rate"].is_null() => {
                98.0 * connections.min(16.0) * scatter
            }
            _ => 22.0 * scatter,
        }
    });
    for trial in record["trials"].as_array_mut().unwrap() {
        trial["window"]["delay_ms"] = json!(10.0);
    }
    record
}

/// One trial failed, one has no window, and the second block of the first rung was INVALID and run again.
fn spoil(trials: &mut Vec<Value>) {
    let is = |trial: &Value, server: &str, rung: &Value, block: usize| {
        trial["server"] == server && trial["rung"] == *rung && trial["block"] == block
    };
    let again: Vec<Value> = trials
        .iter()
        .filter(|trial| trial["rung"] == closed(1) && trial["block"] == 1)
        .cloned()
        .collect();
    for trial in trials.iter_mut() {
        if is(trial, "deadpool", &closed(1), 1) {
            trip(trial, "STEAL", "invalid", "3.1 % stolen");
        } else if is(trial, "r2d2", &open(1_440.0), 0) {
            trip(trial, "RATE", "failed", "1402 of 1440 came back");
        } else if is(trial, "deadpool", &open(500.0), 2) {
            trip(trial, "CONTRACT", "failed", "it did not start: no licence");
            trial["window"] = Value::Null;
        }
    }
    for mut trial in again {
        trial["attempt"] = json!(1);
        trials.push(trial);
    }
}

fn trip(trial: &mut Value, code: &str, verdict: &str, figure: &str) {
    trial["verdict"] = json!(verdict);
    trial["checks"] =
        json!([{ "code": code, "outcome": "tripped", "verdict": verdict, "figure": figure }]);
}

/// Gives every trial what the made-up one lacks, and every figure a value of its own.
fn finish(mut record: Value) -> Value {
    let mut count = 0;
    for (index, trial) in record["trials"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        trial["started_at"] = json!(format!(
            "2026-01-01T{:02}:{:02}:00Z",
            index / 60 % 24,
            index % 60
        ));
        let checks = trial["checks"].as_array_mut().unwrap();
        checks.extend([
            json!({ "code": "GEN_SAT", "outcome": "passed", "verdict": "valid", "figure": format!("busy {index} ‰") }),
            json!({ "code": "PSI", "outcome": "not-observed", "verdict": "valid", "figure": "no pressure file" }),
            json!({ "code": "AUDIT", "outcome": "does-not-apply", "verdict": "valid", "figure": "it writes nothing" }),
        ]);
        if trial["window"].is_object() {
            complete(&mut trial["window"]);
            vary(&mut trial["window"], &mut count);
            add_up(trial["window"]["counts"].as_object_mut().unwrap());
        }
    }
    let of_plan = record["plan"]["ladders"][0]["rungs"].as_array().unwrap();
    let closed_rungs = of_plan.iter().filter(|rung| rung["rate"].is_null());
    let runs: Vec<Value> = closed_rungs
        .enumerate()
        .flat_map(|(place, rung)| {
            (0..2).map(move |block| {
                json!({
                    "workload": "point-read", "rung": rung, "block": block, "connections": rung["connections"],
                    "statements_per_second": 1_700.5 + 10.0 * place as f64 + block as f64, "mean_latency_ms": 0.9,
                })
            })
        })
        .collect();
    record["pgbench"] = json!(runs);
    record["inspections"] = json!([{
        "workload": "point-read", "server": record["servers"][0]["name"], "profile": "parity", "distinct_requests": 100,
        "statements_per_request": 1.0, "transactions_per_request": 1.0, "round_trips_per_request": 2.5,
    }]);
    record
}

fn complete(window: &mut Value) {
    let mean = window["service_ns"]["mean"].as_f64().unwrap();
    let stage = |share: f64| json!({ "mean": share * mean, "p50": 1_000, "p99": 2_000 });
    window["stages"] = json!({
        "admission": stage(0.05), "connection": stage(0.1), "database": stage(0.3), "handover": stage(0.02),
        "encoding": stage(0.03),
    });
    let rate = window["requests_per_second"].as_f64().unwrap() as u64;
    let second = |at: usize| {
        json!({
            "at": at, "correct": rate, "failed": at % 2, "shed": 3 * (at % 3), "p50_ns": 1_000_000, "p99_ns": 2_000_000,
        })
    };
    window["load"] = (1..=3).map(second).collect();
    window["series"] = (1..=3)
        .map(|at| json!({ "at": at, "checkpoints": at % 2 }))
        .collect();
    let p50 = window["response_ns"]["p50"].as_u64().unwrap();
    for percentiles in ["response_percentiles", "service_percentiles"] {
        let points = SHARES.iter().zip(1..);
        window[percentiles] = points
            .map(|(share, place)| json!({ "share": share, "ns": p50 * place }))
            .collect();
    }
    let counts = window["counts"].as_object_mut().unwrap();
    let others = counts.iter_mut().filter(|(_, count)| **count == 0);
    others
        .zip(1_u64..)
        .for_each(|((_, count), place)| *count = json!(111 * place));
    window["server"]["involuntary_switches"] = json!(1_234);
    window["database"] = json!({ "calls": 3 * rate, "execution_ms": 30.1 * rate as f64 });
}

/// What was scheduled is what ended, one way or another.
fn add_up(counts: &mut serde_json::Map<String, Value>) {
    let ended = counts.iter().filter(|(name, _)| *name != "scheduled");
    let sum: u64 = ended.filter_map(|(_, count)| count.as_u64()).sum();
    counts["scheduled"] = json!(sum);
}

/// Up to a tenth more, another for each figure: but what is a name rather than a figure stays.
fn vary(value: &mut Value, count: &mut u32) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| vary(value, count)),
        Value::Object(fields) => {
            let fixed = ["share", "at", "delay_ms", "checkpoints", "seconds"];
            let figures = fields
                .iter_mut()
                .filter(|(name, _)| !fixed.contains(&name.as_str()));
            figures.for_each(|(_, value)| vary(value, count));
        }
        Value::Number(number) => {
            *count += 1;
            let factor = 1.0 + 0.1 * (f64::from(*count) * 0.618_034).fract();
            *value = match number.as_u64() {
                Some(whole) => json!((whole as f64 * factor).round() as u64),
                None => json!(number.as_f64().unwrap() * factor),
            };
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
