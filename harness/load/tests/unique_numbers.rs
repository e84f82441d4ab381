//! Requests that carry a number: no two are the same, whoever sends them and in however many parts.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/threaded.rs"]
mod threaded;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Arrivals, End, Expect, Pacing, Plan, Request, RequestTable, Unique, run};
use support::first_cpu;
use threaded::Threaded;

const LETTERS: usize = 3_000_000;

fn posted(body: &str, digits: u8) -> Request {
    Request {
        method: "POST".into(),
        body: body.into(),
        expect: Expect::exact("hello"),
        unique: Some(Unique { digits }),
        ..Request::get("/")
    }
}

fn plan(server: &Threaded, requests: Vec<Request>) -> Plan {
    Plan {
        connections: 4,
        cpus: vec![first_cpu(); 2],
        end: End::Timed {
            warmup: Duration::from_millis(100),
            window: Duration::from_millis(300),
            drain: Duration::from_secs(2),
        },
        jitter_probe: Duration::ZERO,
        ..Plan::new(
            server.address,
            "localhost",
            Arc::new(RequestTable::in_turn(requests).unwrap()),
        )
    }
}

/// A server that keeps what `pick` finds in each request, and says hello.
fn listening(
    pick: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> (Threaded, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&heard);
    let server = Threaded::start(4, move |request: &str| {
        if let Some(text) = pick(request) {
            shared.lock().unwrap().push(text);
        }
        support::ok("hello")
    });
    (server, heard)
}

/// The number in one of the requests below; `None` for the one without.
fn number(request: &str) -> Option<String> {
    let path = request.split(' ').nth(1)?;
    let text = match path {
        "/plain/{n}" => return None,
        "/" => request.split("\"mail-").nth(1)?.strip_suffix("\"}")?,
        _ => path.strip_prefix("/items/")?.strip_suffix("?all")?,
    };
    Some(text.to_owned())
}

#[test]
fn every_send_has_its_own_number_in_path_or_body() {
    let (server, heard) = listening(number);
    let in_path = Request {
        expect: Expect::exact("hello"),
        unique: Some(Unique { digits: 12 }),
        ..Request::get("/items/{n}?all")
    };
    // The text means nothing in a request without a number.
    let plain = Request {
        expect: Expect::exact("hello"),
        ..Request::get("/plain/{n}")
    };
    let base = plan(
        &server,
        vec![in_path, posted("{\"email\":\"mail-{n}\"}", 12), plain],
    );
    let open = Pacing::Open {
        rate: 500.0,
        arrivals: Arrivals::Uniform,
    };
    let (mut next, mut sent) = (777, 0);
    for pacing in [base.pacing, open, base.pacing] {
        let plan = Plan {
            first_unique: next,
            pacing,
            ..base.clone()
        };
        let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.counts.correct, outcome.counts.scheduled);
        sent += outcome.by_request[0].sent + outcome.by_request[1].sent;
        next = outcome.next_unique;
    }
    let heard = heard.lock().unwrap();
    assert!(heard.iter().all(|number| number.len() == 12), "{heard:?}");
    let numbers: HashSet<u64> = heard.iter().map(|number| number.parse().unwrap()).collect();
    assert!(sent > 200, "{sent}");
    assert_eq!((heard.len() as u64, numbers.len() as u64), (sent, sent));
    assert!(numbers.iter().all(|number| (777..next).contains(number)));
    assert!(numbers.contains(&(next - 1)));
}

/// Longer than the sockets hold, so that the connections' requests are sent in parts, in turns.
#[test]
fn a_request_that_goes_out_in_parts_keeps_its_number() {
    let (server, heard) = listening(|request| {
        let (number, letters) = request.split_once("\r\n\r\n")?.1.split_once('x')?;
        let whole = letters.bytes().filter(|&letter| letter == b'x').count() == LETTERS - 1;
        Some(if whole { number } else { "torn" }.to_owned())
    });
    let requests = vec![posted(&format!("{{n}}{}", "x".repeat(LETTERS)), 5)];
    let base = plan(&server, requests);
    let plan = Plan {
        table: Arc::new(RequestTable::new(base.table.requests().to_vec(), vec![0; 12]).unwrap()),
        cpus: Vec::new(),
        end: End::EachOnce {
            limit: Duration::from_secs(20),
        },
        first_unique: 99_988,
        ..base
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.counts.correct, 12, "{:?}", outcome.errors);
    assert_eq!(outcome.next_unique, 100_000);
    let mut heard = heard.lock().unwrap().clone();
    heard.sort();
    let all: Vec<String> = (99_988..100_000).map(|number| number.to_string()).collect();
    assert_eq!(heard, all);
}

#[test]
fn a_request_without_exactly_one_place_for_its_number_is_refused() {
    let path = |path: &str| Request {
        unique: Some(Unique { digits: 9 }),
        ..Request::get(path)
    };
    for (request, text) in [
        (posted("none", 9), "0 times"),
        (posted("{n} and {n}", 9), "2 times"),
        (
            Request {
                body: b"{n}".to_vec(),
                ..path("/{n}")
            },
            "2 times",
        ),
        (posted("{n}", 0), "0 digits"),
        (posted("{n}", 19), "19 digits"),
        (
            Request {
                headers: vec![("Content-Length".into(), "3".into())],
                ..posted("{n}", 9)
            },
            "9 bytes",
        ),
    ] {
        let error = RequestTable::in_turn(vec![request])
            .unwrap_err()
            .to_string();
        assert!(error.contains(text) && !error.contains('\n'), "{error}");
    }
    let with_length = Request {
        headers: vec![("Content-Length".into(), "9".into())],
        ..posted("{n}", 9)
    };
    RequestTable::in_turn(vec![with_length]).unwrap();
}

#[test]
fn a_run_whose_numbers_could_run_out_is_refused() {
    let refusal = |digits: u8, first_unique: u64, pacing: Pacing, end: End| {
        let requests = vec![posted("{n}", 18), posted("{n}", digits)];
        let plan = Plan {
            first_unique,
            pacing,
            end,
            connect_timeout: Duration::from_millis(10),
            jitter_probe: Duration::ZERO,
            // Nobody is there: a plan that is not refused fails to connect.
            ..Plan::new(
                ([127, 0, 0, 1], 9).into(),
                "localhost",
                Arc::new(RequestTable::in_turn(requests).unwrap()),
            )
        };
        run(&plan, &mut |_| {}, &AtomicBool::new(false))
            .unwrap_err()
            .to_string()
    };
    let timed = End::Timed {
        warmup: Duration::from_secs(1),
        window: Duration::from_secs(10),
        drain: Duration::ZERO,
    };
    let once = End::EachOnce {
        limit: Duration::from_secs(1),
    };
    let closed = Pacing::Closed {
        think: Duration::ZERO,
    };
    let open = |arrivals| Pacing::Open {
        rate: 1000.0,
        arrivals,
    };
    let (uniform, poisson) = (open(Arrivals::Uniform), open(Arrivals::Poisson { seed: 1 }));
    for (too_few, enough, first, pacing, end) in [
        (8, 9, 0, closed, timed),
        (9, 10, 999_999_000, closed, timed),
        (4, 5, 0, uniform, timed),
        (4, 5, 0, poisson, timed),
        (1, 2, 9, closed, once),
        // Two requests, and 8 and 9 have one digit.
        (0, 1, 8, closed, once),
    ] {
        if too_few > 0 {
            let error = refusal(too_few, first, pacing, end);
            assert!(
                error.contains(&format!("need {enough} digits")) && !error.contains('\n'),
                "{error}"
            );
        }
        let error = refusal(enough, first, pacing, end);
        assert!(error.contains("127.0.0.1:9"), "{error}");
    }
}
