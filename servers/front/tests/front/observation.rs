//! What `/about` and `/usage` tell.

use crate::fake::Server;
use crate::script::{ABSENT, CONNECTION_LOST, DATABASE, NO_CONNECTION};

#[tokio::test]
async fn about_tells_what_the_server_is() {
    let server = Server::start(&[
        "--pool",
        "3",
        "--threads",
        "2",
        "--profile",
        "defaults",
        "--queue",
        "9",
    ])
    .await;
    let answer = server.client().await.get("/about").await;
    assert_eq!(answer.media_type(), "application/json");
    let about = answer.json();
    let told = [
        ("lane", "fake"),
        ("kind", "blocking"),
        ("profile", "defaults"),
        ("timings", "on"),
    ];
    for (key, value) in told {
        assert_eq!(about[key], value);
    }
    let told = [
        ("pool", 3),
        ("threads", 2),
        ("queue", 9),
        ("queue_wait_ms", 1000),
        ("statement_timeout_ms", 5000),
    ];
    for (key, value) in told {
        assert_eq!(about[key], value, "{key}");
    }
    assert_eq!(about["pid"], std::process::id());
    assert_eq!(
        about["worker_threads"], 1,
        "the runtime of this test has one"
    );
    assert_eq!(about["notes"][0], "made up");
    assert_eq!(about["versions"]["workloads"], env!("CARGO_PKG_VERSION"));
    assert!(
        about["versions"]["axum"]
            .as_str()
            .unwrap()
            .starts_with("0.")
    );
    assert!(
        about["build"]["rustc"]
            .as_str()
            .unwrap()
            .starts_with("rustc ")
    );
}

#[tokio::test]
async fn usage_counts_requests_to_the_database_and_their_failures_apart() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let ids = [
        1,
        2,
        0,
        ABSENT,
        NO_CONNECTION,
        CONNECTION_LOST,
        DATABASE,
        DATABASE,
    ];
    for id in ids {
        client.get(&format!("/point-read/{id}")).await;
    }
    client.get("/hello").await;
    let usage = client.get("/usage").await.json();
    assert_eq!(
        usage["admitted"], 7,
        "the bad id and the text need no place"
    );
    assert_eq!(
        (&usage["shed"], &usage["in_flight"]),
        (&0.into(), &0.into())
    );
    let failed = &usage["failed"];
    let counts = [
        "no_connection",
        "connection_lost",
        "database",
        "statement_timeout",
        "conflict",
    ];
    assert_eq!(
        counts.map(|count| failed[count].as_u64()),
        [Some(1), Some(1), Some(2), Some(0), Some(0)]
    );
    assert_eq!(
        (&usage["pool"]["size"], &usage["pool"]["in_use"]),
        (&2.into(), &1.into())
    );
}

#[tokio::test]
async fn usage_shows_cpu_time_that_grows_with_work() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let before = client.get("/usage").await.json();
    for _ in 0..500 {
        client.get("/hello").await;
    }
    let after = client.get("/usage").await.json();
    let spent = after["cpu_seconds"].as_f64().unwrap() - before["cpu_seconds"].as_f64().unwrap();
    assert!(spent > 0.0 && spent < 60.0, "{spent}");
    if cfg!(target_os = "linux") {
        assert!(after["rss_bytes"].as_u64().unwrap() > 1 << 20);
        assert!(after["threads"].as_u64().unwrap() >= 1);
    }
}

#[tokio::test]
async fn usage_tells_the_stages_of_successful_requests_alone() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for id in [1, 2, 3, 0, ABSENT, NO_CONNECTION, DATABASE] {
        client.get(&format!("/point-read/{id}")).await;
    }
    client.get("/hello").await;
    let usage = client.get("/usage").await.json();
    for stage in [
        "admission",
        "connection",
        "database",
        "handover",
        "encoding",
    ] {
        let told = &usage["timings"][stage];
        assert_eq!(told["count"], 3, "{stage}");
        let buckets = told["buckets"].as_array().unwrap();
        let counted: u64 = buckets.iter().filter_map(|bucket| bucket[1].as_u64()).sum();
        assert_eq!(counted, 3, "{stage}");
        assert!(told["sum_ns"].is_u64(), "{stage}");
    }
}

#[tokio::test]
async fn nothing_is_timed_when_the_timings_are_off() {
    let server = Server::start(&["--timings", "off"]).await;
    let mut client = server.client().await;
    assert_eq!(client.get("/point-read/1").await.status, 200);
    let usage = client.get("/usage").await.json();
    assert_eq!(usage.get("timings"), Some(&serde_json::Value::Null));
    assert_eq!(client.get("/about").await.json()["timings"], "off");
}
