//! What a generator must not hide: a server that stops for a while, while users keep coming.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Arrivals, End, Histogram, Outcome, Pacing, Plan, Request, RequestTable, Verdict, run};
use rustix::process::{Pid, Signal, kill_process};
use support::{Reply, Serving, Stub, ok};

fn open_loop(
    target: std::net::SocketAddr,
    rate: f64,
    connections: usize,
    window: Duration,
) -> Plan {
    let table = RequestTable::in_turn(vec![Request::get("/")]).unwrap();
    Plan {
        connections,
        pacing: Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        },
        end: End::Timed {
            warmup: Duration::ZERO,
            window,
            drain: Duration::from_secs(2),
        },
        ..Plan::new(target, "localhost", Arc::new(table))
    }
}

fn milliseconds(histogram: &Histogram<u64>, share: f64) -> f64 {
    histogram.value_at_quantile(share) as f64 / 1e6
}

/// Milliseconds that a percentile may be off: more if the machine disturbed the run by its own word.
fn tolerance(outcome: &Outcome, undisturbed: f64) -> f64 {
    let disturbed = outcome.verdict == Verdict::GeneratorLimited;
    undisturbed + if disturbed { 50.0 } else { 0.0 }
}

fn assert_all_correct(outcome: &Outcome, scheduled: u64) {
    assert_eq!(outcome.counts.scheduled, scheduled);
    assert_eq!(
        outcome.counts.correct, scheduled,
        "{:?} {:?}",
        outcome.counts, outcome.errors
    );
}

/// A request due x seconds into the stall of 1 s waits for 1 - x: of 30,000 requests 1,000 are hit, the
/// 300 first ones (1 %) for at least 700 ms, the 30 first ones (0.1 %) for at least 970 ms.
#[test]
fn a_stall_of_one_second_is_in_the_percentiles_with_its_full_length() {
    let stub = Stub::start(|_, since_start| {
        let stall = Duration::from_secs(10)..Duration::from_secs(11);
        let stalled = if stall.contains(&since_start) {
            stall.end - since_start
        } else {
            Duration::ZERO
        };
        Reply {
            after: stalled + Duration::from_millis(1),
            ..Reply::now(ok("hello"))
        }
    });
    let plan = open_loop(stub.address, 1000.0, 1100, Duration::from_secs(30));
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_all_correct(&outcome, 30_000);
    let (p99, p999) = (
        milliseconds(&outcome.response, 0.99),
        milliseconds(&outcome.response, 0.999),
    );
    let tolerance = tolerance(&outcome, 10.0);
    assert!(
        (p99 - 701.0).abs() <= tolerance,
        "p99 {p99} ms, +-{tolerance}"
    );
    assert!(
        (p999 - 971.0).abs() <= tolerance,
        "p99.9 {p999} ms, +-{tolerance}"
    );
}

/// The same with few connections: most of the requests wait for a free one. Service time alone would
/// look fine, which is why response time is the figure.
#[test]
fn requests_that_wait_for_a_connection_count_from_their_intended_instant() {
    let stub = Stub::start(|number, _| {
        let stall = if number == 500 { 500 } else { 1 };
        Reply {
            after: Duration::from_millis(stall),
            ..Reply::now(ok("hello"))
        }
    });
    let plan = open_loop(stub.address, 500.0, 1, Duration::from_secs(5));
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_all_correct(&outcome, 2_500);
    assert!(
        milliseconds(&outcome.service, 0.99) < 20.0,
        "service p99 {}",
        milliseconds(&outcome.service, 0.99)
    );
    // 250 requests are due within the stall, and about as many while the backlog is worked off.
    assert!(
        milliseconds(&outcome.response, 0.95) > 200.0,
        "response p95 {}",
        milliseconds(&outcome.response, 0.95)
    );
    assert!(
        milliseconds(&outcome.wait, 0.95) > 200.0,
        "wait p95 {}",
        milliseconds(&outcome.wait, 0.95)
    );
    // The wait is the server's; the generator itself was never late.
    assert!(
        milliseconds(&outcome.lag, 0.95) < 20.0,
        "lag p95 {}",
        milliseconds(&outcome.lag, 0.95)
    );
}

/// Of a stop of S in T seconds, the share of requests slower than x is (S - x) / T.
#[test]
fn a_server_stopped_for_two_of_twenty_seconds_shows_as_such() {
    let (mut server, address) = spawn_server();
    let plan = open_loop(address, 500.0, 1100, Duration::from_secs(20));
    let pid = Pid::from_child(&server);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(8));
        kill_process(pid, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        kill_process(pid, Signal::CONT).unwrap();
    });
    let outcome = run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    stopper.join().unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    assert_all_correct(&outcome, 10_000);
    let (p95, p99) = (
        milliseconds(&outcome.response, 0.95),
        milliseconds(&outcome.response, 0.99),
    );
    let tolerance = tolerance(&outcome, 50.0);
    assert!(
        (p95 - 1000.0).abs() <= tolerance,
        "p95 {p95} ms, +-{tolerance}"
    );
    assert!(
        (p99 - 1800.0).abs() <= 1.8 * tolerance,
        "p99 {p99} ms, +-{}",
        1.8 * tolerance
    );
}

const SERVE: &str = "LANEBENCH_TEST_SERVE";

/// Runs this test binary again, as the server below.
fn spawn_server() -> (Child, std::net::SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "serves_until_its_input_is_closed",
            "--ignored",
            "--nocapture",
        ])
        .env(SERVE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("address ")?.parse().ok());
    // The child's test harness goes on talking: a closed pipe would fail it.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address.unwrap())
}

#[test]
#[ignore = "the server process of another test"]
fn serves_until_its_input_is_closed() {
    if std::env::var_os(SERVE).is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("\naddress {}", listener.local_addr().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let mut serving = Serving::new(
        listener,
        Box::new(|_, _| Reply::now(ok("hello"))),
        Arc::clone(&stop),
        None,
    );
    std::thread::spawn(move || serving.serve());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
