//! The lane `threads`: a thread for each HTTP connection, which blocks in postgres, with r2d2 as its pool. With
//! `--threads 1` it is the sequential server.

mod lane;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Threads>()
}
