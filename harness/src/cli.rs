//! The command line.

use clap::{Parser, Subcommand};

use crate::capacity::CapacityArgs;
use crate::compare::CompareArgs;
use crate::database;
use crate::doctor::DoctorArgs;
use crate::list::ListArgs;
use crate::live::LiveArgs;
use crate::load_command::LoadArgs;
use crate::report::ReportArgs;
use crate::run::RunArgs;
use crate::serve::ServeArgs;
use crate::verify::VerifyArgs;

/// Which database lane should a service use: a nonblocking PostgreSQL driver, or a blocking one on a bounded thread
/// pool? lanebench measures it on this machine, and shows why its answer can be trusted.
#[derive(Debug, Parser)]
#[command(name = "lanebench", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lanebench run point-read                       every lane, 1, 8 and 32 connections
  lanebench run ten-ms --pool 16 --closed 64     the concurrency model: a statement that waits 10 ms
  lanebench run point-read --serve               the same, live on a web page of this machine
  lanebench verify                               every server against every workload, no load

Exit status: 0 all rows are valid, 1 some row is not, 2 bad usage or nothing measured, 130 interrupted.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Workloads, shapes, servers and presets
    List(ListArgs),
    /// Every server against every workload, no load: answers to the byte, and what PostgreSQL sees of each
    Verify(VerifyArgs),
    /// Measure workloads, and print a table
    Run(RunArgs),
    /// The highest rate at which each lane meets a service level objective
    Capacity(CapacityArgs),
    /// Server-sent events: does every subscriber get every event, how soon, and at what cost?
    Live(LiveArgs),
    /// Two campaigns, or two servers of one: ratios, intervals and verdicts
    Compare(CompareArgs),
    /// A campaign as a page, as text for a pull request, and as a table of figures
    Report(ReportArgs),
    /// The results as a web page on this machine, live while a campaign runs
    Serve(ServeArgs),
    /// The load engine alone, against any URL
    Load(LoadArgs),
    /// Is this machine fit to measure?
    Doctor(DoctorArgs),
    /// The database by itself: start one, seed one, or print the URL of one that runs
    #[command(subcommand)]
    Database(database::command::DatabaseCommand),
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_short_flags_are_those_of_the_documents() {
        let lines = [
            "verify -w ten-ms -s sqlx,r2d2",
            "run point-read -s deadpool",
            "load http://x/ -c 1 -d 1s",
            "run point-read --serve",
            "run point-read --serve 127.0.0.1:0 -s deadpool",
            "serve results --listen 127.0.0.1:0",
            "live feed-live -s deadpool --subscribers 1,100 --events 20 --rate 10",
        ];
        for line in lines {
            let words = ["lanebench"].into_iter().chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }
}
