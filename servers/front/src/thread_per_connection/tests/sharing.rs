//! Who gets a thread, and when.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use axum::http::header::RETRY_AFTER;

use super::{Limits, Server, limits};

#[test]
fn a_connection_is_kept_when_nobody_waits() {
    let server = Server::start(limits(1, 8));
    let mut client = server.client();
    for _ in 0..50 {
        let answer = client.get("/hello");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        assert!(!answer.closes());
    }
}

#[test]
fn three_threads_serve_three_side_by_side_while_the_fourth_waits() {
    let server = Server::start(limits(3, 8));
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.ask("/gate");
    }
    server.gate.await_inside(3);
    thread::sleep(Duration::from_millis(50));
    server.gate.open();
    for client in &mut clients {
        assert_eq!(client.receive().body, "passed");
    }
    assert_eq!(server.gate.most_inside.load(Ordering::SeqCst), 3);
}

/// How many requests each of so many clients has had answered in two seconds, one after another on one connection, and
/// the longest that any of them waited.
fn two_seconds(server: &Server, clients: usize, path: &str) -> (Vec<u32>, Duration) {
    let end = Instant::now() + Duration::from_secs(2);
    let ask = || {
        let (mut client, mut answered, mut slowest) = (server.client(), 0, Duration::ZERO);
        while Instant::now() < end {
            let asked = Instant::now();
            let answer = client.get(path);
            assert_eq!((answer.status, answer.closes()), (200, false));
            (answered, slowest) = (answered + 1, slowest.max(asked.elapsed()));
        }
        (answered, slowest)
    };
    thread::scope(|scope| {
        let asking: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        let done = asking.into_iter().map(|client| client.join().unwrap());
        let (answered, slowest): (Vec<_>, Vec<_>) = done.unzip();
        (answered, slowest.into_iter().max().unwrap())
    })
}

#[test]
fn one_thread_serves_sixteen_clients_in_turn_on_the_connections_they_keep() {
    let server = Server::start(limits(1, 64));
    let (answered, slowest) = two_seconds(&server, 16, "/ten-ms");
    let (least, most) = (
        answered.iter().min().unwrap(),
        answered.iter().max().unwrap(),
    );
    assert!(most - least <= 4, "unequal turns: {answered:?}");
    // A round of sixteen is 160 ms; a client may miss one when the machine is busy.
    assert!(slowest < Duration::from_millis(800), "{slowest:?}");
}

#[test]
fn turns_are_fair_when_they_are_short_too() {
    let server = Server::start(limits(1, 64));
    let (answered, slowest) = two_seconds(&server, 16, "/hello");
    let (least, most) = (
        answered.iter().min().unwrap(),
        answered.iter().max().unwrap(),
    );
    assert!(most - least <= most / 2, "unequal turns: {answered:?}");
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
}

#[test]
fn a_client_that_never_stops_asking_does_not_keep_the_thread() {
    let server = Server::start(limits(1, 8));
    let mut greedy = server.client();
    let request = "GET /ten-ms HTTP/1.1\r\n\r\n";
    greedy.send(&request.repeat(1000));
    assert_eq!(greedy.receive().status, 200);
    let begun = Instant::now();
    assert_eq!(server.client().get("/hello").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2));
    let answered = (1..).find(|_| greedy.receive().closes()).unwrap();
    assert!((64..1000).contains(&answered), "{answered}");
    assert!(greedy.is_closed());
}

#[test]
fn a_served_connection_waits_its_turn_while_somebody_else_does() {
    let server = Server::start(limits(1, 8));
    let mut first = server.client();
    first.ask("/gate");
    server.gate.await_inside(1);
    let mut second = server.client();
    second.ask("/hello");
    thread::sleep(Duration::from_millis(50));
    server.gate.open();
    assert!(!first.receive().closes());
    assert!(!second.receive().closes());
    assert_eq!(first.get("/hello").status, 200);
    assert_eq!(second.get("/hello").status, 200);
}

#[test]
fn a_silent_connection_gives_way_to_one_that_waits_with_a_request() {
    let server = Server::start(limits(2, 8));
    let mut older = server.client();
    assert_eq!(older.get("/hello").status, 200);
    let mut younger = server.client();
    assert_eq!(younger.get("/hello").status, 200);
    let begun = Instant::now();
    assert_eq!(server.client().get("/hello").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(1));
    for client in [&mut older, &mut younger] {
        assert_eq!(client.get("/hello").status, 200, "a request was lost");
    }
}

#[test]
fn a_connection_without_a_request_waits_for_nothing() {
    let server = Server::start(limits(1, 1));
    let mut served = server.client();
    assert_eq!(served.get("/hello").status, 200);
    let mut silent: Vec<_> = (0..20).map(|_| server.client()).collect();
    thread::sleep(Duration::from_millis(50));
    assert!(!served.get("/hello").closes());
    for client in &mut silent {
        assert_eq!(client.get("/hello").status, 200);
    }
}

#[test]
fn a_full_queue_refuses_with_its_answer() {
    let server = Server::start(limits(1, 2));
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    let mut waiting: Vec<_> = (0..2).map(|_| server.client()).collect();
    for client in &mut waiting {
        client.ask("/hello");
        thread::sleep(Duration::from_millis(20));
    }
    for _ in 0..5 {
        let mut refused = server.client();
        let answer = refused.get("/hello");
        assert_eq!((answer.status, answer.body.as_str()), (503, "full"));
        assert_eq!(answer.header(RETRY_AFTER), Some("1"));
        assert!(answer.closes() && refused.is_closed());
    }
    server.gate.open();
    for client in &mut waiting {
        assert_eq!(client.receive().status, 200);
    }
}

#[test]
fn a_request_that_waits_too_long_is_refused_with_its_answer() {
    let server = Server::start(Limits {
        queue_wait: Duration::from_millis(100),
        ..limits(1, 8)
    });
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    let begun = Instant::now();
    let mut late = server.client();
    let answer = late.get("/hello");
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (503, "waited too long")
    );
    assert!(answer.closes() && late.is_closed());
    let waited = begun.elapsed();
    assert!((0.1..1.0).contains(&waited.as_secs_f64()), "{waited:?}");
    let mut in_time = server.client();
    in_time.ask("/hello");
    server.gate.open();
    assert_eq!(in_time.receive().body, "hello");
}

#[test]
fn what_never_waits_is_answered_while_thread_and_queue_are_full() {
    let server = Server::start(limits(1, 1));
    let mut observer = server.client();
    assert_eq!(observer.get("/unqueued").body, "never queued");
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    let mut waiting = server.client();
    waiting.ask("/hello");
    assert!(waiting.is_silent_for(Duration::from_millis(50)));
    for client in [&mut observer, &mut server.client()] {
        let answer = client.get("/unqueued");
        assert_eq!((answer.status, answer.body.as_str()), (200, "never queued"));
        assert!(answer.closes() && client.is_closed());
    }
    assert_eq!(server.client().get("/hello").status, 503);
}

#[test]
fn with_no_queue_a_request_that_finds_no_thread_is_refused() {
    let server = Server::start(limits(1, 0));
    let mut busy = server.client();
    busy.ask("/gate");
    server.gate.await_inside(1);
    assert_eq!(server.client().get("/hello").status, 503);
}

#[test]
fn clients_that_pause_share_too_few_threads_and_lose_no_request() {
    let server = Server::start(limits(2, 64));
    thread::scope(|scope| {
        for number in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for request in 0..40 {
                    let answer = client.get("/hello");
                    assert_eq!((answer.status, answer.closes()), (200, false));
                    thread::sleep(Duration::from_millis((number + request) % 5));
                }
            });
        }
    });
}

#[test]
fn only_an_answer_that_says_so_is_the_last_of_requests_sent_together() {
    let server = Server::start(limits(1, 64));
    let request = "GET /hello HTTP/1.1\r\n\r\n";
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut client = server.client();
                    client.send(&request.repeat(200));
                    let closes = (0..200).any(|_| client.receive().closes());
                    assert!(!closes || client.is_closed());
                }
            });
        }
    });
}
