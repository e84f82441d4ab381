//! The lane `sqlx`: sqlx, nonblocking, with its own pool.

mod lane;
mod listening;
mod row;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Sqlx>()
}
