//! Agreement with R 4.2.2 to 1e-9. The values were printed by tests/fixtures/reference.R; those of Welch's
//! t by tests/fixtures/welch.py with SciPy 1.17.1, to the same digits.

#![allow(
    clippy::excessive_precision,
    reason = "the digits are those that R prints"
)]

use stats::{
    Comparison, Difference, Mean, NoiseFloor, Rung, SignedRank, UslFit, hodges_lehmann, holm,
    outliers,
};

const THREE: [f64; 3] = [0.0213, -0.0071, 0.0158];
const TEN: [f64; 10] = [
    0.012, -0.004, 0.021, 0.008, 0.015, -0.001, 0.030, 0.006, 0.011, -0.009,
];
const SKEWED: [f64; 12] = [
    0.001, 0.002, 0.002, 0.003, 0.005, 0.008, 0.013, 0.021, 0.034, 0.055, 0.089, 0.144,
];
const TIED: [f64; 11] = [1.0, -1.0, 2.0, 2.0, 3.0, -3.0, 3.0, 4.0, 0.0, 6.0, 6.0];

fn thirty() -> Vec<f64> {
    (1..=30)
        .map(|block| f64::from(block).sin() / 50.0 + 0.004)
        .collect()
}

fn assert_close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(
        error <= 1e-9 * expected.abs().max(1.0),
        "{what}: found {found:e}, expected {expected:e}"
    );
}

/// Mean, interval, two-sided p-value, one-sided upper bound.
fn assert_t_test(values: &[f64], expected: [f64; 5]) {
    let mean = Mean::of(values).expect("values that are finite");
    let interval = mean.interval_95();
    assert_close(mean.mean, expected[0], "mean");
    assert_close(interval.low, expected[1], "low");
    assert_close(interval.high, expected[2], "high");
    assert_close(mean.p_value(), expected[3], "p-value");
    assert_close(mean.upper_bound_95(), expected[4], "upper bound");
}

#[test]
fn t_intervals_agree_with_t_test() {
    assert_t_test(
        &THREE,
        [
            0.01,
            -0.027416589857724809,
            0.04741658985772481,
            0.36911551713791368,
            0.035392684400288026,
        ],
    );
    assert_t_test(
        &TEN,
        [
            0.0088999999999999999,
            0.00051373051045372888,
            0.017286269489546272,
            0.039849927877400111,
            0.015695716633150225,
        ],
    );
    assert_t_test(
        &SKEWED,
        [
            0.031416666666666669,
            0.0031893738156433169,
            0.059643959517690019,
            0.0322645375149355,
            0.054448610554082698,
        ],
    );
    assert_t_test(
        &thirty(),
        [
            0.0041867002375146744,
            -0.0012791778793869515,
            0.0096525783544163003,
            0.12805992118127513,
            0.0087276187929885424,
        ],
    );
}

#[test]
fn a_comparison_is_the_t_test_of_log_ratios_carried_back_to_ratios() {
    let comparison = Comparison::of(&TEN, 1).unwrap();
    assert_eq!(comparison.blocks, 10);
    assert_close(comparison.ratio, 0.0089_f64.exp(), "ratio");
    assert_close(
        comparison.interval.low,
        0.00051373051045372888_f64.exp(),
        "low",
    );
    assert_close(
        comparison.interval.high,
        0.017286269489546272_f64.exp(),
        "high",
    );
    assert_close(comparison.p_value, 0.039849927877400111, "p-value");
}

#[test]
fn differences_of_unpaired_samples_agree_with_welch() {
    let thirty = thirty();
    for (a, b, [degrees, low, high, p_value]) in [
        (
            TEN.as_slice(),
            SKEWED.as_slice(),
            [
                12.805798531441038,
                -0.05140190733877148,
                0.006368574005438141,
                0.11586234678198755,
            ],
        ),
        (
            &THREE,
            &thirty,
            [
                2.3941478163676977,
                -0.027759484352590964,
                0.039386083877561616,
                0.5786098390978772,
            ],
        ),
        (
            &SKEWED,
            &THREE,
            [
                10.838598971679838,
                -0.012750014796760537,
                0.05558334813009387,
                0.1947441325708883,
            ],
        ),
    ] {
        let difference = Difference::of(a, b).unwrap();
        assert_close(difference.degrees, degrees, "degrees");
        assert_close(difference.interval_95().low, low, "low");
        assert_close(difference.interval_95().high, high, "high");
        assert_close(difference.p_value(), p_value, "p-value");
        let comparison = Comparison::unpaired(a, b, 1).unwrap();
        assert_eq!(comparison.blocks, a.len().min(b.len()));
        assert_close(comparison.interval.low, low.exp(), "ratio's low");
        assert_close(comparison.p_value, p_value, "ratio's p-value");
    }
}

#[test]
fn signed_ranks_agree_with_wilcox_test() {
    for (values, statistic, p_value) in [
        (TEN[..9].to_vec(), 42.0, 0.01953125),
        (TIED.to_vec(), 47.5, 0.04296875),
        (
            (1..=150)
                .map(|i| (100.0 * f64::from(i).sin()).round() + 12.0)
                .collect(),
            6891.0,
            0.021217278398764087,
        ),
    ] {
        let test = SignedRank::of(&values).unwrap();
        assert_close(test.statistic, statistic, "statistic");
        assert_close(test.p_value, p_value, "p-value");
    }
}

#[test]
fn robust_estimates_agree() {
    let estimate = hodges_lehmann(&SKEWED).unwrap();
    assert_close(estimate, 0.019000000000000003, "Hodges-Lehmann");
    let floor = NoiseFloor::of(&TEN).unwrap();
    assert_close(floor.ratio().ln(), 0.037499999999999992, "fence");
    let mut apart = TIED.to_vec();
    apart.push(30.0);
    let marked = outliers(&apart).unwrap();
    assert_eq!((marked.len(), marked[0].index), (1, 11));
    assert_close(marked[0].modified_z, 9.2742340651961221, "modified z");
}

#[test]
fn adjusted_p_values_agree_with_p_adjust() {
    let adjusted = holm(&[0.012, 0.2, 0.003, 0.04, 0.0004, 0.031]).unwrap();
    let expected = [0.048, 0.2, 0.015, 0.093, 0.0024, 0.093];
    for (found, expected) in adjusted.iter().zip(expected) {
        assert_close(*found, expected, "adjusted p-value");
    }
}

#[test]
fn the_scalability_law_agrees_with_a_regression() {
    let concurrency = [1.0, 18.0, 36.0, 72.0, 108.0, 144.0, 216.0];
    let throughput = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2];
    let rungs: Vec<Rung> = concurrency
        .into_iter()
        .zip(throughput)
        .map(|(concurrency, throughput)| Rung {
            concurrency,
            throughput,
        })
        .collect();
    let fit = UslFit::of(&rungs).unwrap();
    for (found, value, low, high) in [
        (
            fit.lambda,
            68.160705215452495,
            54.918942881293511,
            81.402467549611487,
        ),
        (
            fit.sigma,
            0.013361254590649825,
            0.0018744261157887174,
            0.024848083065510933,
        ),
        (
            fit.kappa,
            0.0001152025984697655,
            5.7358521482035961e-05,
            0.00017304667545749503,
        ),
        (
            fit.peak.unwrap(),
            92.543931531303613,
            72.271939431333266,
            118.50213693805416,
        ),
    ] {
        assert_close(found.value, value, "value");
        assert_close(found.interval.low, low, "low");
        assert_close(found.interval.high, high, "high");
    }
}
