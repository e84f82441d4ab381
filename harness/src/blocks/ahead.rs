//! What a campaign has ahead of it, as far as can be foreseen: for the time left.

use std::time::Duration;

use stats::likely_blocks;

use super::{Course, as_watched};
use crate::progress::{Ahead, Step, Work};

/// Two ratios scatter by chance as they please.
const LEAST_BLOCKS_TO_FORESEE: usize = 3;

impl Course<'_> {
    /// Steps to come. `ceiling` gives how long pgbench runs after a block of a ladder's rung, if it does.
    pub fn ahead(&self, ceiling: impl Fn(usize, usize) -> Option<Duration>) -> Vec<Ahead> {
        let plan = self.plan;
        let planned = Duration::from_secs_f64(plan.warmup_seconds + plan.window_seconds);
        let mut all = Vec::new();
        for (ladder, of) in plan.ladders.iter().enumerate() {
            for rung in 0..of.rungs.len() {
                let due = (0..self.foreseen(ladder, rung))
                    .filter_map(|block| self.attempt_due(ladder, rung, block));
                let due: Vec<usize> = due.collect();
                let step = |work| Step { work, ladder, rung };
                all.push(Ahead {
                    step: step(Work::Trial),
                    count: due.len() * self.served[ladder],
                    planned,
                });
                all.extend(ceiling(ladder, rung).map(|planned| Ahead {
                    step: step(Work::Ceiling),
                    // Once a block, not once an attempt.
                    count: due.iter().filter(|attempt| **attempt == 0).count(),
                    planned,
                }));
            }
        }
        all
    }

    /// How many blocks a rung will have: where it goes on until it is precise, by how much its ratios scatter.
    fn foreseen(&self, ladder: usize, rung: usize) -> usize {
        let target = self.target(ladder, rung);
        let begun = |block: &usize| self.latest(ladder, rung, *block).is_some();
        let done = (0..target).filter(begun).count();
        let grows = self.plan.most_blocks > self.plan.blocks && self.served[ladder] > 1;
        if !grows || done < LEAST_BLOCKS_TO_FORESEE || done == target {
            return target;
        }
        let ratios = self.watched(ladder, rung);
        if ratios.is_empty() {
            return target;
        }
        let likely = likely_blocks(target, &as_watched(&ratios));
        likely.clamp(target, self.plan.most_blocks.max(target))
    }
}
