//! What a server takes for what it gives: CPU, threads and memory.

use stats::median;

use super::Contender;
use crate::checks;
use crate::metric::Metric;

/// Medians over a server's valid trials.
pub(super) struct Cost {
    cpu_microseconds: Option<f64>,
    threads: Option<f64>,
    memory_mib: Option<f64>,
}

impl Cost {
    fn of(contender: &Contender<'_>) -> Cost {
        let valid = || {
            let trials = contender.trials.iter();
            trials.filter(|trial| trial.verdict == checks::Verdict::Valid)
        };
        let windows = || valid().filter_map(|trial| trial.window.as_ref());
        let middle = |values: Vec<f64>| median(&values);
        Cost {
            cpu_microseconds: middle(
                windows()
                    .filter_map(|window| Metric::CpuPerRequest.of(window))
                    .collect(),
            ),
            threads: middle(
                windows()
                    .map(|window| window.server.threads as f64)
                    .collect(),
            ),
            memory_mib: middle(windows().map(|window| window.server.rss_mib()).collect()),
        }
    }

    pub(super) fn alone(contender: &Contender<'_>) -> String {
        let cost = Cost::of(contender);
        format!(
            "{} {} µs, {} threads, {} MiB",
            contender.label,
            figure(cost.cpu_microseconds),
            figure(cost.threads),
            figure(cost.memory_mib)
        )
    }

    pub(super) fn against(a: &Contender<'_>, b: &Contender<'_>) -> String {
        let (a, b) = (Cost::of(a), Cost::of(b));
        let item = |a: Option<f64>, b: Option<f64>, unit: &str| {
            let (a, b) = (figure(a), figure(b));
            if a == b {
                format!("{a} {unit} each")
            } else {
                format!("{a} {unit} against {b}")
            }
        };
        format!(
            "{}, {} and {}",
            item(
                a.cpu_microseconds,
                b.cpu_microseconds,
                "µs of CPU a request"
            ),
            item(a.threads, b.threads, "threads"),
            item(a.memory_mib, b.memory_mib, "MiB"),
        )
    }
}

/// Three digits are all that a sentence can bear.
fn figure(value: Option<f64>) -> String {
    match value {
        None => "?".to_owned(),
        Some(value) if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
    }
}
