//! Whole campaigns of the three lanes on a real PostgreSQL: what is recorded, what is counted, and what an interruption
//! leaves.

#![allow(clippy::unwrap_used)]

#[path = "support/schema.rs"]
mod schema;
mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use harness::campaign::{Campaign, State, Trial};
use harness::checks::{Code, Outcome, Verdict};
use harness::process::Profile;
use support::TestDatabase;
use support::campaigns::{campaign_in, interrupt_after, lanebench, run_into};

fn of<'a>(
    campaign: &'a Campaign,
    server: &'a str,
    profile: Profile,
) -> impl Iterator<Item = &'a Trial> {
    campaign
        .trials
        .iter()
        .filter(move |trial| trial.server == server && trial.profile == profile)
}

/// A row may be INVALID: tests run side by side on any machine, and its checks tell.
fn assert_measured(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
}

/// Every check is in the row, and none holds anything against the lane.
fn assert_blameless(trial: &Trial) {
    let codes: Vec<Code> = trial.checks.iter().map(|check| check.code).collect();
    assert_eq!(codes, Code::ALL, "{}", trial.server);
    for check in &trial.checks {
        assert!(
            matches!(check.verdict, Verdict::Valid | Verdict::Invalid),
            "{}: {check:?}",
            trial.server
        );
    }
}

#[test]
fn parity_costs_one_statement_and_one_transaction_and_defaults_show_their_pings() {
    let _turn = support::turn();
    let database = TestDatabase::fresh();
    let results = tempfile::tempdir().unwrap();
    let arguments = "run point-read --preset smoke --closed 4 --pool 4 --profile parity,defaults";
    let output = run_into(lanebench(&database.url, arguments), results.path());
    assert_measured(&output);
    let campaign = campaign_in(results.path());
    assert_eq!(
        (campaign.state, campaign.trials.len()),
        (State::Complete, 6)
    );
    let record = fs::read_to_string(results.path().join("campaign.json")).unwrap();
    let record = serde_json::from_str(&record).unwrap();
    assert_eq!(schema::faults(&record), [""; 0]);
    for report in ["report.html", "report.md", "summary.csv"] {
        assert!(results.path().join(report).is_file(), "{report}");
    }
    for trial in &campaign.trials {
        assert_blameless(trial);
        let window = trial.window.as_ref().unwrap();
        assert!(window.counts.correct > 0 && window.counts.scheduled == window.counts.correct);
        assert!(
            window.server.cpu_seconds > 0.0
                && window.server.threads > 0
                && window.server.rss_bytes > 0
        );
        assert_eq!(window.statements_per_request, Some(1.0), "{}", trial.server);
    }
    for (server, parity_trips, default_transactions, default_trips) in [
        ("deadpool", 1.0, 1.0, 1.0),
        ("r2d2", 1.0, 2.0, 2.0),
        ("sqlx", 2.0, 1.0, 3.0),
    ] {
        for trial in of(&campaign, server, Profile::Parity) {
            assert_eq!(
                trial.window.as_ref().unwrap().transactions_per_request,
                Some(1.0),
                "{server}"
            );
        }
        for trial in of(&campaign, server, Profile::Defaults) {
            let seen = trial
                .window
                .as_ref()
                .unwrap()
                .transactions_per_request
                .unwrap();
            assert!(
                (seen - default_transactions).abs() < 0.05,
                "{server}: {seen}"
            );
        }
        for (profile, trips) in [
            (Profile::Parity, parity_trips),
            (Profile::Defaults, default_trips),
        ] {
            let inspection = campaign
                .inspections
                .iter()
                .find(|inspection| inspection.server == server && inspection.profile == profile)
                .unwrap();
            assert!(
                inspection.distinct_requests >= 1024,
                "{}",
                inspection.distinct_requests
            );
            let seen = inspection.round_trips_per_request.unwrap();
            assert!((seen - trips).abs() < 0.05, "{server} {profile:?}: {seen}");
        }
    }
}

#[test]
fn no_lane_passes_the_ceiling_that_the_pool_sets() {
    let _turn = support::turn();
    let database = TestDatabase::fresh();
    let results = tempfile::tempdir().unwrap();
    let arguments = "run ten-ms --preset smoke --closed 16 --pool 4 --scale 0.001";
    let output = run_into(lanebench(&database.url, arguments), results.path());
    assert_measured(&output);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("of the ceiling of 400/s"), "{table}");
    for trial in campaign_in(results.path()).trials {
        assert_blameless(&trial);
        let ceiling = trial
            .checks
            .iter()
            .find(|check| check.code == Code::Ceiling);
        assert_eq!(ceiling.unwrap().outcome, Outcome::Passed, "{ceiling:?}");
        let window = trial.window.unwrap();
        let rate = window.requests_per_second;
        assert!(rate <= 400.0, "{}: {rate}", trial.server);
        assert!(
            window.sessions.doing.contains_key("Timeout:PgSleep"),
            "{:?}",
            window.sessions
        );
    }
}

#[test]
fn an_interrupted_campaign_keeps_its_trials_and_leaves_nothing_running() {
    let _turn = support::turn();
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut command = lanebench("local", "run hello --scale 0.001 -s deadpool");
    command.env("TMPDIR", folder.path());
    interrupt_after(command, &results, 1);
    let campaign = campaign_in(&results);
    assert_eq!(campaign.state, State::Interrupted);
    // What was measured is kept, and nothing that was not measured to its end.
    let whole = |trial: &Trial| trial.window.is_some();
    assert!(
        (1..9).contains(&campaign.trials.len()) && campaign.trials.iter().all(whole),
        "{:?}",
        campaign.trials
    );
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let kept: Vec<_> = left.iter().filter(|name| *name != "results").collect();
    assert!(
        kept.iter().all(|name| is_empty(&folder.path().join(name))),
        "{kept:?}"
    );
    assert!(
        mentions_of(folder.path()).is_empty(),
        "{:?}",
        mentions_of(folder.path())
    );
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut content| content.next().is_none())
}

/// Command lines that still name a folder of this test, as a postmaster's would.
fn mentions_of(folder: &Path) -> Vec<String> {
    let wanted = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&wanted))
        .collect()
}
