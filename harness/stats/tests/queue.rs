//! The simulated queue beside the exact distribution of M/D/c. The values were printed by tests/fixtures/exact_mdc.py.

use stats::FixedService;

const POOL: FixedService = FixedService {
    servers: 16,
    service_seconds: 0.010,
};

fn assert_within(found_seconds: f64, exact_ms: f64, tolerance: f64) {
    let error = found_seconds * 1_000.0 / exact_ms - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{found_seconds} s is not {exact_ms} ms"
    );
}

#[test]
fn at_90_percent_of_the_ceiling_the_expectation_is_the_exact_one() {
    let expected = POOL.expected_response(1_440.0, 0).unwrap();
    println!("{expected:?}");
    assert_within(expected.p50_seconds, 10.553, 0.005);
    assert_within(expected.p99_seconds, 22.639, 0.02);
    assert_within(expected.p99_9_seconds, 29.586, 0.06);
}

#[test]
fn at_half_of_the_ceiling_hardly_a_request_waits() {
    let expected = POOL.expected_response(800.0, 0).unwrap();
    assert_eq!((expected.p50_seconds, expected.p99_seconds), (0.010, 0.010));
    assert_within(expected.p99_9_seconds, 12.016, 0.02);
}

#[test]
fn nothing_is_expected_of_a_queue_that_grows_without_end() {
    assert_eq!(POOL.ceiling(), 1_600.0);
    assert_eq!(POOL.expected_response(1_600.0, 0), None);
    assert_eq!(POOL.expected_response(2_000.0, 0), None);
}

#[test]
fn what_is_no_queue_is_refused() {
    let no_servers = FixedService { servers: 0, ..POOL };
    let no_time = FixedService {
        service_seconds: 0.0,
        ..POOL
    };
    assert_eq!(no_servers.expected_response(100.0, 0), None);
    assert_eq!(no_time.expected_response(100.0, 0), None);
    for rate in [0.0, -1.0, f64::NAN] {
        assert_eq!(POOL.expected_response(rate, 0), None);
    }
}
