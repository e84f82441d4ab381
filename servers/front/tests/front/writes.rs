//! The shapes that write: `transfer` and `create`.

use std::sync::atomic::Ordering;

use crate::fake::Server;
use crate::script::{ABSENT, DRIVER_TEXT, TAKEN};

const BODY: &str = r#"{"from":1,"to":2,"amount_cents":5}"#;
const TRANSFER: [&str; 3] = [
    "transfer lock 1 2",
    "transfer update 1 2 5",
    "transfer record 1 2 5",
];

#[tokio::test]
async fn a_transfer_is_one_transaction_of_three_statements() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let answer = client.ask("POST", "/transfer", BODY).await;
    assert_eq!(
        answer.told(),
        (
            200,
            "application/json",
            r#"{"from_account":1,"to_account":2,"amount_cents":5}"#
        )
    );
    let [lock, update, record] = TRANSFER;
    assert_eq!(
        server.control.asked(),
        ["begin", lock, update, record, "commit"]
    );
    assert_eq!(client.get("/usage").await.json()["retries"], 0);
    assert_eq!(client.get("/transfer").await.status, 405);
}

#[tokio::test]
async fn a_transfer_that_cannot_be_read_is_a_bad_request_without_a_statement() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        r#"{"from":1,"to":2}"#,
        r#"{"from":1,"to":2,"amount_cents":"5"}"#,
        r#"{"from":1,"to":2,"amount_cents":5.5}"#,
        r#"{"from":1,"to":2,"amount_cents":0}"#,
        r#"{"from":1,"to":2,"amount_cents":-5}"#,
        r#"{"from":1,"to":2,"amount_cents":3000000000}"#,
        r#"{"from":1,"to":2,"amount_cents":5,"note":"rent"}"#,
        r#"{"from":1,"from":3,"to":2,"amount_cents":5}"#,
        r#"{"from":2,"to":2,"amount_cents":5}"#,
    ];
    for body in bodies {
        let answer = client.ask("POST", "/transfer", body).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (400, "application/problem+json"),
            "{body}"
        );
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains("two accounts"), "{detail}");
    }
    assert!(server.control.asked().is_empty());
}

#[tokio::test]
async fn an_unknown_account_is_not_found_and_its_transaction_rolled_back() {
    let server = Server::start(&[]).await;
    let body = format!(r#"{{"from":1,"to":{ABSENT},"amount_cents":5}}"#);
    let answer = server.client().await.ask("POST", "/transfer", &body).await;
    assert_eq!(
        (answer.status, answer.media_type()),
        (404, "application/problem+json")
    );
    assert_eq!(
        server.control.asked(),
        [
            "begin".to_owned(),
            format!("transfer lock 1 {ABSENT}"),
            "rollback".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_transaction_in_the_way_of_another_is_begun_again() {
    let server = Server::start(&[]).await;
    server.control.conflicts.store(2, Ordering::Relaxed);
    let mut client = server.client().await;
    assert_eq!(client.ask("POST", "/transfer", BODY).await.status, 200);
    let [lock, update, record] = TRANSFER;
    let failed = ["begin", lock, update, "rollback"];
    let done = ["begin", lock, update, record, "commit"];
    assert_eq!(
        server.control.asked(),
        [&failed[..], &failed, &done].concat()
    );
    let usage = client.get("/usage").await.json();
    assert_eq!(
        (&usage["retries"], &usage["failed"]["conflict"]),
        (&2.into(), &0.into())
    );
}

#[tokio::test]
async fn a_transaction_that_is_always_in_the_way_is_a_conflict_in_the_end() {
    let server = Server::start(&[]).await;
    server.control.conflicts.store(u32::MAX, Ordering::Relaxed);
    let mut client = server.client().await;
    let answer = client.ask("POST", "/transfer", BODY).await;
    assert_eq!(
        (answer.status, answer.media_type()),
        (409, "application/problem+json")
    );
    assert!(!answer.body.contains(DRIVER_TEXT), "{}", answer.body);
    let asked = server.control.asked();
    let count = |wanted| asked.iter().filter(|asked| *asked == wanted).count();
    assert_eq!((count("begin"), count("rollback")), (11, 11));
    let usage = client.get("/usage").await.json();
    assert_eq!(
        (&usage["retries"], &usage["failed"]["conflict"]),
        (&10.into(), &1.into())
    );
}

#[tokio::test]
async fn what_is_created_is_answered_with_its_row() {
    let server = Server::start(&[]).await;
    let body = r#"{"name":"Ada \"A\"","email":"ada@example.com"}"#;
    let answer = server.client().await.ask("POST", "/signup", body).await;
    assert_eq!(
        answer.told(),
        (
            201,
            "application/json",
            r#"{"email":"ada@example.com","name":"Ada \"A\""}"#
        )
    );
    assert_eq!(
        server.control.asked(),
        [r#"signup ada@example.com Ada "A""#],
        "parameters are bound in the order of the definition"
    );
}

#[tokio::test]
async fn what_exists_already_is_a_conflict() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let body = format!(r#"{{"email":"{TAKEN}","name":"Ada"}}"#);
    let answer = client.ask("POST", "/signup", &body).await;
    assert_eq!(
        (answer.status, answer.media_type()),
        (409, "application/problem+json")
    );
    assert_eq!(answer.json()["status"], 409);
    let usage = client.get("/usage").await.json();
    assert_eq!(
        usage["failed"]["conflict"], 0,
        "no transaction was in the way"
    );
    assert_eq!(client.get("/signup").await.status, 405);
    assert_eq!(client.ask("POST", "/signup", "{}").await.status, 400);
}
