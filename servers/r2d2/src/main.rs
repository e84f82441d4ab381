//! The lane `r2d2`: postgres, blocking, with r2d2 as its pool, on a bounded number of threads.

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<server_r2d2::R2d2>()
}
