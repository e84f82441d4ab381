//! docs/campaign.schema.json is the shape of campaign.json, no more and no less.

#![allow(clippy::unwrap_used)]

use harness::campaign::{self, Campaign};
use serde_json::{Value, json};

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../src/made_up.rs"]
mod made_up;
#[path = "support/schema.rs"]
mod schema;

use made_up::{closed, open};
use schema::faults;

/// A record with something everywhere, also where it usually is absent. It has gone through the program once, so that
/// it has every field that the program writes.
fn whole() -> Value {
    let mut record = made_up::campaign(
        &["deadpool", "deadpool (again)"],
        &[closed(8), open(1_440.0)],
        2,
        &|_, _, _| 500.0,
    );
    record["plan"]["ladders"][0]["alone"] = json!("hello");
    record["plan"]["threads"] = json!(4);
    record["plan"]["shares"] = json!([0.5]);
    record["servers"][0]["skips"] = json!([["report", "made up"]]);
    record["servers"][0]["attached"] = json!("deadpool=http://127.0.0.1:8080");
    record["servers"][0]["says"] =
        json!([["parity", { "lane": "deadpool", "notes": ["made up"] }]]);
    record["inspections"] = json!([{
        "workload": "point-read", "server": "deadpool", "profile": "defaults", "distinct_requests": 4,
        "statements_per_request": null, "transactions_per_request": null, "round_trips_per_request": 2.0,
    }]);
    record["references"] = json!([{
        "workload": "point-read", "connections": 32, "requests_per_second": 1e3, "of_each": [["deadpool", 1e3]],
    }]);
    record["pgbench"] = json!([{
        "workload": "point-read", "rung": closed(8), "block": 0, "connections": 8, "statements_per_second": 2e4,
        "mean_latency_ms": 0.4,
    }]);
    let counts = record["trials"][0]["window"]["counts"].clone();
    let trial = &mut record["trials"][0];
    let outcomes = ["passed", "tripped", "not-observed", "does-not-apply"];
    trial["checks"] = outcomes.iter().map(|outcome| json!({ "code": "GEN_SAT", "outcome": outcome, "verdict": "invalid", "figure": "made up" })).collect();
    let window = &mut trial["window"];
    let stage = json!({ "mean": 1.5, "p50": 1, "p99": 2 });
    window["stages"] = json!({ "admission": stage, "connection": stage, "database": stage, "handover": stage, "encoding": stage });
    window["errors"] = json!([["connection reset", 3]]);
    window["database"] = json!({ "calls": 5, "execution_ms": 1.5 });
    window["sessions"]["doing"] = json!({ "Timeout:PgSleep": 7 });
    window["beside"] = json!({ "workload": "ten-ms", "connections": 32, "requests_per_second": 1e3, "counts": counts });
    window["delay_ms"] = json!(10.0);
    let role = json!({ "cpu": 0.5, "run_queue": 0.1, "switches": 10.0, "rss_bytes": 1 << 20, "threads": 2 });
    window["series"] = json!([{ "at": 1.0, "steal": 0.0, "pressure": 0.1, "generator": role, "server": role, "database": role, "checkpoints": 1 }, { "at": 2.0 }]);
    window["load"] =
        json!([{ "at": 1.0, "correct": 5, "failed": 1, "shed": 2, "p50_ns": 5, "p99_ns": null }]);
    window["response_percentiles"] = json!([{ "share": 0.5, "ns": 5 }]);
    window["service_percentiles"] = json!([{ "share": 1.0, "ns": 5 }]);
    record["trials"][1]["window"] = Value::Null;
    let read: Campaign = serde_json::from_value(record).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
fn a_record_with_something_everywhere_is_what_the_schema_says() {
    assert_eq!(faults(&whole()), [""; 0]);
}

#[test]
fn what_a_record_cannot_have_is_refused() {
    let edits: [(&str, Value); 7] = [
        ("/schema", json!(campaign::SCHEMA + 1)),
        ("/trials/0/verdict", json!("splendid")),
        (
            "/trials/0/rung",
            json!({ "loop": "open", "connections": 8 }),
        ),
        ("/trials/0/window/requests_per_second", json!("many")),
        ("/trials/0/window/counts/correct", json!(-1)),
        ("/trials/0/checks/0/code", json!("LUCK")),
        ("/database/settings/0", json!(["fsync"])),
    ];
    for (pointer, value) in edits {
        let mut record = whole();
        *record.pointer_mut(pointer).unwrap() = value;
        assert!(!faults(&record).is_empty(), "{pointer}");
    }
    let mut more = whole();
    more["trials"][0]["window"]["more"] = json!(1);
    assert!(!faults(&more).is_empty());
}

/// Every object of the schema closes with what the program knows: a field that is only in the schema would be a promise
/// that nothing keeps.
#[test]
fn the_record_has_every_field_that_the_schema_names() {
    let schema = schema::read();
    let mut named = Vec::new();
    names(&schema, &mut named);
    let mut written = Vec::new();
    keys(&whole(), &mut written);
    for name in named {
        assert!(
            written.contains(&name),
            "{name} is in the schema and in no record"
        );
    }
}

fn names(schema: &Value, into: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        into.extend(properties.keys().cloned());
    }
    let parts = schema
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    parts
        .chain(schema.as_array().into_iter().flatten())
        .for_each(|part| names(part, into));
}

fn keys(value: &Value, into: &mut Vec<String>) {
    into.extend(
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone()),
    );
    let parts = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    parts
        .chain(value.as_array().into_iter().flatten())
        .for_each(|part| keys(part, into));
}
