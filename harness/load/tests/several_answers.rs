//! Requests with more than one right answer, and what is counted for each request and each answer.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/threaded.rs"]
mod threaded;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use load::{
    Arrivals, End, ErrorKind, Expect, ExpectBody, Judgement, Outcome, Pacing, Plan, Request,
    RequestCounts, RequestTable, body_hash, run,
};
use support::{Reply, Stub, Then};
use threaded::Threaded;

const MADE: &str = "{\"id\":1}";
const THERE: &str = "{\"title\":\"there already\"}";

fn created(path: &str) -> Request {
    let answer = |status, media_type: &str, body: &str| Expect {
        media_type: Some(media_type.into()),
        length: Some(body.len() as u64),
        body: ExpectBody::Hash(body_hash(body.as_bytes())),
        ..Expect::status(status)
    };
    Request {
        method: "POST".into(),
        body: b"{}".to_vec(),
        expect: answer(201, "application/json", MADE),
        or: vec![answer(409, "application/problem+json", THERE)],
        ..Request::get(path)
    }
}

fn wire(status: u16, media_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn made() -> Vec<u8> {
    wire(201, "application/json", MADE)
}

fn there() -> Vec<u8> {
    wire(409, "application/problem+json", THERE)
}

fn each_once(target: std::net::SocketAddr, requests: Vec<Request>) -> Plan {
    Plan {
        end: End::EachOnce {
            limit: Duration::from_secs(5),
        },
        jitter_probe: Duration::ZERO,
        ..Plan::new(
            target,
            "localhost",
            Arc::new(RequestTable::in_turn(requests).unwrap()),
        )
    }
}

/// Runs the plan, and checks that the requests' own counts add up to those of the phases.
fn measure(plan: &Plan, stop: &AtomicBool) -> Outcome {
    let outcome = run(plan, &mut |_| {}, stop).unwrap();
    let sent: u64 = outcome.by_request.iter().map(|request| request.sent).sum();
    assert_eq!(sent, outcome.counts.sent() + outcome.warmup.sent());
    let correct: u64 = outcome
        .by_request
        .iter()
        .flat_map(|request| &request.correct)
        .sum();
    assert_eq!(correct, outcome.counts.correct + outcome.warmup.correct);
    assert_eq!(outcome.by_request.len(), plan.table.requests().len());
    outcome
}

/// The judgement of one answer to `request`.
fn judged(request: Request, answer: Vec<u8>) -> (RequestCounts, Option<(ErrorKind, String)>) {
    let stub = Stub::start(move |_, _| Reply::now(answer.clone()));
    let plan = each_once(stub.address, vec![request]);
    let mut outcome = measure(&plan, &AtomicBool::new(false));
    let failure = outcome.failures.pop();
    (
        outcome.by_request.remove(0),
        failure.map(|failure| (failure.kind, failure.expected)),
    )
}

#[test]
fn the_status_chooses_the_answer_that_one_is_judged_by() {
    let correct = |correct: [u64; 2]| {
        let counts = RequestCounts {
            sent: 1,
            correct: correct.to_vec(),
        };
        (counts, None)
    };
    assert_eq!(judged(created("/"), made()), correct([1, 0]));
    assert_eq!(judged(created("/"), there()), correct([0, 1]));
}

#[test]
fn an_answer_with_the_status_of_one_and_the_rest_of_another_is_wrong() {
    let cases = [
        (
            wire(409, "application/json", THERE),
            Judgement::WrongMediaType,
            "media type application/problem+json",
        ),
        (
            wire(409, "application/problem+json", MADE),
            Judgement::WrongLength,
            "25 bytes, got 8",
        ),
        (
            wire(
                409,
                "application/problem+json",
                &THERE.replace("already", "Already"),
            ),
            Judgement::WrongBody,
            "a body with xxh3",
        ),
        (
            wire(200, "application/json", MADE),
            Judgement::HttpError(200),
            "status [201, 409]",
        ),
        (
            wire(503, "text/plain", ""),
            Judgement::Shed,
            "status [201, 409]",
        ),
    ];
    for (answer, judgement, expected) in cases {
        let (counts, failure) = judged(created("/"), answer);
        let (kind, text) = failure.unwrap();
        assert_eq!(kind, ErrorKind::Answer(judgement));
        assert!(text.contains(expected), "{text:?}, not {expected:?}");
        assert_eq!((counts.sent, counts.uncertain()), (1, 1));
    }
}

#[test]
fn the_first_accepted_answer_with_the_status_counts() {
    let request = Request {
        expect: Expect::exact("one"),
        or: vec![Expect::exact("two"), Expect::status(204)],
        ..Request::get("/")
    };
    let (counts, failure) = judged(request.clone(), support::ok("two"));
    assert_eq!(counts.correct, [0, 0, 0]);
    assert_eq!(failure.unwrap().0, ErrorKind::Answer(Judgement::WrongBody));
    let no_content = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    assert_eq!(judged(request, no_content).0.correct, [0, 0, 1]);
}

#[test]
fn a_body_that_streams_is_checked_against_the_answer_of_its_status() {
    let long = "x".repeat(200_000);
    let short = "hello".to_owned();
    let request = |body: &str| Request {
        expect: Expect::exact(short.clone()),
        or: vec![Expect {
            body: ExpectBody::Hash(body_hash(body.as_bytes())),
            ..Expect::status(206)
        }],
        ..Request::get("/")
    };
    let chunked = |status: u16| {
        let body = &long;
        format!(
            "HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
        .into_bytes()
    };
    // The stub sends what the socket takes at once, which is less than this: threads send it all.
    for (status, body, correct) in [
        (206, long.clone(), [0, 1]),
        (206, long.replacen('x', "y", 1), [0, 0]),
        (200, long.clone(), [0, 0]),
        (404, long.clone(), [0, 0]),
    ] {
        let answer = chunked(status);
        let server = Threaded::start(1, move |_| answer.clone());
        let plan = each_once(server.address, vec![request(&body)]);
        let outcome = measure(&plan, &AtomicBool::new(false));
        assert_eq!(outcome.by_request[0].correct, correct, "status {status}");
        assert_eq!(outcome.counts.transport, 0, "{:?}", outcome.errors);
    }
}

#[test]
fn an_answer_to_head_is_judged_by_the_length_for_its_status() {
    let request = Request {
        method: "HEAD".into(),
        expect: Expect {
            length: Some(5),
            ..Expect::exact("hello")
        },
        or: vec![Expect {
            length: Some(7),
            ..Expect::status(404)
        }],
        ..Request::get("/")
    };
    let head = |status: u16, length: usize| {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n").into_bytes()
    };
    assert_eq!(judged(request.clone(), head(200, 5)).0.correct, [1, 0]);
    assert_eq!(judged(request.clone(), head(404, 7)).0.correct, [0, 1]);
    assert_eq!(judged(request, head(404, 5)).0.correct, [0, 0]);
}

/// What became of each request of the test below, by the server's account.
#[derive(Default)]
struct Done {
    made: [AtomicU64; 2],
    there: [AtomicU64; 2],
    came: AtomicU64,
}

/// Makes and answers in turn; now and then it makes and does not answer, or answers nonsense.
fn unreliable(request: &str, done: &Done) -> Vec<u8> {
    let which = usize::from(request.starts_with("POST /b"));
    let number = done.came.fetch_add(1, Ordering::Relaxed);
    if number % 3 == 2 {
        done.there[which].fetch_add(1, Ordering::Relaxed);
        return there();
    }
    done.made[which].fetch_add(1, Ordering::Relaxed);
    match number % 40 {
        7 => Vec::new(),
        19 => {
            std::thread::sleep(Duration::from_millis(120));
            made()
        }
        30 => wire(500, "text/plain", "oops"),
        31 => b"HTTP/1.1 201 X\r\nContent-Length: 8\r\n\r\n{".to_vec(),
        _ => made(),
    }
}

#[test]
fn what_the_server_did_lies_between_what_it_acknowledged_and_what_it_may_have_done() {
    let done = Arc::new(Done::default());
    let shared = Arc::clone(&done);
    let server = Threaded::start(6, move |request: &str| unreliable(request, &shared));
    let table = RequestTable::new(vec![created("/a"), created("/b")], vec![0, 1, 1]).unwrap();
    let base = Plan {
        table: Arc::new(table),
        connections: 6,
        cpus: vec![support::first_cpu(); 2],
        request_timeout: Duration::from_millis(60),
        end: End::Timed {
            warmup: Duration::from_millis(200),
            window: Duration::from_millis(400),
            // Some are still unanswered at the end.
            drain: Duration::ZERO,
        },
        ..each_once(server.address, vec![created("/")])
    };
    let open = Pacing::Open {
        rate: 1000.0,
        arrivals: Arrivals::Uniform,
    };
    let mut outcomes = Vec::new();
    for pacing in [base.pacing, open] {
        let plan = Plan {
            pacing,
            ..base.clone()
        };
        let outcome = measure(&plan, &AtomicBool::new(false));
        assert!(outcome.warmup.correct > 0 && outcome.counts.transport > 0);
        outcomes.push(outcome);
    }
    // Ends the server, and with it everything that is still being done.
    drop(server);
    let sum = |of: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    for which in [0, 1] {
        let uncertain = sum(&|outcome| outcome.by_request[which].uncertain());
        for (answer, times) in [(0, &done.made[which]), (1, &done.there[which])] {
            let acknowledged = sum(&|outcome| outcome.by_request[which].correct[answer]);
            let times = times.load(Ordering::Relaxed);
            assert!(
                acknowledged <= times && times <= acknowledged + uncertain,
                "{times} times, {acknowledged} acknowledged, {uncertain} uncertain"
            );
        }
    }
    let sent = sum(&|outcome| outcome.by_request.iter().map(|request| request.sent).sum());
    assert!(done.came.load(Ordering::Relaxed) <= sent);
}

#[test]
fn requests_that_never_got_an_answer_are_counted_as_sent() {
    for (then, after) in [
        (Then::Reset, Duration::ZERO),
        (Then::Close, Duration::ZERO),
        (Then::Keep, Duration::from_secs(60)),
    ] {
        let stub = Stub::start(move |_, _| Reply {
            after,
            then,
            ..Reply::now("")
        });
        let requests = vec![created("/a"), created("/b"), created("/c")];
        let plan = Plan {
            connections: 2,
            request_timeout: Duration::from_millis(200),
            end: End::EachOnce {
                limit: Duration::from_millis(350),
            },
            ..each_once(stub.address, requests)
        };
        let outcome = measure(&plan, &AtomicBool::new(false));
        // The last was sent by whichever connection timed out first.
        assert_eq!(
            outcome.by_request,
            vec![
                RequestCounts {
                    sent: 1,
                    correct: vec![0, 0]
                };
                3
            ]
        );
        assert_eq!(stub.arrivals().len(), 3, "{then:?}");
    }
}

#[test]
fn an_interrupted_run_counts_what_it_sent() {
    let stub = Stub::start(|_, _| Reply::now(made()));
    let plan = Plan {
        connections: 3,
        end: End::Timed {
            warmup: Duration::ZERO,
            window: Duration::from_secs(60),
            drain: Duration::ZERO,
        },
        ..each_once(stub.address, vec![created("/a"), created("/b")])
    };
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        measure(&plan, &stop)
    });
    assert!(outcome.interrupted);
    let sent: u64 = outcome.by_request.iter().map(|request| request.sent).sum();
    // The last ones may still be on their way.
    let arrived = stub.arrivals().len() as u64;
    assert!(
        (sent - 3..=sent).contains(&arrived),
        "{arrived} of {sent} arrived"
    );
}
