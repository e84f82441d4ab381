//! Start, ready line, drain and stop.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::fake::{Control, Server};
use crate::script::DRIVER_TEXT;

#[tokio::test]
async fn the_ready_line_is_one_json_object_with_the_address_and_the_process() {
    let mut server = Server::begin(&[], Control::default()).await;
    let line = server.ready_line().await;
    let expected = format!(
        r#"{{"ready":{{"address":"{}","pid":{}}}}}"#,
        server.address,
        std::process::id()
    );
    assert_eq!(line, expected + "\n");
    assert_eq!(server.client().await.get("/hello").await.status, 200);
    assert!(server.is_silent(), "more than the ready line was written");
}

#[tokio::test]
async fn no_ready_line_is_written_before_the_pool_is_open() {
    let closed = Control {
        opening: Semaphore::new(0),
        ..Control::default()
    };
    let mut server = Server::begin(&[], closed).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.is_silent());
    server.control.opening.add_permits(1);
    server.ready_line().await;
}

#[tokio::test]
async fn a_pool_that_cannot_be_opened_ends_the_start_and_says_why() {
    let refusing = Control {
        refuses: true.into(),
        ..Control::default()
    };
    let server = Server::begin(&[], refusing).await;
    let error = server.finished.await.unwrap().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("opened 3 of 16 connections to the database at somewhere:5432"),
        "{error}"
    );
    let cause = std::error::Error::source(&error).unwrap();
    assert_eq!(cause.to_string(), DRIVER_TEXT);
}

#[tokio::test]
async fn a_definition_that_is_refused_ends_the_start_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("typo.toml"),
        "about = \"A typing mistake.\"\nshap = \"text\"\n",
    )
    .unwrap();
    let folder = folder.path().to_str().unwrap();
    let server = Server::begin(&["--workloads", folder], Control::default()).await;
    let error = server.finished.await.unwrap().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.contains("typo.toml:2") && cause.contains("shap"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_signal_before_the_pool_is_open_ends_the_start() {
    let closed = Control {
        opening: Semaphore::new(0),
        ..Control::default()
    };
    let mut server = Server::begin(&[], closed).await;
    server.stop();
    server.finished.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_the_signal_and_then_the_pool_is_closed() {
    let mut server = Server::start(&[]).await;
    let mut idle = server.client().await;
    assert_eq!(idle.get("/hello").await.status, 200);
    let mut busy = server.client().await;
    busy.send("GET", "/ten-ms").await;
    server.begun(1).await;
    server.stop();
    assert!(
        idle.closed().await,
        "an idle connection outlived the signal"
    );
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(
        !server.control.closed.load(Ordering::Relaxed),
        "the pool was closed under a request"
    );
    server.control.delays.add_permits(1);
    assert_eq!(busy.receive().await.status, 200);
    server.finished.await.unwrap().unwrap();
    assert!(server.control.closed.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_drain_that_takes_too_long_is_cut_off() {
    let mut server = Server::start(&["--statement-timeout", "60s"]).await;
    let mut busy = server.client().await;
    busy.send("GET", "/ten-ms").await;
    server.begun(1).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    server.stop();
    server.finished.await.unwrap().unwrap();
    let waited = begun.elapsed();
    assert!((5..=6).contains(&waited.as_secs()), "{waited:?}");
    assert!(server.control.closed.load(Ordering::Relaxed));
}
