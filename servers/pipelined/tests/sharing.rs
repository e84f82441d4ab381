//! What only this lane does: statements of several requests on one connection at the same time, against a PostgreSQL
//! that is played by the test.

#![allow(clippy::unwrap_used)]

mod postgres;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::Postgres;
use tempfile::TempDir;

const SERVER: &str = env!("CARGO_BIN_EXE_server-pipelined");
/// One statement a request, which gives one row.
const WAIT: &str = "about = \"A wait.\"\nshape = \"delay\"\nsql = \"wait.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n";
const WAIT_REQUEST: &str = "GET /wait HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
/// A test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server, ended when it is dropped.
struct Running {
    child: Child,
    address: String,
    _out: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Running {
    /// Serves `GET /wait` alone.
    fn start(postgres: &Postgres, pool: u32) -> Running {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("wait.toml"), WAIT).unwrap();
        std::fs::write(folder.path().join("wait.sql"), "SELECT 10 AS waited_ms").unwrap();
        let mut command = Command::new(SERVER);
        for flag in ["--workloads", "--sql"] {
            command.arg(flag).arg(folder.path());
        }
        Running::spawn(command, postgres, pool, folder)
    }

    /// Serves every workload of the repository.
    fn start_with_all_workloads(postgres: &Postgres) -> Running {
        let mut command = Command::new(SERVER);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        Running::spawn(command, postgres, 1, tempfile::tempdir().unwrap())
    }

    fn spawn(mut command: Command, postgres: &Postgres, pool: u32, folder: TempDir) -> Running {
        let url = format!("postgres://shop@{}/shop", postgres.address);
        let mut child = command
            .env_clear()
            .args(["--pool", &pool.to_string()])
            .env("DATABASE_URL", url)
            .env("TOKIO_WORKER_THREADS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        out.read_line(&mut ready).unwrap();
        let address = ready.split('"').nth(5).unwrap().to_owned();
        Running {
            child,
            address,
            _out: out,
            _folder: folder,
        }
    }

    fn ask(&self) -> JoinHandle<String> {
        let address = self.address.clone();
        thread::spawn(move || answer(&address, WAIT_REQUEST))
    }

    fn ask_all(&self, requests: usize) -> Vec<JoinHandle<String>> {
        (0..requests).map(|_| self.ask()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn assert_all_answered(requests: Vec<JoinHandle<String>>, status: &str) {
    for request in requests {
        let answer = request.join().unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
}

#[test]
fn the_statements_of_all_requests_are_on_their_way_on_one_connection_before_any_is_answered() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 1);
    postgres.hold();
    let requests = server.ask_all(8);
    postgres.wait_until(PATIENCE, |seen| seen.unanswered == [8]);
    postgres.release();
    assert_all_answered(requests, "200");
    assert_eq!(postgres.seen().connections, 1);
}

#[test]
fn statements_that_take_long_spread_over_all_connections() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 4);
    postgres.hold();
    let requests = server.ask_all(8);
    postgres.wait_until(PATIENCE, |seen| seen.unanswered == [2, 2, 2, 2]);
    postgres.release();
    assert_all_answered(requests, "200");
}

#[test]
fn statements_that_are_short_meet_on_few_connections() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 8);
    for _ in 0..64 {
        assert_all_answered(server.ask_all(1), "200");
    }
    postgres.hold();
    let requests = server.ask_all(8);
    postgres.wait_until(PATIENCE, |seen| seen.unanswered.iter().sum::<u64>() == 8);
    let used = postgres
        .seen()
        .unanswered
        .iter()
        .filter(|count| **count > 0)
        .count();
    postgres.release();
    assert_all_answered(requests, "200");
    // Two threads begin on a connection each; how soon they go on to others depends on the speed of the machine.
    assert!(used <= 5, "{used} connections for 8 requests");
}

#[test]
fn a_connection_that_dies_fails_its_requests_at_once_and_is_replaced_with_its_statements() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 1);
    postgres.hold();
    let requests = server.ask_all(3);
    postgres.wait_until(PATIENCE, |seen| seen.unanswered == [3]);
    let begun = Instant::now();
    postgres.hang_up();
    assert_all_answered(requests, "503");
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    postgres.release();
    postgres.wait_until(PATIENCE, |seen| seen.connections == 2 && seen.prepared == 2);
    while !answer(&server.address, WAIT_REQUEST).starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < PATIENCE, "it does not come back");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_use_the_other_connections_while_one_is_gone() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 2);
    postgres.refuse_more();
    postgres.hang_up_one();
    thread::sleep(Duration::from_millis(100));
    assert_all_answered(server.ask_all(16), "200");
}

#[test]
fn a_request_that_is_given_up_is_not_forgotten_before_its_statement_has_ended() {
    let postgres = Postgres::start();
    let server = Running::start(&postgres, 2);
    postgres.hold();
    let given_up = TcpStream::connect(&server.address).unwrap();
    (&given_up).write_all(WAIT_REQUEST.as_bytes()).unwrap();
    postgres.wait_until(PATIENCE, |seen| seen.unanswered.iter().sum::<u64>() == 1);
    drop(given_up);
    thread::sleep(Duration::from_millis(200));
    let request = server.ask_all(1);
    postgres.wait_until(PATIENCE, |seen| seen.unanswered == [1, 1]);
    postgres.release();
    assert_all_answered(request, "200");
}

#[test]
fn a_transaction_is_refused_before_anything_is_sent() {
    let postgres = Postgres::start();
    let server = Running::start_with_all_workloads(&postgres);
    let body = r#"{"from":1,"to":2,"amount_cents":5}"#;
    let request = format!(
        "POST /transfer HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = answer(&server.address, &request);
    assert!(
        answer.starts_with("HTTP/1.1 500") && answer.contains("problem+json"),
        "{answer}"
    );
    assert_eq!(postgres.seen().executed, 0);
}
