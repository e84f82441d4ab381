//! The summary for people: verdict, counts, percentiles side by side, and a histogram.

use std::fmt::Write;
use std::time::Duration;

use load::{Arrivals, Bound, Check, End, Histogram, Outcome, Pacing, Plan, Verdict};
use stats::{Firmness, firmness};

/// Most rows of the histogram.
const ROWS: usize = 12;
/// Longest bar of the histogram.
const BAR: u64 = 50;

/// All of it, ending with a line feed.
pub(super) fn of(url: &str, plan: &Plan, outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{url}\n{}\n", describe(plan, outcome));
    for line in verdict_lines(outcome) {
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "\n{}\n{}", counts(plan, outcome), latencies(outcome));
    let bars = bars(&outcome.response);
    if !bars.is_empty() {
        let _ = write!(text, "\nresponse time of correct answers\n{bars}");
    }
    text
}

fn describe(plan: &Plan, outcome: &Outcome) -> String {
    let pacing = match plan.pacing {
        Pacing::Closed { think } if think.is_zero() => "closed loop".to_owned(),
        Pacing::Closed { think } => format!("closed loop, {think:?} think time"),
        Pacing::Open {
            rate,
            arrivals: Arrivals::Uniform,
        } => format!("open loop, {rate}/s"),
        Pacing::Open {
            rate,
            arrivals: Arrivals::Poisson { seed },
        } => {
            format!("open loop, {rate}/s, Poisson with seed {seed}")
        }
    };
    let warmup = match plan.end {
        End::Timed { warmup, .. } => warmup,
        End::EachOnce { .. } => Duration::ZERO,
    };
    let interrupted = if outcome.interrupted {
        ", interrupted"
    } else {
        ""
    };
    format!(
        "{pacing}, {} connections, {:.1} s after {:.1} s of warm-up{interrupted}",
        plan.connections,
        outcome.window.as_secs_f64(),
        warmup.as_secs_f64()
    )
}

fn verdict_lines(outcome: &Outcome) -> Vec<String> {
    let meaning = match outcome.verdict {
        Verdict::Valid => "the figures describe the server at this load",
        Verdict::ServerLimited => "the server did not keep up with this rate",
        Verdict::GeneratorLimited => {
            "the generator was the limit or was disturbed; the figures do not describe the server"
        }
    };
    let mut lines = vec![format!("{}: {meaning}", outcome.verdict)];
    lines.extend(outcome.checks.iter().filter_map(reason));
    lines
}

/// Why a check is not passed; nothing if it is.
fn reason(check: &Check) -> Option<String> {
    let relation = match check.bound {
        Bound::AtMost => "at most",
        Bound::AtLeast => "at least",
    };
    match (check.passed(), check.value) {
        (Some(false), Some(value)) => Some(format!(
            "  {}: {value:.4}, should be {relation} {}",
            check.name, check.limit
        )),
        (Some(true), _) => None,
        (_, _) => Some(format!("  {}: not observed", check.name)),
    }
}

fn counts(plan: &Plan, outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let connections = &outcome.connections;
    let offered = match plan.pacing {
        Pacing::Open { .. } => format!(" of {} /s offered", decimal(offered(outcome))),
        // A closed loop offers what it gets.
        Pacing::Closed { .. } => String::new(),
    };
    let mut text = format!(
        "requests     {} scheduled = {} correct + {} wrong + {} http error + {} shed\n\
         {:12} + {} timeout + {} transport + {} unsent + {} unfinished\n\
         rate         {} /s achieved{offered}\n\
         connections  {} asked, {} established, {} served, {} reopened",
        thousands(counts.scheduled),
        thousands(counts.correct),
        thousands(counts.wrong),
        thousands(counts.http_error),
        thousands(counts.shed),
        "",
        thousands(counts.timeout),
        thousands(counts.transport),
        thousands(counts.unsent),
        thousands(counts.unfinished),
        decimal(outcome.achieved_rate()),
        connections.asked,
        connections.established,
        connections.served,
        connections.reopened,
    );
    let connect = &outcome.connect;
    if !connect.is_empty() {
        let (median, worst) = (connect.value_at_quantile(0.5), connect.max());
        let _ = write!(
            text,
            "; connecting took {}, at most {} ms",
            milliseconds(median),
            milliseconds(worst)
        );
    }
    text.push('\n');
    for (kind, count) in &outcome.errors {
        let _ = writeln!(text, "error        {} x {kind}", thousands(*count));
    }
    for failure in outcome.failures.iter().take(1) {
        let got = String::from_utf8_lossy(&failure.got).into_owned();
        let _ = writeln!(
            text,
            "for example  {}; expected {}; got {got:?}",
            failure.kind, failure.expected
        );
    }
    text
}

/// Requests that were due per second of the window.
pub(super) fn offered(outcome: &Outcome) -> f64 {
    let seconds = outcome.window.as_secs_f64();
    if seconds > 0.0 {
        outcome.counts.scheduled as f64 / seconds
    } else {
        0.0
    }
}

fn latencies(outcome: &Outcome) -> String {
    let bounded = !outcome.censored.is_empty();
    let response = outcome.response_with_bounds();
    let columns = [
        ("response", &response),
        ("service", &outcome.service),
        ("wait", &outcome.wait),
        ("lag", &outcome.lag),
    ];
    let mut text = format!("{:12}", "ms");
    for (name, _) in columns {
        let _ = write!(text, "{name:>14}");
    }
    text.push('\n');
    for (label, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        row(
            &mut text,
            label,
            columns.map(|(_, histogram)| quantile(histogram, share)),
            bounded,
        );
    }
    let max = |histogram: &Histogram<u64>| present(histogram, || milliseconds(histogram.max()));
    row(
        &mut text,
        "max",
        columns.map(|(_, histogram)| max(histogram)),
        bounded,
    );
    let mean =
        |histogram: &Histogram<u64>| present(histogram, || milliseconds(histogram.mean() as u64));
    row(
        &mut text,
        "mean",
        columns.map(|(_, histogram)| mean(histogram)),
        bounded,
    );
    let _ = writeln!(
        text,
        "\nresponse: from when a request was due; service: from when it was sent; wait: for a free connection;\n\
         lag: lateness of the generator itself. ~ rests on fewer than 100 requests beyond it, - on fewer than 10."
    );
    if bounded {
        let _ = writeln!(
            text,
            ">= {} requests without an answer are in the response times with the time they had waited.",
            thousands(outcome.censored.len())
        );
    }
    text
}

fn row(text: &mut String, label: &str, cells: [String; 4], bounded: bool) {
    let _ = write!(text, "  {label:10}");
    for (column, cell) in cells.into_iter().enumerate() {
        let mark = if bounded && column == 0 && cell != "-" {
            ">= "
        } else {
            ""
        };
        let _ = write!(text, "{:>14}", format!("{mark}{cell}"));
    }
    text.push('\n');
}

fn present(histogram: &Histogram<u64>, cell: impl Fn() -> String) -> String {
    if histogram.is_empty() {
        "-".to_owned()
    } else {
        cell()
    }
}

fn quantile(histogram: &Histogram<u64>, share: f64) -> String {
    let value = || milliseconds(histogram.value_at_quantile(share));
    match firmness(share, histogram.len()) {
        Firmness::Firm => value(),
        Firmness::Tentative => format!("~{}", value()),
        Firmness::Absent => "-".to_owned(),
    }
}

/// Rows of equal width on a logarithmic scale.
fn bars(histogram: &Histogram<u64>) -> String {
    if histogram.is_empty() {
        return String::new();
    }
    let (low, high) = (histogram.min().max(1), histogram.max().max(2));
    let step = (high as f64 / low as f64)
        .powf(1.0 / ROWS as f64)
        .max(1.000_001);
    let edge = |row: usize| (low as f64 * step.powi(row as i32)) as u64;
    let mut rows = Vec::with_capacity(ROWS);
    for row in 0..ROWS {
        let from = if row == 0 { 0 } else { edge(row) };
        let to = if row + 1 == ROWS {
            u64::MAX
        } else {
            edge(row + 1)
        };
        let below = |edge: u64| {
            let values = histogram
                .iter_recorded()
                .take_while(|value| value.value_iterated_to() < edge);
            values
                .map(|value| value.count_since_last_iteration())
                .sum::<u64>()
        };
        rows.push((edge(row), edge(row + 1).min(high), below(to) - below(from)));
    }
    let most = rows
        .iter()
        .map(|&(_, _, count)| count)
        .max()
        .unwrap_or(1)
        .max(1);
    let mut text = String::new();
    for (from, to, count) in rows {
        // At least one mark where there is anything.
        let length = (count * BAR).div_ceil(most) as usize;
        let range = format!("{} - {} ms", milliseconds(from), milliseconds(to));
        let _ = writeln!(
            text,
            "  {range:>24} |{:<50} {}",
            "#".repeat(length),
            thousands(count)
        );
    }
    text
}

fn milliseconds(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds as f64 / 1e6;
    // Three decimals are a microsecond, which lag is often below.
    if milliseconds < 0.1 {
        format!("{milliseconds:.4}")
    } else {
        format!("{milliseconds:.3}")
    }
}

fn decimal(value: f64) -> String {
    format!(
        "{}.{}",
        thousands(value as u64),
        (value.fract() * 10.0) as u64
    )
}

/// `1234567` as `1,234,567`.
fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(decimal(9_999.96), "9,999.9");
    }

    #[test]
    fn percentiles_that_rest_on_too_little_are_marked_or_left_out() {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(5_000_000, 1_000).unwrap();
        assert_eq!(quantile(&histogram, 0.5), "5.001");
        assert_eq!(quantile(&histogram, 0.99), "~5.001");
        assert_eq!(quantile(&histogram, 0.999), "-");
    }

    #[test]
    fn the_bars_hold_every_answer_once() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in [1_000_000, 1_100_000, 2_000_000, 9_000_000, 1_000_000_000] {
            histogram.record_n(value, 7).unwrap();
        }
        let bars = bars(&histogram);
        let counts = bars
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(counts.sum::<u64>(), 35, "{bars}");
        assert_eq!(bars.lines().count(), ROWS);
        assert!(bars.lines().next().unwrap().contains("##"), "{bars}");
    }
}
