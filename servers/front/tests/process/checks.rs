//! A server as a process, as far as it gets without a database. Every lane's tests include this file and name their
//! own program.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::SERVER;

const PASSWORD: &str = "correct-horse";

fn server(database: SocketAddr) -> Command {
    let mut command = Command::new(SERVER);
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_clear()
        .env(
            "DATABASE_URL",
            format!("postgres://shop:{PASSWORD}@{database}/shop"),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn url(database: SocketAddr) -> String {
    format!("postgres://shop:{PASSWORD}@{database}/shop")
}

/// A port where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A listener that takes connections and says nothing.
fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Checks that a start fails with this status and one line on stderr, which must hold these words.
fn assert_refused(output: &Output, status: i32, words: &[&str]) {
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for word in words {
        assert!(told.contains(word), "{word:?} is not in {told:?}");
    }
    assert!(!told.contains(PASSWORD), "the password is in {told:?}");
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
}

#[test]
fn unusable_flags_are_one_line_and_status_2() {
    let cases: [(&[&str], &str); 9] = [
        (&["--pool", "0"], "--pool"),
        (&["--pool", "many"], "--pool"),
        (&["--threads", "0"], "--threads"),
        (&["--queue", "-1"], "-1"),
        (&["--queue-wait", "5"], "250ms"),
        (&["--statement-timeout", "0s"], "250ms"),
        (&["--profile", "fast"], "parity"),
        (&["--timings", "maybe"], "off"),
        (&["--pol", "1"], "--pol"),
    ];
    for (flags, word) in cases {
        assert_refused(&server(nobody()).args(flags).output().unwrap(), 2, &[word]);
    }
    let without_url = server(nobody())
        .env_remove("DATABASE_URL")
        .output()
        .unwrap();
    assert_refused(&without_url, 2, &["--database-url"]);
    let not_a_url = server(nobody())
        .env("DATABASE_URL", "no url at all")
        .output()
        .unwrap();
    assert_refused(&not_a_url, 2, &["DATABASE_URL", "postgres://"]);
}

#[test]
fn a_malformed_definition_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("typo.toml"),
        "about = \"A typing mistake.\"\nshap = \"text\"\n",
    )
    .unwrap();
    let output = server(nobody())
        .arg("--workloads")
        .arg(folder.path())
        .output()
        .unwrap();
    assert_refused(&output, 2, &["typo.toml:2", "shap"]);
    let output = server(nobody())
        .args(["--sql", "no/such/folder"])
        .output()
        .unwrap();
    assert_refused(&output, 2, &["no/such/folder", "--sql"]);
}

#[test]
fn a_port_in_use_is_status_1() {
    let (_listener, taken) = silent();
    let output = server(nobody())
        .args(["--listen", &taken.to_string()])
        .output()
        .unwrap();
    assert_refused(&output, 1, &[&taken.to_string(), "--listen"]);
}

#[test]
fn a_pool_that_the_limit_on_open_files_cannot_hold_is_status_1() {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 100; exec \"$0\" --pool 100", SERVER])
        .env("DATABASE_URL", url(nobody()));
    assert_refused(
        &limited.output().unwrap(),
        1,
        &["100 open files", "--pool", "ulimit -n"],
    );
}

#[test]
fn a_database_that_refuses_is_told_at_once_with_its_address() {
    let database = nobody();
    let begun = Instant::now();
    let output = server(database).output().unwrap();
    assert_refused(&output, 1, &[&database.to_string(), "refused"]);
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_database_that_says_nothing_is_given_up_after_five_seconds() {
    let (_listener, database) = silent();
    let begun = Instant::now();
    let output = server(database).output().unwrap();
    assert_refused(&output, 1, &[&database.to_string(), "no answer within 5 s"]);
    let waited = begun.elapsed();
    assert!((4.9..9.0).contains(&waited.as_secs_f64()), "{waited:?}");
}

#[test]
fn a_signal_during_the_start_ends_it_with_status_0() {
    let (listener, database) = silent();
    let child = server(database).spawn().unwrap();
    let _connecting = listener.accept().unwrap();
    let begun = Instant::now();
    // The signal may only come once the server listens for it; connecting comes after.
    thread::sleep(Duration::from_millis(20));
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn help_goes_to_stdout_and_names_every_flag_with_its_variable() {
    let output = server(nobody()).arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    let flags = [
        "listen",
        "pool",
        "threads",
        "queue",
        "queue-wait",
        "statement-timeout",
        "profile",
        "workloads",
        "sql",
    ];
    for flag in flags {
        let variable = format!("LANEBENCH_{}", flag.to_uppercase().replace('-', "_"));
        assert!(
            help.contains(&format!("--{flag} ")) && help.contains(&variable),
            "{flag} is not in {help}"
        );
    }
    assert!(
        help.contains("--database-url ") && help.contains("DATABASE_URL"),
        "{help}"
    );
    assert!(!help.contains(PASSWORD), "{help}");
}
