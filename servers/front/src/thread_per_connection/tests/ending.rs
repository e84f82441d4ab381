//! The shutdown.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::{Limits, PATIENCE, Server, limits, until};

#[test]
fn at_the_shutdown_requests_are_answered_and_silent_connections_closed() {
    let mut server = Server::start(limits(2, 8));
    let mut idle = server.client();
    assert_eq!(idle.get("/hello").status, 200);
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    server.stop();
    assert!(idle.is_closed());
    until(|| TcpStream::connect(server.address).is_err());
    assert!(busy.is_silent_for(Duration::from_millis(50)));
    server.gate.open();
    let answer = busy.receive();
    assert_eq!((answer.body.as_str(), answer.closes()), ("passed", true));
    assert!(busy.is_closed());
    server.finish();
}

#[test]
fn at_the_shutdown_whoever_waits_for_a_thread_is_answered_too() {
    let mut server = Server::start(limits(1, 8));
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    let mut waiting = server.client();
    waiting.ask("/hello");
    thread::sleep(Duration::from_millis(50));
    server.stop();
    server.gate.open();
    assert_eq!(busy.receive().status, 200);
    assert_eq!(waiting.receive().status, 200);
    server.finish();
}

#[test]
fn a_drain_that_takes_too_long_is_cut_off() {
    let mut server = Server::start(Limits {
        drain: Duration::from_millis(100),
        ..limits(1, 8)
    });
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    let begun = Instant::now();
    server.finish();
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(100) && waited < PATIENCE);
}

#[test]
fn a_silent_connection_that_gave_way_is_closed_at_the_shutdown() {
    let mut server = Server::start(limits(1, 8));
    let mut older = server.client();
    assert_eq!(older.get("/hello").status, 200);
    let mut younger = server.client();
    assert_eq!(younger.get("/hello").status, 200);
    server.stop();
    assert!(older.is_closed() && younger.is_closed());
    server.finish();
}
