//! The harness of lanebench: it provides the database, runs the servers as processes, measures, verifies and reports.

pub mod campaign;
pub mod checks;
pub mod cli;
pub mod cpu_time;
pub mod cpus;
pub mod database;
pub mod doctor;
pub mod environment;
pub mod expected;
pub mod folders;
pub mod generator;
pub mod inspection;
pub mod list;
pub mod load_command;
pub mod monitor;
pub mod process;
pub mod progress;
pub mod provision;
pub mod relay;
pub mod run;
pub mod selection;
pub mod server;
pub mod signals;
pub mod table;
pub mod trial;
pub mod verify;
