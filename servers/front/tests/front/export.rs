//! Rows that are streamed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::Client;
use crate::fake::Server;
use crate::script::{DRIVER_TEXT, SILENT};

/// A body that ends with this is whole.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// More rows than any buffer on the way takes: each is of about a kilobyte.
const MANY: u32 = 200_000;
const ALL: i32 = 200_000;

/// The path of an export of so many rows, which breaks off after others.
fn path(rows: i32, breaks_after: u32) -> String {
    format!("/export?rows={rows}&breaks_after={breaks_after}")
}

async fn begin(server: &Server, rows: i32, breaks_after: u32) -> Client {
    let mut client = server.client().await;
    client.send("GET", &path(rows, breaks_after)).await;
    client
}

/// Waits until no more rows are taken from the lane, and tells how many were.
async fn stalled(server: &Server) -> u32 {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = server.control.streamed.load(Ordering::Relaxed);
        if now > 0 && now == before {
            return now;
        }
        before = now;
    }
}

async fn in_flight(server: &Server) -> u64 {
    let usage = server.client().await.get("/usage").await.json();
    usage["in_flight"].as_u64().unwrap()
}

/// Waits until every place is free, and checks that no failure was counted.
async fn all_free(server: &Server) {
    while in_flight(server).await > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let usage = server.client().await.get("/usage").await.json();
    for (cause, count) in usage["failed"].as_object().unwrap() {
        assert_eq!(count, 0, "{cause}: a client may leave");
    }
}

#[tokio::test]
async fn an_export_is_a_line_a_row_in_several_parts() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for rows in [0, 1, 16, 100] {
        let answer = client.get(&path(rows, MANY)).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (200, "application/x-ndjson")
        );
        assert_eq!(answer.headers["transfer-encoding"], "chunked");
        let line = |id| format!("{{\"id\":{id},\"label\":\"{}\"}}\n", "x".repeat(1000));
        let lines: String = (1..=rows).map(line).collect();
        assert!(answer.body == lines, "{rows} rows: {}", answer.body);
    }
    let usage = client.get("/usage").await.json();
    assert_eq!(
        (&usage["admitted"], &usage["in_flight"]),
        (&4.into(), &0.into())
    );
    assert_eq!(usage["timings"]["database"]["count"], 4);
}

#[tokio::test]
async fn the_first_part_is_sent_before_the_last_row_is_read() {
    let server = Server::start(&[]).await;
    let mut client = begin(&server, ALL, MANY).await;
    assert!(client.received(16 << 10).await);
    assert!(server.control.streamed.load(Ordering::Relaxed) < MANY);
}

#[tokio::test]
async fn a_failure_before_the_first_part_is_an_answer() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for breaks_after in [0, 1] {
        let answer = client.get(&path(100, breaks_after)).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (503, "application/problem+json")
        );
        assert!(!answer.body.contains(DRIVER_TEXT), "{}", answer.body);
    }
    let usage = client.get("/usage").await.json();
    assert_eq!(
        (&usage["failed"]["connection_lost"], &usage["in_flight"]),
        (&2.into(), &0.into())
    );
}

#[tokio::test]
async fn a_failure_after_the_first_part_breaks_the_body_off() {
    let server = Server::start(&[]).await;
    // hyper may not have sent anything yet of a short one.
    let short = begin(&server, 100, 50).await.rest().await;
    let long = begin(&server, 5_000, 4_000).await.rest().await;
    assert!(long.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(long.len() > 16 << 10);
    for broken in [short, long] {
        assert!(
            !broken.ends_with(LAST_CHUNK),
            "the client takes it for whole"
        );
    }
    let usage = server.client().await.get("/usage").await.json();
    assert_eq!(
        (&usage["failed"]["connection_lost"], &usage["in_flight"]),
        (&2.into(), &0.into())
    );
}

#[tokio::test]
async fn a_slow_reader_holds_the_rows_back_and_gets_them_all_in_the_end() {
    let server = Server::start(&["--statement-timeout", "60s"]).await;
    let client = begin(&server, ALL, MANY).await;
    let taken = stalled(&server).await;
    assert!(taken < MANY / 4, "{taken} rows are on their way to nobody");
    assert_eq!(in_flight(&server).await, 1);
    drop(client);
    let server = Server::start(&[]).await;
    let slow = begin(&server, 20_000, MANY).await;
    stalled(&server).await;
    let mut slow = slow;
    assert_eq!(slow.receive().await.body.lines().count(), 20_000);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_work_and_frees_its_place() {
    let server = Server::start(&["--pool", "1", "--queue", "0"]).await;
    let client = begin(&server, ALL, MANY).await;
    stalled(&server).await;
    assert_eq!(server.client().await.get(&path(1, MANY)).await.status, 503);
    drop(client);
    all_free(&server).await;
    assert!(server.control.streamed.load(Ordering::Relaxed) < MANY);
    assert_eq!(server.client().await.get(&path(1, MANY)).await.status, 200);
}

#[tokio::test]
async fn a_client_that_goes_away_before_the_first_row_ends_the_work_as_well() {
    let server = Server::start(&[]).await;
    let client = begin(&server, SILENT, MANY).await;
    server.begun(1).await;
    assert_eq!(in_flight(&server).await, 1);
    drop(client);
    all_free(&server).await;
}

#[tokio::test]
async fn a_reader_that_is_slower_than_the_deadline_is_cut_off() {
    let server = Server::start(&["--queue-wait", "2s", "--statement-timeout", "7s"]).await;
    let client = begin(&server, ALL, MANY).await;
    stalled(&server).await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(in_flight(&server).await, 0);
    assert!(!client.rest().await.ends_with(LAST_CHUNK));
}

#[tokio::test]
async fn parameters_of_an_export_are_those_of_a_url() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for query in [
        "",
        "?rows=1",
        "?rows=a&breaks_after=1",
        "?rows=1&breaks_after=1&page=2",
    ] {
        let answer = client.get(&format!("/export{query}")).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (400, "application/problem+json"),
            "{query}"
        );
    }
    assert_eq!(client.ask("POST", "/export", "{}").await.status, 405);
    assert!(server.control.asked().is_empty());
}
