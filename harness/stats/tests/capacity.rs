//! The search for a capacity, on servers whose capacity is known.

use std::convert::Infallible;

use stats::{
    Capacity, CapacitySearch, FixedService, Miss, RateOutcome, SearchedRates, nearest_rank,
};

const LIMIT_SECONDS: f64 = 0.025;

const RATES: SearchedRates = SearchedRates {
    least: 10.0,
    start: 100.0,
    greatest: 100_000.0,
};

fn good(percentile_seconds: f64) -> RateOutcome {
    RateOutcome {
        percentile_seconds: Some(percentile_seconds),
        errors: 0,
        completed_share: 1.0,
        backlog_grew: false,
    }
}

/// Runs a search on a server that is told the rate and the number of the trial, from 1 on.
fn searched(
    limit_seconds: f64,
    confirmations: usize,
    mut server: impl FnMut(f64, u64) -> RateOutcome,
) -> Capacity {
    let search = CapacitySearch::new(limit_seconds, RATES, confirmations).expect("a sound search");
    let mut trials = 0;
    let Ok(capacity) = search.run(|rate| {
        trials += 1;
        Ok::<_, Infallible>(server(rate, trials))
    });
    capacity
}

/// The ends, as (highest pass, lowest fail, why it fails).
fn ends(capacity: &Capacity) -> (Option<f64>, Option<f64>, Option<Miss>) {
    let fail = capacity.lowest_fail.as_ref();
    (
        capacity.highest_pass.as_ref().map(|pass| pass.rate),
        fail.map(|fail| fail.rate),
        fail.and_then(|fail| fail.miss),
    )
}

/// Fast up to a rate, and a `miss` beyond it.
fn fast_up_to(greatest_rate: f64, miss: RateOutcome) -> impl Fn(f64, u64) -> RateOutcome {
    move |rate, _| {
        if rate <= greatest_rate {
            good(0.010)
        } else {
            miss
        }
    }
}

/// A trial of 16 connections held for 10 ms each, with requests arriving at random: 15 s of warm-up, a window of 140 s.
fn pool_trial(rate: f64, seed: u64) -> RateOutcome {
    let pool = FixedService {
        servers: 16,
        service_seconds: 0.010,
    };
    let (warm_up, window) = ((15.0 * rate) as usize, (140.0 * rate) as usize);
    let mut times = pool
        .response_seconds(rate, warm_up + window, seed)
        .split_off(warm_up);
    times.sort_unstable_by(f64::total_cmp);
    RateOutcome {
        percentile_seconds: nearest_rank(&times, 0.99),
        ..good(0.0)
    }
}

/// Both ends of the result lie inside the band.
fn assert_lands_in(limit_seconds: f64, band: std::ops::RangeInclusive<f64>) {
    let capacity = searched(limit_seconds, 10, pool_trial);
    let (pass, fail, miss) = ends(&capacity);
    println!(
        "p99 < {limit_seconds} s: {pass:?} passes, {fail:?} fails, {} trials",
        capacity.trials
    );
    assert!(pass.is_some_and(|rate| band.contains(&rate)), "{pass:?}");
    assert!(fail.is_some_and(|rate| band.contains(&rate)), "{fail:?}");
    assert_eq!(miss, Some(Miss::TooSlow));
}

// The exact p99 of this queue is 25 ms at 1,462/s and 50 ms at 1,545/s (tests/fixtures/exact_mdc.py).

#[test]
fn p99_below_25_ms_lands_between_1440_and_1488() {
    assert_lands_in(0.025, 1_440.0..=1_488.0);
}

#[test]
fn p99_below_50_ms_lands_between_1520_and_1552() {
    assert_lands_in(0.050, 1_520.0..=1_552.0);
}

#[test]
fn both_ends_are_confirmed_and_at_most_two_percent_apart() {
    let capacity = searched(LIMIT_SECONDS, 3, fast_up_to(777.0, good(0.1)));
    let (pass, fail) = (
        capacity.highest_pass.expect("a pass"),
        capacity.lowest_fail.expect("a fail"),
    );
    assert!(pass.rate <= 777.0 && fail.rate > 777.0 && fail.rate / pass.rate <= 1.02);
    for end in [&pass, &fail] {
        assert!(end.confirmed && end.outcomes.len() == 3);
    }
    let rates: Vec<f64> = capacity.probes.iter().map(|probe| probe.rate).collect();
    assert!(rates.is_sorted());
    assert_eq!(capacity.trials, rates.len() + 6);
}

#[test]
fn the_reruns_of_both_ends_take_turns() {
    let mut rates = Vec::new();
    let server = fast_up_to(777.0, good(0.1));
    let capacity = searched(LIMIT_SECONDS, 4, |rate, trial| {
        rates.push(rate);
        server(rate, trial)
    });
    let (pass, fail, _) = ends(&capacity);
    let (pass, fail) = (pass.expect("a pass"), fail.expect("a fail"));
    assert!(rates.ends_with(&[pass, fail, fail, pass, pass, fail, fail, pass]));
}

#[test]
fn every_kind_of_miss_fails_a_rate_however_fast_it_is() {
    for (outcome, miss) in [
        (
            RateOutcome {
                errors: 1,
                ..good(0.010)
            },
            Miss::Errors,
        ),
        (
            RateOutcome {
                completed_share: 0.9989,
                ..good(0.010)
            },
            Miss::Incomplete,
        ),
        (
            RateOutcome {
                completed_share: f64::NAN,
                ..good(0.010)
            },
            Miss::Incomplete,
        ),
        (
            RateOutcome {
                backlog_grew: true,
                ..good(0.010)
            },
            Miss::Backlog,
        ),
        (
            RateOutcome {
                percentile_seconds: None,
                ..good(0.010)
            },
            Miss::TooSlow,
        ),
        (good(LIMIT_SECONDS), Miss::TooSlow),
        (good(f64::NAN), Miss::TooSlow),
    ] {
        let capacity = searched(LIMIT_SECONDS, 2, fast_up_to(500.0, outcome));
        let (pass, _, found) = ends(&capacity);
        assert!(pass.is_some_and(|rate| (490.0..=500.0).contains(&rate)));
        assert_eq!(found, Some(miss));
    }
}

#[test]
fn the_search_goes_down_where_the_first_rate_fails() {
    let capacity = searched(LIMIT_SECONDS, 2, fast_up_to(30.0, good(0.1)));
    let (pass, fail, _) = ends(&capacity);
    assert!(pass.is_some_and(|rate| (29.4..=30.0).contains(&rate)));
    assert!(fail.is_some_and(|rate| (30.0..=30.6).contains(&rate)));
}

#[test]
fn a_server_that_never_passes_has_no_lower_end() {
    let capacity = searched(LIMIT_SECONDS, 2, |_, _| good(0.1));
    assert_eq!(
        ends(&capacity),
        (None, Some(RATES.least), Some(Miss::TooSlow))
    );
}

#[test]
fn a_server_that_never_fails_has_no_upper_end() {
    let capacity = searched(LIMIT_SECONDS, 2, |_, _| good(0.001));
    assert_eq!(ends(&capacity), (Some(RATES.greatest), None, None));
}

#[test]
fn a_lucky_first_trial_is_found_out_by_the_reruns() {
    // The first trial at each rate is fast up to 1,000/s, the reruns only up to 700/s.
    let mut seen = Vec::new();
    let capacity = searched(LIMIT_SECONDS, 3, |rate, _| {
        let first = !seen.contains(&rate);
        seen.push(rate);
        let truth = if first { 1_000.0 } else { 700.0 };
        if rate <= truth {
            good(0.010)
        } else {
            good(0.1)
        }
    });
    let (pass, fail, _) = ends(&capacity);
    assert!(pass.is_some_and(|rate| rate <= 700.0), "{pass:?}");
    assert!(fail.is_some_and(|rate| rate <= 1_000.0), "{fail:?}");
}

#[test]
fn an_unlucky_first_trial_is_corrected_by_the_reruns() {
    // One request goes wrong in the third trial, at 400/s.
    let capacity = searched(LIMIT_SECONDS, 3, |rate, trial| match trial {
        3 => RateOutcome {
            errors: 1,
            ..good(0.010)
        },
        _ => fast_up_to(1_000.0, good(0.1))(rate, trial),
    });
    let (pass, fail, _) = ends(&capacity);
    assert!(
        pass.is_some_and(|rate| (980.0..=1_000.0).contains(&rate)),
        "{pass:?}"
    );
    assert!(fail.is_some_and(|rate| rate > 1_000.0), "{fail:?}");
}

#[test]
fn reruns_that_scatter_about_the_limit_do_not_pass() {
    // The mean of the logarithms is below the limit, its upper bound is not.
    let capacity = searched(LIMIT_SECONDS, 4, |rate, trial| match rate {
        rate if rate <= 200.0 => good(0.010),
        _ if trial % 2 == 0 => good(0.9 * LIMIT_SECONDS),
        _ => good(1.05 * LIMIT_SECONDS),
    });
    let (pass, ..) = ends(&capacity);
    assert!(pass.is_some_and(|rate| rate <= 204.0), "{pass:?}");
}

#[test]
fn every_search_ends_even_on_a_server_without_rhyme_or_reason() {
    for seed in 0..200_u64 {
        let capacity = searched(LIMIT_SECONDS, 2, |_, trial| {
            let bits = (seed * 1_000 + trial).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if bits >> 63 == 0 {
                good(0.010)
            } else {
                good(0.1)
            }
        });
        assert!(capacity.trials < 1_000, "{} trials", capacity.trials);
    }
}

#[test]
fn an_interrupted_search_replays_to_where_it_was() {
    let server =
        |rate: f64, trial: u64| good(0.020 * (rate / 900.0) * (1.0 + (trial % 3) as f64 / 50.0));
    let mut stored = Vec::new();
    let whole = searched(LIMIT_SECONDS, 3, |rate, trial| {
        let outcome = server(rate, trial);
        stored.push(outcome);
        outcome
    });
    let search = CapacitySearch::new(LIMIT_SECONDS, RATES, 3).expect("a sound search");
    let mut replayed = stored[..10].iter().copied();
    let interrupted = search.run(|_| replayed.next().ok_or("interrupted"));
    assert_eq!(interrupted, Err("interrupted"));
    let mut replayed = stored[..10].iter().copied();
    let resumed = searched(LIMIT_SECONDS, 3, |rate, trial| {
        replayed.next().unwrap_or_else(|| server(rate, trial))
    });
    assert_eq!(resumed, whole);
}

#[test]
fn a_search_that_could_not_end_is_refused() {
    let rates = |least, start, greatest| SearchedRates {
        least,
        start,
        greatest,
    };
    let new = CapacitySearch::new;
    assert!(new(0.025, rates(1.0, 1.0, 1.0), 2).is_some());
    assert_eq!(new(0.025, rates(0.0, 1.0, 10.0), 2), None);
    assert_eq!(new(0.025, rates(1.0, 20.0, 10.0), 2), None);
    assert_eq!(new(0.025, rates(2.0, 1.0, 10.0), 2), None);
    assert_eq!(new(0.025, rates(1.0, 1.0, f64::INFINITY), 2), None);
    assert_eq!(new(0.025, rates(1.0, f64::NAN, 10.0), 2), None);
    assert_eq!(new(0.0, rates(1.0, 1.0, 10.0), 2), None);
    assert_eq!(new(0.025, rates(1.0, 1.0, 10.0), 1), None);
}
