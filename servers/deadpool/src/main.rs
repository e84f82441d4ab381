//! The lane `deadpool`: tokio-postgres, nonblocking, with deadpool-postgres as its pool.

mod lane;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Deadpool>()
}
