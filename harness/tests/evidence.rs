//! What makes a campaign evidence: lanes that break a rule are named for it, interrupted campaigns end as if they had not
//! been, open loops keep their rates, and a capacity lies below the ceiling.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use harness::blocks::counting;
use harness::campaign::{Campaign, State};
use harness::capacity::CapacityRecord;
use harness::checks::{Code, Outcome, Verdict};
use support::TestDatabase;
use support::campaigns::{campaign_in, interrupt_after, lanebench, run_into, said};
use support::servers::root;
use tempfile::TempDir;

/// The example of the front that breaks one rule, named by a variable.
fn crooked() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let root = root();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "front", "--example", "crooked"])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", root.join("target"))
            .status()
            .unwrap();
        assert!(built.success());
        root.join("target/debug/examples/crooked")
    })
}

/// A folder of servers, each with its fault.
fn crooked_servers(faults: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for fault in faults {
        let server = folder.path().join(fault);
        fs::create_dir(&server).unwrap();
        let program = crooked().display();
        fs::write(
            server.join("server.toml"),
            format!(
                "about = \"{fault}\"\nlane = \"nonblocking\"\nrun = [\"env\", \"CROOKED={fault}\", \"{program}\"]\n"
            ),
        )
        .unwrap();
    }
    folder
}

/// Runs every faulty server once and gives the campaign.
fn campaign_of(faults: &[&str], workload: &str) -> Campaign {
    let (database, results) = (TestDatabase::fresh(), tempfile::tempdir().unwrap());
    let servers = crooked_servers(faults);
    let arguments = format!("run {workload} --preset smoke --closed 4 --pool 4");
    let mut command = lanebench(&database.url, &arguments);
    command.arg("--servers").arg(servers.path());
    let output = run_into(command, results.path());
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        said(&output)
    );
    campaign_in(results.path())
}

/// The latest trial's tripped checks that blame the lane, with their figures.
fn faults_of(campaign: &Campaign, server: &str) -> Vec<(Code, Verdict, String)> {
    let trial = counting(&campaign.trials).find(|trial| trial.server == server);
    let tripped = trial.unwrap().checks.iter().filter(|check| {
        // What the machine did meanwhile is not this test's subject.
        check.outcome == Outcome::Tripped && check.verdict != Verdict::Invalid
    });
    tripped
        .map(|check| (check.code, check.verdict, check.figure.clone()))
        .collect()
}

#[test]
fn a_lane_that_breaks_a_rule_is_named_for_it_with_the_figure() {
    let _turn = support::turn();
    let expected = [
        ("caches", Code::Queries, Verdict::Misconfigured),
        ("opens-one-more", Code::Pool, Verdict::Misconfigured),
        ("pings", Code::Xact, Verdict::Misconfigured),
        ("reconnects", Code::Pool, Verdict::Misconfigured),
        ("dies", Code::Http, Verdict::Failed),
    ];
    let mut servers: Vec<&str> = expected.iter().map(|(server, ..)| *server).collect();
    servers.push("honest");
    let campaign = campaign_of(&servers, "point-read");
    for (server, code, verdict) in expected {
        let faults = faults_of(&campaign, server);
        let found = faults
            .iter()
            .any(|fault| (fault.0, fault.1) == (code, verdict));
        // One that dies gets no further than its figures allow.
        let broke_off = server == "dies" && faults.iter().any(|fault| fault.0 == Code::Contract);
        assert!(found || broke_off, "{server}: {faults:?}");
    }
    assert_eq!(faults_of(&campaign, "honest"), []);
}

#[test]
fn a_sleep_of_nine_milliseconds_passes_for_none_of_ten() {
    let _turn = support::turn();
    let campaign = campaign_of(&["short-sleep", "honest"], "ten-ms");
    let faults = faults_of(&campaign, "short-sleep");
    assert!(
        faults
            .iter()
            .any(|fault| fault.0 == Code::Ceiling && fault.1 == Verdict::Misconfigured),
        "{faults:?}"
    );
    assert_eq!(faults_of(&campaign, "honest"), []);
}

#[test]
fn a_transaction_that_was_acknowledged_and_is_not_in_the_database_fails_the_lane() {
    let _turn = support::turn();
    let campaign = campaign_of(&["forgets", "honest"], "transfer");
    let faults = faults_of(&campaign, "forgets");
    let audit = faults
        .iter()
        .find(|fault| fault.0 == Code::Audit && fault.1 == Verdict::Failed);
    assert!(
        audit.is_some_and(|audit| audit.2.contains("lost: {")),
        "{faults:?}"
    );
    assert_eq!(faults_of(&campaign, "honest"), []);
}

/// What a campaign ran, in order, without what it measured.
fn course(campaign: &Campaign) -> Vec<(String, String, usize, usize)> {
    counting(&campaign.trials)
        .map(|trial| {
            (
                trial.rung.to_string(),
                trial.server.clone(),
                trial.block,
                trial.position,
            )
        })
        .collect()
}

const COURSE: &str = "run point-read -s deadpool,deadpool --preset publishable --blocks 3 --warmup 0.1 --window 0.3 \
                      --closed 2,4 --pool 4 --seed 11 --scale 1";

#[test]
fn an_interrupted_campaign_resumes_and_ends_as_if_it_had_not_been() {
    let _turn = support::turn();
    let database = TestDatabase::fresh();
    let folder = tempfile::tempdir().unwrap();
    let (whole, halves) = (folder.path().join("whole"), folder.path().join("halves"));
    let output = run_into(lanebench(&database.url, COURSE), &whole);
    let whole = campaign_in(&whole);
    assert_eq!(
        (whole.state, whole.trials.len() >= 12),
        (State::Complete, true),
        "{}",
        said(&output)
    );

    interrupt_after(lanebench(&database.url, COURSE), &halves, 5);
    assert_eq!(campaign_in(&halves).state, State::Interrupted);
    let resumed = lanebench(&database.url, "run --resume")
        .arg(&halves)
        .output()
        .unwrap();
    let resumed_campaign = campaign_in(&halves);
    assert_eq!(
        resumed_campaign.state,
        State::Complete,
        "{}",
        said(&resumed)
    );
    assert_eq!(course(&resumed_campaign), course(&whole));
    assert_eq!(resumed_campaign.commands.len(), 2);

    let again = lanebench(&database.url, "run --resume")
        .arg(&halves)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(
        said(&again).contains("this campaign is complete"),
        "{}",
        said(&again)
    );
}

#[test]
fn a_campaign_on_a_private_cluster_resumes_on_the_next_one() {
    let _turn = support::turn();
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    if support::program::local_binaries().is_none() {
        return;
    }
    let course =
        "run ten-ms -s deadpool --preset smoke --blocks 4 --closed 4 --pool 4 --scale 0.001";
    interrupt_after(lanebench("local", course), &results, 1);
    let resumed = lanebench("local", "run --resume")
        .arg(&results)
        .output()
        .unwrap();
    assert_eq!(
        campaign_in(&results).state,
        State::Complete,
        "{}",
        said(&resumed)
    );
}

#[test]
fn what_cannot_be_resumed_is_refused_in_one_line() {
    let database = TestDatabase::fresh();
    let folder = tempfile::tempdir().unwrap();
    let refusal = |content: Option<&str>| {
        let results = folder.path().join("results");
        fs::create_dir_all(&results).unwrap();
        if let Some(content) = content {
            fs::write(results.join("campaign.json"), content).unwrap();
        }
        let output = lanebench(&database.url, "run --resume")
            .arg(&results)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        stderr
    };
    assert!(refusal(None).contains("cannot read"));
    assert!(refusal(Some("{\"schema\": 2")).contains("is not the record of a campaign"));
    assert!(refusal(Some("{\"schema\": 1}")).contains("written with schema 1"));
}

#[test]
fn an_open_loop_keeps_the_rates_asked_for_and_shares_of_the_slowest_capacity() {
    let _turn = support::turn();
    let (database, results) = (TestDatabase::fresh(), tempfile::tempdir().unwrap());
    let arguments = "run ten-ms -s deadpool,sqlx --preset smoke --pool 4 --rates 100,50% --arrivals poisson --scale 0.001";
    let output = run_into(lanebench(&database.url, arguments), results.path());
    let campaign = campaign_in(results.path());
    let rungs: Vec<f64> = campaign.plan.ladders[0]
        .rungs
        .iter()
        .map(|rung| match rung {
            harness::rung::Rung::Open { rate, .. } => *rate,
            harness::rung::Rung::Closed { .. } => panic!("a closed rung"),
        })
        .collect();
    assert_eq!(rungs.len(), 2, "{}", said(&output));
    let reference = &campaign.references[0];
    let lowest = reference
        .of_each
        .iter()
        .map(|(_, rate)| *rate)
        .fold(f64::INFINITY, f64::min);
    assert_eq!(reference.requests_per_second, lowest);
    assert_eq!(rungs, [100.0, (lowest / 2.0).round()]);
    for trial in counting(&campaign.trials) {
        let window = trial.window.as_ref().unwrap();
        let rate = trial
            .checks
            .iter()
            .find(|check| check.code == Code::Rate)
            .unwrap();
        assert_eq!(rate.outcome, Outcome::Passed, "{}", rate.figure);
        assert!(window.response_ns.p50 >= window.service_ns.p50.min(10_000_000));
        let stages = window.stages.unwrap();
        assert!(stages.database.mean >= 10e6, "{stages:?}");
    }
    let table = said(&output);
    assert!(
        table.contains("open loop") && !table.contains("closed loop,"),
        "{table}"
    );
}

#[test]
fn a_capacity_lies_below_the_ceiling_and_both_its_ends_are_told() {
    let _turn = support::turn();
    let (database, results) = (TestDatabase::fresh(), tempfile::tempdir().unwrap());
    let arguments = "capacity ten-ms -s deadpool --pool 4 --slo p90<25ms --window 0.5 --warmup 0.2 --confirmations 2 --scale 0.001";
    let output = run_into(lanebench(&database.url, arguments), results.path());
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        said(&output)
    );
    let record: CapacityRecord =
        serde_json::from_slice(&fs::read(results.path().join("capacity.json")).unwrap()).unwrap();
    let search = &record.searches[0];
    let (passes, fails) = (
        search.passes.as_ref().unwrap(),
        search.fails.as_ref().unwrap(),
    );
    assert!(
        passes.rate < fails.rate && passes.rate < 400.0,
        "{search:?}"
    );
    assert!(fails.rate / passes.rate < 1.03, "{search:?}");
    assert!(said(&output).contains("meets it at"), "{}", said(&output));
}
