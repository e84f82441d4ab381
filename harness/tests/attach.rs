//! Servers that run already: measured where they are, told apart by the names of their sessions, and left running.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::campaign::{Campaign, State, Trial};
use harness::checks::{Check, Code, Outcome, Verdict};
use harness::folders::{FolderArgs, Folders};
use harness::server::Server;
use support::campaigns::{campaign_in, lanebench, run_into, said};
use support::servers::{Running, Shop, root};

/// Files, and what in them is too large for a hundredth of the shop, with what is not.
const SMALL: [(&str, &str, &str); 5] = [
    ("workloads/definitions/point-read.toml", "100_000", "1_000"),
    ("workloads/definitions/transfer.toml", "10_000", "100"),
    ("sql/queries/transfer.sql", "", ""),
    ("sql/queries/transfer-effects.sql", "", ""),
    ("sql/queries/transfer-violations.sql", "", ""),
];

fn small_shop() -> Shop {
    let shop = Shop::open();
    for (file, large, small) in SMALL {
        let file = root().join(file);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            shop.folder.path().join(file.file_name().unwrap()),
            if large.is_empty() {
                text
            } else {
                text.replace(large, small)
            },
        )
        .unwrap();
    }
    shop
}

/// Built, without the others.
fn server(name: &str) -> Server {
    let folders = Folders::find(&FolderArgs::default()).unwrap();
    let described = Server::read_all(&folders).unwrap();
    let mut found = described.into_iter().filter(|server| server.name == name);
    let server = found.next().unwrap();
    server.build(&folders.root).unwrap();
    server
}

/// `lanebench …` on the shop, with these servers attached.
fn attached(shop: &Shop, servers: &[(&str, &Running)], arguments: &str) -> Command {
    let named = servers
        .iter()
        .map(|(name, running)| format!("{name}={}", running.base));
    let attach = named.collect::<Vec<_>>().join(",");
    let mut command = lanebench(&shop.database.url, arguments);
    command
        .args(["--attach", &attach, "--scale", "0.01", "--workloads"])
        .arg(shop.folder.path());
    command.arg("--sql").arg(shop.folder.path());
    command
}

/// A row may be INVALID: tests run side by side on any machine, and its checks tell.
fn campaign(output: &Output, results: &Path) -> Campaign {
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        said(output)
    );
    let campaign = campaign_in(results);
    assert_eq!(campaign.state, State::Complete);
    campaign
}

fn check(trial: &Trial, code: Code) -> &Check {
    trial
        .checks
        .iter()
        .find(|check| check.code == code)
        .unwrap()
}

#[track_caller]
fn assert_outcome(trial: &Trial, code: Code, outcome: Outcome, words: &str) {
    let check = check(trial, code);
    assert_eq!(check.outcome, outcome, "{}: {check:?}", trial.server);
    assert!(check.figure.contains(words), "{}: {check:?}", trial.server);
}

#[test]
fn servers_that_run_already_are_measured_one_at_a_time_and_run_on() {
    let _turn = support::turn();
    let shop = small_shop();
    let running = ["deadpool", "sqlx", "r2d2"].map(|name| (name, shop.start(&server(name), &[])));
    let named: Vec<(&str, &Running)> = running
        .iter()
        .map(|(name, running)| (*name, running))
        .collect();
    let results = tempfile::tempdir().unwrap();
    let command = attached(
        &shop,
        &named,
        "run point-read --preset smoke --closed 4 --pool 4",
    );
    let campaign = campaign(&run_into(command, results.path()), results.path());
    assert_eq!(campaign.trials.len(), 3);
    for trial in &campaign.trials {
        for check in &trial.checks {
            let blameless = matches!(check.verdict, Verdict::Valid | Verdict::Invalid);
            assert!(blameless, "{}: {check:?}", trial.server);
        }
        assert_outcome(trial, Code::Contract, Outcome::Passed, "runs on");
        assert_outcome(trial, Code::Queries, Outcome::Passed, "statements executed");
        assert_outcome(trial, Code::Pool, Outcome::Passed, "4 sessions in");
        assert_outcome(trial, Code::Foreign, Outcome::Passed, "told by their name");
        assert_outcome(trial, Code::Restart, Outcome::Passed, "uptime grew by");
        assert_outcome(trial, Code::Xact, Outcome::NotObserved, "lives on");
        let window = trial.window.as_ref().unwrap();
        assert_eq!(
            (
                window.statements_per_request,
                window.transactions_per_request
            ),
            (Some(1.0), None)
        );
        let used = window.server;
        assert!(
            used.cpu_seconds > 0.0 && used.threads > 0 && used.rss_bytes > 0,
            "{used:?}"
        );
        assert!(window.series.iter().all(|second| second.server.is_none()));
    }
    let urls = campaign
        .servers
        .iter()
        .map(|server| server.attached.clone().unwrap());
    let bases = running.iter().map(|(_, running)| running.base.clone());
    assert_eq!(urls.collect::<Vec<_>>(), bases.collect::<Vec<_>>());
    assert!(
        campaign
            .unpublishable
            .iter()
            .any(|line| line.contains("attached to"))
    );
    for (name, running) in running {
        assert_eq!(running.get("/point-read/7").status, 200, "{name}");
        assert!(running.stop().success(), "{name}");
    }
}

#[test]
fn rows_that_an_attached_server_wrote_are_put_back_before_the_next_trial() {
    let _turn = support::turn();
    let shop = small_shop();
    let running = shop.start(&server("deadpool"), &[]);
    let results = tempfile::tempdir().unwrap();
    let arguments = "run transfer --preset smoke --blocks 3 --closed 4 --pool 4";
    let command = attached(&shop, &[("deadpool", &running)], arguments);
    let campaign = campaign(&run_into(command, results.path()), results.path());
    assert_eq!(campaign.trials.len(), 3);
    for trial in &campaign.trials {
        assert_outcome(trial, Code::Body, Outcome::Passed, "");
        assert_outcome(trial, Code::Audit, Outcome::Passed, "");
    }
}

#[test]
fn another_attached_server_that_works_makes_a_trial_invalid() {
    let _turn = support::turn();
    let shop = small_shop();
    let (measured, other) = (
        shop.start(&server("deadpool"), &[]),
        shop.start(&server("sqlx"), &[]),
    );
    let results = tempfile::tempdir().unwrap();
    let arguments = "run point-read -s deadpool --preset smoke --closed 4 --pool 4";
    let command = attached(
        &shop,
        &[("deadpool", &measured), ("sqlx", &other)],
        arguments,
    );
    let over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            // With pauses in which a trial may begin.
            while !over.load(Ordering::Relaxed) {
                other.get("/slow");
                thread::sleep(Duration::from_millis(100));
            }
        });
        let output = run_into(command, results.path());
        over.store(true, Ordering::Relaxed);
        output
    });
    let campaign = campaign(&output, results.path());
    let trial = campaign.trials.last().unwrap();
    assert_eq!(trial.verdict, Verdict::Invalid);
    assert_outcome(trial, Code::Foreign, Outcome::Tripped, "lanebench-sqlx");
}

#[test]
fn an_attached_server_is_verified_in_the_profile_it_runs_in() {
    let _turn = support::turn();
    let shop = small_shop();
    let running = shop.start(&server("threads"), &["--profile", "defaults"]);
    let arguments = "verify -w point-read,hello --pool 4";
    let output = attached(&shop, &[("threads", &running)], arguments)
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let rows: Vec<&str> = said.lines().filter(|line| line.ends_with(" ok")).collect();
    assert_eq!(rows.len(), 2, "{said}");
    assert!(
        rows.iter().all(|row| row.contains("threads (defaults)")),
        "{said}"
    );
}

#[test]
fn what_cannot_be_attached_to_is_refused_in_one_line() {
    let shop = small_shop();
    let running = shop.start(&server("deadpool"), &[]);
    let nobody = shop.start(&server("sqlx"), &[]);
    let nobody_at = nobody.base.clone();
    assert!(nobody.stop().success());
    let base = &running.base;
    for (attach, flags, expected) in [
        (
            format!("deadpool={base}"),
            "--pool 5",
            "runs with 4 connections in its pool, and --pool asks for 5".to_owned(),
        ),
        (
            format!("deadpool={base}"),
            "--pool 4 --profile defaults",
            "runs in the profile \"parity\"".to_owned(),
        ),
        (
            format!("deadpool={base}"),
            "--pool 4 -s sqlx",
            "server `sqlx` is not attached to".to_owned(),
        ),
        (
            format!("dedpool={base}"),
            "--pool 4",
            "did you mean `deadpool`?".to_owned(),
        ),
        (
            format!("deadpool={base},deadpool={base}"),
            "--pool 4",
            "`deadpool` is attached twice".to_owned(),
        ),
        (
            format!("deadpool={base},sqlx={base}"),
            "--pool 4",
            "cannot be told apart".to_owned(),
        ),
        (
            format!("sqlx={nobody_at}"),
            "--pool 4",
            format!("attached at {nobody_at}"),
        ),
        (
            "sqlx=http://no-such-host.invalid:1".to_owned(),
            "--pool 4",
            "this host cannot be found".to_owned(),
        ),
    ] {
        let arguments = format!("run point-read --scale 0.01 {flags} --attach");
        let output = lanebench(&shop.database.url, &arguments)
            .arg(&attach)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{attach} {flags}");
        let said = said(&output);
        let line = said.lines().last().unwrap();
        assert!(
            line.starts_with("lanebench: ") && line.contains(&expected),
            "{attach} {flags}: {said}"
        );
    }
}

#[test]
fn a_dry_run_says_what_would_be_measured_and_refuses_results_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let dry_run = |flags: &str, out: &Path| {
        let arguments = format!("run feed --preset smoke --closed 4 --dry-run {flags} --out");
        let output = lanebench("local", &arguments).arg(out).output().unwrap();
        (output.status.code(), said(&output))
    };
    let results = folder.path().join("results");
    let (status, said) = dry_run("", &results);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("would measure feed with deadpool, r2d2, sqlx: 3 trials"),
        "{said}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let (status, said) = dry_run("", Path::new("/proc/results"));
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("no results could be written to /proc"),
        "{said}"
    );
}
