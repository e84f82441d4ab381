//! What theory allows or expects at a rung, and what pgbench gets there, to stand beside what servers do.

use stats::{FixedService, Interval, Parameter, UslFit, UslRefusal, median};

use crate::campaign::Campaign;
use crate::class::Class;
use crate::figures::median_of;
use crate::metric::Metric;
use crate::pgbench::PgbenchRun;
use crate::rung::Rung;
use crate::verdicts::subjects;

/// Shorter closed ladders are not meant to show how a server scales.
const RUNGS_OF_A_SCALING_LADDER: usize = 7;

/// A row that no server made.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub label: String,
    pub requests_per_second: Option<f64>,
    /// p50, p99 and p99.9.
    pub response_ms: Option<[f64; 3]>,
}

/// The rows that go with a class's at a rung: what theory says, and what PostgreSQL gives without a server. Beside
/// pipelined servers only the ceiling is of any meaning: pgbench has one statement in flight on each connection, and so
/// has the queue that theory knows.
pub fn bounds(campaign: &Campaign, workload: &str, rung: Rung, class: Class) -> Vec<Bound> {
    let pipelined = class == Class::Pipelined;
    let of_theory = delay_ms(campaign, workload, rung)
        .filter(|_| !(pipelined && rung.is_open()))
        .and_then(|delay_ms| of_theory(campaign, rung, delay_ms));
    let of_pgbench = of_pgbench(campaign, workload, rung).filter(|_| !pipelined);
    of_theory.into_iter().chain(of_pgbench).collect()
}

fn of_pgbench(campaign: &Campaign, workload: &str, rung: Rung) -> Option<Bound> {
    let runs = campaign.pgbench.iter();
    let runs: Vec<&PgbenchRun> = runs
        .filter(|run| run.workload == workload && run.rung == rung)
        .collect();
    let rates: Vec<f64> = runs.iter().map(|run| run.statements_per_second).collect();
    Some(Bound {
        label: match runs.first()?.connections {
            1 => "pgbench, 1 conn".to_owned(),
            connections => format!("pgbench, {connections} conns"),
        },
        requests_per_second: median(&rates),
        response_ms: None,
    })
}

/// Of a pool whose connections are each held for a known time.
fn of_theory(campaign: &Campaign, rung: Rung, delay_ms: f64) -> Option<Bound> {
    let pool = campaign.plan.pool;
    match rung {
        Rung::Closed { .. } => Some(Bound {
            label: "ceiling".to_owned(),
            requests_per_second: Some(rung.at_a_time(pool) as f64 / delay_ms * 1e3),
            response_ms: None,
        }),
        // Theory has an answer for arrivals at random.
        Rung::Open { .. } if !campaign.plan.poisson => None,
        Rung::Open { rate, .. } => {
            let queue = FixedService {
                servers: pool,
                service_seconds: delay_ms / 1e3,
            };
            let expected = queue.expected_response(rate, campaign.plan.seed);
            Some(Bound {
                label: match expected {
                    Some(_) => format!("M/D/{pool} expects"),
                    None => format!("M/D/{pool}: no end"),
                },
                requests_per_second: Some(rate.min(queue.ceiling())),
                response_ms: expected.map(|expected| {
                    [
                        expected.p50_seconds,
                        expected.p99_seconds,
                        expected.p99_9_seconds,
                    ]
                    .map(|seconds| seconds * 1e3)
                }),
            })
        }
    }
}

/// How long a statement holds its connection by its own account; `None` where it does not say.
fn delay_ms(campaign: &Campaign, workload: &str, rung: Rung) -> Option<f64> {
    let subjects = subjects(campaign, workload, rung);
    let windows = subjects
        .iter()
        .flatten()
        .filter_map(|trial| trial.window.as_ref());
    windows.filter_map(|window| window.delay_ms).next()
}

/// How each server scales over a long closed ladder, a line each: the law's parameters, or why there are none. Nothing
/// for a workload whose ceiling is hard by construction.
pub fn scaling(campaign: &Campaign, workload: &str, rungs: &[Rung]) -> Vec<String> {
    let closed: Vec<Rung> = rungs
        .iter()
        .copied()
        .filter(|rung| !rung.is_open())
        .collect();
    let delayed = closed
        .iter()
        .any(|&rung| delay_ms(campaign, workload, rung).is_some());
    if closed.len() < RUNGS_OF_A_SCALING_LADDER || delayed {
        return Vec::new();
    }
    let mut ladders: Vec<(String, Vec<stats::Rung>)> = Vec::new();
    for &rung in &closed {
        for trials in subjects(campaign, workload, rung) {
            let label = trials[0].label();
            let index = ladders
                .iter()
                .position(|(of, _)| *of == label)
                .unwrap_or_else(|| {
                    ladders.push((label, Vec::new()));
                    ladders.len() - 1
                });
            ladders[index]
                .1
                .extend(
                    median_of(&trials, Metric::Throughput).map(|throughput| stats::Rung {
                        concurrency: rung.connections() as f64,
                        throughput,
                    }),
                );
        }
    }
    let line = |(label, rungs): &(String, Vec<stats::Rung>)| match UslFit::of(rungs) {
        Ok(fit) => format!("{label}: {}", fit_in_words(&fit)),
        Err(refusal) => format!("{label}: no scalability law: {}", refusal_in_words(refusal)),
    };
    ladders.iter().map(line).collect()
}

fn fit_in_words(fit: &UslFit) -> String {
    let percent = |of: Parameter, decimals: usize| {
        let Interval { low, high } = of.interval;
        let [value, low, high] = [of.value, low, high].map(|share| 100.0 * share);
        format!("{value:.decimals$} % ({low:.decimals$} to {high:.decimals$})")
    };
    let peak = match fit.peak {
        Some(peak) => format!(
            "peak at {:.0} connections ({:.0} to {:.0})",
            peak.value, peak.interval.low, peak.interval.high
        ),
        None => "no peak within the rungs".to_owned(),
    };
    format!(
        "scalability law: {:.0}/s alone, contention {}, coherency {}, {peak}; {:.1} % off",
        fit.lambda.value,
        percent(fit.sigma, 2),
        percent(fit.kappa, 4),
        100.0 * fit.residual
    )
}

fn refusal_in_words(refusal: UslRefusal) -> String {
    match refusal {
        UslRefusal::NotMeasured => "a rung has no throughput".to_owned(),
        UslRefusal::TooFewRungs { found } => {
            format!("{found} rungs have valid rows, it takes {RUNGS_OF_A_SCALING_LADDER}")
        }
        UslRefusal::TooFewPastKnee { found } => {
            format!("{found} rungs lie past the knee, it takes 2: add rungs with more connections")
        }
        UslRefusal::HardCeiling => {
            "a hard ceiling describes the rungs as well, so that the law's peak would be fictitious"
                .to_owned()
        }
        UslRefusal::DoesNotFit => "it is more than 10 % off".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::made_up::{campaign, closed, open, scatter};

    fn read(made_up: Value) -> Campaign {
        serde_json::from_value(made_up).unwrap()
    }

    fn delayed(rungs: &[Value]) -> Campaign {
        let mut made_up = campaign(&["deadpool"], rungs, 2, &|_, _, _| 1_500.0);
        for trial in made_up["trials"].as_array_mut().unwrap() {
            trial["window"]["delay_ms"] = json!(10.0);
        }
        read(made_up)
    }

    fn of_rung(campaign: &Campaign, rung: usize) -> Vec<Bound> {
        let rung = campaign.plan.ladders[0].rungs[rung];
        bounds(campaign, "point-read", rung, Class::OneAtATime)
    }

    #[test]
    fn a_closed_rung_has_the_ceiling_of_its_connections_or_of_the_pool() {
        let campaign = delayed(&[closed(8), closed(32)]);
        let ceilings = [0, 1].map(|rung| of_rung(&campaign, rung)[0].requests_per_second);
        assert_eq!(ceilings, [Some(800.0), Some(1_600.0)]);
    }

    #[test]
    fn an_open_rung_at_random_has_what_a_queue_of_the_pool_is_expected_to_do() {
        let campaign = delayed(&[open(1_440.0), open(1_700.0)]);
        let expected = &of_rung(&campaign, 0)[0];
        assert_eq!(expected.label, "M/D/16 expects");
        let [p50, p99, p99_9] = expected.response_ms.unwrap();
        assert!((p50 - 10.6).abs() < 0.2 && (p99 - 22.7).abs() < 1.0 && (p99_9 - 30.0).abs() < 2.0);
        let beyond = &of_rung(&campaign, 1)[0];
        assert_eq!(
            (beyond.label.as_str(), beyond.response_ms),
            ("M/D/16: no end", None)
        );
    }

    #[test]
    fn a_statement_that_does_not_say_how_long_it_takes_has_no_theory() {
        let campaign = read(campaign(&["deadpool"], &[closed(8)], 2, &|_, _, _| 1e4));
        assert_eq!(of_rung(&campaign, 0), []);
    }

    #[test]
    fn pgbench_has_a_row_with_its_connections() {
        let mut made_up = campaign(&["deadpool"], &[closed(32)], 2, &|_, _, _| 1e4);
        let run = |rate: f64| {
            json!({
                "workload": "point-read", "rung": closed(32), "block": 0, "connections": 16,
                "statements_per_second": rate, "mean_latency_ms": 1.0,
            })
        };
        made_up["pgbench"] = json!([run(11_000.0), run(13_000.0)]);
        let bound = &of_rung(&read(made_up), 0)[0];
        assert_eq!(
            (bound.label.as_str(), bound.requests_per_second),
            ("pgbench, 16 conns", Some(12_000.0))
        );
    }

    const LADDER: [f64; 7] = [1.0, 18.0, 36.0, 72.0, 108.0, 144.0, 216.0];

    fn ladder(throughput: [f64; 7]) -> (Value, Vec<Rung>) {
        let rungs = LADDER.map(|connections| closed(connections as usize));
        let made_up = campaign(&["deadpool"], &rungs, 3, &|_, rung, block| {
            throughput[rung] * scatter(block, 0.001)
        });
        let rungs = read(made_up.clone()).plan.ladders[0].rungs.clone();
        (made_up, rungs)
    }

    #[test]
    fn a_long_ladder_is_told_how_it_scales_or_why_not() {
        let (made_up, rungs) = ladder([64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]);
        let lines = scaling(&read(made_up.clone()), "point-read", &rungs);
        assert!(
            lines[0].starts_with(
                "deadpool: scalability law: 68/s alone, contention 1.34 % (0.19 to 2.48)"
            ) && lines[0].contains("peak at 93 connections (72 to 119)"),
            "{lines:?}"
        );
        assert_eq!(
            scaling(&read(made_up), "point-read", &rungs[..6]),
            [] as [&str; 0]
        );
        let (made_up, rungs) = ladder(LADDER.map(|connections| (65.0 * connections).min(1_600.0)));
        let lines = scaling(&read(made_up), "point-read", &rungs);
        assert!(
            lines[0].contains("no scalability law: a hard ceiling describes the rungs as well"),
            "{lines:?}"
        );
    }
}
