use serde_json::{Value, json};

use super::*;
use crate::made_up::{campaign, closed, open, scatter};

/// The sentences of the tables of a campaign.
fn said(made_up: Value) -> Vec<String> {
    let campaign: Campaign = serde_json::from_value(made_up).unwrap();
    let rungs = campaign.plan.ladders[0].rungs.clone();
    let classes = Class::in_campaign(&campaign);
    let of_class = |class| of_table(&campaign, "point-read", &rungs, class);
    classes.flat_map(of_class).collect()
}

/// Two servers at one rung, ten blocks: the second has `ratio` of the first's figure, more or less.
fn two(rung: Value, first: f64, ratio: f64, size: f64) -> Value {
    campaign(&["deadpool", "sqlx"], &[rung], 10, &|server, _, block| {
        if server == 0 {
            first
        } else {
            first * ratio * scatter(block, size)
        }
    })
}

#[test]
fn a_difference_is_said_with_its_interval_and_the_cost() {
    assert_eq!(
        said(two(closed(32), 10_000.0, 0.8, 0.05)),
        [
            "At 32 connections deadpool answers 25 % more requests than sqlx (interval 22 to 28 %, 10 blocks), and uses 30 µs of CPU a request against 40, 2 threads against 4 and 8 MiB against 12."
        ]
    );
}

#[test]
fn the_better_one_comes_first_whatever_the_order_of_the_table() {
    let said = said(two(closed(1), 10_000.0, 1.25, 0.05));
    assert!(
        said[0].starts_with("At 1 connection sqlx answers 25 % more requests than deadpool"),
        "{said:?}"
    );
}

#[test]
fn equivalence_and_uncertainty_are_different_things_to_say() {
    assert_eq!(
        said(two(closed(8), 10_000.0, 0.998, 0.01)),
        [
            "At 8 connections deadpool and sqlx are equivalent: 0.1 % apart, interval -0.4 to +0.6 %, 10 blocks; deadpool uses 30 µs of CPU a request against 40, 2 threads against 4 and 8 MiB against 12."
        ]
    );
    let said = said(two(closed(8), 10_000.0, 0.95, 0.2));
    assert!(
        said[0].contains("deadpool and sqlx cannot be told apart: "),
        "{said:?}"
    );
}

#[test]
fn an_open_rung_is_told_by_its_p99() {
    let said = said(two(open(1_440.0), 20.0, 1.25, 0.03));
    assert_eq!(
        said,
        [
            "At 1440/s the p99 of deadpool is 20 % below that of sqlx (interval 19 to 21 %, 10 blocks), and it uses 30 µs of CPU a request against 40, 2 threads against 4 and 8 MiB against 12."
        ]
    );
}

#[test]
fn of_several_servers_the_best_is_named_and_who_cannot_be_told_from_it() {
    let rates = |server: usize, _: usize, block: usize| match server {
        0 => 10_000.0,
        1 => 9_950.0 * scatter(block, 0.04),
        2 => 8_800.0 * scatter(block, 0.02),
        _ => 8_000.0 * scatter(block, 0.03),
    };
    let names = ["deadpool", "sqlx", "r2d2", "threads"];
    assert_eq!(
        said(campaign(&names, &[closed(8)], 10, &rates)),
        [
            "At 8 connections deadpool answers the most requests, but is not shown to differ from sqlx (0.3 % fewer, interval -2.2 to +1.7 %, equivalent); then r2d2 (12 % fewer, interval 11 to 13 %) and threads (20 % fewer, interval 19 to 21 %); 10 blocks. A request's CPU time, threads and memory: deadpool 30 µs, 2 threads, 8 MiB; sqlx 40 µs, 4 threads, 12 MiB; r2d2 50 µs, 6 threads, 16 MiB; threads 60 µs, 8 threads, 20 MiB."
        ]
    );
}

#[test]
fn one_block_is_said_to_be_no_comparison_once() {
    let made_up = campaign(
        &["deadpool", "sqlx"],
        &[closed(1), closed(8)],
        1,
        &|_, _, _| 1e4,
    );
    assert_eq!(
        said(made_up),
        ["One block is no comparison: --preset snapshot measures three, publishable ten or more."]
    );
}

#[test]
fn a_server_alone_gets_no_sentence() {
    assert_eq!(
        said(campaign(&["deadpool"], &[closed(8)], 3, &|_, _, _| 1e4)),
        [] as [&str; 0]
    );
}

fn trip(made_up: &mut Value, server: &str, blocks: &[u64], code: &str, verdict: &str) {
    for trial in made_up["trials"].as_array_mut().unwrap() {
        if trial["server"] == server && blocks.contains(&trial["block"].as_u64().unwrap()) {
            trial["verdict"] = json!(verdict);
            trial["checks"] = json!([{ "code": code, "outcome": "tripped", "verdict": verdict, "figure": "made up" }]);
        }
    }
}

#[test]
fn rows_that_are_not_valid_are_left_out_by_name_with_the_check() {
    let mut made_up = two(closed(8), 10_000.0, 0.8, 0.05);
    trip(&mut made_up, "sqlx", &[1, 2], "STEAL", "invalid");
    let some = said(made_up.clone());
    assert!(some[0].contains("8 blocks"), "{some:?}");
    assert!(
        some[0].ends_with(" Left out: sqlx in blocks 2 and 3 (INVALID: STEAL)."),
        "{some:?}"
    );
    trip(
        &mut made_up,
        "sqlx",
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        "HTTP",
        "failed",
    );
    assert_eq!(
        said(made_up),
        [
            "At 8 connections only deadpool has figures that count: nothing to compare it with. Left out: sqlx (FAILED: HTTP)."
        ]
    );
}

#[test]
fn lanes_that_wait_for_the_same_ceiling_may_not_differ() {
    let mut made_up = two(closed(32), 1_600.0, 0.9, 0.01);
    for trial in made_up["trials"].as_array_mut().unwrap() {
        trial["window"]["delay_ms"] = json!(10.0);
    }
    let said = said(made_up);
    assert!(
        said[0].ends_with("a gap above 3 % is an artefact until explained."),
        "{said:?}"
    );
}

#[test]
fn a_difference_within_the_noise_of_the_machine_is_called_so() {
    let rates = |server: usize, _: usize, block: usize| match server {
        0 => 10_000.0,
        1 => 10_000.0 * scatter(block, 0.03),
        _ => 9_500.0 * scatter(block, 0.005),
    };
    let names = ["deadpool", "deadpool (again)", "sqlx"];
    let said = said(campaign(&names, &[closed(8)], 10, &rates));
    assert!(
        said[0].contains("not beyond the noise floor of "),
        "{said:?}"
    );
}

#[test]
fn equal_tails_of_an_open_rung_are_said_to_be_so() {
    let said = said(two(open(500.0), 20.0, 1.0, 0.01));
    assert!(
        said[0].starts_with("At 500/s the p99 of deadpool and of sqlx are equivalent: "),
        "{said:?}"
    );
}

/// Three servers of which the last is pipelined and much faster.
fn with_pipelined() -> Value {
    let names = ["deadpool", "sqlx", "pipelined"];
    let mut made_up = campaign(&names, &[closed(32)], 10, &|server, _, block| {
        10_000.0 * [1.0, 0.8, 3.0][server] * scatter(block + server, 0.01)
    });
    made_up["servers"][2]["lane"] = json!("pipelined");
    made_up
}

#[test]
fn no_sentence_names_a_pipelined_server_beside_another() {
    let said = said(with_pipelined());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("deadpool answers") && !said[0].contains("pipelined"),
        "{said:?}"
    );
}

#[test]
fn pipelined_servers_are_compared_among_themselves() {
    let mut made_up = with_pipelined();
    for server in 0..2 {
        made_up["servers"][server]["lane"] = json!("pipelined");
    }
    let said = said(made_up);
    assert!(
        said[0].starts_with("At 32 connections pipelined answers the most requests; then deadpool"),
        "{said:?}"
    );
}
