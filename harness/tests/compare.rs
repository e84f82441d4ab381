//! `lanebench compare` as a user calls it, on campaigns that nobody measured.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::campaign;
use serde_json::{Value, json};
use tempfile::TempDir;

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../src/made_up.rs"]
mod made_up;

use made_up::{closed, open, scatter};

struct Said {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

fn compare(arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_lanebench"))
        .arg("compare")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A results folder in `folder` with this record.
fn results(folder: &Path, name: &str, record: &Value) -> String {
    let path: PathBuf = folder.join(name);
    fs::create_dir(&path).unwrap();
    fs::write(
        path.join("campaign.json"),
        serde_json::to_vec(record).unwrap(),
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

/// Two servers at a closed and an open rung; `speed` scales the second server's.
fn record(speed: f64) -> Value {
    made_up::campaign(
        &["deadpool", "sqlx"],
        &[closed(8), open(1_440.0)],
        6,
        &|server, rung, block| {
            let speed = if server == 1 { speed } else { 1.0 };
            let scatter = scatter(block + 3 * server, 0.01);
            if rung == 0 {
                10_000.0 * speed * scatter
            } else {
                20.0 / speed * scatter
            }
        },
    )
}

/// The line of the table that begins with these words, whatever the spaces.
fn line<'a>(said: &'a Said, words: &str) -> Option<&'a str> {
    let joined = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    said.stdout
        .lines()
        .find(|line| joined(line).starts_with(words))
}

#[test]
fn two_campaigns_are_compared_server_by_server_and_said_not_to_be_side_by_side() {
    let folder = TempDir::new().unwrap();
    let (before, after) = (
        results(folder.path(), "before", &record(1.0)),
        results(folder.path(), "after", &record(1.2)),
    );
    let said = compare(&[&before, &after]);
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
    assert!(
        said.stdout.contains("Not side by side: Welch's t"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout
            .contains("so that a difference is not the server's: deadpool, sqlx"),
        "{}",
        said.stdout
    );
    let unchanged = line(&said, "8 connections deadpool requests per second").unwrap();
    assert!(unchanged.ends_with("equivalent"), "{unchanged}");
    let changed = line(&said, "8 connections sqlx requests per second").unwrap();
    assert!(
        changed.contains("0.833") && changed.ends_with("slower"),
        "{changed}"
    );
    let changed = line(&said, "1440/s sqlx p99").unwrap();
    assert!(
        changed.contains("1.200") && changed.ends_with("slower"),
        "{changed}"
    );
}

#[test]
fn two_servers_of_one_campaign_are_compared_block_by_block_in_the_order_named() {
    let folder = TempDir::new().unwrap();
    let results = results(folder.path(), "one", &record(1.2));
    let said = compare(&[&results, "--servers", "sqlx,deadpool"]);
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
    let main = line(&said, "8 connections sqlx / deadpool requests per second").unwrap();
    assert!(main.ends_with("faster"), "{main}");
    let cost = line(&said, "CPU per request 40.0 µs 30.0 µs 1.333").unwrap();
    assert!(cost.ends_with("dearer"), "{cost}");
    // The record's own file will do, and printing twice says the same.
    let again = compare(&[
        &format!("{results}/campaign.json"),
        "--servers",
        "sqlx,deadpool",
    ]);
    assert_eq!(again.stdout, said.stdout);
}

#[test]
fn a_pipelined_server_is_not_compared_with_another_class() {
    let folder = TempDir::new().unwrap();
    let mut record = record(1.2);
    record["servers"][1]["lane"] = json!("pipelined");
    let (one, two) = (
        results(folder.path(), "one", &record),
        results(folder.path(), "two", &record),
    );
    let said = compare(&[&one, "--servers", "deadpool,sqlx"]);
    assert_eq!((said.status, said.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        said.stderr,
        "lanebench: --servers deadpool,sqlx: they are not compared: deadpool has one statement in flight on each connection, sqlx several statements in flight on each connection; name two of one class\n"
    );
    // With itself it is, in a table of its own.
    let said = compare(&[&one, &two]);
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    assert!(line(&said, "pipelined: several statements").is_some());
    assert_eq!(said.stdout.matches("point-read: closed loop").count(), 2);
}

#[test]
fn campaigns_that_differ_in_more_than_their_servers_are_refused_with_every_reason() {
    let folder = TempDir::new().unwrap();
    let mut other = record(1.0);
    other["plan"]["pool"] = json!(32);
    other["database"]["version"] = json!("16.1");
    let (a, b) = (
        results(folder.path(), "a", &record(1.0)),
        results(folder.path(), "b", &other),
    );
    let said = compare(&[&a, &b]);
    assert_eq!((said.status, said.stdout.as_str()), (Some(2), ""));
    let expected = format!(
        "lanebench: {a} (A) and {b} (B) are not comparable:\n  pool: 16 in A, 32 in B\n  PostgreSQL: 17.2 in A, 16.1 in B\n"
    );
    assert_eq!(said.stderr, expected);
}

#[test]
fn campaigns_without_anything_in_common_are_refused_with_what_they_have() {
    let folder = TempDir::new().unwrap();
    let other = made_up::campaign(&["r2d2"], &[closed(8)], 2, &|_, _, _| 1e4);
    let (a, b) = (
        results(folder.path(), "a", &record(1.0)),
        results(folder.path(), "b", &other),
    );
    let said = compare(&[&a, &b]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr.contains("no workload, rung and server in common: A has point-read at 8 connections, 1440/s with deadpool, sqlx; B has point-read at 8 connections with r2d2"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_row_that_is_not_valid_is_left_out_by_name_and_shows_in_the_exit_status() {
    let folder = TempDir::new().unwrap();
    let mut failing = record(1.0);
    for trial in failing["trials"].as_array_mut().unwrap() {
        if trial["server"] == "sqlx" && trial["block"] == 2 {
            trial["verdict"] = json!("failed");
            trial["checks"] = json!([{ "code": "HTTP", "outcome": "tripped", "verdict": "failed", "figure": "made up" }]);
        }
    }
    let (a, b) = (
        results(folder.path(), "a", &record(1.0)),
        results(folder.path(), "b", &failing),
    );
    let said = compare(&[&a, &b]);
    assert_eq!(said.status, Some(1));
    assert!(
        line(
            &said,
            "left out at 8 connections of B: sqlx in block 3 (FAILED: HTTP)"
        )
        .is_some(),
        "{}",
        said.stdout
    );
}

#[test]
fn one_block_is_no_comparison_here_either() {
    let folder = TempDir::new().unwrap();
    let smoke = made_up::campaign(&["deadpool", "sqlx"], &[closed(8)], 1, &|_, _, _| 1e4);
    let said = compare(&[
        &results(folder.path(), "smoke", &smoke),
        "--servers",
        "deadpool,sqlx",
    ]);
    assert_eq!(said.status, Some(0));
    let main = line(&said, "8 connections deadpool / sqlx requests per second").unwrap();
    assert!(main.ends_with("one block is no comparison"), "{main}");
}

#[track_caller]
fn refused(arguments: &[&str], expected: &str) {
    let said = compare(arguments);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (Some(2), ""),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains(expected), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}

#[test]
fn each_mistake_gets_one_clear_line() {
    let folder = TempDir::new().unwrap();
    let good = results(folder.path(), "good", &record(1.0));
    let mut old = record(1.0);
    old["schema"] = json!(1);
    let old = results(folder.path(), "old", &old);
    let truncated = results(folder.path(), "truncated", &json!({}));
    let text = serde_json::to_string(&record(1.0)).unwrap();
    fs::write(
        format!("{truncated}/campaign.json"),
        &text[..text.len() / 2],
    )
    .unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();

    refused(
        &[&good, "nowhere"],
        "nowhere: there is no such results folder or campaign.json",
    );
    refused(
        &[&good, empty],
        &format!("cannot read {empty}/campaign.json"),
    );
    refused(
        &[&good, &truncated],
        "truncated/campaign.json is not the record of a campaign",
    );
    refused(&[&good, &old], "it was written with schema 1");
    refused(&[&good], "give a second, or --servers A,B");
    refused(
        &[&good, "--servers", "sqlx"],
        "--servers sqlx: give two names",
    );
    refused(
        &[&good, &good, "--servers", "sqlx,deadpool"],
        "give one results folder",
    );
    refused(
        &[&good, "--servers", "sqlx,sqlx"],
        "give two different names",
    );
    refused(
        &[&good, "--servers", "dedpool,sqlx"],
        "unknown server `dedpool`; did you mean `deadpool`? (the campaign has deadpool, sqlx)",
    );
    refused(
        &[&good, "--servers", "deadpool,x"],
        "unknown server `x`; the campaign has deadpool, sqlx",
    );
}
