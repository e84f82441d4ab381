//! `lanebench report` as a user calls it, on campaigns that nobody measured.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::campaign;
use serde_json::{Value, json};
use tempfile::TempDir;

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../src/made_up.rs"]
mod made_up;

use made_up::{closed, open, scatter};

/// Status, stdout and stderr.
fn report(results: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_lanebench"))
        .arg("report")
        .arg(results)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn record() -> Value {
    made_up::campaign(
        &["deadpool", "sqlx"],
        &[closed(8), open(1_440.0)],
        6,
        &|server, rung, block| {
            let scatter = scatter(block + 3 * server, 0.01);
            if rung == 0 {
                10_000.0 * scatter
            } else {
                20.0 * scatter
            }
        },
    )
}

/// A folder with this text as its record.
fn folder(record: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("campaign.json"), record).unwrap();
    folder
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_record_becomes_a_page_a_text_and_a_table_of_figures() {
    let folder = folder(&record().to_string());
    let (status, stdout, stderr) = report(folder.path());
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let said: Vec<&Path> = stdout.lines().map(Path::new).collect();
    let expected = ["report.html", "report.md", "summary.csv"];
    assert_eq!(said, expected.map(|name| folder.path().join(name)));
    let all = ["campaign.json", "report.html", "report.md", "summary.csv"];
    assert_eq!(names(folder.path()), all.map(str::to_owned).into());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("report.html").starts_with("<!doctype html>"));
    assert!(read("report.md").contains("- At 8 connections "));
    assert_eq!(
        read("summary.csv")
            .lines()
            .next()
            .unwrap()
            .split(',')
            .count(),
        14
    );
    // The record itself will do, and saying it twice says the same.
    let before = expected.map(read);
    let (status, again, _) = report(&folder.path().join("campaign.json"));
    assert_eq!((status, again), (Some(0), stdout));
    assert_eq!(expected.map(read), before);
}

#[test]
fn a_record_that_cannot_be_read_gets_one_line_and_no_half_report() {
    let whole = record().to_string();
    let mut newer = record();
    newer["schema"] = json!(campaign::SCHEMA + 1);
    let mut edited = record();
    edited["trials"][3]["window"]["requests_per_second"] = json!("many");
    let mut whitewashed = record();
    whitewashed["trials"][3]["checks"] = json!([{ "code": "GEN_SAT", "outcome": "tripped", "verdict": "invalid", "figure": "busy" }]);
    let mut uncounted = record();
    uncounted["trials"][3]["window"]["counts"]["correct"] = json!(1);
    let mut unknown = record();
    unknown["trials"][0]["server"] = json!("<script>alert(1)</script>");
    let mut without = record();
    without.as_object_mut().unwrap().remove("plan");
    for (text, expected) in [
        (&whole[..whole.len() / 2], "is not the record of a campaign"),
        ("", "is not the record of a campaign"),
        ("[1, 2]", "is not the record of a campaign"),
        (&newer.to_string(), "read it with a newer one"),
        (&edited.to_string(), "invalid type: string \"many\""),
        (&whitewashed.to_string(), "its checks say INVALID"),
        (&uncounted.to_string(), "do not add up"),
        (&unknown.to_string(), "it is in no plan"),
        (&without.to_string(), "missing field `plan`"),
    ] {
        let folder = folder(text);
        let (status, stdout, stderr) = report(folder.path());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains("campaign.json"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(names(folder.path()), ["campaign.json".to_owned()].into());
    }
    let (status, _, stderr) = report(Path::new("/nowhere/at/all"));
    assert_eq!(status, Some(2));
    assert!(
        stderr.contains("/nowhere/at/all: there is no such results folder"),
        "{stderr}"
    );
}

#[test]
fn a_campaign_edited_to_have_little_in_it_is_reported_all_the_same() {
    let mut empty = record();
    empty["trials"] = json!([]);
    let mut no_rungs = empty.clone();
    no_rungs["plan"]["ladders"][0]["rungs"] = json!([]);
    let mut unknown = record();
    unknown["servers"] = json!([]);
    let mut nothing = record();
    nothing["trials"][0]["window"]["counts"]["correct"] = json!(0);
    nothing["trials"][0]["window"]["counts"]["scheduled"] = json!(0);
    nothing["trials"][0]["window"]["requests_per_second"] = json!(0.0);
    for record in [empty, no_rungs, unknown, nothing] {
        let folder = folder(&record.to_string());
        let (status, _, stderr) = report(folder.path());
        assert_eq!((status, stderr.as_str()), (Some(0), ""));
    }
}
