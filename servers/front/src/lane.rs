//! What a lane is to the front: a way to open the database, run a statement of each shape, and be observed.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use serde::Serialize;

use crate::{Config, Events, Failure, Laps, Profile, Work};

/// How long a lane may take to open one connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The name that every session of a lane has in PostgreSQL. `/about` tells it, so that sessions of several servers can be
/// told apart from outside.
pub fn application_name(lane: &str) -> String {
    format!("lanebench-{lane}")
}

/// How a server reaches PostgreSQL: driver, pool, and the threads that wait for it.
///
/// A lane keeps one statement in flight a connection, unless it is [`Kind::Pipelined`]. When the client of a request goes
/// away, its future is dropped; the statement then runs to its end, and its connection stays out of the pool until it has.
///
/// A lane tells the [`Laps`] of each request two instants, in this order and on whatever thread they happen:
/// [`connected`](Laps::connected) when the request holds its connection, before anything is sent on it, and
/// [`decoded`](Laps::decoded) when its work is done. One that is left out makes its stage part of the next. A request that
/// fails need not tell anything.
pub trait Lane: Sized + Send + Sync + 'static {
    const NAME: &'static str;
    const KIND: Kind;
    const FRONT: Front = Front::Tasks;
    /// Open files that a connection to the database takes.
    const FILES_PER_CONNECTION: u32 = 1;
    /// The crates whose versions `/about` gives.
    const CRATES: &'static [&'static str];

    /// Opens the whole pool and prepares every statement on every connection.
    ///
    /// # Errors
    /// Says what failed, for the operator; the server then does not start.
    fn open(
        config: &Config,
        statements: &[String],
    ) -> impl Future<Output = Result<Self, OpenError>> + Send;

    /// Takes a connection from the pool, does `work` on it, and gives it back.
    ///
    /// # Errors
    /// There was no connection in time, or the work failed.
    fn run<W: Work>(
        &self,
        work: W,
        laps: Laps,
    ) -> impl Future<Output = Result<(W::Answer, Laps), Failure>> + Send;

    /// Waits as this lane's programs do, without a connection: in a blocking lane, on one of its threads.
    ///
    /// # Errors
    /// No thread became free in time.
    fn wait(&self, duration: Duration) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Listens on a channel with a session of its own, beside the pool, and puts what it hears into `events`. When nobody
    /// wants it any more, the future is dropped; a lane that listens on a thread asks [`Events::wanted`]. A session that is
    /// lost must not be replaced: what was sent meanwhile would be missing from streams that go on.
    ///
    /// # Errors
    /// The session cannot be opened, or is lost, or this lane has no way to listen.
    fn listen(
        &self,
        channel: &str,
        events: Events,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let refusal = format!("this lane cannot listen on `{channel}`");
        drop(events);
        async { Err(Failure::Database(refusal.into())) }
    }

    fn pool_use(&self) -> PoolUse;

    /// What a reader of this lane's results must know about the profile.
    fn notes(profile: Profile) -> &'static [&'static str];

    /// Closes the pool. No request is in flight unless the drain ran out of time.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What serves an HTTP connection, and so what the lane's futures are polled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// A task of the runtime. The lane must not block it.
    Tasks,
    /// One of `--threads`, which the lane may block: no request is cut off there by a deadline of the front's.
    ThreadPerConnection,
}

/// Whether a thread waits while PostgreSQL works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Nonblocking,
    Blocking,
    /// Nonblocking, and requests share connections: several statements are in flight on each, and none is waited for.
    Pipelined,
}

/// The place of a statement in the list that [`Lane::open`] was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(usize);

impl StatementId {
    pub fn index(self) -> usize {
        self.0
    }
}

/// The distinct statements of all workloads. Two workloads with the same SQL share one.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    texts: Vec<String>,
}

impl Statements {
    pub(crate) fn add(&mut self, sql: &str) -> StatementId {
        let known = self.texts.iter().position(|text| text == sql);
        StatementId(known.unwrap_or_else(|| {
            self.texts.push(sql.to_owned());
            self.texts.len() - 1
        }))
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// A pool at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    /// Connections open.
    pub size: u32,
    /// Connections that no request may take just now; of a pipelined lane, those that requests are using.
    pub in_use: u32,
}

/// Why a lane could not open. Displays as one line; the causes follow in its chain.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "cannot use --database-url (DATABASE_URL); it looks like postgres://user:password@host:5432/name"
    )]
    Url(#[source] Cause),
    #[error("cannot connect to the database at {address}")]
    Connect { address: String, source: Cause },
    #[error(
        "opened {opened} of {wanted} connections to the database at {address}; lower --pool or raise max_connections"
    )]
    Pool {
        opened: u32,
        wanted: u32,
        address: String,
        source: Cause,
    },
    #[error("cannot prepare `{sql}`; is the database seeded?")]
    Prepare { sql: String, source: Cause },
}

impl OpenError {
    /// The next connection could not be made, after `opened` of `wanted`.
    pub fn connection(
        address: &str,
        opened: u32,
        wanted: u32,
        source: impl Into<Cause>,
    ) -> OpenError {
        let (address, source) = (address.to_owned(), source.into());
        match opened {
            0 => OpenError::Connect { address, source },
            _ => OpenError::Pool {
                opened,
                wanted,
                address,
                source,
            },
        }
    }

    /// A statement was refused.
    pub fn prepare(sql: &str, source: impl Into<Cause>) -> OpenError {
        OpenError::Prepare {
            sql: sql.to_owned(),
            source: source.into(),
        }
    }
}

/// What to tell of a database that takes connections and then says nothing for [`CONNECT_TIMEOUT`].
pub fn no_answer() -> Cause {
    format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()).into()
}

/// A driver's error.
pub type Cause = Box<dyn Error + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_sql_is_one_statement() {
        let mut statements = Statements::default();
        let first = statements.add("SELECT 1");
        let second = statements.add("SELECT 2");
        assert_eq!(statements.add("SELECT 1"), first);
        assert_ne!(first, second);
        assert_eq!(statements.texts(), ["SELECT 1", "SELECT 2"]);
    }
}
