//! The open loop keeps its schedule, and says so when the server or the machine does not let it.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{Arrivals, End, Expect, Outcome, Pacing, Plan, Request, RequestTable, Verdict, run};
use support::{Reply, Stub, first_cpu, ok};

fn plan(stub: &Stub, rate: f64, connections: usize, window: Duration) -> Plan {
    let table = RequestTable::in_turn(vec![Request {
        expect: Expect::exact("hello"),
        ..Request::get("/")
    }])
    .unwrap();
    Plan {
        connections,
        pacing: Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        },
        end: End::Timed {
            warmup: Duration::ZERO,
            window,
            drain: Duration::from_millis(300),
        },
        jitter_probe: Duration::ZERO,
        ..Plan::new(stub.address, "localhost", Arc::new(table))
    }
}

fn measure(plan: &Plan) -> Outcome {
    run(plan, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

fn prompt_stub() -> Stub {
    Stub::start(|_, _| Reply::now(ok("hello")))
}

#[test]
fn one_request_a_second_is_one_send_a_second_however_many_connections() {
    let stub = prompt_stub();
    let outcome = measure(&plan(&stub, 1.0, 50, Duration::from_secs(4)));
    assert_eq!((outcome.counts.scheduled, outcome.counts.correct), (4, 4));
    assert_eq!(
        (outcome.connections.established, outcome.connections.served),
        (50, 4)
    );
    let arrivals = stub.arrivals();
    assert_eq!(arrivals.len(), 4);
    for pair in arrivals.windows(2) {
        let gap = (pair[1] - pair[0]).as_secs_f64();
        assert!((0.75..1.25).contains(&gap), "{gap} s");
    }
}

#[test]
fn the_schedules_count_is_sent_by_any_number_of_workers() {
    let stub = prompt_stub();
    for (workers, rate, expected) in [
        (1, 0.5, 1),
        (1, 2000.0, 2000),
        (2, 333.3, 334),
        (3, 1000.0, 1000),
    ] {
        // All on one CPU: pinning is not what is tested.
        let plan = Plan {
            cpus: vec![first_cpu(); workers],
            ..plan(&stub, rate, 12, Duration::from_secs(1))
        };
        let outcome = measure(&plan);
        assert_eq!(
            outcome.counts.scheduled, expected,
            "{workers} workers, {rate}/s"
        );
        assert_eq!(
            outcome.counts.correct, expected,
            "{:?} {:?}",
            outcome.counts, outcome.errors
        );
        assert_eq!(outcome.threads.len(), workers);
    }
}

#[test]
fn a_rate_the_server_cannot_reach_is_reported_and_does_not_lower_what_is_achieved() {
    // 4 connections, 2 ms each: at most 2,000/s.
    let stub = Stub::start(|_, _| Reply {
        after: Duration::from_millis(2),
        ..Reply::now(ok("hello"))
    });
    let window = Duration::from_millis(1500);
    let closed = Plan {
        pacing: Pacing::Closed {
            think: Duration::ZERO,
        },
        ..plan(&stub, 1.0, 4, window)
    };
    let capacity = measure(&closed).achieved_rate();
    let started = Instant::now();
    let overloaded = measure(&plan(&stub, 20.0 * capacity, 4, window));
    let took = started.elapsed();
    let achieved = overloaded.achieved_rate();
    assert!(achieved > 0.95 * capacity, "{achieved}/s of {capacity}/s");
    assert!(took < window + Duration::from_millis(600), "took {took:?}");
    let counts = overloaded.counts;
    assert!(
        counts.unsent > counts.scheduled / 2 && counts.is_exact(),
        "{counts:?}"
    );
    assert_ne!(overloaded.verdict, Verdict::Valid);
    let sent = overloaded
        .checks
        .iter()
        .find(|check| check.name == "sent of scheduled")
        .unwrap();
    assert_eq!(sent.passed(), Some(false));
    // What was never sent is in the percentiles as what it waited at least.
    assert_eq!(
        overloaded.censored.len(),
        counts.unsent + counts.unfinished + counts.timeout
    );
    assert!(overloaded.response_with_bounds().value_at_quantile(0.5) > 500_000_000);
}

#[test]
fn an_interrupted_run_owes_only_what_was_due_until_then() {
    let stub = prompt_stub();
    let plan = Plan {
        end: End::Timed {
            warmup: Duration::from_millis(100),
            window: Duration::from_secs(100),
            drain: Duration::ZERO,
        },
        ..plan(&stub, 1000.0, 4, Duration::ZERO)
    };
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(600));
            stop.store(true, Ordering::Relaxed);
        });
        run(&plan, &mut |_| {}, &stop).unwrap()
    });
    let seconds = outcome.window.as_secs_f64();
    let due = outcome.counts.scheduled as f64;
    assert!(
        outcome.interrupted && (due - 1000.0 * seconds).abs() < 2.0,
        "{due} in {seconds} s"
    );
    assert_eq!(outcome.warmup.scheduled, 100);
}
