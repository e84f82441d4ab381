//! The settings of a private cluster: all of them, here and nowhere else. They are written to its postgresql.conf with
//! their reasons, and show in the record of every run as settings not at their default.

/// Loads what counts statements; left out where the installation lacks it.
pub(crate) const COUNT_STATEMENTS: [(&str, &str, &str); 2] = [
    (
        "shared_preload_libraries",
        "pg_stat_statements",
        "counts statements, so that every request's are proven",
    ),
    (
        "pg_stat_statements.save",
        "off",
        "the counts end with the cluster",
    ),
];

/// Name, value and reason.
pub const SETTINGS: [(&str, &str, &str); 18] = [
    (
        "listen_addresses",
        "127.0.0.1",
        "loopback only: nobody else on the network",
    ),
    (
        "unix_socket_directories",
        "",
        "none: lanes connect by TCP, as services do",
    ),
    (
        "max_connections",
        "300",
        "room for a pool of 256, the monitor and a person who looks on",
    ),
    (
        "shared_buffers",
        "256MB",
        "holds the whole shop, so that no read depends on the disk",
    ),
    ("fsync", "on", "honest writes: a commit waits for the disk"),
    (
        "synchronous_commit",
        "on",
        "honest writes: a commit waits for its log",
    ),
    (
        "full_page_writes",
        "on",
        "honest writes: the log as in production",
    ),
    (
        "wal_level",
        "minimal",
        "no replica: loading fresh tables skips the log",
    ),
    ("max_wal_senders", "0", "required by wal_level = minimal"),
    (
        "max_wal_size",
        "4GB",
        "no checkpoint for its size within a window",
    ),
    (
        "checkpoint_timeout",
        "1h",
        "no checkpoint for its age within a window",
    ),
    (
        "max_parallel_workers_per_gather",
        "0",
        "one statement is one process and one transaction: workers would be counted as more",
    ),
    (
        "autovacuum",
        "off",
        "none within a window: the seed and the harness vacuum themselves",
    ),
    (
        "jit",
        "off",
        "short statements: compiling one only adds a first slow answer",
    ),
    ("timezone", "UTC", "the same on every machine"),
    ("log_timezone", "UTC", "the same on every machine"),
    ("lc_messages", "C", "errors in English on every machine"),
    (
        "cluster_name",
        "lanebench",
        "shows in the process list whose cluster this is",
    ),
];

/// The text of postgresql.conf.
pub(crate) fn configuration(port: u16, count_statements: bool) -> String {
    let counting = if count_statements {
        &COUNT_STATEMENTS[..]
    } else {
        &[]
    };
    let mut text = format!("port = {port}\n");
    for (name, value, reason) in SETTINGS.iter().chain(counting) {
        text.push_str(&format!("{name} = '{value}'  # {reason}\n"));
    }
    text
}
