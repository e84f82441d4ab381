//! Servers that misbehave: the run ends on time, every request is accounted for, and the error says
//! what happened.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use load::{
    Arrivals, Counts, End, ErrorKind, Expect, ExpectBody, Outcome, Pacing, Plan, Request,
    RequestTable, body_hash, run,
};
use support::{Reply, Stub, Then, ok};

/// Half a second of closed loop against a server that always behaves like this.
fn against(reply: Reply) -> Outcome {
    let stub = Stub::start(move |_, _| reply.clone());
    let table = RequestTable::in_turn(vec![Request {
        expect: Expect::exact("hello"),
        ..Request::get("/")
    }])
    .unwrap();
    let plan = Plan {
        connections: 3,
        end: End::Timed {
            warmup: Duration::ZERO,
            window: Duration::from_millis(400),
            drain: Duration::from_millis(100),
        },
        request_timeout: Duration::from_millis(100),
        jitter_probe: Duration::ZERO,
        ..Plan::new(stub.address, "localhost", Arc::new(table))
    };
    let started = Instant::now();
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert!(
        started.elapsed() < Duration::from_millis(1000),
        "took {:?}",
        started.elapsed()
    );
    assert!(outcome.counts.is_exact());
    outcome
}

fn has_error(outcome: &Outcome, text: &str) -> bool {
    outcome
        .errors
        .keys()
        .any(|kind| kind.to_string().contains(text))
}

/// All requests ended as transport errors with this text.
fn all_fail(reply: Reply, text: &str) {
    let outcome = against(reply);
    let Counts {
        scheduled,
        transport,
        unfinished,
        ..
    } = outcome.counts;
    assert!(
        scheduled > 0 && scheduled == transport + unfinished,
        "{:?}",
        outcome.counts
    );
    assert!(has_error(&outcome, text), "{:?}", outcome.errors);
    assert!(
        outcome
            .failures
            .iter()
            .all(|failure| failure.kind.to_string().contains(text)),
        "{:?}",
        outcome.failures
    );
}

#[test]
fn a_server_that_closes_instead_of_answering() {
    all_fail(
        Reply {
            then: Then::Close,
            ..Reply::now("")
        },
        "closed the connection without an answer",
    );
}

#[test]
fn a_server_that_resets() {
    all_fail(
        Reply {
            then: Then::Reset,
            ..Reply::now("")
        },
        "reset by peer",
    );
}

#[test]
fn a_server_that_talks_something_else() {
    all_fail(
        Reply::now("220 mail.example ESMTP\r\n\r\n"),
        "not a valid answer",
    );
}

#[test]
fn a_header_without_an_end() {
    let lines = "X-Filler: abcdefghijklmnopqrstuvwxyz\r\n".repeat(10);
    let reply = Reply {
        then: Then::Repeat,
        ..Reply::now(format!("HTTP/1.1 200 OK\r\n{lines}"))
    };
    let outcome = against(reply);
    assert!(
        has_error(&outcome, "not a valid answer") || has_error(&outcome, "timeout"),
        "{:?}",
        outcome.errors
    );
    assert_eq!(outcome.counts.correct, 0);
}

#[test]
fn a_body_without_an_end_is_a_timeout_and_takes_no_memory() {
    let reply = Reply {
        then: Then::Repeat,
        ..Reply::now("HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(1000))
    };
    let outcome = against(reply);
    assert!(outcome.counts.timeout > 0, "{:?}", outcome.counts);
    assert!(has_error(&outcome, "timeout"));
}

/// As fast as the machine can: the thread that reads it must still see the clock, and the other
/// connections.
#[test]
fn a_torrent_without_an_end_does_not_hold_up_the_run() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            std::thread::spawn(move || pour(stream, number == 0));
        }
    });
    // Hashing slows the reader down.
    let expect = Expect {
        body: ExpectBody::Hash(body_hash(b"hello")),
        ..Expect::status(200)
    };
    let table = RequestTable::in_turn(vec![Request {
        expect,
        ..Request::get("/")
    }])
    .unwrap();
    let plan = Plan {
        connections: 2,
        end: End::Timed {
            warmup: Duration::ZERO,
            window: Duration::from_millis(400),
            drain: Duration::from_millis(100),
        },
        jitter_probe: Duration::ZERO,
        ..Plan::new(target, "localhost", Arc::new(table))
    };
    let started = Instant::now();
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert!(
        started.elapsed() < Duration::from_millis(1000),
        "took {:?}",
        started.elapsed()
    );
    assert_eq!(outcome.counts.unfinished, 1, "{:?}", outcome.counts);
    assert!(outcome.counts.correct > 10, "{:?}", outcome.counts);
}

/// Answers properly, or without an end.
fn pour(mut stream: std::net::TcpStream, endless: bool) {
    let mut request = [0; 1000];
    while stream.read(&mut request).is_ok_and(|count| count > 0) {
        if !endless {
            stream.write_all(&ok("hello")).unwrap();
            continue;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1 << 20]).is_ok() {}
    }
}

#[test]
fn a_body_that_ends_early() {
    let reply = Reply {
        then: Then::Close,
        ..Reply::now("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
    };
    all_fail(reply, "closed the connection within an answer");
}

#[test]
fn a_body_longer_than_promised() {
    all_fail(
        Reply::now("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello"),
        "more bytes than the answer's length",
    );
}

#[test]
fn a_body_of_another_length_or_other_bytes_is_wrong_not_correct() {
    for (body, text) in [("hell", "wrong body"), ("hellO", "wrong body")] {
        let outcome = against(Reply::now(ok(body)));
        assert_eq!(outcome.counts.wrong, outcome.counts.scheduled);
        assert!(has_error(&outcome, text), "{:?}", outcome.errors);
        assert_eq!(outcome.failures[0].got, body.as_bytes());
    }
}

#[test]
fn a_silent_server_times_out_and_its_requests_appear_as_lower_bounds() {
    let outcome = against(Reply {
        after: Duration::from_secs(60),
        ..Reply::now("")
    });
    assert!(outcome.counts.timeout >= 6, "{:?}", outcome.counts);
    assert_eq!(
        outcome.counts.timeout + outcome.counts.unfinished,
        outcome.counts.scheduled
    );
    assert_eq!(outcome.errors[&ErrorKind::Timeout], outcome.counts.timeout);
    assert_eq!(outcome.censored.len(), outcome.counts.scheduled);
    assert!(outcome.response_with_bounds().value_at_quantile(0.5) >= 90_000_000);
}

#[test]
fn an_answer_that_takes_longer_than_the_run_is_unfinished() {
    let stub = Stub::start(|_, _| Reply {
        after: Duration::from_secs(5),
        ..Reply::now(ok("hello"))
    });
    let table = RequestTable::in_turn(vec![Request::get("/")]).unwrap();
    let plan = Plan {
        connections: 2,
        end: End::Timed {
            warmup: Duration::ZERO,
            window: Duration::from_millis(200),
            drain: Duration::from_millis(100),
        },
        ..Plan::new(stub.address, "localhost", Arc::new(table))
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(
        (outcome.counts.scheduled, outcome.counts.unfinished),
        (2, 2)
    );
    assert_eq!(outcome.censored.len(), 2);
}

#[test]
fn shed_and_error_statuses_are_counted_apart() {
    for (status, of) in [("503 Busy", 0), ("500 Oops", 1), ("404 No", 1)] {
        let outcome = against(Reply::now(format!(
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"
        )));
        let counts = outcome.counts;
        assert_eq!(
            [counts.shed, counts.http_error][of],
            counts.scheduled,
            "{counts:?}"
        );
        assert!(has_error(&outcome, &status[..3]), "{:?}", outcome.errors);
    }
}

#[test]
fn a_server_that_closes_after_each_answer_is_followed() {
    for head in [
        "Connection: close\r\nContent-Length: 5\r\n",
        "",
        "Content-Length: 5\r\n",
    ] {
        let reply = Reply {
            then: Then::Close,
            ..Reply::now(format!("HTTP/1.1 200 OK\r\n{head}\r\nhello"))
        };
        let outcome = against(reply);
        let counts = outcome.counts;
        assert!(
            counts.correct > 20,
            "{head:?}: {counts:?} {:?}",
            outcome.errors
        );
        // Without `Connection: close` a request may meet the closing connection.
        let races = if head.starts_with("Content") {
            counts.transport
        } else {
            0
        };
        assert_eq!(
            counts.correct + races,
            counts.scheduled,
            "{head:?}: {counts:?} {:?}",
            outcome.errors
        );
        assert!(outcome.connections.reopened > 20);
    }
}

#[test]
fn interim_answers_are_not_answers() {
    let wire = [
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec(),
        ok("hello"),
    ]
    .concat();
    let outcome = against(Reply::now(wire));
    assert!(outcome.counts.correct > 20);
    assert_eq!(
        outcome.counts.correct, outcome.counts.scheduled,
        "{:?}",
        outcome.errors
    );
}

fn refusal(change: impl FnOnce(Plan) -> Plan) -> String {
    let table = Arc::new(RequestTable::in_turn(vec![Request::get("/")]).unwrap());
    let plan = change(Plan::new(([127, 0, 0, 1], 9).into(), "localhost", table));
    run(&plan, &mut |_| {}, &AtomicBool::new(false))
        .unwrap_err()
        .to_string()
}

fn at_rate(rate: f64) -> impl FnOnce(Plan) -> Plan {
    move |plan| Plan {
        pacing: Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        },
        ..plan
    }
}

#[test]
fn a_run_that_cannot_be_is_refused_with_one_line() {
    let refusals = [
        (
            refusal(|plan| Plan {
                connections: 0,
                ..plan
            }),
            "0 connections",
        ),
        (refusal(at_rate(0.0)), "rate of 0"),
        (refusal(at_rate(-5.0)), "rate of -5"),
        (refusal(at_rate(1e12)), "10,000,000"),
        (refusal(at_rate(f64::NAN)), "NaN"),
        (
            refusal(|plan| Plan {
                request_timeout: Duration::ZERO,
                ..plan
            }),
            "timeout",
        ),
        (
            refusal(|plan| Plan {
                connect_timeout: Duration::MAX,
                ..plan
            }),
            "30 days",
        ),
        (
            refusal(|plan| Plan {
                connections: 2_000_000_000,
                ..plan
            }),
            "file descriptors",
        ),
        (
            refusal(|plan| Plan {
                cpus: vec![1023],
                ..plan
            }),
            "CPU 1023",
        ),
        (
            refusal(|plan| Plan {
                interval_log: Some("/nonexistent/x.hlog".into()),
                ..plan
            }),
            "/nonexistent/x.hlog",
        ),
    ];
    for (error, text) in refusals {
        assert!(error.contains(text) && !error.contains('\n'), "{error}");
    }
}
