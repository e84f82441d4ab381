//! What a campaign has still to do, told by its plan and its trials alone: an interrupted one goes on exactly where it
//! stopped.
//!
//! A block is every server once at one rung, adjacent in time. Blocks go round: the first block of every rung, in an
//! order of that round's, then the second of every rung, so that a slow drift of the machine falls on all rungs.

mod ahead;

use std::collections::HashMap;

use stats::{NextStep, Watched, WatchedRatio, block_orders, next_step, rung_order};

use crate::campaign::{Plan, ServerRecord, Trial};
use crate::checks::Verdict;
use crate::class::Class;
use crate::figures::log_ratios;
use crate::metric::Metric;
use crate::rung::Rung;

/// At most one block in so many is run again for being INVALID.
const RERUN_ONE_IN: usize = 5;

/// The next block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Indices into the plan's ladders and the ladder's rungs.
    pub ladder: usize,
    pub rung: usize,
    pub block: usize,
    pub attempt: usize,
    /// Indices into the servers that serve the workload, in the order of their trials.
    pub order: Vec<usize>,
}

/// The plan, the servers, how many of them serve each ladder's workload, and what has been measured.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    pub plan: &'a Plan,
    pub servers: &'a [ServerRecord],
    pub served: &'a [usize],
    pub trials: &'a [Trial],
}

/// Those of the latest attempt at each block: the ones that count.
pub fn counting(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    let mut latest: HashMap<_, usize> = HashMap::new();
    for trial in trials {
        let attempt = latest.entry(block_key(trial)).or_default();
        *attempt = trial.attempt.max(*attempt);
    }
    trials
        .iter()
        .filter(move |trial| latest.get(&block_key(trial)) == Some(&trial.attempt))
}

/// What trials of one block have in common, whatever the attempt.
fn block_key(trial: &Trial) -> (&str, (bool, u64, usize), usize) {
    let rung = match trial.rung {
        Rung::Closed { connections } => (false, 0, connections),
        Rung::Open { rate, connections } => (true, rate.to_bits(), connections),
    };
    (&trial.workload, rung, trial.block)
}

fn same_block(a: &Trial, b: &Trial) -> bool {
    a.block == b.block && a.rung == b.rung && a.workload == b.workload
}

impl Course<'_> {
    /// `None` when all is done.
    pub fn next(&self) -> Option<Block> {
        (0..self.plan.ladders.len()).find_map(|ladder| self.next_of_ladder(ladder))
    }

    fn next_of_ladder(&self, ladder: usize) -> Option<Block> {
        let rungs = self.plan.ladders[ladder].rungs.len();
        if self.served[ladder] == 0 {
            return None;
        }
        let targets: Vec<usize> = (0..rungs).map(|rung| self.target(ladder, rung)).collect();
        let rounds = targets.iter().copied().max().unwrap_or(0);
        (0..rounds).find_map(|block| {
            let order = rung_order(rungs, self.seed(ladder, block));
            let mut active = order.into_iter().filter(|&rung| block < targets[rung]);
            active.find_map(|rung| {
                let attempt = self.attempt_due(ladder, rung, block)?;
                Some(Block {
                    ladder,
                    rung,
                    block,
                    attempt,
                    order: self.order(ladder, rung, block),
                })
            })
        })
    }

    fn seed(&self, ladder: usize, within: usize) -> u64 {
        let place = ((ladder as u64) << 32) | within as u64;
        self.plan.seed.wrapping_add(place)
    }

    fn order(&self, ladder: usize, rung: usize, block: usize) -> Vec<usize> {
        // Another seed than the rungs' order has.
        let seed = self.seed(ladder, rung).wrapping_add(1 << 16);
        let mut orders = block_orders(self.served[ladder], block + 1, seed);
        orders.pop().unwrap_or_default()
    }

    /// How many blocks a rung is to have, as far as its trials show by now.
    fn target(&self, ladder: usize, rung: usize) -> usize {
        let Plan {
            blocks,
            most_blocks,
            ..
        } = *self.plan;
        let done = (0..most_blocks)
            .take_while(|&block| self.attempt_due(ladder, rung, block).is_none())
            .count();
        if most_blocks == blocks || self.served[ladder] < 2 || done < blocks {
            return blocks;
        }
        let ratios = self.watched(ladder, rung);
        // No two servers are of one class, so that there is no ratio to be precise about.
        if ratios.is_empty() {
            return blocks;
        }
        match next_step(done, &as_watched(&ratios)) {
            NextStep::RunUntil { blocks } => blocks.min(most_blocks),
            NextStep::Precise | NextStep::Exhausted => done,
        }
    }

    fn watched(&self, ladder: usize, rung: usize) -> Vec<(Watched, Vec<f64>)> {
        let (workload, rung) = self.at(ladder, rung);
        let all: Vec<&Trial> = counting(self.trials)
            .filter(|trial| trial.workload == workload && trial.rung == rung)
            .collect();
        let metrics: &[_] = if rung.is_open() {
            &[(Watched::P99, Metric::P99)]
        } else {
            &[
                (Watched::Throughput, Metric::Throughput),
                (Watched::P99, Metric::P99),
            ]
        };
        let of = by_subject(&all);
        let class = |place: usize| Class::of(self.servers, &of[place][0].server);
        let pairs = (0..of.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs
            .filter(|&(a, b)| class(a) == class(b))
            .flat_map(|(a, b)| {
                let (a, b) = (&of[a], &of[b]);
                metrics
                    .iter()
                    .map(move |&(watched, metric)| (watched, log_ratios(a, b, metric)))
            })
            .collect()
    }

    fn at(&self, ladder: usize, rung: usize) -> (&str, Rung) {
        let ladder = &self.plan.ladders[ladder];
        (&ladder.workload, ladder.rungs[rung])
    }

    /// The attempt that a block needs next; `None` if it is done.
    fn attempt_due(&self, ladder: usize, rung: usize, block: usize) -> Option<usize> {
        let Some((attempt, trials, invalid)) = self.latest(ladder, rung, block) else {
            return Some(0);
        };
        let complete = trials >= self.served[ladder];
        let run_again = !complete || (invalid && self.reruns_left());
        run_again.then_some(attempt + 1)
    }

    /// The latest attempt at a block, how many trials it has, and whether one of them is INVALID.
    fn latest(&self, ladder: usize, rung: usize, block: usize) -> Option<(usize, usize, bool)> {
        let (workload, rung) = self.at(ladder, rung);
        let of_block = |trial: &&Trial| {
            trial.block == block && trial.rung == rung && trial.workload == workload
        };
        let attempt = self
            .trials
            .iter()
            .filter(of_block)
            .map(|trial| trial.attempt);
        let attempt = attempt.max()?;
        let latest = self
            .trials
            .iter()
            .filter(of_block)
            .filter(|trial| trial.attempt == attempt);
        let verdicts: Vec<Verdict> = latest.map(|trial| trial.verdict).collect();
        let invalid = verdicts.contains(&Verdict::Invalid);
        Some((attempt, verdicts.len(), invalid))
    }

    /// Whether another INVALID block may be run again.
    fn reruns_left(&self) -> bool {
        let rungs: usize = self.plan.ladders.iter().map(|of| of.rungs.len()).sum();
        self.reruns() < rungs * self.plan.blocks / RERUN_ONE_IN
    }

    /// Attempts that an INVALID trial made necessary; those after an interruption are nobody's fault.
    pub fn reruns(&self) -> usize {
        let first_of_attempt = |trial: &&Trial| trial.attempt > 0 && trial.position == 0;
        let after_invalid = |trial: &&Trial| {
            self.trials.iter().any(|earlier| {
                same_block(earlier, trial)
                    && earlier.attempt + 1 == trial.attempt
                    && earlier.verdict == Verdict::Invalid
            })
        };
        let attempts = self.trials.iter().filter(first_of_attempt);
        attempts.filter(after_invalid).count()
    }
}

fn as_watched(ratios: &[(Watched, Vec<f64>)]) -> Vec<WatchedRatio<'_>> {
    let ratios = ratios.iter();
    ratios
        .map(|(watched, log_ratios)| WatchedRatio {
            watched: *watched,
            log_ratios,
        })
        .collect()
}

/// Grouped by server and profile, in the order of their first appearance.
pub fn by_subject<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
    let mut groups: Vec<Vec<&Trial>> = Vec::new();
    for &trial in trials {
        let same = |group: &&mut Vec<&Trial>| group[0].same_subject(trial);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::campaign::Window;
    use crate::made_up;

    const SERVERS: [&str; 2] = ["deadpool", "sqlx"];

    /// Trials to come.
    fn left(course: &Course<'_>) -> usize {
        let ahead = course.ahead(|_, _| None);
        ahead.iter().map(|ahead| ahead.count).sum()
    }

    fn plan(rungs: &[usize], blocks: usize, most_blocks: usize) -> Plan {
        let rungs: Vec<_> = rungs.iter().map(|&rung| made_up::closed(rung)).collect();
        let plan = serde_json::from_value(made_up::plan(&SERVERS, &rungs, blocks)).unwrap();
        Plan {
            most_blocks,
            seed: 7,
            ..plan
        }
    }

    fn trial(plan: &Plan, block: &Block, position: usize, rate: f64, verdict: Verdict) -> Trial {
        let rung = plan.ladders[0].rungs[block.rung];
        // Many enough for a p99 that is firm.
        let window = Window {
            counts: load::Counts {
                scheduled: 100_000,
                correct: 100_000,
                ..load::Counts::default()
            },
            ..serde_json::from_value(made_up::window(0, &json!(rung), 1_000.0)).unwrap()
        };
        let server = block.order[position];
        let trial = made_up::trial(&SERVERS, server, &json!(rung), rate);
        Trial {
            block: block.block,
            attempt: block.attempt,
            position,
            verdict,
            window: Some(Window {
                requests_per_second: rate,
                ..window
            }),
            ..serde_json::from_value(trial).unwrap()
        }
    }

    /// Runs a campaign with made-up figures to its end, or until it has `most` trials.
    fn run(
        plan: &Plan,
        trials: &mut Vec<Trial>,
        most: usize,
        figure: impl Fn(&Block, usize) -> (f64, Verdict),
    ) {
        let served = [SERVERS.len()];
        while let Some(block) = (Course {
            plan,
            servers: &[],
            served: &served,
            trials,
        })
        .next()
        {
            for position in 0..SERVERS.len() {
                if trials.len() == most {
                    return;
                }
                let (rate, verdict) = figure(&block, block.order[position]);
                trials.push(trial(plan, &block, position, rate, verdict));
            }
        }
    }

    #[test]
    fn a_ratio_that_nobody_reports_is_not_waited_for() {
        let plan = plan(&[8], 10, 50);
        let mut trials = Vec::new();
        // Far too noisy to stop after ten blocks.
        run(&plan, &mut trials, 2 * 10, |block, server| {
            let rate = 1_000.0 * made_up::scatter(block.block + server, 0.5);
            (rate, Verdict::Valid)
        });
        let record = |lane: &str, name: &str| {
            serde_json::from_value(json!({
                "name": name, "lane": lane, "about": "Made up.", "same_as": null, "binary_sha256": null, "says": [],
            }))
            .unwrap()
        };
        let next = |lane: &str| {
            let servers = [record("blocking", SERVERS[0]), record(lane, SERVERS[1])];
            let course = Course {
                plan: &plan,
                servers: &servers,
                served: &[2],
                trials: &trials,
            };
            course.next().map(|block| block.block)
        };
        assert_eq!([next("nonblocking"), next("pipelined")], [Some(10), None]);
    }

    fn valid(block: &Block, server: usize) -> (f64, Verdict) {
        let rate = 1_000.0 + (block.block * 7 % 5) as f64 + 50.0 * server as f64;
        (rate, Verdict::Valid)
    }

    fn sequence(trials: &[Trial]) -> Vec<(Rung, usize, String, f64)> {
        counting(trials)
            .map(|trial| {
                let rate = trial.window.as_ref().unwrap().requests_per_second;
                (trial.rung, trial.block, trial.server.clone(), rate)
            })
            .collect()
    }

    #[test]
    fn every_rung_gets_its_blocks_in_rounds_and_each_server_is_first_as_often() {
        let plan = plan(&[1, 8, 32], 4, 4);
        let mut trials = Vec::new();
        run(&plan, &mut trials, usize::MAX, valid);
        assert_eq!(trials.len(), 3 * 4 * 2);
        let rounds: Vec<usize> = trials.iter().map(|trial| trial.block).collect();
        assert!(rounds.is_sorted());
        for rung in &plan.ladders[0].rungs {
            let first = trials.iter().filter(|trial| {
                trial.rung == *rung && trial.position == 0 && trial.server == "sqlx"
            });
            assert_eq!(first.count(), 2, "{rung}");
        }
        let orders: Vec<Vec<Rung>> = (0..4)
            .map(|block| {
                let of_block = trials
                    .iter()
                    .filter(|trial| trial.block == block && trial.position == 0);
                of_block.map(|trial| trial.rung).collect()
            })
            .collect();
        assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
    }

    #[test]
    fn a_campaign_interrupted_anywhere_ends_as_if_it_had_not_been() {
        let plan = plan(&[8, 32], 10, 30);
        let mut whole = Vec::new();
        run(&plan, &mut whole, usize::MAX, valid);
        for interrupted_after in 1..whole.len() {
            let mut trials = Vec::new();
            run(&plan, &mut trials, interrupted_after, valid);
            run(&plan, &mut trials, usize::MAX, valid);
            assert_eq!(sequence(&trials), sequence(&whole), "{interrupted_after}");
        }
    }

    #[test]
    fn an_invalid_block_is_run_again_whole_and_its_trials_stay_on_record() {
        let plan = plan(&[8], 5, 5);
        let mut trials = Vec::new();
        run(&plan, &mut trials, usize::MAX, |block, server| {
            let invalid = block.block == 2 && block.attempt == 0 && server == 1;
            let verdict = if invalid {
                Verdict::Invalid
            } else {
                Verdict::Valid
            };
            (1_000.0, verdict)
        });
        assert_eq!(trials.len(), 12);
        assert_eq!(counting(&trials).count(), 10);
        assert!(counting(&trials).all(|trial| trial.verdict == Verdict::Valid));
    }

    #[test]
    fn at_most_one_block_in_five_is_run_again() {
        let plan = plan(&[8], 10, 10);
        let mut trials = Vec::new();
        let invalid = |_: &Block, _: usize| (1_000.0, Verdict::Invalid);
        run(&plan, &mut trials, usize::MAX, invalid);
        let course = Course {
            plan: &plan,
            servers: &[],
            served: &[2],
            trials: &trials,
        };
        assert_eq!((course.reruns(), trials.len()), (2, 2 * 12));
        assert_eq!(left(&course), 0);
    }

    #[test]
    fn a_failed_trial_is_a_result_and_not_run_again() {
        let plan = plan(&[8], 3, 3);
        let mut trials = Vec::new();
        let failed = |_: &Block, _: usize| (1_000.0, Verdict::Failed);
        run(&plan, &mut trials, usize::MAX, failed);
        assert_eq!(trials.len(), 6);
    }

    #[test]
    fn a_rung_goes_on_until_it_is_precise_and_no_further_than_planned() {
        let plan = plan(&[8, 32], 10, 30);
        let mut trials = Vec::new();
        // At 32 connections the two servers' ratio jumps by 20 % from block to block.
        run(&plan, &mut trials, usize::MAX, |block, server| {
            let jump = if block.rung == 1 && server == 1 {
                200.0 * (block.block % 2) as f64
            } else {
                0.0
            };
            (1_000.0 + jump, Verdict::Valid)
        });
        let blocks = |connections| {
            let of_rung = trials
                .iter()
                .filter(|trial| trial.rung.connections() == connections);
            of_rung.count() / SERVERS.len()
        };
        assert_eq!((blocks(8), blocks(32)), (10, 30));
    }

    #[test]
    fn a_campaign_that_will_go_on_until_it_is_precise_is_foreseen_to() {
        let plan = plan(&[8, 32], 10, 30);
        // At 32 connections the two servers' ratio jumps by 20 % from block to block.
        let figure = |block: &Block, server: usize| {
            let jump = if block.rung == 1 && server == 1 {
                200.0 * (block.block % 2) as f64
            } else {
                0.0
            };
            (1_000.0 + jump, Verdict::Valid)
        };
        let mut whole = Vec::new();
        run(&plan, &mut whole, usize::MAX, figure);
        for done in [16, 24, 48, 79] {
            let mut trials = Vec::new();
            run(&plan, &mut trials, done, figure);
            let course = Course {
                plan: &plan,
                servers: &[],
                served: &[2],
                trials: &trials,
            };
            // A block that is broken off is run again as a whole.
            assert_eq!(left(&course), whole.len() - done + done % 2, "{done}");
        }
    }
}
