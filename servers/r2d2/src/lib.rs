//! postgres with r2d2 as its pool. The lane `r2d2` waits for it on a bounded number of threads behind an async front;
//! any other lane that blocks may wait for the same [`Clients`] in its own way.

mod clients;
mod connection;
mod lane;
mod listening;

pub use clients::Clients;
pub use connection::{Connection, Manager};
pub use lane::R2d2;
