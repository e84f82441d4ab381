//! Server-sent events from outside: real servers, real subscribers, and what becomes of a server that loses an event,
//! sends one twice, or loses its session.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use support::TestDatabase;
use support::campaigns::{lanebench, run_into, said};
use support::servers::{LIMIT, Running, Shop, root, servers};
use tempfile::TempDir;

/// The example of the front that breaks one rule, named by a variable.
fn crooked() -> String {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "front", "--example", "crooked"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", root().join("target"))
        .status()
        .unwrap();
    assert!(built.success());
    let program = root().join("target/debug/examples/crooked");
    program.display().to_string()
}

fn server(folder: &Path, name: &str, description: &str) {
    fs::create_dir(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("server.toml"), description).unwrap();
}

/// A folder of servers with each of these faults, one that has a single thread, and one that does not serve the shape.
fn crooked_servers(faults: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = crooked();
    for fault in faults {
        let run = format!("[\"env\", \"CROOKED={fault}\", \"{program}\"]");
        let description = format!("about = \"{fault}\"\nlane = \"nonblocking\"\nrun = {run}\n");
        server(folder.path(), fault, &description);
    }
    let single = "about = \"x\"\nlane = \"blocking\"\nthreads = 1\nrun = [\"false\"]\n";
    server(folder.path(), "single", single);
    let skips =
        "about = \"x\"\nlane = \"nonblocking\"\nrun = [\"false\"]\n[skip]\nlive = \"it is deaf\"\n";
    server(folder.path(), "skips", skips);
    folder
}

fn live(folder: &Path, arguments: &str) -> (Output, Value, TempDir) {
    let (database, results) = (TestDatabase::fresh(), tempfile::tempdir().unwrap());
    let arguments = format!("live {arguments} --pool 2 --scale 0.01");
    let mut command = lanebench(&database.url, &arguments);
    command.arg("--servers").arg(folder);
    let output = run_into(command, results.path());
    let record = fs::read(results.path().join("live.json")).unwrap_or_default();
    let record = serde_json::from_slice(&record).unwrap_or_default();
    (output, record, results)
}

#[track_caller]
fn row<'a>(said: &'a str, server: &str) -> &'a str {
    let mut rows = said.lines().map(str::trim_start);
    let row = rows.find(|row| row.starts_with(&format!("{server} ")));
    row.unwrap_or_else(|| panic!("no row of {server}: {said}"))
}

#[test]
fn a_server_that_loses_or_repeats_events_fails_and_an_honest_one_does_not() {
    let folder = crooked_servers(&["honest", "loses-events", "repeats-events"]);
    let (output, record, _results) = live(folder.path(), "--subscribers 30 --events 20 --rate 200");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let honest = row(&said, "honest");
    assert!(
        honest.contains("600 of 600") && honest.ends_with("ok"),
        "{said}"
    );
    for (server, fault) in [
        ("loses-events", "event 5 is missing: 6 came after 4"),
        ("repeats-events", "event 5 came twice"),
    ] {
        let told = format!("FAILED: 30 of 30 subscribers: {fault}");
        assert!(row(&said, server).ends_with(&told), "{said}");
    }
    for (server, reason) in [("single", "and of those it has 1"), ("skips", "it is deaf")] {
        let row = row(&said, server);
        assert!(
            row.contains("not supported: ") && row.ends_with(reason),
            "{said}"
        );
    }
    let honest = &record["rows"][0]["measured"];
    assert_eq!(honest["delivered"], 600, "{record}");
    assert!(honest["fault"].is_null() && honest["p50_ms"].as_f64().unwrap() > 0.0);
    assert!(honest["p99_ms"].as_f64().unwrap() <= honest["max_ms"].as_f64().unwrap());
    assert!(honest["idle"]["rss_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn what_cannot_be_asked_for_is_refused_in_a_line() {
    let folder = crooked_servers(&[]);
    for (arguments, refusal) in [
        ("--subscribers 0", "--subscribers 0: it may be 1 to 10000"),
        ("--events 0", "--events 0: it may be 1 to 1000000"),
        (
            "--rate 0",
            "--rate 0: it may be up to 100000 events a second",
        ),
        (
            "hello",
            "which has requests rather than subscribers: `lanebench run hello`",
        ),
        ("feed-lives", "did you mean `feed-live`?"),
    ] {
        let (output, _, _results) = live(folder.path(), arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(refusal), "{said}");
    }
}

/// Subscribes, and waits until the server listens.
fn subscribe(running: &Running) -> BufReader<TcpStream> {
    let address = running.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
        .write_all(b"GET /feed-live HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    let mut reader = BufReader::new(stream);
    until(&mut reader, ": listening");
    reader
}

#[track_caller]
fn until(reader: &mut BufReader<TcpStream>, wanted: &str) {
    let mut line = String::new();
    while line.trim_end() != wanted {
        line.clear();
        assert_ne!(
            reader.read_line(&mut line).unwrap(),
            0,
            "it ended before {wanted}"
        );
    }
}

#[test]
fn every_lane_listens_beside_its_pool_and_ends_its_streams_with_a_lost_session() {
    let shop = Shop::open();
    fs::copy(
        root().join("workloads/definitions/feed-live.toml"),
        shop.folder.path().join("feed-live.toml"),
    )
    .unwrap();
    let mut client = shop.database.client();
    let lanes = servers()
        .iter()
        .filter(|server| server.threads.is_none() && !server.skip.contains_key("live"));
    for server in lanes {
        let running = shop.start(server, &["--threads", "6"]);
        let sessions = |expected: i64| {
            let begun = Instant::now();
            while shop.sessions() != expected {
                assert!(
                    begun.elapsed() < LIMIT,
                    "{}: {}",
                    server.name,
                    shop.sessions()
                );
                thread::yield_now();
            }
        };
        let mut subscribers = [subscribe(&running), subscribe(&running)];
        sessions(5);
        client
            .execute("SELECT pg_notify('feed', 'before')", &[])
            .unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        subscribers
            .iter_mut()
            .for_each(|one| until(one, "data: before"));
        client.execute(end, &[]).unwrap();
        // The last chunk: the body is whole, and over.
        subscribers.iter_mut().for_each(|one| until(one, "0"));
        sessions(4);
        let mut again = subscribe(&running);
        client
            .execute("SELECT pg_notify('feed', 'after')", &[])
            .unwrap();
        until(&mut again, "data: after");
        sessions(5);
        drop((again, subscribers));
        sessions(4);
        let mut last = subscribe(&running);
        sessions(5);
        let begun = Instant::now();
        assert!(running.stop().success(), "{}", server.name);
        assert!(begun.elapsed().as_secs() < 3, "{}", server.name);
        until(&mut last, "0");
        sessions(0);
    }
}
