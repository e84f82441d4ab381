//! Overload: who is let in, who is shed, and that a place is never lost.

use std::time::Duration;

use crate::client::Client;
use crate::fake::Server;

/// A client whose request for a delay is on its way.
async fn waiting(server: &Server) -> Client {
    let mut client = server.client().await;
    client.send("GET", "/ten-ms").await;
    client
}

#[tokio::test]
async fn pool_and_queue_are_admitted_and_the_rest_is_shed_at_once() {
    let server = Server::start(&["--pool", "2", "--queue", "3", "--queue-wait", "2s"]).await;
    let mut admitted = Vec::new();
    for _ in 0..5 {
        admitted.push(waiting(&server).await);
    }
    server.begun(5).await;
    for _ in 0..3 {
        let shed = server.client().await.get("/ten-ms").await;
        assert_eq!(
            (shed.status, shed.media_type()),
            (503, "application/problem+json")
        );
        assert_eq!(shed.headers["retry-after"], "2");
    }
    let usage = server.client().await.get("/usage").await.json();
    assert_eq!(
        (&usage["admitted"], &usage["shed"], &usage["in_flight"]),
        (&5.into(), &3.into(), &5.into())
    );
    server.control.delays.add_permits(5);
    for mut client in admitted {
        assert_eq!(client.receive().await.status, 200);
    }
}

#[tokio::test]
async fn a_route_that_needs_no_connection_answers_while_the_queue_is_full() {
    let server = Server::start(&["--pool", "1", "--queue", "0"]).await;
    let _admitted = waiting(&server).await;
    server.begun(1).await;
    let mut client = server.client().await;
    assert_eq!(client.get("/point-read/1").await.status, 503);
    for path in ["/hello", "/about", "/usage"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(client.get("/point-read/0").await.status, 400);
}

#[tokio::test]
async fn a_place_is_free_again_after_an_answer_and_after_a_client_that_left() {
    let server = Server::start(&["--pool", "1", "--queue", "0"]).await;
    for round in 1..=3 {
        let left = waiting(&server).await;
        server.begun(round).await;
        drop(left);
        let mut client = server.client().await;
        while client.get("/point-read/1").await.status == 503 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(client.get("/point-read/1").await.status, 200);
    }
}

#[tokio::test]
async fn a_database_that_has_gone_silent_is_a_gateway_timeout_within_the_deadline() {
    let server = Server::start(&["--queue-wait", "2s", "--statement-timeout", "7s"]).await;
    let mut client = waiting(&server).await;
    server.begun(1).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert_eq!(client.receive().await.status, 504);
    let waited = begun.elapsed();
    assert!((9..=10).contains(&waited.as_secs()), "{waited:?}");
    let usage = server.client().await.get("/usage").await.json();
    assert_eq!(
        (&usage["in_flight"], &usage["failed"]["statement_timeout"]),
        (&0.into(), &1.into())
    );
}
