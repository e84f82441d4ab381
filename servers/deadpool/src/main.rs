//! The lane `deadpool`: tokio-postgres, nonblocking, with deadpool-postgres as its pool.

mod lane;
mod listening;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Deadpool>()
}
