//! Private clusters from outside: where the binaries come from, and that nothing is left behind, whatever ends the
//! program. Each test gives it a temporary folder of its own and looks into that afterwards.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use harness::database::leftovers::RunFolder;
use harness::database::{self, Choice, Statements, download};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::program::{
    Started, assert_nothing_left, lanebench, local_binaries, processes_in, stderr, temp,
};
use support::say;

#[test]
fn sigterm_and_ctrl_c_leave_nothing_behind() {
    let Some(_) = local_binaries() else { return };
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let temp = temp();
        let started = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
        assert!(started.answers() && !processes_in(temp.path()).is_empty());
        started.end(signal);
        assert_nothing_left(temp.path());
    }
}

/// Signals a `database start` this long after its birth, and waits for its end.
fn signal_during_start(temp: &Path, signal: Signal, milliseconds: u64) {
    let mut command = lanebench(temp, &["start", "--scale", "0.1"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(milliseconds));
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    child.wait().unwrap();
}

/// A run that opens no cluster, and removes what others left behind.
fn next_run(temp: &Path) {
    let nowhere = ["seed", "--database", "postgres://nobody@127.0.0.1:1/none"];
    assert_eq!(
        lanebench(temp, &nowhere).output().unwrap().status.code(),
        Some(2)
    );
}

#[test]
fn an_interruption_at_any_moment_of_the_start_leaves_nothing_behind() {
    let Some(_) = local_binaries() else { return };
    // At first its handlers are not in place: a signal just kills it, with nothing to leave behind yet.
    for milliseconds in [1, 100, 300, 600, 900, 1200, 2000] {
        let temp = temp();
        signal_during_start(temp.path(), Signal::SIGINT, milliseconds);
        assert_nothing_left(temp.path());
    }
}

#[test]
fn a_kill_at_any_moment_of_the_start_is_made_good_by_the_next_run() {
    let Some(_) = local_binaries() else { return };
    for milliseconds in [50, 200, 400, 700, 1000, 1500] {
        let temp = temp();
        signal_during_start(temp.path(), Signal::SIGKILL, milliseconds);
        next_run(temp.path());
        assert_nothing_left(temp.path());
    }
}

#[test]
fn the_next_run_removes_what_a_killed_one_left_behind() {
    let Some(_) = local_binaries() else { return };
    let temp = temp();
    let started = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
    let url = started.url.clone();
    started.end(Signal::SIGKILL);
    assert!(
        !processes_in(temp.path()).is_empty(),
        "PostgreSQL was expected to survive the kill of the harness"
    );

    let next = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
    assert!(
        postgres::Client::connect(&url, postgres::NoTls).is_err(),
        "the leftover still runs"
    );
    assert!(next.answers());
    assert_eq!(
        fs::read_dir(temp.path()).unwrap().count(),
        1,
        "the leftover's folder is still there"
    );
    next.end(Signal::SIGTERM);
    assert_nothing_left(temp.path());
}

#[test]
fn a_run_that_is_alive_is_left_alone_by_the_next() {
    let Some(_) = local_binaries() else { return };
    let temp = temp();
    let first = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
    let second = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
    assert!(first.answers() && second.answers());
    first.end(Signal::SIGTERM);
    assert!(second.answers());
    second.end(Signal::SIGTERM);
    assert_nothing_left(temp.path());
}

#[test]
fn a_stranger_with_a_leftovers_pid_is_not_killed() {
    let temp = temp();
    let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
    // A run that died, whose child had this pid once.
    let uid = nix::unistd::geteuid();
    let folder = temp.path().join(format!("lanebench-{uid}-999999999-0"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("owner"), "999999999\n").unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let note = format!("{} {}/1 SIGKILL\n", stranger.id(), boot.trim());
    fs::write(folder.join("children"), note).unwrap();

    next_run(temp.path());
    let killed = stranger.try_wait().unwrap().is_some();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(!killed);
    assert_nothing_left(temp.path());
}

#[test]
fn a_recorded_child_ends_with_the_run_that_follows_a_kill() {
    let temp = temp();
    // What a killed run would have written, taken from one that is alive.
    let folder = RunFolder::create().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    folder.record_child(child.id()).unwrap();
    let left = temp.path().join(folder.path().file_name().unwrap());
    fs::create_dir(&left).unwrap();
    for file in ["owner", "children"] {
        fs::copy(folder.path().join(file), left.join(file)).unwrap();
    }

    next_run(temp.path());
    assert!(child.try_wait().unwrap().is_some(), "the child survived");
    assert_nothing_left(temp.path());
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let Some(_) = local_binaries() else { return };
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = thread::spawn(move || {
        let folder = Arc::new(RunFolder::create().unwrap());
        let database = database::open(&Choice::Local, &folder, &AtomicBool::new(false)).unwrap();
        assert!(database.is_private());
        sender
            .send((folder.path().to_owned(), database.postmaster_pid.unwrap()))
            .unwrap();
        panic!("as a bug would");
    });
    assert!(panicked.join().is_err());
    let (folder, pid) = receiver.recv().unwrap();
    assert!(!folder.exists());
    assert!(!Path::new("/proc").join(pid.to_string()).exists());
}

#[test]
fn a_private_cluster_says_what_it_is() {
    let Some(_) = local_binaries() else { return };
    let folder = Arc::new(RunFolder::create().unwrap());
    let started = Instant::now();
    let database = database::open(&Choice::Local, &folder, &AtomicBool::new(false)).unwrap();
    say(&format!(
        "a private cluster started in {:.1?}: {}",
        started.elapsed(),
        database.source
    ));
    let settings: Vec<_> = database
        .settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting.value.as_str()))
        .collect();
    for (name, value, _) in database::settings::SETTINGS {
        if ![
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "timezone",
        ]
        .contains(&name)
        {
            assert!(
                settings.contains(&(name, value)),
                "{name} is not {value} in {settings:?}"
            );
        }
    }
    assert!(database.monitor_apart && database.monitor_url.ends_with("/postgres"));
    assert_eq!(database.max_connections, 297);
    assert_eq!(
        database.statements,
        Statements::Observed {
            view: "public.pg_stat_statements".to_owned()
        }
    );
    let status =
        fs::read_to_string(format!("/proc/{}/status", database.postmaster_pid.unwrap())).unwrap();
    assert!(
        status.contains("Name:\tpostgres") && !status.contains("Uid:\t0"),
        "{status}"
    );
    assert!(!format!("{database:?}").contains(&database.url));
}

#[test]
fn only_who_knows_the_password_gets_in() {
    let Some(_) = local_binaries() else { return };
    let folder = Arc::new(RunFolder::create().unwrap());
    let database = database::open(&Choice::Local, &folder, &AtomicBool::new(false)).unwrap();
    let mut url = url::Url::parse(&database.url).unwrap();
    url.set_password(Some("guessed")).unwrap();
    let refusal =
        database::open(&Choice::Url(url.into()), &folder, &AtomicBool::new(false)).unwrap_err();
    assert!(
        refusal.to_string().contains("wrong password"),
        "{refusal:#}"
    );
}

#[test]
fn the_url_of_a_start_is_printed_while_it_runs_and_can_be_seeded() {
    let Some(_) = local_binaries() else { return };
    let temp = temp();
    let none = lanebench(temp.path(), &["url"]).output().unwrap();
    assert_eq!((none.status.code(), none.stdout.len()), (Some(2), 0));
    assert_eq!(
        stderr(&none),
        "lanebench: no `lanebench database start` is running\n"
    );

    let started = Started::by(lanebench(temp.path(), &["start", "--scale", "0.001"]));
    let url = lanebench(temp.path(), &["url"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&url.stdout).trim(), started.url);
    let seeded = lanebench(temp.path(), &["seed", "--scale", "0.001"])
        .output()
        .unwrap();
    assert!(
        seeded.status.success() && stderr(&seeded).contains("already seeded"),
        "{}",
        stderr(&seeded)
    );
    started.end(Signal::SIGTERM);
    assert_nothing_left(temp.path());
}

#[test]
fn when_no_source_works_one_message_names_all_three() {
    let temp = temp();
    let output = Command::new(env!("CARGO_BIN_EXE_lanebench"))
        .args(["doctor", "--database", "auto"])
        .env("TMPDIR", temp.path())
        .env("XDG_CACHE_HOME", temp.path().join("cache"))
        .env("DATABASE_URL", "postgres://me:s3cret@127.0.0.1:1/shop")
        .env("LANEBENCH_POSTGRES_BIN", temp.path())
        .env(download::PLACE_VARIABLE, "http://127.0.0.1:1")
        .output()
        .unwrap();
    let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    for reason in [
        "DATABASE_URL: me@127.0.0.1:1/shop: nothing listens on 127.0.0.1:1",
        &format!(
            "PostgreSQL on this machine: {} has no initdb",
            temp.path().display()
        ),
        "downloaded PostgreSQL: http://127.0.0.1:1/",
    ] {
        assert!(said.contains(reason), "{reason:?} is missing in: {said}");
    }
    assert!(!said.contains("s3cret"));
}

#[test]
fn a_source_that_was_passed_over_is_named() {
    let Some(_) = local_binaries() else { return };
    let temp = temp();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
    command
        .args(["doctor"])
        .env("TMPDIR", temp.path())
        .env("DATABASE_URL", "postgres://me:s3cret@127.0.0.1:1/shop");
    let said = stderr(
        &command
            .env_remove("LANEBENCH_POSTGRES_BIN")
            .output()
            .unwrap(),
    );
    let reason = "passed over: DATABASE_URL: me@127.0.0.1:1/shop: nothing listens on 127.0.0.1:1";
    assert!(said.contains(reason) && !said.contains("s3cret"), "{said}");
    assert_nothing_left(temp.path());
}
