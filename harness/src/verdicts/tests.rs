use serde_json::{Value, json};

use super::*;
use crate::made_up::{campaign, closed, open, scatter};

fn read(made_up: Value) -> Campaign {
    serde_json::from_value(made_up).unwrap()
}

/// Two servers at one closed rung, ten blocks: the second has `ratio` of the first's throughput, more or less.
fn two(ratio: f64, size: f64) -> Campaign {
    read(campaign(
        &["deadpool", "sqlx"],
        &[closed(8)],
        10,
        &|server, _, block| {
            if server == 0 {
                10_000.0
            } else {
                10_000.0 * ratio * scatter(block, size)
            }
        },
    ))
}

fn rungs(campaign: &Campaign) -> Vec<Rung> {
    campaign.plan.ladders[0].rungs.clone()
}

fn judged<'a>(campaign: &'a Campaign, rungs: &[Rung]) -> Vec<Judged<'a>> {
    of_campaign(campaign, "point-read", rungs, Class::OneAtATime)
}

fn primary(campaign: &Campaign) -> Answer {
    judged(campaign, &rungs(campaign))[0].primary.unwrap()
}

#[test]
fn every_verdict_has_a_campaign_that_earns_it() {
    for (ratio, size, verdict) in [
        (0.80, 0.01, Verdict::Faster),
        (1.25, 0.01, Verdict::Slower),
        (1.00, 0.01, Verdict::Equivalent),
        (1.00, 0.20, Verdict::Inconclusive),
    ] {
        assert_eq!(
            primary(&two(ratio, size)).verdict,
            verdict,
            "{ratio} {size}"
        );
    }
}

#[test]
fn what_one_server_gains_the_other_loses() {
    let answer = primary(&two(0.80, 0.01));
    let (a, b) = (answer.from_a(), answer.from_b());
    assert_eq!((a.verdict, b.verdict), (Verdict::Faster, Verdict::Slower));
    assert!((a.ratio * b.ratio - 1.0).abs() < 1e-12);
    assert!((a.interval.low * b.interval.high - 1.0).abs() < 1e-12);
}

#[test]
fn printing_twice_says_the_same() {
    let campaign = two(0.9, 0.03);
    assert_eq!(primary(&campaign), primary(&campaign));
}

#[test]
fn one_block_is_no_comparison() {
    let campaign = read(campaign(
        &["deadpool", "sqlx"],
        &[closed(8)],
        1,
        &|_, _, _| 1e4,
    ));
    let judged = judged(&campaign, &rungs(&campaign));
    assert_eq!((judged.len(), judged[0].primary), (1, None));
    assert!(judged[0].secondary.is_empty());
}

#[test]
fn a_server_is_compared_with_itself_by_the_least_floor_and_with_others_beyond_its_own_scatter() {
    let rates = |server: usize, _: usize, block: usize| match server {
        0 => 10_000.0,
        1 => 10_000.0 * scatter(block, 0.03),
        _ => 9_500.0 * scatter(block, 0.005),
    };
    let names = ["deadpool", "deadpool (again)", "sqlx"];
    let campaign = read(campaign(&names, &[closed(8)], 10, &rates));
    let judged = judged(&campaign, &rungs(&campaign));
    let identical: Vec<bool> = judged.iter().map(|judged| judged.pair.identical).collect();
    assert_eq!(identical, [true, false, false]);
    assert_eq!(judged[0].primary.unwrap().noise_floor, NoiseFloor::least());
    let with_another = judged[1].primary.unwrap();
    assert!(
        with_another.noise_floor.ratio() > 1.05,
        "{:?}",
        with_another.noise_floor
    );
    assert_eq!(with_another.verdict, Verdict::Inconclusive);
    assert_eq!(with_another.doubt(), Some(Doubt::NoiseFloor));
}

#[test]
fn the_rungs_and_pairs_of_a_table_are_one_family() {
    // The first rung by itself has a p-value between 1 and 5 %.
    let rates = |server: usize, rung: usize, block: usize| {
        let scatter = if rung == 0 {
            scatter(block, 0.02)
        } else {
            scatter(block + rung, 0.3)
        };
        let ratio = if rung == 0 { 0.958 } else { 1.0 };
        if server == 0 {
            10_000.0
        } else {
            10_000.0 * ratio * scatter
        }
    };
    let ladder = [closed(1), closed(8), closed(16), closed(32), closed(64)];
    let campaign = read(campaign(&["deadpool", "sqlx"], &ladder, 4, &rates));
    let alone = judged(&campaign, &rungs(&campaign)[..1])[0]
        .primary
        .unwrap();
    let together = judged(&campaign, &rungs(&campaign))[0].primary.unwrap();
    assert_eq!(alone.comparison, together.comparison);
    assert_eq!(alone.verdict, Verdict::Faster, "{alone:?}");
    assert!((together.adjusted_p_value / alone.adjusted_p_value - 5.0).abs() < 1e-9);
    assert_eq!(together.verdict, Verdict::Inconclusive);
    assert_eq!(together.doubt(), Some(Doubt::Adjustment));
}

#[test]
fn trials_that_are_not_valid_do_not_count() {
    let mut made_up = campaign(&["deadpool", "sqlx"], &[closed(8)], 4, &|_, _, block| {
        1e4 * scatter(block, 0.1)
    });
    for trial in made_up["trials"].as_array_mut().unwrap() {
        if trial["block"] == 3 && trial["server"] == "sqlx" {
            trial["verdict"] = json!("failed");
        }
    }
    assert_eq!(primary(&read(made_up)).comparison.blocks, 3);
}

#[test]
fn an_open_rung_is_judged_by_its_p99_where_less_is_better() {
    let made_up = campaign(
        &["deadpool", "sqlx"],
        &[open(1_440.0)],
        10,
        &|server, _, block| {
            if server == 0 {
                20.0
            } else {
                25.0 * scatter(block, 0.02)
            }
        },
    );
    let answer = primary(&read(made_up));
    assert_eq!(
        (answer.metric, answer.verdict),
        (Metric::P99, Verdict::Faster)
    );
    assert!(answer.comparison.ratio < 1.0);
}

#[test]
fn a_block_far_from_the_others_is_marked_and_counts_all_the_same() {
    let campaign = read(campaign(
        &["deadpool", "sqlx"],
        &[closed(8)],
        6,
        &|server, _, block| {
            if (server, block) == (1, 4) {
                6_000.0
            } else {
                1e4 * scatter(block, 0.01)
            }
        },
    ));
    let of = |server: usize| apart(&subjects(&campaign, "point-read", rungs(&campaign)[0])[server]);
    assert!(of(0).is_empty());
    assert_eq!(
        of(1).iter().map(|apart| apart.block).collect::<Vec<_>>(),
        [4]
    );
    assert_eq!(primary(&campaign).comparison.blocks, 6);
}

#[test]
fn a_pipelined_server_is_judged_beside_its_like_alone() {
    let names = ["deadpool", "pipelined", "sqlx", "other"];
    let mut made_up = campaign(&names, &[closed(8)], 10, &|server, _, block| {
        1e4 * (1.0 + server as f64) * scatter(block + server, 0.01)
    });
    for server in [1, 3] {
        made_up["servers"][server]["lane"] = json!("pipelined");
    }
    let campaign = read(made_up);
    let pairs = |class| {
        let judged = of_campaign(&campaign, "point-read", &rungs(&campaign), class);
        let labels = judged
            .iter()
            .map(|judged| (judged.pair.a[0].label(), judged.pair.b[0].label()));
        labels.collect::<Vec<_>>()
    };
    let expected = |a: &str, b: &str| vec![(a.to_owned(), b.to_owned())];
    assert_eq!(pairs(Class::OneAtATime), expected("deadpool", "sqlx"));
    assert_eq!(pairs(Class::Pipelined), expected("pipelined", "other"));
}
