//! The front: everything of a server that is not its lane. HTTP, routing, admission, encoding, what `/about` and
//! `/usage` tell, start and shutdown. Every lane runs exactly this code.
//!
//! A server's `main` calls [`main`] with its [`Lane`]. A request passes the router, takes a place ([`admission`]
//! sheds it if there is none), and awaits the lane under one deadline; [`failure`] decides the answer if that
//! fails. Routes that need no connection, which are the workloads without SQL, `/about` and `/usage`, take no place;
//! neither do subscribers, who share a session beside the pool ([`live`]).
//!
//! A lane chooses what serves a connection ([`Front`]): a task of tokio's, or one of `--threads`
//! ([`thread_per_connection`]). Where it is a thread, a request waits for one before anything else, with the bounds that
//! a wait for a connection to the database has in the other lanes: `pool + queue` requests are on their way at a time,
//! and none waits longer than `--queue-wait`. That wait comes before the stages below.
//!
//! # Where the time goes
//!
//! `/usage` has, under `timings`, how long the successful requests to the database have spent in each stage since the
//! start, so that two readings can be subtracted. Each stage begins where the one before ends; together they are the
//! time in the handler.
//!
//! | stage | until |
//! |---|---|
//! | `admission` | the request has a place; it is shed if there is none, so that nothing waits here |
//! | `connection` | it holds a connection, and in a blocking lane a thread |
//! | `database` | the answer of the last statement is decoded |
//! | `handover` | the handler goes on: the way back from a blocking lane's thread, about nothing in a nonblocking one |
//! | `encoding` | the body is ready |
//!
//! ```json
//! {"timings": {"admission": {"count": 3, "sum_ns": 171, "buckets": [[52, 1], [64, 2]]}, "connection": {}, ...}}
//! ```
//!
//! `count` and `sum_ns` are exact. A bucket is `[upper_bound_ns, count]`; empty ones are left out. A duration in it is
//! below its bound and at least 8/9 of it; where the bound is 8 ns or less, it is the one nanosecond below. `timings` is
//! null with `--timings off`, which spares the readings of the clock.

mod admission;
mod app;
mod config;
mod failure;
mod lane;
mod live;
mod log;
mod observe;
mod open_files;
mod parameters;
mod routes;
mod server;
mod session;
mod signals;
mod streamed;
mod thread_per_connection;
mod timings;
mod work;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

pub use config::{Config, Profile, Timing};
pub use failure::Failure;
pub use lane::{
    CONNECT_TIMEOUT, Cause, Front, Kind, Lane, OpenError, PoolUse, StatementId, application_name,
    no_answer,
};
pub use live::{Events, listen_statement};
pub use server::{StartError, run};
pub use session::{RowSink, Session, Work};
pub use timings::Laps;

/// How long the runtime may take to stop once the server has: what is left by then is cut off.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);

/// A whole server: reads the flags, opens the lane, serves until a signal, and stops. Exits with 0 after a drain,
/// with 2 if it was told something unusable, with 1 if anything else keeps it from starting.
pub fn main<L: Lane>() -> ExitCode {
    let config = match Config::try_parse() {
        Ok(config) => config,
        Err(error) => return refuse(&error),
    };
    match serve::<L>(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(&log::chain(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve<L: Lane>(config: &Config) -> Result<(), StartError> {
    open_files::ensure::<L>(config)?;
    let runtime = runtime::<L>(config).map_err(StartError::Runtime)?;
    let served = runtime.block_on(async {
        let shutdown = signals::first().map_err(StartError::Runtime)?;
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.map_err(|source| StartError::Listen {
            address: config.listen,
            source,
        })?;
        run::<L>(config, listener, shutdown, &mut io::stdout()).await
    });
    runtime.shutdown_timeout(STOP_TIMEOUT);
    served
}

fn runtime<L: Lane>(config: &Config) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    match (L::FRONT, L::KIND) {
        (Front::Tasks, Kind::Nonblocking | Kind::Pipelined) => &mut builder,
        // The lane's permits bound the jobs; one more thread opens and closes the pool.
        (Front::Tasks, Kind::Blocking) => {
            builder.max_blocking_threads(config.threads() as usize + 1)
        }
        // Nothing but signals and timers, and the opening of the pool.
        (Front::ThreadPerConnection, _) => builder.worker_threads(1).max_blocking_threads(1),
    };
    builder.build()
}

/// Help goes out as clap wrote it; a usage error is made one line.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        let _ = write!(io::stdout(), "{text}");
        return ExitCode::SUCCESS;
    }
    let told = text.split("\n\n").next().unwrap_or_default();
    log::line(&told.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    ExitCode::from(2)
}
