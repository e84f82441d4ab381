//! Status, media type and body of every kind of answer.

use crate::fake::Server;
use crate::script::{
    ABSENT, CONFLICT, CONNECTION_LOST, DATABASE, DRIVER_TEXT, NO_CONNECTION, STATEMENT_TIMEOUT,
};

#[tokio::test]
async fn every_shape_answers_with_its_media_type_and_its_bytes() {
    let server = Server::start(&[]).await;
    server.control.delays.add_permits(1);
    let mut client = server.client().await;
    let lamp =
        r#"{"id":42,"owner_id":7,"title":"Lamp","description":null,"price_cents":1999,"stock":3}"#;
    let kilobyte = "0123456789abcdef".repeat(64);
    let cases = [
        ("/hello", "text/plain; charset=utf-8", "Hello, World!"),
        ("/kilobyte", "text/plain; charset=utf-8", &kilobyte),
        ("/point-read/42", "application/json", lamp),
        ("/point-read-uniform/42", "application/json", lamp),
        ("/ten-ms", "application/json", r#"{"waited_ms":10}"#),
    ];
    for (path, media_type, body) in cases {
        let answer = client.get(path).await;
        assert_eq!(
            (answer.status, answer.media_type(), answer.body.as_str()),
            (200, media_type, body),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_id_that_is_no_positive_integer_is_a_bad_request() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let ids = [
        "0",
        "-1",
        "abc",
        "1.5",
        "2147483648",
        "99999999999999999999999",
        "%20",
        "%FF",
        "1;2",
        "%00",
    ];
    for id in ids {
        let answer = client.get(&format!("/point-read/{id}")).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (400, "application/problem+json"),
            "{id}"
        );
        assert_eq!(answer.json()["status"], 400);
    }
    assert_eq!(client.get("/point-read/2147483647").await.status, 200);
}

#[tokio::test]
async fn an_absent_row_and_an_unknown_route_are_not_found() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for path in [
        &format!("/point-read/{ABSENT}"),
        "/",
        "/nothing",
        "/point-read",
        "/point-read/",
        "/hello/1",
    ] {
        let answer = client.get(path).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (404, "application/problem+json"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn another_method_than_get_is_not_allowed() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    client.send("DELETE", "/point-read/42").await;
    let answer = client.receive().await;
    assert_eq!(
        (answer.status, answer.media_type()),
        (405, "application/problem+json")
    );
}

#[tokio::test]
async fn each_failure_has_its_status_and_none_shows_the_drivers_words() {
    let server = Server::start(&["--queue-wait", "1500ms"]).await;
    let mut client = server.client().await;
    let cases = [
        (CONFLICT, 409, None),
        (DATABASE, 500, None),
        (NO_CONNECTION, 503, Some("2")),
        (CONNECTION_LOST, 503, Some("2")),
        (STATEMENT_TIMEOUT, 504, None),
    ];
    for (id, status, retry_after) in cases {
        let answer = client.get(&format!("/point-read/{id}")).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (status, "application/problem+json")
        );
        assert_eq!(answer.json()["status"], status);
        assert_eq!(
            answer.headers.get("retry-after").map(String::as_str),
            retry_after,
            "{status}"
        );
        assert!(!answer.body.contains(DRIVER_TEXT), "{}", answer.body);
        assert!(!answer.body.contains("42P01"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another_whatever_their_answers() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for _ in 0..50 {
        assert_eq!(client.get("/point-read/1").await.status, 200);
        assert_eq!(client.get("/point-read/0").await.status, 400);
        assert_eq!(
            client.get(&format!("/point-read/{DATABASE}")).await.status,
            500
        );
    }
}
