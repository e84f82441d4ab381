//! The program `lanebench`: one place that prints errors and sets the exit status.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Parser;
use harness::checks::Verdict;
use harness::cli::{Cli, Command};
use harness::signals::{self, Interrupted};
use harness::{
    capacity, compare, database, doctor, list, live, load_command, report, run, serve, verify,
};

const SOME_ROW_IS_NOT_VALID: u8 = 1;
const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match signals::install()
        .map_err(anyhow::Error::from)
        .and_then(|stop| execute(&cli, &stop))
    {
        Ok(Verdict::Valid) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(SOME_ROW_IS_NOT_VALID),
        Err(error) => {
            eprintln!("lanebench: {error:#}");
            ExitCode::from(if error.is::<Interrupted>() {
                signals::INTERRUPTED_STATUS
            } else {
                BAD_USAGE
            })
        }
    }
}

fn execute(cli: &Cli, stop: &AtomicBool) -> Result<Verdict> {
    match &cli.command {
        Command::List(args) => list::run(args).map(|()| Verdict::Valid),
        Command::Verify(args) => verify::run(args, stop),
        Command::Run(args) => run::run(args, stop),
        Command::Capacity(args) => capacity::run(args, stop),
        Command::Live(args) => live::run(args, stop),
        Command::Compare(args) => compare::run(args),
        Command::Report(args) => report::run(args).map(|()| Verdict::Valid),
        Command::Serve(args) => serve::run(args, stop).map(|()| Verdict::Valid),
        Command::Load(args) => load_command::run(args, stop),
        Command::Doctor(args) => doctor::run(args, stop),
        Command::Database(command) => {
            database::command::run(command, stop).map(|()| Verdict::Valid)
        }
    }
}
