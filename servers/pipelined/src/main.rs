//! The lane `pipelined`: tokio-postgres on connections that all requests share. Each connection pipelines the statements
//! of the requests that use it at the same time.

mod choice;
mod flight;
mod gathered;
mod lane;
mod link;
mod session;
mod slots;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main::<lane::Pipelined>()
}
