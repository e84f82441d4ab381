//! Figures of latency: percentiles at each rung, and percentiles over the offered rate.

use std::collections::BTreeMap;

use stats::median;

use crate::campaign::{Percentile, Trial, Window};
use crate::checks::{Code, tripped};
use crate::figures::{median_of, windows};
use crate::metric::Metric;
use crate::report::figure::{Axis, Figure, Form, Scale, Series};
use crate::report::scene::{Scene, Step, rungs};
use crate::theory;

/// Where p99 exceeds that of the lowest rate so many times, the knee is passed.
const KNEE: f64 = 3.0;

/// One for each rung: response and service time of every server by share of the requests.
pub(crate) fn percentiles(scene: &Scene<'_>) -> Vec<Figure> {
    let steps = scene.steps().enumerate();
    steps
        .filter_map(|(place, step)| percentiles_at(scene, place, step))
        .collect()
}

fn percentiles_at(scene: &Scene<'_>, place: usize, step: &Step<'_>) -> Option<Figure> {
    let mut series = Vec::new();
    for (label, color) in &scene.servers {
        let Some(trials) = step.of(label) else {
            continue;
        };
        let response = curve(trials, |window| &window.response_percentiles);
        let service = curve(trials, |window| &window.service_percentiles);
        for (points, dashed) in [(response, false), (service, true)] {
            let mut line = Series::new(label, Form::Line, Some(*color));
            line.dashed = dashed;
            for (share, milliseconds) in points {
                line.point(1.0 / (1.0 - share), milliseconds);
            }
            series.push(line);
        }
    }
    series.retain(|series| !series.points.is_empty());
    (!series.is_empty()).then(|| Figure {
        id: format!("percentiles-{}-{}", scene.slug(), place + 1),
        kind: "percentiles",
        title: format!("{} at {}: latency by percentile", scene.name(), step.rung),
        caption: String::new(),
        x: Axis::new("share of the requests", Scale::Shares),
        y: Axis::new("ms", Scale::Log),
        series,
        small: true,
        height: None,
    })
}

/// Share and milliseconds: the median over the windows at each share that all of them have, so that it never falls.
fn curve(trials: &[&Trial], of: fn(&Window) -> &Vec<Percentile>) -> Vec<(f64, f64)> {
    let windows = windows(trials);
    let mut by_share: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for percentile in windows.iter().flat_map(|window| of(window)) {
        // The greatest time of all has no place on an axis that ends before 100 %.
        if percentile.share < 1.0 {
            let times = by_share.entry(percentile.share.to_bits()).or_default();
            times.push(percentile.ns as f64 / 1e6);
        }
    }
    let points = by_share.into_iter();
    points
        .filter(|(_, times)| times.len() == windows.len())
        .filter_map(|(share, times)| Some((f64::from_bits(share), median(&times)?)))
        .collect()
}

/// p50 and p99 over the offered rate, with the knee and where a server no longer held the rate.
pub(crate) fn by_rate(scene: &Scene<'_>) -> Option<Figure> {
    if scene.open.is_empty() {
        return None;
    }
    let mut series = Vec::new();
    let mut knees = Vec::new();
    for (index, (label, color)) in scene.servers.iter().enumerate() {
        let new = |form| Series::new(label, form, Some(*color));
        let (mut p99, mut p50, mut lost) = (new(Form::Line), new(Form::Line), new(Form::Hollow));
        p50.dashed = true;
        for (place, step) in scene.open.iter().enumerate() {
            let Some(trials) = step.of(label) else {
                continue;
            };
            let x = place as f64 + scene.beside(index);
            if let Some(middle) = median_of(trials, Metric::P50) {
                p50.point(x, middle);
            }
            if let Some(middle) = median_of(trials, Metric::P99) {
                p99.point(x, middle);
            }
            if let Some((blocks, slowest)) = not_held(trials) {
                let remark = format!("the rate was not held in {blocks} block(s)");
                lost.remarked(x, slowest, remark);
            }
        }
        knees.extend(knee(scene, &p99).map(|rate| format!("{label} {rate}")));
        series.extend([p99, p50, lost]);
    }
    series.extend(expected(scene));
    series.retain(|series| !series.points.is_empty());
    let knees = match knees.is_empty() {
        true => "No server has one here.".to_owned(),
        false => format!("It is at {}.", knees.join(", ")),
    };
    Some(Figure {
        id: format!("rate-{}", scene.slug()),
        kind: "rate",
        title: format!("{}: response time over the offered rate", scene.name()),
        caption: format!(
            "Whole lines: p99, dashed: p50, medians over the valid blocks. A hollow mark: a rate that the server did not \
             hold. The knee is the last rate before p99 exceeds {KNEE} times that of the lowest rate. {knees}"
        ),
        x: Axis::new("offered requests per second", rungs(&scene.open)),
        y: Axis::new("response time, ms", Scale::Log),
        series,
        small: false,
        height: None,
    })
}

/// In how many blocks, and the greatest p99 of those in ms.
fn not_held(trials: &[&Trial]) -> Option<(usize, f64)> {
    let lost = trials.iter().filter(|trial| {
        let mut checks = trial.checks.iter();
        checks.any(|check| check.code == Code::Rate && tripped(check))
    });
    let p99: Vec<f64> = lost
        .filter_map(|trial| trial.window.as_ref())
        .map(|window| window.response_ns.p99 as f64 / 1e6)
        .collect();
    let greatest = p99.iter().copied().reduce(f64::max)?;
    Some((p99.len(), greatest))
}

/// The rate, in words. The ladder is in the order in which it was asked for.
fn knee(scene: &Scene<'_>, p99: &Series) -> Option<String> {
    let mut steps: Vec<(f64, &Step<'_>, f64)> = p99
        .points
        .iter()
        .filter_map(|point| {
            let step = scene.open.get(point[0].round() as usize)?;
            let crate::rung::Rung::Open { rate, .. } = step.rung else {
                return None;
            };
            Some((rate, step, point[1]))
        })
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = steps.first()?.2;
    let beyond = steps.iter().position(|(.., p99)| *p99 > KNEE * lowest)?;
    let before = beyond.checked_sub(1)?;
    Some(format!("{}", steps[before].1.rung))
}

/// What a queue in front of the pool is expected to do, where theory has an answer.
fn expected(scene: &Scene<'_>) -> Vec<Series> {
    let mut p99 = Series::new("queueing theory", Form::Line, None);
    let mut p50 = Series {
        dashed: true,
        ..p99.clone()
    };
    for (place, step) in scene.open.iter().enumerate() {
        for bound in theory::bounds(scene.campaign, scene.workload(), step.rung, scene.class) {
            if let Some([middle, high, _]) = bound.response_ms {
                p50.point(place as f64, middle);
                p99.point(place as f64, high);
            }
        }
    }
    vec![p99, p50]
}
