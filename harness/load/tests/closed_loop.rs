//! The closed loop against a server that answers at once.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{End, Event, Expect, NullServer, Pacing, Plan, Request, RequestTable, body_hash, run};

const BODY: &[u8] = b"{\"answer\":42}";

fn request() -> Request {
    Request {
        expect: Expect {
            media_type: Some("application/json".into()),
            length: Some(BODY.len() as u64),
            body: load::ExpectBody::Hash(body_hash(BODY)),
            ..Expect::status(200)
        },
        ..Request::get("/")
    }
}

fn plan(server: &NullServer, requests: Vec<Request>) -> Plan {
    let table = RequestTable::in_turn(requests).unwrap();
    Plan {
        connections: 4,
        end: End::Timed {
            warmup: Duration::from_millis(100),
            window: Duration::from_millis(400),
            drain: Duration::from_secs(1),
        },
        ..Plan::new(server.address(), "localhost", Arc::new(table))
    }
}

fn server() -> NullServer {
    NullServer::start(None, "application/json", BODY).unwrap()
}

#[test]
fn every_request_is_accounted_for_and_correct() {
    let server = server();
    let mut events = Vec::new();
    let outcome = run(
        &plan(&server, vec![request()]),
        &mut |event| events.push(event),
        &AtomicBool::new(false),
    )
    .unwrap();
    assert!(outcome.counts.correct > 100, "{:?}", outcome.counts);
    assert_eq!(
        outcome.counts.correct, outcome.counts.scheduled,
        "{:?}",
        outcome.failures
    );
    assert!(outcome.warmup.correct > 10);
    assert_eq!(outcome.response.len(), outcome.counts.correct);
    assert_eq!(outcome.lag.len(), outcome.counts.sent());
    assert_eq!(outcome.window, Duration::from_millis(400));
    assert_eq!(
        (
            outcome.connections.asked,
            outcome.connections.established,
            outcome.connections.served
        ),
        (4, 4, 4)
    );
    assert_eq!(events, [Event::WindowStart, Event::WindowEnd]);
}

#[test]
fn a_wrong_expectation_is_found_in_every_answer() {
    let server = server();
    let wrong = Request {
        expect: Expect::exact("something else"),
        ..request()
    };
    let outcome = run(
        &plan(&server, vec![wrong]),
        &mut |_| {},
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_eq!(outcome.counts.wrong, outcome.counts.scheduled);
    assert_eq!(outcome.counts.correct, 0);
    assert_eq!(outcome.failures.len(), 8);
    assert_eq!(outcome.failures[0].got, BODY);
}

#[test]
fn each_once_sends_every_entry_of_the_order_once() {
    let server = server();
    let table = RequestTable::new(vec![request(), request()], vec![0, 1, 1, 0, 1]).unwrap();
    let plan = Plan {
        table: Arc::new(table),
        end: End::EachOnce {
            limit: Duration::from_secs(10),
        },
        ..plan(&server, vec![request()])
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!((outcome.counts.scheduled, outcome.counts.correct), (5, 5));
    assert!(outcome.window < Duration::from_secs(1));
}

#[test]
fn think_time_bounds_the_rate() {
    let server = server();
    let plan = Plan {
        pacing: Pacing::Closed {
            think: Duration::from_millis(50),
        },
        ..plan(&server, vec![request()])
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    // 4 connections, 400 ms, 50 ms and a little more between two requests.
    assert!(
        (20..=32).contains(&outcome.counts.correct),
        "{:?}",
        outcome.counts
    );
}

#[test]
fn stop_ends_a_run_within_100_ms_and_the_counts_still_add_up() {
    let server = server();
    let plan = Plan {
        end: End::Timed {
            warmup: Duration::ZERO,
            window: Duration::from_secs(60),
            drain: Duration::from_secs(60),
        },
        // On a busy machine the probe is repeated, up to the instant of the stop.
        jitter_probe: Duration::ZERO,
        ..plan(&server, vec![request()])
    };
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        run(&plan, &mut |_| {}, &stop).unwrap()
    });
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    assert!(outcome.interrupted);
    assert!(outcome.window < Duration::from_millis(450));
    assert!(outcome.counts.is_exact());
}

#[test]
fn stop_before_the_start_says_so() {
    let server = server();
    let stop = AtomicBool::new(true);
    let error = run(&plan(&server, vec![request()]), &mut |_| {}, &stop).unwrap_err();
    assert!(matches!(error, load::LoadError::Stopped), "{error}");
}

/// More than any socket buffer takes at once: the rest goes out when the server has read.
#[test]
fn a_large_body_is_sent_whole() {
    let body: Vec<u8> = (0..8_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let expected = body.clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..3 {
            let mut got = Vec::new();
            let mut part = [0; 100_000];
            let end = loop {
                let count = stream.read(&mut part).unwrap();
                got.extend_from_slice(&part[..count]);
                let head = got.windows(4).position(|bytes| bytes == b"\r\n\r\n");
                if let Some(head) = head.filter(|head| got.len() >= head + 4 + expected.len()) {
                    break head + 4;
                }
            };
            assert!(got[end..] == expected, "the body differs");
            stream
                .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
        }
    });
    let request = Request {
        method: "POST".into(),
        body,
        expect: Expect::status(201),
        ..Request::get("/")
    };
    let table = RequestTable::new(vec![request], vec![0; 3]).unwrap();
    let plan = Plan {
        end: End::EachOnce {
            limit: Duration::from_secs(10),
        },
        ..Plan::new(target, "localhost", Arc::new(table))
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    server.join().unwrap();
    assert_eq!(
        (outcome.counts.scheduled, outcome.counts.correct),
        (3, 3),
        "{:?}",
        outcome.errors
    );
}

#[test]
fn the_null_servers_ceiling_is_a_verified_run() {
    let outcome = load::ceiling(&[], None, 8, Duration::from_millis(200)).unwrap();
    assert!(
        outcome.achieved_rate() > 500.0,
        "{}",
        outcome.achieved_rate()
    );
    assert_eq!(
        outcome.counts.correct, outcome.counts.scheduled,
        "{:?}",
        outcome.failures
    );
}

#[test]
fn a_target_that_refuses_is_named() {
    let refused = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let table = RequestTable::in_turn(vec![request()]).unwrap();
    let plan = Plan {
        connections: 4,
        ..Plan::new(refused, "localhost", Arc::new(table))
    };
    let started = Instant::now();
    let error = run(&plan, &mut |_| {}, &AtomicBool::new(false))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&refused.to_string()) && error.contains("refused"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(1));
}
