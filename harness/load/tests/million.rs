//! Every answer is checked: one wrong byte among a million answers is found.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    End, ErrorKind, Expect, ExpectBody, Judgement, Plan, Request, RequestTable, body_hash, run,
};
use support::{Reply, Stub, Then};

#[test]
fn one_corrupt_body_in_a_million_is_caught() {
    let body = "a body of which one byte will be wrong, once";
    let right: Arc<[u8]> = support::ok(body).into();
    let wrong: Arc<[u8]> = support::ok(&body.replace("once", "onCe")).into();
    let stub = Stub::start(move |number, _| Reply {
        after: Duration::ZERO,
        bytes: Arc::clone(if number == 777_777 { &wrong } else { &right }),
        then: Then::Keep,
    });
    let expect = Expect {
        body: ExpectBody::Hash(body_hash(body.as_bytes())),
        ..Expect::status(200)
    };
    let requests = vec![Request {
        expect,
        ..Request::get("/")
    }];
    let plan = Plan {
        table: Arc::new(RequestTable::new(requests, vec![0; 1_000_000]).unwrap()),
        connections: 64,
        end: End::EachOnce {
            limit: Duration::from_secs(600),
        },
        ..Plan::new(
            stub.address,
            "localhost",
            Arc::new(RequestTable::in_turn(vec![Request::get("/")]).unwrap()),
        )
    };
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(
        (
            outcome.counts.scheduled,
            outcome.counts.correct,
            outcome.counts.wrong
        ),
        (1_000_000, 999_999, 1)
    );
    assert_eq!(outcome.failures.len(), 1);
    assert_eq!(
        outcome.failures[0].kind,
        ErrorKind::Answer(Judgement::WrongBody)
    );
    assert!(outcome.failures[0].got.ends_with(b"onCe"));
}
