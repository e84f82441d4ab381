//! Servers that close the connection with each answer, and take fewer connections at a time than there
//! are: followed without an error, and without a request that is lost, late or counted twice.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/threaded.rs"]
mod threaded;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Arrivals, End, Expect, Outcome, Pacing, Plan, Request, RequestTable, run};
use support::{Reply, Stub, Then};
use threaded::Threaded;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// Takes a millisecond for an answer.
fn one_request_a_connection(threads: usize) -> Threaded {
    Threaded::start(threads, |_| {
        std::thread::sleep(Duration::from_millis(1));
        ANSWER.into()
    })
}

fn plan(target: std::net::SocketAddr, connections: usize, pacing: Pacing) -> Plan {
    let table = RequestTable::in_turn(vec![Request {
        expect: Expect::exact("hello"),
        ..Request::get("/")
    }])
    .unwrap();
    Plan {
        connections,
        pacing,
        end: End::Timed {
            warmup: Duration::from_millis(100),
            window: Duration::from_millis(900),
            drain: Duration::from_secs(1),
        },
        jitter_probe: Duration::ZERO,
        ..Plan::new(target, "localhost", Arc::new(table))
    }
}

const CLOSED: Pacing = Pacing::Closed {
    think: Duration::ZERO,
};

/// Everything sent is answered, each answer costs one connection, and nothing else happened.
fn followed(plan: &Plan) -> Outcome {
    let outcome = run(plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let counts = outcome.counts;
    assert_eq!(outcome.errors.len(), 0, "{:?}", outcome.errors);
    assert_eq!(counts.correct, counts.scheduled, "{counts:?}");
    let answers = counts.correct + outcome.warmup.correct;
    assert_eq!(outcome.connections.reopened, answers);
    assert_eq!(outcome.connections.served, plan.connections);
    for histogram in [&outcome.first_byte, &outcome.service, &outcome.wait] {
        assert_eq!(histogram.len(), counts.correct);
    }
    // At the end some may be on their way.
    let opened = outcome.connect.len();
    assert!(
        (answers..=answers + plan.connections as u64).contains(&opened),
        "{opened} connections for {answers} answers"
    );
    assert!(outcome.little_residual.unwrap() < 1e-9);
    outcome
}

#[test]
fn a_closed_loop_waits_for_its_turn_in_the_backlog() {
    for threads in [1, 3] {
        let server = one_request_a_connection(threads);
        let outcome = followed(&plan(server.address, 8, CLOSED));
        assert!(outcome.counts.correct > 100, "{:?}", outcome.counts);
        // All eight are sent at once, so that each answer is preceded by those of the others.
        let first_byte = Duration::from_nanos(outcome.first_byte.value_at_quantile(0.5));
        let turn = Duration::from_millis(1) * 8 / u32::try_from(threads).unwrap();
        assert!(
            first_byte > turn / 2,
            "{first_byte:?} with {threads} threads"
        );
    }
}

#[test]
fn an_open_loop_keeps_its_schedule() {
    for threads in [1, 3] {
        let server = one_request_a_connection(threads);
        let pacing = Pacing::Open {
            rate: 200.0,
            arrivals: Arrivals::Poisson { seed: 7 },
        };
        let outcome = followed(&plan(server.address, 8, pacing));
        assert!(
            (150..210).contains(&outcome.counts.correct),
            "{:?}",
            outcome.counts
        );
        // Requests go out in the order in which connections were made, which is that of the backlog: none
        // waits for a thread that waits for a request on another connection.
        let response = Duration::from_nanos(outcome.response.value_at_quantile(0.9));
        assert!(response < Duration::from_millis(50), "{response:?}");
    }
}

#[test]
fn each_once_ends_when_the_last_was_answered() {
    let server = one_request_a_connection(1);
    let table = RequestTable::new(vec![Request::get("/")], vec![0; 50]).unwrap();
    let plan = Plan {
        table: Arc::new(table),
        end: End::EachOnce {
            limit: Duration::from_secs(10),
        },
        ..plan(server.address, 4, CLOSED)
    };
    let outcome = followed(&plan);
    assert_eq!(outcome.counts.correct, 50);
    assert!(outcome.window < Duration::from_secs(5));
}

/// More than are opened at the same time.
#[test]
fn hundreds_of_connections_are_opened_again_without_a_pause() {
    let stub = Stub::start(|_, _| Reply {
        after: Duration::from_millis(200),
        then: Then::Close,
        ..Reply::now(ANSWER)
    });
    let outcome = followed(&plan(stub.address, 500, CLOSED));
    // Four rounds of 200 ms fit the window, five hardly; a pause of 100 ms in each would leave three.
    assert!(outcome.counts.correct > 1500, "{:?}", outcome.counts);
}
