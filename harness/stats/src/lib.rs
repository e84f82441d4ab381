//! Statistics as pure functions: no input or output, no clock, no global state.

mod bootstrap;
mod capacity;
mod comparison;
mod firmness;
mod holm;
mod interval;
mod mean;
mod noise;
mod order;
mod outliers;
mod percentile;
mod queue;
mod random;
mod steady;
mod stopping;
mod summary;
mod usl;
mod welch;
mod wilcoxon;

pub use bootstrap::{RESAMPLES, bootstrap_t};
pub use capacity::{Capacity, CapacitySearch, Miss, Probe, RateOutcome, SearchedRates};
pub use comparison::{
    Better, Comparison, FamilyVerdict, Question, Verdict, family_verdicts, log_ratio,
};
pub use firmness::{Firmness, firmness};
pub use holm::holm;
pub use interval::Interval;
pub use mean::Mean;
pub use noise::NoiseFloor;
pub use order::{block_orders, rung_order};
pub use outliers::{Outlier, outliers};
pub use percentile::nearest_rank;
pub use queue::{ExpectedResponse, FixedService};
pub use steady::{Course, Segment, SteadyState, steady_state};
pub use stopping::{LOOKS, NextStep, Watched, WatchedRatio, likely_blocks, next_step};
pub use summary::{Spread, median};
pub use usl::{Parameter, Rung, UslFit, UslRefusal};
pub use welch::Difference;
pub use wilcoxon::{SignedRank, hodges_lehmann, hodges_lehmann_shift};
