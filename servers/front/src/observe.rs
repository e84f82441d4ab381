//! `/about`: what this server is. `/usage`: what it has used so far. Neither needs the database.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;
use tokio::runtime::Handle;
use workloads::JSON;

use crate::app::{App, Failures};
use crate::lane::application_name;
use crate::routes::answer;
use crate::timings::Report;
use crate::{Front, Kind, Lane, Profile, Timing};

/// The versions this server was built with.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");
/// The crates every server is made of, beside its lane's.
const CRATES: [&str; 3] = ["axum", "hyper", "tokio"];

#[derive(Debug, Serialize)]
struct About {
    lane: &'static str,
    kind: Kind,
    profile: Profile,
    pool: u32,
    /// Threads that may wait for the database at once; none in a nonblocking lane.
    threads: u32,
    /// Threads that run handlers.
    worker_threads: usize,
    queue: u32,
    queue_wait_ms: u128,
    statement_timeout_ms: u128,
    timings: Timing,
    pid: u32,
    /// Of its sessions in PostgreSQL.
    application_name: String,
    versions: BTreeMap<&'static str, String>,
    build: Build,
    notes: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Build {
    version: &'static str,
    profile: &'static str,
    opt_level: &'static str,
    target: &'static str,
    rustc: &'static str,
    /// Of the sources, where whoever built an image of them has said it.
    commit: Option<String>,
}

/// Set in an image at its build.
const COMMIT_VARIABLE: &str = "LANEBENCH_COMMIT";

fn build() -> Build {
    let commit = std::env::var(COMMIT_VARIABLE).ok();
    Build {
        commit: commit.filter(|commit| !commit.is_empty()),
        version: env!("CARGO_PKG_VERSION"),
        profile: env!("LANEBENCH_BUILD_PROFILE"),
        opt_level: env!("LANEBENCH_BUILD_OPT_LEVEL"),
        target: env!("LANEBENCH_BUILD_TARGET"),
        rustc: env!("LANEBENCH_BUILD_RUSTC"),
    }
}

pub(crate) async fn about<L: Lane>(State(app): State<Arc<App<L>>>) -> Response {
    let config = &app.config;
    json(&About {
        lane: L::NAME,
        kind: L::KIND,
        profile: config.profile,
        pool: config.pool,
        threads: match L::KIND {
            Kind::Nonblocking | Kind::Pipelined => 0,
            Kind::Blocking => config.threads(),
        },
        worker_threads: match L::FRONT {
            Front::Tasks => Handle::current().metrics().num_workers(),
            Front::ThreadPerConnection => config.threads() as usize,
        },
        queue: config.queue,
        queue_wait_ms: config.queue_wait.as_millis(),
        statement_timeout_ms: config.statement_timeout_ms(),
        timings: config.timings,
        pid: std::process::id(),
        application_name: application_name(L::NAME),
        versions: CRATES
            .iter()
            .chain(L::CRATES)
            .map(|name| (*name, locked_version(LOCK_FILE, name)))
            .collect(),
        build: build(),
        notes: L::notes(config.profile),
    })
}

/// Every version of a crate in a lock file; one, as a rule.
fn locked_version(lock_file: &str, name: &str) -> String {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock_file.lines();
    let mut versions = Vec::new();
    while lines.by_ref().any(|line| line == wanted) {
        let version = lines
            .next()
            .and_then(|line| line.strip_prefix("version = "));
        versions.extend(version.map(|version| version.trim_matches('"')));
    }
    versions.join(", ")
}

#[derive(Debug, Serialize)]
struct Usage {
    uptime_seconds: f64,
    /// User and system time of all threads, ended ones included; microsecond precision.
    cpu_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    /// None where there is no /proc.
    rss_bytes: Option<u64>,
    threads: Option<u64>,
    voluntary_switches: i64,
    involuntary_switches: i64,
    pool: Pool,
    /// Requests that have a place now, waiting or at the database.
    in_flight: u32,
    /// Of all channels; they have no place.
    subscribers: usize,
    admitted: u64,
    shed: u64,
    failed: Failed,
    /// Transactions begun again after a deadlock or a serialization failure.
    retries: u64,
    /// None with `--timings off`.
    timings: Option<Report>,
}

#[derive(Debug, Serialize)]
struct Pool {
    size: u32,
    in_use: u32,
    /// Requests in flight that have no connection. Derived, since not every pool counts them.
    waiting: u32,
}

#[derive(Debug, Serialize)]
struct Failed {
    no_connection: u64,
    connection_lost: u64,
    statement_timeout: u64,
    conflict: u64,
    database: u64,
}

pub(crate) async fn usage<L: Lane>(State(app): State<Arc<App<L>>>) -> Response {
    // Fails for a bad argument only, which this is not.
    let Ok(used) = getrusage(UsageWho::RUSAGE_SELF) else {
        return app.fail(crate::Failure::Database("getrusage failed".into()));
    };
    let (user_seconds, system_seconds) = (seconds(used.user_time()), seconds(used.system_time()));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let pool = app.lane.pool_use();
    let in_flight = app.admission.in_flight();
    json(&Usage {
        uptime_seconds: app.started.elapsed().as_secs_f64(),
        cpu_seconds: user_seconds + system_seconds,
        user_seconds,
        system_seconds,
        rss_bytes: status_field(&status, "VmRSS:").map(|kibibytes| kibibytes * 1024),
        threads: status_field(&status, "Threads:"),
        voluntary_switches: used.voluntary_context_switches(),
        involuntary_switches: used.involuntary_context_switches(),
        pool: Pool {
            size: pool.size,
            in_use: pool.in_use,
            waiting: match L::KIND {
                Kind::Nonblocking | Kind::Blocking => in_flight.saturating_sub(pool.in_use),
                // Each has one, and shares it.
                Kind::Pipelined => 0,
            },
        },
        in_flight,
        subscribers: app.live.subscribers(),
        admitted: app.admission.admitted(),
        shed: app.admission.shed(),
        failed: failed(&app.failures),
        retries: app.retries.load(Ordering::Relaxed),
        timings: app.timings.read(),
    })
}

fn failed(failures: &Failures) -> Failed {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let Failures {
        no_connection,
        connection_lost,
        statement_timeout,
        conflict,
        database,
    } = failures;
    Failed {
        no_connection: read(no_connection),
        connection_lost: read(connection_lost),
        statement_timeout: read(statement_timeout),
        conflict: read(conflict),
        database: read(database),
    }
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// A number of `/proc/self/status`, without its unit.
fn status_field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn json(value: &impl Serialize) -> Response {
    // Nothing here has a failing `Serialize` or a key that is not a string.
    answer(
        JSON,
        serde_json::to_vec(value).map_or_else(|_| Bytes::new(), Bytes::from),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock_file = "[[package]]\nname = \"rand\"\nversion = \"0.9.1\"\n\n[[package]]\nname = \"rand\"\nversion = \"0.10.4\"\n\n[[package]]\nname = \"rand_core\"\nversion = \"1.0.0\"\n";
        assert_eq!(locked_version(lock_file, "rand"), "0.9.1, 0.10.4");
        assert_eq!(locked_version(lock_file, "absent"), "");
        assert_ne!(locked_version(LOCK_FILE, "axum"), "");
    }

    #[test]
    fn numbers_of_proc_lose_their_unit() {
        let status = "Name:\tserver\nVmRSS:\t    8192 kB\nThreads:\t3\n";
        assert_eq!(status_field(status, "VmRSS:"), Some(8192));
        assert_eq!(status_field(status, "Threads:"), Some(3));
        assert_eq!(status_field("", "Threads:"), None);
    }
}
