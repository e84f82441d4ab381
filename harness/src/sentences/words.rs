//! Ratios, intervals and lists as people say them.

use stats::Interval;

/// How far a ratio is from 1, without a sign.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{} %", digits(100.0 * (ratio - 1.0).abs()))
}

fn digits(percent: f64) -> String {
    if percent >= 9.95 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.1}")
    }
}

/// Of an interval that lies on one side of 1: the ends' distances from it, the smaller first.
pub(crate) fn unsigned(interval: Interval) -> String {
    let mut ends = [interval.low, interval.high].map(|end| 100.0 * (end - 1.0).abs());
    ends.sort_by(f64::total_cmp);
    format!("{} to {} %", digits(ends[0]), digits(ends[1]))
}

/// In the sense of the figure beside it where no difference at all is ruled out; with signs where it is not.
pub(crate) fn either(interval: Interval) -> String {
    if interval.contains(1.0) {
        signed(interval)
    } else {
        unsigned(interval)
    }
}

pub(crate) fn signed(interval: Interval) -> String {
    let end = |end: f64| {
        let percent = 100.0 * (end - 1.0);
        format!(
            "{}{}",
            if percent < 0.0 { "-" } else { "+" },
            digits(percent.abs())
        )
    };
    format!("{} to {} %", end(interval.low), end(interval.high))
}

pub(crate) fn listed<S: AsRef<str>>(items: &[S]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [firsts @ .., last] => format!("{} and {last}", firsts.join(", ")),
    }
}
