//! The lane `diesel`: diesel on libpq, blocking, with r2d2 as its pool, on a bounded number of threads.

mod failure;
mod lane;
mod manager;
mod preparation;
mod row;
mod session;
mod statement;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Diesel>()
}
