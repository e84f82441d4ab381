//! Statistics as pure functions: no input or output, no clock, no global state.

mod firmness;
mod summary;

pub use firmness::{Firmness, firmness};
pub use summary::{Spread, median};
