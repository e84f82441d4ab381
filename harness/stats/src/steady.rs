//! Whether a trial's window shows one steady state, from a metric second by second.
//!
//! In the spirit of Barrett et al. 2017 (*Virtual Machine Warmup Blows Hot and Cold*): cut the series where its mean or
//! its variance changes, then ask which of the last pieces are alike. Smaller than theirs, and with limits of our own.

use crate::comparison::Better;
use crate::summary::median;

/// A piece is at least this long: a shorter one shows neither mean nor variance.
const LEAST_SEGMENT_SECONDS: usize = 5;

/// What a cut has to gain in `-2 ln(likelihood)`, in units of `ln n`. Set by simulation: of 300 flat series of 70 s none
/// was cut with independent noise, and 6 where each second's noise kept half of the last one's.
const PENALTY: f64 = 8.0;

/// A second this many robust standard deviations off the median of its neighbours is smoothed before cutting.
const ISOLATED: f64 = 5.0;

/// Pieces whose means differ by this share or less are alike, however quiet the machine.
const ALIKE_WITHIN: f64 = 0.02;

/// A standard deviation below this share of the series' median counts as this share.
const LEAST_DEVIATION: f64 = 0.001;

/// One piece of a series: the seconds `start..end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    pub start: usize,
    pub end: usize,
    pub mean: f64,
    pub deviation: f64,
}

/// What a series does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Alike from its first second to its last.
    Flat,
    /// It was worse before the steady state: the warm-up was too short.
    WarmUp,
    /// It was better before the steady state.
    SlowDown,
    /// The pieces alike at the end make up less than half of it.
    NotSteady,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SteadyState {
    /// All pieces, in order.
    pub segments: Vec<Segment>,
    /// The first second from which all pieces are like the last one.
    pub steady_from: usize,
    pub course: Course,
}

/// Cuts a series, one value a second, and names its course.
///
/// 1. An isolated second is replaced by the median of the five around it (Hampel 1974), for the cutting only: a single
///    stall is no change of state.
/// 2. The cut minimises the sum of the pieces' `n ln(variance)` plus `8 ln n` for each cut, over all cuts into pieces of
///    at least 5 s (optimal partitioning, Jackson et al. 2005; independent normal values around a mean and a variance of
///    their own in each piece).
/// 3. A piece is like the last one if their means differ by at most 2 %, or by the last one's standard deviation.
///
/// The time it takes grows with the square of the length. `None` for a series shorter than 10 s, or with a value that
/// is not finite.
pub fn steady_state(series: &[f64], better: Better) -> Option<SteadyState> {
    if series.len() < 2 * LEAST_SEGMENT_SECONDS || !series.iter().all(|value| value.is_finite()) {
        return None;
    }
    let smoothed = without_isolated(series)?;
    let least_variance = (LEAST_DEVIATION * median(&smoothed)?)
        .powi(2)
        .max(f64::MIN_POSITIVE);
    let moments = Moments::of(&smoothed);
    let segments: Vec<Segment> = cut(&moments, smoothed.len(), least_variance)
        .into_iter()
        .map(|(start, end)| Segment {
            start,
            end,
            mean: moments.mean(start, end),
            deviation: moments.variance(start, end).sqrt(),
        })
        .collect();
    let last = *segments.last()?;
    let tolerance = (ALIKE_WITHIN * last.mean.abs()).max(last.deviation);
    let alike = |segment: &Segment| (segment.mean - last.mean).abs() <= tolerance;
    let unlike = segments.iter().rposition(|segment| !alike(segment));
    let before = &segments[..unlike.map_or(0, |index| index + 1)];
    let steady_from = before.last().map_or(0, |segment| segment.end);
    let was_better = |segment: &Segment| match better {
        Better::Higher => segment.mean > last.mean,
        Better::Lower => segment.mean < last.mean,
    };
    let course = if 2 * steady_from > series.len() {
        Course::NotSteady
    } else if before.is_empty() {
        Course::Flat
    } else if before
        .iter()
        .any(|segment| !alike(segment) && was_better(segment))
    {
        Course::SlowDown
    } else {
        Course::WarmUp
    };
    Some(SteadyState {
        segments,
        steady_from,
        course,
    })
}

fn without_isolated(series: &[f64]) -> Option<Vec<f64>> {
    let around: Vec<f64> = (0..series.len())
        .map(|second| {
            let window = &series[second.saturating_sub(2)..(second + 3).min(series.len())];
            median(window)
        })
        .collect::<Option<_>>()?;
    let off: Vec<f64> = series
        .iter()
        .zip(&around)
        .map(|(value, median)| (value - median).abs())
        .collect();
    let limit = ISOLATED * median(&off)? / crate::outliers::NORMAL_MEDIAN_DEVIATION;
    let kept = |(index, value): (usize, &f64)| {
        if off[index] > limit {
            around[index]
        } else {
            *value
        }
    };
    Some(series.iter().enumerate().map(kept).collect())
}

/// Sums up to each second, about the mean of all: the moments of any piece without adding it up again.
struct Moments {
    centre: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    fn of(series: &[f64]) -> Moments {
        let centre = series.iter().sum::<f64>() / series.len() as f64;
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for value in series {
            sum += value - centre;
            square += (value - centre).powi(2);
            sums.push(sum);
            squares.push(square);
        }
        Moments {
            centre,
            sums,
            squares,
        }
    }

    fn mean(&self, start: usize, end: usize) -> f64 {
        self.centre + (self.sums[end] - self.sums[start]) / (end - start) as f64
    }

    fn variance(&self, start: usize, end: usize) -> f64 {
        let count = (end - start) as f64;
        let mean = (self.sums[end] - self.sums[start]) / count;
        let square = (self.squares[end] - self.squares[start]) / count;
        (square - mean * mean).max(0.0)
    }
}

/// The pieces, as starts and ends.
fn cut(moments: &Moments, length: usize, least_variance: f64) -> Vec<(usize, usize)> {
    let penalty = PENALTY * (length as f64).ln();
    // For each second: the least cost of everything before it, and where the piece that ends at it starts.
    let mut best = vec![(f64::INFINITY, 0); length + 1];
    best[0].0 = 0.0;
    for end in LEAST_SEGMENT_SECONDS..=length {
        for start in 0..=end - LEAST_SEGMENT_SECONDS {
            let variance = moments.variance(start, end).max(least_variance);
            let cost = best[start].0 + (end - start) as f64 * variance.ln() + penalty;
            if cost < best[end].0 {
                best[end] = (cost, start);
            }
        }
    }
    let mut pieces = Vec::new();
    let mut end = length;
    while end > 0 {
        let start = best[end].1;
        pieces.push((start, end));
        end = start;
    }
    pieces.reverse();
    pieces
}
