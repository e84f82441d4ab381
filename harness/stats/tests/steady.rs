//! The course of simulated windows: 70 seconds around 1,000 requests a second, with 2 % noise.

mod support;

use stats::{Better, Course, SteadyState, steady_state};
use support::Noise;

fn noisy(level: impl Fn(usize) -> f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise::seeded(seed);
    (0..70)
        .map(|second| 1_000.0 * (level(second) + noise.normal(0.02)))
        .collect()
}

/// In how many of 50 windows the course is `course`.
fn times(course: Course, level: impl Fn(usize) -> f64) -> usize {
    (0..50)
        .filter(|&seed| {
            let window = steady_state(&noisy(&level, seed), Better::Higher);
            window.is_some_and(|window| window.course == course)
        })
        .count()
}

fn steady(series: &[f64], better: Better) -> SteadyState {
    steady_state(series, better).expect("70 finite seconds")
}

#[test]
fn a_level_window_is_flat() {
    assert_eq!(times(Course::Flat, |_| 1.0), 50);
}

#[test]
fn a_slow_start_is_a_warm_up_that_ends_where_it_ends() {
    let level = |second: usize| if second < 6 { 0.85 } else { 1.0 };
    assert_eq!(times(Course::WarmUp, level), 50);
    assert_eq!(steady(&noisy(level, 1), Better::Higher).steady_from, 6);
    let gradual = |second: usize| 1.0 - 0.3 * (-(second as f64) / 5.0).exp();
    assert!(times(Course::WarmUp, gradual) >= 48);
}

#[test]
fn a_fast_start_is_a_slowdown() {
    let level = |second: usize| if second < 20 { 1.10 } else { 1.0 };
    assert_eq!(times(Course::SlowDown, level), 50);
}

#[test]
fn what_is_better_decides_between_warm_up_and_slowdown() {
    let response_ms: Vec<f64> = noisy(|second| if second < 20 { 1.10 } else { 1.0 }, 1);
    assert_eq!(steady(&response_ms, Better::Lower).course, Course::WarmUp);
}

#[test]
fn a_window_that_changes_late_or_throughout_is_not_steady() {
    let late = |second: usize| if second < 50 { 1.0 } else { 0.8 };
    assert_eq!(times(Course::NotSteady, late), 50);
    let throughout = |second: usize| 1.0 - 0.4 * second as f64 / 70.0;
    assert_eq!(times(Course::NotSteady, throughout), 50);
}

#[test]
fn a_change_too_small_to_matter_leaves_the_window_flat() {
    assert_eq!(
        times(Course::Flat, |second| if second < 30 { 1.015 } else { 1.0 }),
        50
    );
}

#[test]
fn a_single_stall_is_no_change_of_state() {
    let mut series = noisy(|_| 1.0, 1);
    series[33] = 0.0;
    assert_eq!(steady(&series, Better::Higher).course, Course::Flat);
}

#[test]
fn segments_cover_the_series_without_gaps() {
    let window = steady(&noisy(|second| (second / 20) as f64, 1), Better::Higher);
    assert_eq!(window.segments[0].start, 0);
    assert_eq!(window.segments.last().map(|last| last.end), Some(70));
    assert!(
        window
            .segments
            .windows(2)
            .all(|pair| pair[0].end == pair[1].start)
    );
    assert_eq!(window.segments.len(), 4);
}

#[test]
fn a_series_without_any_noise_is_no_trouble() {
    assert_eq!(steady(&[1_000.0; 70], Better::Higher).course, Course::Flat);
    assert_eq!(steady(&[0.0; 70], Better::Higher).course, Course::Flat);
    let mut step = [1_000.0; 70];
    step[..10].fill(500.0);
    let window = steady(&step, Better::Higher);
    assert_eq!((window.course, window.steady_from), (Course::WarmUp, 10));
}

#[test]
fn too_short_a_series_and_one_that_is_not_finite_are_refused() {
    assert_eq!(steady_state(&[1.0; 9], Better::Higher), None);
    assert_eq!(steady_state(&[f64::NAN; 70], Better::Higher), None);
}
