//! `live.json`, and the table of it.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::campaign::{DatabaseRecord, ServerRecord};
use crate::cpus::CpuPlan;
use crate::environment::Environment;
use crate::process::{Profile, Usage};
use crate::table::label;

/// Raised whenever a reader of the previous version would misread the file.
pub(super) const SCHEMA: u32 = 1;

const HEADER: [&str; 11] = [
    "server",
    "subscribers",
    "delivered",
    "p50 ms",
    "p99 ms",
    "max ms",
    "CPU us/delivery",
    "threads",
    "RSS MiB",
    "KiB/subscriber",
    "result",
];

/// `live.json`: everything that was seen.
#[derive(Debug, Serialize)]
pub(super) struct LiveRecord {
    pub(super) schema: u32,
    pub(super) lanebench: String,
    /// UTC, RFC 3339.
    pub(super) started_at: String,
    pub(super) command: Vec<String>,
    pub(super) workload: String,
    pub(super) channel: String,
    pub(super) cpus: CpuPlan,
    pub(super) environment: Environment,
    pub(super) database: DatabaseRecord,
    pub(super) servers: Vec<ServerRecord>,
    pub(super) rows: Vec<Row>,
}

/// One server with one number of subscribers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Row {
    Measured(Measured),
    /// It was not measured; `reason` says why.
    NotSupported(Unmeasured),
    /// It could not be measured, for a failure of its own.
    Failed(Unmeasured),
}

#[derive(Debug, Serialize)]
pub(super) struct Unmeasured {
    pub(super) server: String,
    pub(super) profile: Profile,
    pub(super) subscribers: usize,
    pub(super) reason: String,
}

/// A delivery is one event at one subscriber. Its latency counts from just before the event is sent until its last byte
/// has been read.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(super) server: String,
    pub(super) profile: Profile,
    /// `--threads` of the server, if it was given one.
    pub(super) threads_given: Option<usize>,
    pub(super) subscribers: usize,
    pub(super) events: usize,
    pub(super) events_per_second: f64,
    /// Deliveries.
    pub(crate) expected: usize,
    /// Those that came in order, once, and as they were sent.
    pub(crate) delivered: usize,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    pub(super) cpu_us_per_delivery: Option<f64>,
    /// Of the server without a subscriber.
    pub(super) alone: Footprint,
    /// With all of them, before the first event.
    pub(super) idle: Footprint,
    /// After the last event.
    pub(super) loaded: Footprint,
    /// How long it took to end with all subscribers connected.
    pub(super) stop_ms: f64,
    /// What a subscriber missed, or got that it should not have.
    pub(crate) fault: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Footprint {
    rss_bytes: u64,
    threads: u64,
}

impl Footprint {
    pub(super) fn of(usage: &Usage) -> Footprint {
        Footprint {
            rss_bytes: usage.rss_bytes,
            threads: usage.threads,
        }
    }
}

impl Row {
    pub(super) fn is_failed(&self) -> bool {
        match self {
            Row::Measured(measured) => measured.fault.is_some(),
            Row::NotSupported(_) => false,
            Row::Failed(_) => true,
        }
    }

    /// In a few words, after what it is about.
    pub(super) fn summary(&self) -> String {
        let result = self.result();
        match self {
            Row::Measured(measured) => format!(
                "{} of {} delivered, p99 {} ms, {result}",
                measured.delivered,
                measured.expected,
                milliseconds(measured.p99_ms)
            ),
            Row::NotSupported(_) | Row::Failed(_) => result,
        }
    }

    fn result(&self) -> String {
        match self {
            Row::Measured(measured) => match &measured.fault {
                None => "ok".to_owned(),
                Some(fault) => format!("FAILED: {fault}"),
            },
            Row::NotSupported(Unmeasured { reason, .. }) => format!("not supported: {reason}"),
            Row::Failed(Unmeasured { reason, .. }) => format!("FAILED: {reason}"),
        }
    }

    fn cells(&self) -> [String; HEADER.len()] {
        let dash = || String::from("-");
        match self {
            Row::Measured(measured) => measured.cells(self.result()),
            Row::NotSupported(unmeasured) | Row::Failed(unmeasured) => [
                label(&unmeasured.server, unmeasured.profile),
                unmeasured.subscribers.to_string(),
                dash(),
                dash(),
                dash(),
                dash(),
                dash(),
                dash(),
                dash(),
                dash(),
                self.result(),
            ],
        }
    }
}

impl Measured {
    fn cells(&self, result: String) -> [String; HEADER.len()] {
        let mebibytes = |footprint: Footprint| footprint.rss_bytes as f64 / 1024.0 / 1024.0;
        let grown = self.idle.rss_bytes as f64 - self.alone.rss_bytes as f64;
        [
            label(&self.server, self.profile),
            self.subscribers.to_string(),
            format!("{} of {}", self.delivered, self.expected),
            milliseconds(self.p50_ms),
            milliseconds(self.p99_ms),
            milliseconds(self.max_ms),
            self.cpu_us_per_delivery
                .map_or("-".to_owned(), |cpu| format!("{cpu:.1}")),
            self.idle.threads.to_string(),
            format!(
                "{:.1} -> {:.1}",
                mebibytes(self.idle),
                mebibytes(self.loaded)
            ),
            format!("{:.1}", grown / 1024.0 / self.subscribers as f64),
            result,
        ]
    }
}

/// All rows, with what their columns are.
pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for row in rows {
        table.add_row(row.cells());
    }
    for column in table.column_iter_mut().skip(1).take(HEADER.len() - 2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}\n\nA delivery is an event at a subscriber; its latency counts from just before NOTIFY until its last byte is \
         read.\nThreads and the first RSS are those before the first event, with all subscribers connected; the second RSS is \
         that after the last event.\nKiB/subscriber is what the RSS grew by while they connected: a server that has its \
         threads beforehand has their memory in neither.\n",
        table.trim_fmt()
    )
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_was_measured_and_why_the_rest_was_not() {
        let footprint = |mebibytes: u64, threads| Footprint {
            rss_bytes: mebibytes << 20,
            threads,
        };
        let measured = Measured {
            server: "deadpool".to_owned(),
            profile: Profile::Parity,
            threads_given: None,
            subscribers: 1024,
            events: 100,
            events_per_second: 50.0,
            expected: 102_400,
            delivered: 102_399,
            p50_ms: Some(1.25),
            p99_ms: Some(9.5),
            max_ms: None,
            cpu_us_per_delivery: Some(4.26),
            alone: footprint(8, 3),
            idle: footprint(24, 3),
            loaded: footprint(25, 3),
            stop_ms: 12.0,
            fault: Some("1 of 1024 subscribers: event 7 came twice".to_owned()),
        };
        let skipped = Row::NotSupported(Unmeasured {
            server: "sequential".to_owned(),
            profile: Profile::Parity,
            subscribers: 100,
            reason: "one thread".to_owned(),
        });
        assert!(!skipped.is_failed());
        let rows = [Row::Measured(measured), skipped];
        assert!(rows[0].is_failed());
        let text = text(&rows);
        for expected in [
            "102399 of 102400",
            "1.25",
            "9.50",
            "4.3",
            "24.0 -> 25.0",
            "16.0",
            "FAILED: 1 of 1024 subscribers: event 7 came twice",
            "not supported: one thread",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
