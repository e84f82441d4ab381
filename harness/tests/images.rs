//! Servers and harness as the images that `docker compose up` runs, with no privileges, against PostgreSQL in a container.
//!
//! Without a Docker engine nothing is run, and that is said; `LANEBENCH_TEST_DATABASE=container` makes it a failure, and
//! `LANEBENCH_TEST_IMAGES=no` leaves them out in any case. `LANEBENCH_POSTGRES_IMAGE` names another PostgreSQL. The first
//! run builds the images, which takes minutes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use harness::checks::{Code, Outcome, Verdict};
use serde_json::Value;
use support::campaigns::campaign_in;
use support::containers::{Ended, HARNESS, SERVERS, Stack, engine, inspected};
use tempfile::TempDir;

/// A folder that the images' user may write to.
fn results() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    folder
}

fn run(stack: &Stack, arguments: &str, results: &Path) -> Ended {
    let arguments = format!("run {arguments} --pool 4 --out results/it");
    stack.harness(&arguments, Some(results))
}

/// Whether the load of the first trial is under way: it keeps a log.
fn has_begun(campaign: &Path) -> bool {
    let files = fs::read_dir(campaign).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.path());
    names.any(|file| {
        file.extension()
            .is_some_and(|extension| extension == "hlog")
    })
}

#[test]
fn images_run_without_privileges_and_say_what_they_were_built_from() {
    let Some(engine) = engine() else { return };
    engine.build();
    for target in SERVERS.into_iter().chain([HARNESS]) {
        let image = inspected(target);
        let config = &image["Config"];
        assert_eq!(config["User"], "lanebench", "{target}");
        assert_eq!(config["Entrypoint"][0], "tini", "{target}");
        assert!(config["Healthcheck"]["Test"].is_array(), "{target}");
        let label = |name: &str| config["Labels"][name].as_str().unwrap_or_default();
        assert_eq!(
            label("org.opencontainers.image.revision"),
            "tested",
            "{target}"
        );
        assert_eq!(label("lanebench.build.profile"), "release", "{target}");
        let variables = config["Env"].to_string().to_lowercase();
        for secret in ["password", "postgres://", "token"] {
            assert!(!variables.contains(secret), "{target}: {variables}");
        }
    }
}

#[test]
fn images_verify_and_measure_one_server_at_a_time() {
    let Some(engine) = engine() else { return };
    let _turn = support::turn();
    let stack = Stack::start(&engine, &["deadpool", "threads"]);
    let verified = stack.harness("verify -w point-read,transfer,hello --pool 4", None);
    assert_eq!(verified.status, 0, "{}", verified.said);
    let rows = verified.said.lines().filter(|line| line.ends_with(" ok"));
    assert_eq!(rows.count(), 6, "{}", verified.said);

    let results = results();
    let ended = run(
        &stack,
        "point-read --preset smoke --closed 4",
        results.path(),
    );
    // 1 is a row that a busy machine made INVALID.
    assert!(matches!(ended.status, 0 | 1), "{}", ended.said);
    let campaign = campaign_in(&results.path().join("it"));
    assert_eq!(campaign.trials.len(), 2);
    for trial in &campaign.trials {
        for check in &trial.checks {
            let blameless = matches!(check.verdict, Verdict::Valid | Verdict::Invalid);
            assert!(blameless, "{}: {check:?}", trial.server);
            let counted = matches!(check.code, Code::Queries | Code::Pool | Code::Restart);
            assert!(
                !counted || check.outcome == Outcome::Passed,
                "{}: {check:?}",
                trial.server
            );
        }
        let window = trial.window.as_ref().unwrap();
        assert_eq!(window.statements_per_request, Some(1.0));
        assert!(window.server.cpu_seconds > 0.0 && window.server.rss_bytes > 0);
        // PostgreSQL runs in another container.
        assert_eq!(window.database_cpu_seconds, None);
    }
    for server in &campaign.servers {
        let (_, about) = &server.says[0];
        assert_eq!(about["build"]["commit"], "tested", "{}", server.name);
        assert_ne!(about["build"]["rustc"], Value::from(""));
    }
    assert_eq!(campaign.environment.git_commit.as_deref(), Some("tested"));
}

#[test]
fn a_database_that_is_started_anew_under_load_makes_the_trial_invalid_and_the_servers_recover() {
    let Some(engine) = engine() else { return };
    let _turn = support::turn();
    let stack = Stack::start(&engine, &["deadpool", "r2d2"]);
    let results = results();
    let ended = thread::scope(|scope| {
        let arguments = "point-read -s deadpool --preset smoke --closed 4 --warmup 2 --window 8";
        let running = scope.spawn(|| run(&stack, arguments, results.path()));
        stack.wait_for(|| has_begun(&results.path().join("it")));
        thread::sleep(Duration::from_secs(5));
        stack.restart_database();
        running.join().unwrap()
    });
    assert_eq!(ended.status, 1, "{}", ended.said);
    let campaign = campaign_in(&results.path().join("it"));
    let trial = &campaign.trials[0];
    let restart = trial
        .checks
        .iter()
        .find(|check| check.code == Code::Restart)
        .unwrap();
    assert_eq!(
        (trial.verdict, restart.outcome),
        (Verdict::Invalid, Outcome::Tripped),
        "{restart:?}"
    );
    // Without pings r2d2 finds a connection broken only when it is used: some answers are 503, once.
    stack.harness("verify -w point-read --pool 4", None);
    let verified = stack.harness("verify -w point-read --pool 4", None);
    assert_eq!(verified.status, 0, "{}", verified.said);
}
