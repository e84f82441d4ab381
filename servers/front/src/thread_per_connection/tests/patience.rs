//! Clients that are slow, silent or gone.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use super::{Limits, PATIENCE, Server, limits};

#[test]
fn a_half_sent_request_does_not_hold_a_thread_for_ever() {
    let server = Server::start(Limits {
        request: Duration::from_millis(100),
        ..limits(1, 8)
    });
    for sent in [
        "GET /hello HT",
        "POST /echo HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let mut half = server.client();
        half.send(sent);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(server.client().get("/hello").status, 200);
        assert!(half.is_closed());
    }
}

#[test]
fn a_request_that_trickles_in_is_given_up() {
    let server = Server::start(Limits {
        request: Duration::from_millis(100),
        ..limits(1, 8)
    });
    let mut client = server.client();
    client.send("GET /hello HTTP/1.1\r\nx: ");
    let begun = Instant::now();
    while client.socket.write_all(b"x").is_ok() {
        assert!(begun.elapsed() < PATIENCE, "still being served");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_that_does_not_take_its_answer_is_given_up() {
    let server = Server::start(Limits {
        answer_stall: Duration::from_millis(100),
        ..limits(1, 8)
    });
    let mut client = server.client();
    client.ask("/zeros");
    thread::sleep(Duration::from_millis(20));
    assert_eq!(server.client().get("/hello").status, 200);
}

#[test]
fn a_connection_that_is_silent_for_too_long_is_closed() {
    let server = Server::start(Limits {
        idle: Duration::from_millis(100),
        ..limits(1, 8)
    });
    let mut served = server.client();
    assert_eq!(served.get("/hello").status, 200);
    let mut never_spoke = server.client();
    assert!(served.is_closed());
    assert!(never_spoke.is_closed());
}

#[test]
fn a_client_that_goes_away_leaves_the_thread_to_the_next() {
    let server = Server::start(limits(1, 8));
    for sent in [
        "",
        "GET /hello HT",
        "GET /hello HTTP/1.1\r\n\r\n",
        "GET /numbers HTTP/1.1\r\n\r\n",
        "GET /zeros HTTP/1.1\r\n\r\n",
        "POST /echo HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let mut client = server.client();
        client.send(sent);
        drop(client);
        assert_eq!(server.client().get("/hello").status, 200, "after {sent:?}");
    }
}

#[test]
fn a_client_that_leaves_an_answer_without_an_end_leaves_the_thread_too() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    client.ask("/endless");
    assert_eq!(client.socket.peek(&mut [0]).unwrap(), 1, "no head has come");
    let mut waiting = server.client();
    waiting.ask("/hello");
    assert!(waiting.is_silent_for(Duration::from_millis(50)));
    drop(client);
    assert_eq!(waiting.receive().status, 200);
}
