//! Figures of requests per second: over the concurrency, and beside what the database alone allows.

use stats::Mean;

use crate::campaign::Trial;
use crate::checks::Verdict;
use crate::figures::{figures, median_of};
use crate::metric::Metric;
use crate::report::figure::{Axis, Figure, Form, Scale, Series};
use crate::report::scene::{Scene, rungs};
use crate::theory;

/// Requests per second of a closed loop, every trial a point.
pub(crate) fn by_concurrency(scene: &Scene<'_>) -> Option<Figure> {
    if scene.closed.is_empty() {
        return None;
    }
    let mut series = Vec::new();
    for (index, (label, color)) in scene.servers.iter().enumerate() {
        let new = |form| Series::new(label, form, Some(*color));
        let mut line = new(Form::Line);
        let mut interval = new(Form::Interval);
        let mut points = new(Form::Points);
        let mut hollow = new(Form::Hollow);
        for (place, step) in scene.closed.iter().enumerate() {
            let Some(trials) = step.of(label) else {
                continue;
            };
            let x = place as f64 + scene.beside(index);
            if let Some(middle) = median_of(trials, Metric::Throughput) {
                line.point(x, middle);
            }
            if let Some((low, high)) = interval_of(trials) {
                interval.interval(x, low, high);
            }
            add_points(trials, x, &mut points, &mut hollow);
        }
        series.extend([line, interval, points, hollow]);
    }
    series.extend(bounds(scene));
    series.retain(|series| !series.points.is_empty());
    Some(Figure {
        id: format!("throughput-{}", scene.slug()),
        kind: "throughput",
        title: format!("{}: requests per second over connections", scene.name()),
        caption: "The line joins the medians over the blocks; each point is a trial, a hollow one does not count; the \
            bar is the 95 % interval of the geometric mean (Student's t), from two valid blocks on. Dashed: what theory \
            or pgbench, without HTTP and pool, allows."
            .to_owned(),
        x: Axis::new("connections", rungs(&scene.closed)),
        y: Axis::new("right answers per second", Scale::Linear),
        series,
        small: false,
        height: None,
    })
}

/// Of the geometric mean.
fn interval_of(trials: &[&Trial]) -> Option<(f64, f64)> {
    let rates = figures(trials, Metric::Throughput).into_iter();
    let logs: Vec<f64> = rates.map(|(_, rate)| rate.ln()).collect();
    let interval = Mean::of(&logs)?.interval_95();
    Some((interval.low.exp(), interval.high.exp()))
}

fn add_points(trials: &[&Trial], x: f64, points: &mut Series, hollow: &mut Series) {
    for trial in trials {
        let Some(window) = &trial.window else {
            continue;
        };
        let rate = window.requests_per_second;
        if trial.verdict == Verdict::Valid {
            points.remarked(x, rate, format!("block {}", trial.block + 1));
        } else {
            let remark = format!("block {}, {}", trial.block + 1, trial.verdict.name());
            hollow.remarked(x, rate, remark);
        }
    }
}

/// The ceiling by theory and pgbench, a line each.
fn bounds(scene: &Scene<'_>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (place, step) in scene.closed.iter().enumerate() {
        for bound in theory::bounds(scene.campaign, scene.workload(), step.rung, scene.class) {
            let Some(rate) = bound.requests_per_second else {
                continue;
            };
            // `pgbench, 8 conns` names the rung as well.
            let name = bound.label.split(',').next().unwrap_or_default();
            let found = series.iter().position(|of| of.name == name);
            let index = found.unwrap_or_else(|| {
                let mut line = Series::new(name, Form::Line, None);
                line.dashed = true;
                series.push(line);
                series.len() - 1
            });
            series[index].point(place as f64, rate);
        }
    }
    series
}

/// Each server's share of what the database alone allows; none where nothing says how much that is.
pub(crate) fn share_of_ceiling(scene: &Scene<'_>) -> Option<Figure> {
    let mut limits: Vec<(String, usize, f64)> = Vec::new();
    for (place, step) in scene.closed.iter().enumerate() {
        let bounds = theory::bounds(scene.campaign, scene.workload(), step.rung, scene.class);
        // Theory where there is one, else pgbench: the first.
        let bound = bounds.into_iter().next();
        limits
            .extend(bound.and_then(|bound| Some((bound.label, place, bound.requests_per_second?))));
    }
    let what = limits.first()?.0.split(',').next()?.to_owned();
    let mut series = Vec::new();
    for (label, color) in &scene.servers {
        let mut bars = Series::new(label, Form::Bars, Some(*color));
        for (_, place, limit) in &limits {
            let trials = scene.closed[*place].of(label);
            let middle = trials.and_then(|trials| median_of(trials, Metric::Throughput));
            if let Some(middle) = middle {
                bars.point(*place as f64, 100.0 * middle / limit);
            }
        }
        series.push(bars);
    }
    series.retain(|series| !series.points.is_empty());
    let meaning = match what.as_str() {
        "ceiling" => "pool / delay, or connections / delay where those are fewer",
        _ => {
            "what pgbench reached on the same statement, CPUs and connections, without HTTP and pool"
        }
    };
    Some(Figure {
        id: format!("ceiling-{}", scene.slug()),
        kind: "ceiling",
        title: format!("{}: share of the ceiling", scene.name()),
        caption: format!("Median throughput as a share of {meaning}."),
        x: Axis::new("connections", rungs(&scene.closed)),
        y: Axis::new("% of the ceiling", Scale::Linear),
        series,
        small: true,
        height: None,
    })
}
