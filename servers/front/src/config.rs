//! The flags every server takes. Each is also an environment variable; a flag wins.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

/// What a server is told at start. Validated: the pool is at least 1, and no duration is zero.
#[derive(Debug, Clone, Parser)]
#[command(about = "A server of lanebench: answers the workloads over HTTP, from PostgreSQL.")]
pub struct Config {
    /// Where to listen; port 0 takes a free one, which the ready line names.
    #[arg(long, env = "LANEBENCH_LISTEN", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,

    /// The database, such as postgres://user:password@host:5432/name. Everybody on the machine can read flags;
    /// a password is better given by the variable.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,

    /// Connections to the database.
    #[arg(long, env = "LANEBENCH_POOL", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool: u32,

    /// Threads that may wait for the database at once [default: as many as --pool]. Only a blocking lane has
    /// such threads, in one of which they serve the HTTP connections too; a nonblocking lane runs on one worker thread a
    /// core and takes no notice.
    #[arg(long, env = "LANEBENCH_THREADS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: Option<u32>,

    /// Requests admitted beyond --pool; more are answered 503 at once.
    #[arg(long, env = "LANEBENCH_QUEUE", default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub queue: u32,

    /// The longest an admitted request waits for a connection, such as 250ms or 2s.
    #[arg(long, env = "LANEBENCH_QUEUE_WAIT", default_value = "1s", value_parser = duration)]
    pub queue_wait: Duration,

    /// The longest a statement runs; PostgreSQL ends it then.
    #[arg(long, env = "LANEBENCH_STATEMENT_TIMEOUT", default_value = "5s", value_parser = duration)]
    pub statement_timeout: Duration,

    /// `parity`: pool and driver set alike in every lane. `defaults`: the library as it ships.
    #[arg(long, env = "LANEBENCH_PROFILE", default_value = "parity")]
    pub profile: Profile,

    /// Whether `/usage` tells where the time of the requests went. The clock is not read for it when `off`.
    #[arg(long, env = "LANEBENCH_TIMINGS", default_value = "on")]
    pub timings: Timing,

    /// Folder of the workloads' definitions.
    #[arg(
        long,
        env = "LANEBENCH_WORKLOADS",
        default_value = "workloads/definitions"
    )]
    pub workloads: PathBuf,

    /// Folder of the statements that the definitions name.
    #[arg(long, env = "LANEBENCH_SQL", default_value = "sql/queries")]
    pub sql: PathBuf,
}

/// How a lane sets its pool and driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    Parity,
    Defaults,
}

/// Whether requests are timed by stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    On,
    Off,
}

impl Config {
    /// Threads that may wait for the database at once, in a lane that has any.
    pub fn threads(&self) -> u32 {
        self.threads.unwrap_or(self.pool)
    }

    /// `statement_timeout` in the milliseconds PostgreSQL counts in.
    pub fn statement_timeout_ms(&self) -> u128 {
        self.statement_timeout.as_millis()
    }
}

const LONGEST: Duration = Duration::from_secs(3600);

/// A whole number with its unit, from 1ms to 3600s.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let parsed = match (number.parse(), unit) {
        (Ok(number), "ms") => Some(Duration::from_millis(number)),
        (Ok(number), "s") => Some(Duration::from_secs(number)),
        _ => None,
    };
    parsed
        .filter(|duration| !duration.is_zero() && *duration <= LONGEST)
        .ok_or_else(|| {
            "give a number and its unit from 1ms to 3600s, such as 250ms or 2s".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Config, clap::Error> {
        let given = ["server", "--database-url", "postgres://localhost/shop"];
        Config::try_parse_from(given.iter().chain(flags))
    }

    #[test]
    fn durations_carry_their_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for refused in [
            "",
            "2",
            "s",
            "-1s",
            "1.5s",
            "2 s",
            "0ms",
            "3601s",
            "99999999999999999999s",
            "1h",
        ] {
            assert!(duration(refused).is_err(), "{refused:?} was accepted");
        }
    }

    #[test]
    fn threads_default_to_the_pool() {
        assert_eq!(parse(&["--pool", "7"]).unwrap().threads(), 7);
        assert_eq!(
            parse(&["--pool", "7", "--threads", "3"]).unwrap().threads(),
            3
        );
    }

    #[test]
    fn a_pool_or_a_thread_count_of_zero_is_refused() {
        assert!(parse(&["--pool", "0"]).is_err());
        assert!(parse(&["--threads", "0"]).is_err());
        assert!(parse(&["--profile", "fast"]).is_err());
    }

    #[test]
    fn requests_are_timed_unless_told_otherwise() {
        assert_eq!(parse(&[]).unwrap().timings, Timing::On);
        assert_eq!(parse(&["--timings", "off"]).unwrap().timings, Timing::Off);
        assert!(parse(&["--timings", "maybe"]).is_err());
    }
}
