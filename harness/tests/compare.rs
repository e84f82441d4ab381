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

#[test]
fn every_table_has_its_verdict_in_a_sentence() {
    let folder = TempDir::new().unwrap();
    let results = |name: &str, speed| results(folder.path(), name, &record(speed));
    let (before, after) = (results("before", 1.0), results("after", 1.2));
    let said = compare(&[&before, &after]);
    let sentence = line(&said, "A's sqlx is slower at 8 connections: 0.83 (").unwrap();
    assert!(
        sentence.ends_with("in requests per second; equivalent: deadpool at 8 connections."),
        "{sentence}"
    );
    assert!(line(&said, "A's sqlx is slower at 1440/s: 1.20 (").is_some());
    let said = compare(&[&after, "--servers", "sqlx,deadpool"]);
    assert!(
        line(
            &said,
            "sqlx is faster than deadpool at 8 connections: 1.20 ("
        )
        .is_some()
    );
    let noisy = |name: &str, shift: usize| {
        let record = made_up::campaign(&["deadpool"], &[closed(8)], 3, &|_, _, block| {
            1e4 * scatter(block + shift, 0.2)
        });
        self::results(folder.path(), name, &record)
    };
    let said = compare(&[&noisy("noise", 0), &noisy("noise again", 1)]);
    assert!(
        line(&said, "Nothing can be told apart.").is_some(),
        "{}",
        said.stdout
    );
}

/// The exit status and stderr of a comparison with a limit.
#[track_caller]
fn gated(arguments: &[&str], status: i32, expected: &str) {
    let said = compare(arguments);
    assert_eq!(said.status, Some(status), "{}", said.stderr);
    assert!(said.stderr.contains(expected), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}

#[test]
fn a_limit_fails_only_where_the_second_is_shown_to_be_slower_by_more() {
    let folder = TempDir::new().unwrap();
    let results = |name: &str, speed| results(folder.path(), name, &record(speed));
    let (usual, faster) = (results("usual", 1.0), results("faster", 1.2));
    // The second is the slower one: fewer requests, and a higher percentile.
    let limit = |limit| ["--fail-if-slower", limit];
    let slower = [faster.as_str(), usual.as_str()];
    gated(
        &[&slower[..], &limit("5%")].concat(),
        1,
        "lanebench: B is slower than A by more than 5 %: sqlx at 8 connections (point-read): 17 % fewer requests per second (interval ",
    );
    gated(
        &[&slower[..], &limit("5%")].concat(),
        1,
        "; sqlx at 1440/s (point-read): p99 20 % higher (interval ",
    );
    // Shown to be slower by so much in one row, and only to be slower in the other.
    let said = compare(&[&slower[..], &limit("17%")].concat());
    assert_eq!(said.status, Some(1));
    let lines: Vec<&str> = said.stderr.lines().collect();
    let [shown, open] = lines[..] else {
        panic!("{}", said.stderr)
    };
    assert!(shown.contains("more than 17 %: sqlx at 1440/s"), "{shown}");
    assert!(
        open.contains("sqlx at 8 connections (point-read): requests per second, interval -17 to"),
        "{open}"
    );
    gated(
        &[&slower[..], &limit("25%")].concat(),
        0,
        "lanebench: B is not slower than A by more than 25 % in any of 4 rows",
    );
    // The other way round it is faster.
    gated(
        &[&usual, &faster, "--fail-if-slower", "5%"],
        0,
        "B is not slower",
    );
    // Of two servers of one campaign the second is judged.
    let servers = ["--servers", "sqlx,deadpool", "--fail-if-slower", "10%"];
    gated(
        &[&[faster.as_str()][..], &servers].concat(),
        1,
        "sqlx / deadpool at 8 connections (point-read): 17 % fewer",
    );
}

#[test]
fn noise_beyond_the_limit_passes_and_is_said_not_to_be_excluded() {
    let folder = TempDir::new().unwrap();
    let noisy = |name: &str, blocks, shift: usize| {
        let record = made_up::campaign(&["deadpool"], &[closed(8)], blocks, &|_, _, block| {
            1e4 * scatter(block + shift, 0.2)
        });
        results(folder.path(), name, &record)
    };
    gated(
        &[
            &noisy("a", 3, 0),
            &noisy("b", 3, 1),
            "--fail-if-slower",
            "5%",
        ],
        0,
        "lanebench: not shown, and not excluded, that B is slower than A by more than 5 %: deadpool at 8 connections (point-read): requests per second, interval -",
    );
    gated(
        &[
            &noisy("c", 1, 0),
            &noisy("d", 1, 1),
            "--fail-if-slower",
            "5%",
        ],
        0,
        "deadpool at 8 connections (point-read): one block is no comparison; more blocks would tell",
    );
}

#[test]
fn a_server_that_is_gone_is_said_to_be() {
    let folder = TempDir::new().unwrap();
    let one = made_up::campaign(&["deadpool"], &[closed(8)], 6, &|_, _, block| {
        10_000.0 * scatter(block, 0.01)
    });
    let (a, b) = (
        results(folder.path(), "two", &record(1.0)),
        results(folder.path(), "one", &one),
    );
    gated(
        &[&a, &b, "--fail-if-slower", "5%"],
        0,
        "in A and not in B: sqlx at 8 connections (point-read), deadpool at 1440/s (point-read)",
    );
}

#[test]
fn a_comparison_is_given_as_one_json_document() {
    let folder = TempDir::new().unwrap();
    let results = |name: &str, speed| results(folder.path(), name, &record(speed));
    let (before, after) = (results("before", 1.0), results("after", 1.2));
    let said = compare(&[&after, &before, "--json", "--fail-if-slower", "5%"]);
    assert_eq!(said.status, Some(1));
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let row = &document["tables"][0]["rows"][6];
    assert_eq!(
        (&row["server"], &row["metric"], &row["verdict"]),
        (&json!("sqlx"), &json!("throughput"), &json!("faster"))
    );
    let (low, high) = (&row["interval"]["low"], &row["interval"]["high"]);
    assert!(
        low.as_f64() > Some(1.15) && high.as_f64() < Some(1.25),
        "{row}"
    );
    assert_eq!(document["fail_if_slower"]["slower"][0]["server"], "sqlx");
    assert_eq!(document["fail_if_slower"]["within"], 2);
}

#[test]
fn a_limit_that_is_no_percentage_is_refused() {
    for limit in ["0.05", "5", "-5%", "150%"] {
        let said = compare(&["a", "b", &format!("--fail-if-slower={limit}")]);
        assert_eq!(said.status, Some(2), "{limit}");
        assert!(
            said.stderr
                .contains("give a percentage below 100, such as 5% or 2.5%"),
            "{}",
            said.stderr
        );
    }
}
