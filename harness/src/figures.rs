//! What the trials of one server at one rung give together.

use stats::{log_ratio, median};

use crate::campaign::{Trial, Window};
use crate::checks::Verdict;
use crate::metric::Metric;

/// Of the trials that have one.
pub fn windows<'t>(trials: &[&'t Trial]) -> Vec<&'t Window> {
    let windows = trials.iter().filter_map(|trial| trial.window.as_ref());
    windows.collect()
}

/// The median of a figure that all of them have.
pub fn median_over(windows: &[&Window], of: fn(&Window) -> Option<f64>) -> Option<f64> {
    let figures: Option<Vec<f64>> = windows.iter().map(|window| of(window)).collect();
    median(&figures?)
}

/// A metric of each valid trial, with its block.
pub fn figures(trials: &[&Trial], metric: Metric) -> Vec<(usize, f64)> {
    let of = |trial: &&Trial| {
        let usable = trial.verdict == Verdict::Valid;
        let window = trial.window.as_ref().filter(|_| usable)?;
        Some((trial.block, metric.of(window)?))
    };
    trials.iter().filter_map(of).collect()
}

/// The median of a metric over the valid trials that have it.
pub fn median_of(trials: &[&Trial], metric: Metric) -> Option<f64> {
    let figures = figures(trials, metric).into_iter();
    median(&figures.map(|(_, figure)| figure).collect::<Vec<_>>())
}

/// `ln(a / b)` of each block in which both were measured and are no reason to doubt.
pub fn log_ratios(a: &[&Trial], b: &[&Trial], metric: Metric) -> Vec<f64> {
    let of_b = figures(b, metric);
    let ratio = |(block, a): (usize, f64)| {
        let (_, b) = of_b.iter().find(|(of, _)| *of == block)?;
        log_ratio(a, *b)
    };
    figures(a, metric).into_iter().filter_map(ratio).collect()
}
