//! The lane `r2d2`: postgres, blocking, with r2d2 as its pool, on a bounded number of threads.

mod connection;
mod lane;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::R2d2>()
}
