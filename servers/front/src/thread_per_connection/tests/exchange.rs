//! Requests and answers of every form.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::{Server, limits};

#[test]
fn a_body_arrives_whole_however_it_is_sent() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    let body = "0123456789".repeat(10_000);
    client.send("POST /echo HTTP/1.1\r\ncontent-length: 100000\r\n\r\n");
    for piece in body.as_bytes().chunks(30_000) {
        thread::sleep(Duration::from_millis(5));
        client.socket.write_all(piece).unwrap();
    }
    assert_eq!(client.receive().body, body);
    client.send("POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwhol");
    thread::sleep(Duration::from_millis(5));
    client.send("\r\n1\r\ne\r\n0\r\n\r\n");
    assert_eq!(client.receive().body, "whole");
    client.send("POST /unread HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody");
    assert_eq!(client.receive().body, "unread");
    assert_eq!(client.get("/hello").status, 200);
}

#[test]
fn a_client_that_expects_to_be_told_to_continue_is_told() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    client.send("POST /echo HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
    assert_eq!(client.receive().status, 100);
    client.send("body");
    assert_eq!(client.receive().body, "body");
    assert_eq!(client.get("/hello").status, 200);
}

#[test]
fn requests_sent_together_are_answered_in_order() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    let request = "GET /hello HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi";
    client.send(&request.repeat(100));
    for _ in 0..100 {
        assert_eq!(client.receive().body, "hello");
        assert_eq!(client.receive().body, "hi");
    }
}

#[test]
fn a_body_without_a_length_is_streamed_and_the_connection_kept() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    let numbers: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    assert_eq!(client.get("/numbers").body, numbers);
    assert_eq!(client.get("/numbers").body, numbers);
}

#[test]
fn the_answer_to_head_has_no_body_and_the_connection_is_kept() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    client.send("HEAD /hello HTTP/1.1\r\n\r\nGET /nowhere HTTP/1.1\r\n\r\n");
    let mut text = String::new();
    while !text.contains("404") {
        let mut chunk = [0; 1024];
        let read = client.socket.read(&mut chunk).unwrap();
        text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 200"));
    assert!(!text.contains("hello"), "{text}");
}

#[test]
fn what_is_not_http_is_refused_and_closed() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    client.send("\u{1}\u{2}\u{3}\r\n\r\n");
    assert_eq!(client.receive().status, 400);
    assert!(client.is_closed());
}

#[test]
fn a_handler_may_wait_for_a_timer() {
    let server = Server::start(limits(1, 8));
    assert_eq!(server.client().get("/timer").body, "woken");
}

#[test]
fn a_handler_that_panics_costs_its_connection_and_not_the_thread() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    client.ask("/panic");
    assert!(client.is_closed());
    assert_eq!(server.client().get("/hello").status, 200);
}
