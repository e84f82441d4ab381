//! The instants of an open loop as a function of one global index: integer nanoseconds, made
//! beforehand, the same for any number of workers.

use crate::clock::Nanos;
use crate::schedule::{Arrivals, Due, Stripe};

/// The arrivals of an open loop, over one global index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timetable {
    arrivals: Arrivals,
    microhertz: u128,
    /// The window's end.
    end: Nanos,
    /// Indices below this are due in the warm-up.
    pub(crate) warmup_count: u64,
    /// Indices below this are due before the window's end; there are no others.
    pub(crate) total_count: u64,
}

/// Nanoseconds in a second times microhertz in a hertz.
const SCALE: u128 = 1_000_000_000_000_000;

impl Timetable {
    /// `rate` was validated. For Poisson this walks over all arrivals once, at about 10 ns each.
    pub(crate) fn new(rate: f64, arrivals: Arrivals, warmup: Nanos, window: Nanos) -> Timetable {
        // The rate is at least 0.001 and at most 10^7, so this is exact enough and in range.
        let microhertz = (rate * 1e6).round() as u128;
        let mut timetable = Timetable {
            arrivals,
            microhertz,
            end: warmup.saturating_add(window),
            warmup_count: 0,
            total_count: u64::MAX,
        };
        timetable.warmup_count = timetable.count_before(warmup);
        timetable.total_count = timetable.count_before(timetable.end);
        timetable
    }

    fn count_before(&self, offset: Nanos) -> u64 {
        match self.arrivals {
            // floor(i * SCALE / f) < offset  <=>  i < ceil(offset * f / SCALE)
            Arrivals::Uniform => {
                u64::try_from((u128::from(offset) * self.microhertz).div_ceil(SCALE))
                    .unwrap_or(u64::MAX)
            }
            Arrivals::Poisson { seed } => {
                let mut walk = PoissonWalk::new(seed, self.microhertz);
                while walk.offset() < offset {
                    walk.step();
                }
                walk.index
            }
        }
    }

    fn uniform_offset(&self, index: u64) -> Nanos {
        u64::try_from(u128::from(index) * SCALE / self.microhertz).unwrap_or(u64::MAX)
    }
}

/// The sum of exponential distances up to one index.
#[derive(Debug, Clone, Copy)]
struct PoissonWalk {
    seed: u64,
    mean_gap: f64,
    index: u64,
    offset: f64,
}

impl PoissonWalk {
    fn new(seed: u64, microhertz: u128) -> PoissonWalk {
        let mut walk = PoissonWalk {
            seed,
            mean_gap: 1e15 / microhertz as f64,
            index: 0,
            offset: 0.0,
        };
        walk.offset = walk.gap(0);
        walk
    }

    fn step(&mut self) {
        self.index += 1;
        self.offset += self.gap(self.index);
    }

    fn offset(&self) -> Nanos {
        self.offset as Nanos
    }

    /// Inversion: -ln(u) of a uniform u in (0, 1] is exponential with mean 1.
    fn gap(&self, index: u64) -> f64 {
        let uniform = ((scramble(self.seed, index) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln() * self.mean_gap
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014) as a counter-based generator.
fn scramble(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// One worker's walk through the timetable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    timetable: Timetable,
    stripe: Stripe,
    index: u64,
    offset: Nanos,
    poisson: Option<PoissonWalk>,
}

impl Cursor {
    pub(crate) fn new(timetable: Timetable, stripe: Stripe) -> Cursor {
        let poisson = match timetable.arrivals {
            Arrivals::Uniform => None,
            Arrivals::Poisson { seed } => Some(PoissonWalk::new(seed, timetable.microhertz)),
        };
        let mut cursor = Cursor {
            timetable,
            stripe,
            index: 0,
            offset: 0,
            poisson,
        };
        cursor.move_to(stripe.first);
        cursor
    }

    /// The next arrival's distance from the start of the run; `None` when there are no more.
    pub(crate) fn offset(&self) -> Option<Nanos> {
        (self.index < self.timetable.total_count).then_some(self.offset)
    }

    /// The next arrival's global index.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// How many arrivals of this stripe lie before `offset`.
    pub(crate) fn due_before(&self, offset: Nanos) -> Due {
        let Timetable {
            warmup_count,
            total_count,
            ..
        } = self.timetable;
        // The whole table is counted already; walking it again would take time at the end of a run.
        let total = if offset >= self.timetable.end {
            total_count
        } else {
            self.timetable.count_before(offset)
        };
        let warmup = self.stripe.count_below(warmup_count.min(total));
        Due {
            warmup,
            window: self.stripe.count_below(total) - warmup,
        }
    }

    pub(crate) fn advance(&mut self) {
        self.move_to(self.index + self.stripe.stride);
    }

    fn move_to(&mut self, index: u64) {
        self.index = index;
        self.offset = match &mut self.poisson {
            None => self.timetable.uniform_offset(index),
            Some(walk) => {
                while walk.index < index {
                    walk.step();
                }
                walk.offset()
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use proptest::prelude::*;

    fn offsets(timetable: Timetable, first: u64, stride: u64) -> Vec<Nanos> {
        let mut cursor = Cursor::new(timetable, Stripe { first, stride });
        std::iter::from_fn(|| {
            let offset = cursor.offset()?;
            cursor.advance();
            Some(offset)
        })
        .collect()
    }

    #[test]
    fn uniform_arrivals_are_the_closed_form_and_do_not_drift() {
        let timetable = Timetable::new(3.0, Arrivals::Uniform, SECOND, 1_000_000 * SECOND);
        assert_eq!(
            (timetable.warmup_count, timetable.total_count),
            (3, 3_000_003)
        );
        assert_eq!(timetable.uniform_offset(1), 333_333_333);
        assert_eq!(timetable.uniform_offset(3_000_000), 1_000_000 * SECOND);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_independent_users() {
        let timetable = Timetable::new(1000.0, Arrivals::Poisson { seed: 7 }, 0, 100 * SECOND);
        let all = offsets(timetable, 0, 1);
        // 100,000 expected, standard deviation 316.
        assert!((98_700..101_300).contains(&all.len()), "{}", all.len());
        let gaps: Vec<f64> = all
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let coefficient = variance.sqrt() / mean;
        assert!((0.98..1.02).contains(&coefficient), "{coefficient}");
    }

    proptest! {
        #[test]
        fn any_number_of_workers_sends_the_same_schedule(
            rate in 0.5f64..20_000.0,
            workers in 1u64..9,
            poisson in any::<Option<u64>>(),
        ) {
            let arrivals = poisson.map_or(Arrivals::Uniform, |seed| Arrivals::Poisson { seed });
            let timetable = Timetable::new(rate, arrivals, SECOND / 10, SECOND / 5);
            let one = offsets(timetable, 0, 1);
            let mut many: Vec<Nanos> = (0..workers).flat_map(|first| offsets(timetable, first, workers)).collect();
            many.sort_unstable();
            prop_assert_eq!(&one, &many);
            prop_assert!(one.is_sorted());
            prop_assert_eq!(one.len() as u64, timetable.total_count);
            prop_assert_eq!(one.iter().filter(|&&offset| offset < SECOND / 10).count() as u64, timetable.warmup_count);
            prop_assert!(one.iter().all(|&offset| offset < 3 * SECOND / 10));
            let counted: u64 = (0..workers).map(|first| Stripe { first, stride: workers }.count_below(timetable.total_count)).sum();
            prop_assert_eq!(counted, timetable.total_count);
        }
    }
}
