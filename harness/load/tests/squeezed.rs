//! Whose fault is it? A generator that does not get its CPU says so; a slow server is not blamed on it.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::{Arrivals, End, Expect, Pacing, Plan, Request, RequestTable, Verdict, run};
use support::{Reply, Stub, first_cpu, ok};

fn verdict(stub: &Stub, cpu: usize, rate: f64, connections: usize, window: Duration) -> Verdict {
    let table = RequestTable::in_turn(vec![Request {
        expect: Expect::exact("hello"),
        ..Request::get("/")
    }])
    .unwrap();
    let plan = Plan {
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
        cpus: vec![cpu],
        ..Plan::new(stub.address, "localhost", Arc::new(table))
    };
    run(&plan, &mut |_| {}, &AtomicBool::new(false))
        .unwrap()
        .verdict
}

#[test]
fn a_generator_squeezed_by_a_neighbour_on_its_cpu_is_flagged_every_time() {
    let stub = Stub::start(|_, _| Reply::now(ok("hello")));
    let cpu = first_cpu();
    let stop = Arc::new(AtomicBool::new(false));
    let neighbour = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu);
            rustix::thread::sched_setaffinity(None, &only).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    });
    let verdicts: Vec<Verdict> = (0..20)
        .map(|_| verdict(&stub, cpu, 500.0, 4, Duration::from_millis(300)))
        .collect();
    stop.store(true, Ordering::Relaxed);
    neighbour.join().unwrap();
    assert_eq!(verdicts, [Verdict::GeneratorLimited; 20]);
}

/// The stub's threads and the coordinating one are started on the other CPUs, and stay there: on the generator's they
/// would squeeze it, and it would rightly say so.
#[test]
#[ignore = "needs two CPUs and a machine that does nothing else"]
fn a_slow_server_is_never_blamed_on_the_generator() {
    let cpu = first_cpu();
    let mut others = rustix::thread::sched_getaffinity(None).unwrap();
    others.unset(cpu);
    rustix::thread::sched_setaffinity(None, &others).unwrap();
    let stub = Stub::start(|number, _| Reply {
        after: Duration::from_millis(if number % 100 == 0 { 300 } else { 10 }),
        ..Reply::now(ok("hello"))
    });
    let verdicts: Vec<Verdict> = (0..20)
        .map(|_| verdict(&stub, cpu, 2000.0, 8, Duration::from_secs(1)))
        .collect();
    assert_eq!(verdicts, [Verdict::ServerLimited; 20]);
}
