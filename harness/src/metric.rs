//! The figures that servers are compared by.

use serde::{Deserialize, Serialize};
use stats::{Better, Firmness, firmness};

use crate::campaign::Window;
use crate::rung::Rung;

/// A figure of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Throughput,
    P50,
    P90,
    P99,
    #[serde(rename = "p99.9")]
    P999,
    CpuPerRequest,
}

impl Metric {
    pub const ALL: [Metric; 6] = [
        Metric::Throughput,
        Metric::P50,
        Metric::P90,
        Metric::P99,
        Metric::P999,
        Metric::CpuPerRequest,
    ];

    /// The one that is named beforehand: how much in a closed loop, how late in an open one.
    pub fn primary(rung: Rung) -> Metric {
        if rung.is_open() {
            Metric::P99
        } else {
            Metric::Throughput
        }
    }

    /// The others. In an open loop the throughput is given, not measured.
    pub fn secondary(rung: Rung) -> &'static [Metric] {
        if rung.is_open() {
            &[
                Metric::P50,
                Metric::P90,
                Metric::P999,
                Metric::CpuPerRequest,
            ]
        } else {
            &[
                Metric::P50,
                Metric::P90,
                Metric::P99,
                Metric::P999,
                Metric::CpuPerRequest,
            ]
        }
    }

    pub fn better(self) -> Better {
        match self {
            Metric::Throughput => Better::Higher,
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 | Metric::CpuPerRequest => {
                Better::Lower
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "requests per second",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::CpuPerRequest => "CPU per request",
        }
    }

    /// Of its figures.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Throughput => "requests/s",
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => "ms",
            Metric::CpuPerRequest => "µs",
        }
    }

    /// A figure with its unit.
    pub fn show(self, figure: f64) -> String {
        match self {
            Metric::Throughput => format!("{figure:.0}/s"),
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => format!("{figure:.3} ms"),
            Metric::CpuPerRequest => format!("{figure:.1} µs"),
        }
    }

    /// Per second, milliseconds, or microseconds of CPU. `None` where too few requests lie beyond a percentile, or
    /// nothing was measured.
    pub fn of(self, window: &Window) -> Option<f64> {
        let percentile = |quantile, ns: u64| {
            let enough = firmness(quantile, window.counts.correct) != Firmness::Absent;
            enough.then_some(ns as f64 / 1e6)
        };
        let figure = match self {
            Metric::Throughput => Some(window.requests_per_second),
            Metric::P50 => percentile(0.50, window.response_ns.p50),
            Metric::P90 => percentile(0.90, window.response_ns.p90),
            Metric::P99 => percentile(0.99, window.response_ns.p99),
            Metric::P999 => percentile(0.999, window.response_ns.p99_9),
            Metric::CpuPerRequest => window.cpu_us_each(),
        };
        figure.filter(|figure| *figure > 0.0)
    }
}
