//! The universal scalability law on simulated ladders: found where it holds, refused where it does not.

mod support;

use stats::{Rung, UslFit, UslRefusal};
use support::Noise;

const LADDER: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The noise of a rung, as a share of its throughput.
const NOISE: f64 = 0.02;

fn ladder(throughput: impl Fn(f64) -> f64, noise: f64, seed: u64) -> Vec<Rung> {
    let mut random = Noise::seeded(seed);
    LADDER
        .iter()
        .map(|&concurrency| Rung {
            concurrency,
            throughput: throughput(concurrency) * random.normal(noise).exp(),
        })
        .collect()
}

/// A system that keeps the law, with its peak at 69.6.
fn law(concurrency: f64) -> f64 {
    let others = concurrency - 1.0;
    1_000.0 * concurrency / (1.0 + 0.03 * others + 0.0002 * concurrency * others)
}

/// A pool of 16 connections held for 10 ms: the throughput rises in a straight line up to a ceiling.
fn hard_ceiling(concurrency: f64) -> f64 {
    (concurrency / 0.010).min(16.0 / 0.010)
}

/// The same pool with random holding times, and 10 ms between a connection's requests: the bend at the ceiling is
/// round. From the stationary distribution of requests at the pool (the machine repair model).
fn soft_ceiling(concurrency: f64) -> f64 {
    let (mut weight, mut total, mut busy) = (1.0, 1.0, 0.0);
    for at_pool in 1..=concurrency as usize {
        let served = at_pool.min(16) as f64;
        weight *= (concurrency - at_pool as f64 + 1.0) / served;
        total += weight;
        busy += weight * served;
    }
    busy / total / 0.010
}

#[test]
fn a_hard_ceiling_is_refused() {
    assert_eq!(
        UslFit::of(&ladder(hard_ceiling, 0.0, 0)),
        Err(UslRefusal::HardCeiling)
    );
    for seed in 0..200 {
        let refusal = UslFit::of(&ladder(hard_ceiling, NOISE, seed)).unwrap_err();
        // Noise on the level part now and then makes the knee appear late.
        assert!(
            matches!(
                refusal,
                UslRefusal::HardCeiling | UslRefusal::TooFewPastKnee { .. }
            ),
            "{refusal:?}"
        );
    }
}

#[test]
fn a_ceiling_with_a_round_bend_is_refused() {
    for seed in 0..200 {
        assert!(UslFit::of(&ladder(soft_ceiling, NOISE, seed)).is_err());
    }
}

#[test]
fn a_throughput_that_still_rises_is_refused() {
    let amdahl = |concurrency: f64| 1_000.0 * concurrency / (1.0 + 0.05 * (concurrency - 1.0));
    for seed in 0..200 {
        let refusal = UslFit::of(&ladder(amdahl, NOISE, seed)).unwrap_err();
        assert!(matches!(refusal, UslRefusal::TooFewPastKnee { .. }));
    }
}

#[test]
fn a_system_that_keeps_the_law_is_found_with_honest_intervals() {
    let campaigns = 500;
    let mut covered = [0; 4];
    for seed in 0..campaigns {
        let fit = UslFit::of(&ladder(law, NOISE, seed)).unwrap();
        let truths = [1_000.0, 0.03, 0.0002, ((1.0_f64 - 0.03) / 0.0002).sqrt()];
        let parameters = [fit.lambda, fit.sigma, fit.kappa, fit.peak.unwrap()];
        for index in 0..4 {
            covered[index] += u32::from(parameters[index].interval.contains(truths[index]));
        }
    }
    let coverage = covered.map(|covered| f64::from(covered) / campaigns as f64);
    println!("coverage of lambda, sigma, kappa and the peak: {coverage:?}");
    assert!(
        coverage.iter().all(|share| (0.92..=0.98).contains(share)),
        "{coverage:?}"
    );
}

#[test]
fn the_order_of_the_rungs_does_not_matter() {
    let mut rungs = ladder(law, NOISE, 1);
    let fit = UslFit::of(&rungs).unwrap();
    rungs.reverse();
    assert!((UslFit::of(&rungs).unwrap().kappa.value / fit.kappa.value - 1.0).abs() < 1e-9);
    assert!((fit.throughput(16.0) / law(16.0) - 1.0).abs() < 0.05);
}

#[test]
fn six_rungs_are_too_few_however_often_each_was_measured() {
    let mut rungs = ladder(law, NOISE, 1);
    rungs.remove(0);
    rungs.remove(0);
    rungs.remove(0);
    rungs.extend(rungs.clone());
    assert_eq!(
        UslFit::of(&rungs),
        Err(UslRefusal::TooFewRungs { found: 6 })
    );
}

#[test]
fn what_was_not_measured_is_refused() {
    for (concurrency, throughput) in [
        (0.0, 1.0),
        (8.0, 0.0),
        (8.0, f64::NAN),
        (f64::INFINITY, 1.0),
    ] {
        let mut rungs = ladder(law, NOISE, 1);
        rungs[3] = Rung {
            concurrency,
            throughput,
        };
        assert_eq!(UslFit::of(&rungs), Err(UslRefusal::NotMeasured));
    }
}
