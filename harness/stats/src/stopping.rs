//! When a campaign has measured enough.
//!
//! The rule looks at how precise a ratio is, never at what it is: stopping once a difference is significant would find
//! one between identical servers sooner or later. The width of the interval does not depend on its centre. It does vary
//! by chance, and a rule that waits for a narrow one costs some coverage: in 20,000 simulated campaigns the interval at
//! the end covered the truth in 93.7 to 94.9 % instead of 95 %, depending on the noise.

use crate::mean::Mean;

/// After how many blocks the rule looks.
pub const LOOKS: [usize; 5] = [10, 15, 20, 25, 30];

/// What has to be known precisely before a campaign may stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// To 1 %.
    Throughput,
    /// To 5 %.
    P99,
}

impl Watched {
    /// The greatest half-width of the ratio's interval that will do, as a share of the ratio.
    pub fn wanted_half_width(self) -> f64 {
        match self {
            Watched::Throughput => 0.01,
            Watched::P99 => 0.05,
        }
    }
}

/// One ratio that the rule looks at: a metric of a pair of servers at a rung.
#[derive(Debug, Clone, Copy)]
pub struct WatchedRatio<'a> {
    pub watched: Watched,
    /// `ln(a / b)` of each block.
    pub log_ratios: &'a [f64],
}

impl WatchedRatio<'_> {
    /// By what share of itself the ratio is uncertain: `exp(t s / sqrt(n)) - 1`, 95 %. Infinite where it has no
    /// interval.
    pub fn half_width(&self) -> f64 {
        self.half_width_at(self.log_ratios.len())
    }

    /// The same after so many blocks, if they scatter as those so far.
    fn half_width_at(&self, blocks: usize) -> f64 {
        let Some(mean) = Mean::of(self.log_ratios) else {
            return f64::INFINITY;
        };
        let later = Mean {
            count: blocks,
            standard_error: mean.standard_error * (mean.count as f64 / blocks as f64).sqrt(),
            ..mean
        };
        later.half_width_95().exp_m1()
    }
}

/// How many blocks it is likely to take, at least `blocks`: the look at which every ratio is precise if it goes on
/// scattering as it has. The last look, where none is.
pub fn likely_blocks(blocks: usize, ratios: &[WatchedRatio]) -> usize {
    let precise_at = |look: &usize| {
        let precise =
            |ratio: &WatchedRatio| ratio.half_width_at(*look) <= ratio.watched.wanted_half_width();
        ratios.iter().all(precise)
    };
    let mut looks = LOOKS.into_iter().filter(|look| *look >= blocks);
    let last = LOOKS[LOOKS.len() - 1];
    looks.find(precise_at).unwrap_or(last).max(blocks)
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Run blocks until there are this many, then look again.
    RunUntil { blocks: usize },
    /// Every watched ratio is as precise as wanted.
    Precise,
    /// The last look, and some ratio is not as precise as wanted: the report says how precise it is.
    Exhausted,
}

/// The rule, asked after `blocks` valid blocks. With nothing to watch, all the blocks are run.
pub fn next_step(blocks: usize, ratios: &[WatchedRatio]) -> NextStep {
    let next_look = LOOKS.into_iter().find(|look| *look > blocks);
    let precise = !ratios.is_empty()
        && ratios
            .iter()
            .all(|ratio| ratio.half_width() <= ratio.watched.wanted_half_width());
    match next_look {
        Some(look) if !LOOKS.contains(&blocks) || !precise => NextStep::RunUntil { blocks: look },
        _ if precise => NextStep::Precise,
        _ => NextStep::Exhausted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log ratios around `centre`, as far apart as `spread`.
    fn ratios(count: usize, centre: f64, spread: f64) -> Vec<f64> {
        (0..count)
            .map(|block| centre + if block % 2 == 0 { spread } else { -spread })
            .collect()
    }

    fn after(blocks: usize, watched: Watched, log_ratios: &[f64]) -> NextStep {
        next_step(
            blocks,
            &[WatchedRatio {
                watched,
                log_ratios,
            }],
        )
    }

    #[test]
    fn ten_precise_blocks_are_enough() {
        let precise = ratios(10, 0.0, 0.005);
        assert_eq!(after(10, Watched::Throughput, &precise), NextStep::Precise);
    }

    #[test]
    fn an_imprecise_ratio_runs_to_the_next_look_and_at_most_thirty_blocks() {
        for (blocks, next) in [
            (10, NextStep::RunUntil { blocks: 15 }),
            (25, NextStep::RunUntil { blocks: 30 }),
            (30, NextStep::Exhausted),
        ] {
            let noisy = ratios(blocks, 0.0, 0.1);
            assert_eq!(after(blocks, Watched::Throughput, &noisy), next);
        }
    }

    #[test]
    fn nothing_stops_a_campaign_between_looks() {
        let precise = ratios(12, 0.0, 0.0);
        let next = NextStep::RunUntil { blocks: 15 };
        assert_eq!(after(12, Watched::Throughput, &precise), next);
        let next = NextStep::RunUntil { blocks: 10 };
        assert_eq!(after(0, Watched::Throughput, &[]), next);
    }

    #[test]
    fn p99_needs_less_precision_than_throughput() {
        let middling = ratios(10, 0.0, 0.04);
        assert_eq!(after(10, Watched::P99, &middling), NextStep::Precise);
        let next = NextStep::RunUntil { blocks: 15 };
        assert_eq!(after(10, Watched::Throughput, &middling), next);
    }

    #[test]
    fn every_watched_ratio_has_to_be_precise() {
        let (precise, noisy) = (ratios(10, 0.0, 0.001), ratios(10, 0.0, 0.2));
        let watched = |watched, log_ratios| WatchedRatio {
            watched,
            log_ratios,
        };
        let both = [
            watched(Watched::Throughput, &precise[..]),
            watched(Watched::P99, &noisy[..]),
        ];
        assert_eq!(next_step(10, &both), NextStep::RunUntil { blocks: 15 });
        assert_eq!(next_step(10, &[]), NextStep::RunUntil { blocks: 15 });
    }

    #[test]
    fn how_long_it_takes_is_foreseen_from_the_scatter_so_far() {
        let likely = |count, spread| {
            let log_ratios = &ratios(count, 0.1, spread)[..];
            let watched = Watched::Throughput;
            likely_blocks(
                10,
                &[WatchedRatio {
                    watched,
                    log_ratios,
                }],
            )
        };
        assert_eq!(likely(4, 0.005), 10);
        assert_eq!(likely(8, 0.5), 30);
        // 0.02 / sqrt(20) * t(0.975, 19) = 0.0094.
        assert_eq!(likely(40, 0.02), 20);
        assert_eq!(likely(1, 0.0), 30);
    }

    #[test]
    fn the_size_of_a_difference_never_changes_the_step() {
        for spread in [0.001, 0.010, 0.012, 0.014, 0.016, 0.05] {
            let step = |centre| after(10, Watched::Throughput, &ratios(10, centre, spread));
            assert_eq!(step(0.0), step(0.5));
            assert_eq!(step(0.0), step(-0.5));
        }
    }
}
