//! Campaigns that nobody measured, as records: for the tests of what is said of them. In JSON, so that tests from
//! outside can write them to a file.

use serde_json::{Value, json};

/// A campaign of `workload` with one ladder. `figure` gives, for a server's index, a rung's index and a block, the
/// requests per second of a closed rung, or the p99 in milliseconds of an open one. Server i uses `30 + 10 i` µs of CPU
/// a request, `2 + 2 i` threads and `8 + 4 i` MiB.
pub(crate) fn campaign(
    servers: &[&str],
    rungs: &[Value],
    blocks: usize,
    figure: &dyn Fn(usize, usize, usize) -> f64,
) -> Value {
    let mut trials = Vec::new();
    for block in 0..blocks {
        for (rung_index, rung) in rungs.iter().enumerate() {
            for position in 0..servers.len() {
                let figure = figure(position, rung_index, block);
                let mut trial = trial(servers, position, rung, figure);
                trial["block"] = json!(block);
                trial["position"] = json!(position);
                trials.push(trial);
            }
        }
    }
    json!({
        "schema": super::campaign::SCHEMA, "lanebench": "0.1.0", "started_at": "2026-01-01T00:00:00Z", "state": "complete",
        "commands": [["lanebench", "run", "point-read"]],
        "plan": plan(servers, rungs, blocks),
        "unpublishable": [], "environment": environment(),
        "generator": {
            "null_server_per_second": 1e5, "cpu_ns_per_request": 7e3, "jitter_p50_ns": 100, "jitter_p99_ns": 200,
        },
        "database": {
            "source": "made up", "version": "17.2", "settings": [["fsync", "on"], ["port", "43221"]], "scale": "1",
            "content": "c0ffee", "between_trials": "made up", "statements_unobserved": null,
        },
        "servers": servers.iter().map(|server| json!({
            "name": server, "lane": "nonblocking", "about": "Made up.", "same_as": server.strip_suffix(" (again)"),
            "binary_sha256": "abc", "says": [],
        })).collect::<Vec<_>>(),
        "inspections": [], "references": [], "trials": trials, "pgbench": [],
    })
}

/// The first trial of a server, by its index: of block 0.
pub(crate) fn trial(servers: &[&str], server: usize, rung: &Value, figure: f64) -> Value {
    json!({
        "workload": "point-read", "server": servers[server], "profile": "parity", "rung": rung, "block": 0,
        "attempt": 0, "position": 0, "started_at": "2026-01-01T00:00:00Z", "verdict": "valid",
        "checks": [], "window": window(server, rung, figure),
    })
}

pub(crate) fn closed(connections: usize) -> Value {
    json!({ "loop": "closed", "connections": connections })
}

pub(crate) fn open(rate: f64) -> Value {
    json!({ "loop": "open", "rate": rate, "connections": 64 })
}

/// A small scatter that differs from block to block: a ratio near 1, the same each time.
pub(crate) fn scatter(block: usize, size: f64) -> f64 {
    (size * (2.4 * block as f64).sin()).exp()
}

pub(crate) fn plan(servers: &[&str], rungs: &[Value], blocks: usize) -> Value {
    json!({
        "ladders": [{ "workload": "point-read", "definition": "made up", "rungs": rungs }], "servers": servers, "profiles": ["parity"],
        "preset": "snapshot", "pool": 16, "threads": null, "blocks": blocks, "most_blocks": blocks,
        "warmup_seconds": 1.0, "window_seconds": 3.0, "poisson": true, "seed": 1,
        "cpus": { "generator": [1], "server": [0], "database": [0], "note": "made up" },
        "shares": [], "open_connections": 64,
    })
}

fn environment() -> Value {
    json!({
        "kernel": "6.1", "cpu_model": "Made Up 9000", "cpus": 2, "threads_per_core": 1, "governor": null,
        "clock_source": "tsc", "memory_bytes": 1_u64 << 34, "cgroup_cpu_limit": null, "open_files_limit": 20_000,
        "virtual_machine": false, "rustc": "rustc 1.95.0", "build_profile": "release", "cargo_lock_sha256": "def",
        "git_commit": "0123456789abcdef", "git_dirty": false,
    })
}

pub(crate) fn window(server: usize, rung: &Value, figure: f64) -> Value {
    let rate = rung["rate"].as_f64().unwrap_or(figure);
    let ns = match rung["connections"].as_f64() {
        Some(connections) if rung["rate"].is_null() => connections / figure * 1e9,
        _ => figure * 1e6,
    };
    let [p50, p90, p99, p99_9] = [0.5, 0.9, 1.0, 1.2].map(|share| (share * ns) as u64);
    let latency = json!({ "p50": p50, "p90": p90, "p99": p99, "p99_9": p99_9, "max": p99_9, "mean": p50 as f64 });
    let correct = (3.0 * rate) as u64;
    json!({
        "seconds": 3.0, "requests_per_second": rate, "response_ns": latency, "service_ns": latency,
        "counts": {
            "scheduled": correct, "correct": correct, "wrong": 0, "http_error": 0, "shed": 0, "timeout": 0,
            "transport": 0, "unsent": 0, "unfinished": 0,
        },
        "errors": [],
        "server": {
            "cpu_seconds": correct as f64 * (30.0 + 10.0 * server as f64) / 1e6, "threads": 2 + 2 * server,
            "rss_bytes": (8 + 4 * server) << 20, "voluntary_switches": correct, "involuntary_switches": 0,
        },
        "database_cpu_seconds": 0.1, "database": null,
        "sessions": { "samples": 0, "doing": {}, "sampler_cpu_seconds": 0.0 },
        "generator_cpu_seconds": 0.1, "delay_ms": null, "statements_per_request": 1.0, "transactions_per_request": 1.0,
        "series": [],
    })
}
