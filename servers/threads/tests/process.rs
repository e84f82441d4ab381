//! The checks of the process contract that need no database, for this server.

#![allow(clippy::unwrap_used)]

#[path = "../../front/tests/process/checks.rs"]
mod checks;

const SERVER: &str = env!("CARGO_BIN_EXE_server-threads");
