//! The three lanes as real processes on a real PostgreSQL: what a client meets when it asks wrongly, when the pool is
//! full, when a statement takes too long, and when the server is asked to end.

#![allow(clippy::unwrap_used)]

mod support;

use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use harness::folders::{FolderArgs, Folders};
use harness::run::chosen_servers;
use harness::server::{Lane, Server};
use nix::sys::signal::Signal;
use serde_json::Value;
use support::servers::{Answer, LIMIT, Shop, servers, wait};

/// Of a request to the database, in order.
const STAGES: [&str; 5] = [
    "admission",
    "connection",
    "database",
    "handover",
    "encoding",
];

#[track_caller]
fn is_problem(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert_eq!(answer.media_type, "application/problem+json");
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(problem["status"].as_u64(), Some(u64::from(status)));
    for driver_text in ["relation", "canceling", "postgres", "SQLSTATE", "pool"] {
        assert!(!answer.body.contains(driver_text), "{}", answer.body);
    }
}

#[test]
fn every_lane_answers_a_wrong_or_absent_id_with_a_4xx() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &[]);
        assert_eq!(running.get("/point-read/7").status, 200);
        for id in [
            "seven",
            "7x",
            "-7",
            "0",
            "2147483648",
            "99999999999999999999",
            "%00",
            "7.0",
        ] {
            is_problem(&running.get(&format!("/point-read/{id}")), 400);
        }
        is_problem(&running.get("/point-read/2147483647"), 404);
        is_problem(&running.get("/no-such-workload"), 404);
        assert!(running.stop().success(), "{}", server.name);
    }
}

#[test]
fn every_lane_holds_exactly_the_pool_from_start_to_stop() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &[]);
        assert_eq!(shop.sessions(), 4, "{}", server.name);
        assert!(
            running
                .get_together("/ten-ms", 16)
                .iter()
                .all(|answer| answer.status == 200)
        );
        assert_eq!(shop.sessions(), 4, "{}", server.name);
        let about: Value = serde_json::from_str(&running.get("/about").body).unwrap();
        assert_eq!(about["pool"].as_u64(), Some(4));
        assert!(running.stop().success());
        assert_eq!(shop.sessions(), 0, "{}", server.name);
    }
}

#[test]
fn every_lane_answers_504_when_a_statement_takes_too_long_and_then_goes_on() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &["--statement-timeout", "100ms"]);
        for answer in running.get_together("/slow", 4) {
            is_problem(&answer, 504);
        }
        assert_eq!(running.get("/point-read/7").status, 200);
        assert_eq!(shop.sessions(), 4, "{}", server.name);
        assert!(running.stop().success());
    }
}

#[test]
fn every_lane_sheds_what_is_beyond_pool_and_queue_at_once() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &["--queue", "2", "--queue-wait", "5s"]);
        let answers = running.get_together("/slow", 12);
        let shed: Vec<_> = answers
            .iter()
            .filter(|answer| answer.status == 503)
            .collect();
        let served = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!((served, shed.len()), (6, 6), "{}", server.name);
        for answer in shed {
            is_problem(answer, 503);
            assert!(answer.retry_after.is_some());
        }
        let usage = running.usage();
        assert_eq!(
            (usage["admitted"].as_u64(), usage["shed"].as_u64()),
            (Some(6), Some(6))
        );
        assert!(running.stop().success());
    }
}

#[test]
fn every_lane_gives_up_a_wait_for_a_connection_in_time() {
    let shop = Shop::open();
    // In a pipelined lane no request waits for one.
    let waiting = |server: &&Server| server.lane != Lane::Pipelined;
    for server in servers().iter().filter(waiting) {
        let running = shop.start(server, &["--queue-wait", "100ms"]);
        let answers = running.get_together("/slow", 8);
        let in_time = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(in_time, 4, "{}", server.name);
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            is_problem(answer, 503);
            assert!(answer.retry_after.is_some());
        }
        assert!(running.stop().success());
    }
}

#[test]
fn every_lane_finishes_what_is_in_flight_before_it_ends() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &[]);
        let answers = thread::scope(|scope| {
            let asked = scope.spawn(|| running.get_together("/slow", 4));
            while running.usage()["pool"]["in_use"].as_u64() != Some(4) {
                thread::sleep(Duration::from_millis(2));
            }
            running.signal(Signal::SIGTERM);
            asked.join().unwrap()
        });
        assert!(
            answers.iter().all(|answer| answer.status == 200),
            "{}",
            server.name
        );
        let mut running = running;
        assert_eq!(wait(&mut running.child).code(), Some(0));
    }
}

#[test]
fn every_lane_survives_clients_that_leave_in_the_middle() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &[]);
        let impatient: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_millis(50)))
            .build()
            .into();
        for _ in 0..8 {
            assert!(
                impatient
                    .get(format!("{}/slow", running.base))
                    .call()
                    .is_err()
            );
        }
        let end = Instant::now() + LIMIT;
        while running.usage()["pool"]["in_use"].as_u64() != Some(0) {
            assert!(
                Instant::now() < end,
                "{} still holds connections",
                server.name
            );
            thread::sleep(Duration::from_millis(10));
        }
        assert!(
            running
                .get_together("/point-read/7", 8)
                .iter()
                .all(|answer| answer.status == 200)
        );
        assert_eq!(shop.sessions(), 4, "{}", server.name);
        assert!(running.stop().success());
    }
}

#[test]
fn every_lane_tells_where_the_time_of_its_requests_went() {
    let shop = Shop::open();
    for server in servers() {
        let running = shop.start(server, &[]);
        let begun = Instant::now();
        for _ in 0..20 {
            assert_eq!(running.get("/ten-ms").status, 200);
        }
        let (elapsed, usage) = (begun.elapsed(), running.usage());
        let mean_ns = STAGES.map(|stage| {
            let told = &usage["timings"][stage];
            assert_eq!(told["count"], 20, "{} {stage}", server.name);
            told["sum_ns"].as_u64().unwrap() / 20
        });
        let [admission, connection, database, handover, encoding] = mean_ns;
        assert!(database >= 10_000_000, "{}: {mean_ns:?}", server.name);
        assert!(admission.max(connection).max(handover).max(encoding) < database);
        let total_ns = u128::from(mean_ns.iter().sum::<u64>());
        assert!(total_ns * 20 <= elapsed.as_nanos(), "{}", server.name);
        assert_eq!(running.get("/point-read/2147483647").status, 404);
        assert_eq!(running.usage()["timings"], usage["timings"]);
        assert!(running.stop().success());

        let running = shop.start(server, &["--timings", "off"]);
        assert_eq!(running.get("/ten-ms").status, 200);
        assert_eq!(running.usage().get("timings"), Some(&Value::Null));
        assert!(running.stop().success());
    }
}

#[test]
fn every_lane_says_in_one_line_why_it_cannot_start() {
    let shop = Shop::open();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let closed_port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let refused = format!("postgres://nobody:secret@127.0.0.1:{closed_port}/none");
    let url = shop.database.url.as_str();
    let few = shop.url_of_a_role_with_three_connections();
    for server in servers() {
        let said = shop.refusal(server, &refused, &["--listen", "127.0.0.1:0"]);
        assert!(
            said.contains(&closed_port.to_string()) && !said.contains("secret"),
            "{said}"
        );
        let said = shop.refusal(server, url, &["--listen", &address]);
        assert!(said.contains(&address), "{said}");
        let said = shop.refusal(server, &few, &["--pool", "5"]);
        assert!(said.contains("too many connections"), "{said}");
    }
    assert_eq!(shop.sessions(), 0);
}

#[test]
fn the_servers_under_test_are_those_of_the_repository_and_a_run_takes_three_of_them() {
    let names: Vec<_> = servers()
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    let all = [
        "deadpool",
        "diesel",
        "pipelined",
        "r2d2",
        "sequential",
        "sqlx",
        "threads",
    ];
    assert_eq!(names, all);
    let folders = Folders::find(&FolderArgs::default()).unwrap();
    let usual = chosen_servers(&[], &folders).unwrap();
    let usual: Vec<_> = usual.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(usual, ["deadpool", "r2d2", "sqlx"]);
    let programs: Vec<PathBuf> = servers()
        .iter()
        .map(|server| PathBuf::from(&server.run[0]))
        .collect();
    assert!(
        programs.iter().all(|program| program.is_file()),
        "{programs:?}"
    );
}
