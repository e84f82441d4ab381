//! What blocking lanes on r2d2 have in common, whatever their driver: a pool that is opened whole, and a bounded number
//! of threads that wait for the database while the front does not.

mod pool;
mod threads;

pub use pool::{PARITY, in_use, open};
pub use threads::{THREADS, Threads};
