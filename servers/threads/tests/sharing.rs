//! Clients, threads and connections to a real PostgreSQL: the first that works, as `--database auto` says. Nothing is
//! written to it, and no table read.

#![allow(clippy::unwrap_used)]

mod server;

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use server::{Database, LIMIT};

#[test]
fn one_thread_answers_sixteen_clients_in_turn_on_the_connections_they_keep() {
    const CLIENTS: u32 = 16;
    const REQUESTS: u32 = 10;
    let database = Database::open();
    let server = database.start(&["--pool", "4", "--threads", "1"]);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let client = server.client();
                for _ in 0..REQUESTS {
                    let answer = client.get("/ten-ms");
                    assert_eq!((answer.status, answer.closes), (200, false));
                    assert_eq!(answer.body, "{\"waited_ms\":10}");
                }
            });
        }
        // Long before the end, and although the only thread is busy.
        thread::sleep(Duration::from_millis(300));
        let admitted = server.usage()["admitted"].as_u64().unwrap();
        assert!((10..100).contains(&admitted), "{admitted}");
    });
    assert!(begun.elapsed() >= Duration::from_millis(10) * CLIENTS * REQUESTS);
    let usage = server.usage();
    let counted = ["admitted", "shed", "in_flight"].map(|field| usage[field].as_u64().unwrap());
    assert_eq!(counted, [u64::from(CLIENTS * REQUESTS), 0, 0]);
    assert_eq!(
        (&usage["pool"]["size"], &usage["pool"]["in_use"]),
        (&4.into(), &0.into())
    );
    server.stop();
}

#[test]
fn threads_are_the_bound_of_what_waits_without_a_connection_too() {
    let database = Database::open();
    let server = database.start(&["--pool", "1", "--threads", "2"]);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(server.client().get("/free").status, 200));
        }
    });
    // Eight waits of 200 ms on two threads.
    let elapsed = begun.elapsed();
    assert!((0.8..1.6).contains(&elapsed.as_secs_f64()), "{elapsed:?}");
    server.stop();
}

#[test]
fn more_threads_than_connections_wait_for_one() {
    let database = Database::open();
    let server = database.start(&["--pool", "1", "--threads", "4", "--queue-wait", "100ms"]);
    let answers = server.get_together("/slow", 4);
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 503).count();
    assert_eq!((served, refused), (1, 3));
    assert_eq!(server.usage()["failed"]["no_connection"], 3);
    server.stop();
}

#[test]
fn a_request_that_finds_the_queue_full_is_shed_and_one_that_waits_too_long_gives_up() {
    let database = Database::open();
    let flags = [
        "--pool",
        "1",
        "--threads",
        "1",
        "--queue",
        "2",
        "--queue-wait",
        "600ms",
    ];
    let server = database.start(&flags);
    let answers = server.get_together("/slow", 5);
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 503)
        .collect();
    assert!(refused.iter().all(|answer| answer.retry_after.is_some()));
    let usage = server.usage();
    let counted = [
        &usage["admitted"],
        &usage["shed"],
        &usage["failed"]["no_connection"],
    ];
    assert_eq!(
        (refused.len(), counted),
        (3, [&2.into(), &2.into(), &1.into()])
    );
    server.stop();
}

#[test]
fn rows_are_streamed_from_the_thread_that_reads_them() {
    let database = Database::open();
    let server = database.start(&["--pool", "1", "--threads", "1"]);
    let whole = server.client().get("/export");
    assert_eq!(whole.status, 200);
    let numbers = whole.body.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["number"].as_i64().unwrap()
    });
    assert!(numbers.eq(1..=20_000));
    let mut reader = server.client().begin("/export");
    reader.read_exact(&mut [0; 1024]).unwrap();
    assert_eq!(server.usage()["pool"]["in_use"], 1);
    drop(reader);
    let begun = Instant::now();
    while server.usage()["pool"]["in_use"] != 0 {
        assert!(begun.elapsed() < LIMIT, "its connection is still out");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.client().get("/ten-ms").status, 200);
    server.stop();
}

#[test]
fn what_it_is_stands_in_about() {
    let database = Database::open();
    let server = database.start(&["--pool", "2", "--threads", "3"]);
    let about: serde_json::Value =
        serde_json::from_str(&server.client().get("/about").body).unwrap();
    assert_eq!(
        (&about["lane"], &about["kind"]),
        (&"threads".into(), &"blocking".into())
    );
    let sizes = ["pool", "threads", "worker_threads"].map(|field| about[field].as_u64().unwrap());
    assert_eq!(sizes, [2, 3, 3]);
    server.stop();
}
