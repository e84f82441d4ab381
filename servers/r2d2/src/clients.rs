//! The pool, and the session beside it that listens.

use std::fmt;
use std::thread;

use front::{Config, Events, Failure, OpenError, PoolUse};
use r2d2::Pool;

use crate::connection::Manager;
use crate::listening::Listening;

/// A pool of `postgres` clients, each with every statement prepared.
pub struct Clients {
    /// Empty while it is being dropped, and never before.
    pool: Option<Pool<Manager>>,
    listening: Listening,
}

impl Clients {
    /// The socket, and four of the runtime that each client has to itself. Without them `postgres` panics.
    pub const FILES_EACH: u32 = 5;
    /// The crates it is made of.
    pub const CRATES: &[&str] = &["postgres", "r2d2", "r2d2_postgres", "tokio-postgres"];

    /// How pool and driver are set as they ship, for the notes of a lane.
    pub const DEFAULTS: &str = "as it ships: pings at check-out with an empty query, which is a transaction but no \
        statement; idle_timeout 10 min, max_lifetime 30 min";

    /// Opens all of `config.pool` for `lane`. Must be called within a runtime, of which it takes one blocking thread.
    ///
    /// # Errors
    /// The first connection that could not be made, or statement that was refused.
    pub async fn open(
        config: &Config,
        lane: &str,
        statements: &[String],
    ) -> Result<Clients, OpenError> {
        let manager = Manager::new(config, lane, statements)?;
        let address = manager.address.clone();
        Ok(Clients {
            pool: Some(blocking_lane::open(config, manager, &address).await?),
            listening: Listening::new(config, lane)?,
        })
    }

    /// A handle to the pool, for a thread that may block.
    ///
    /// # Errors
    /// It is being closed.
    pub fn pool(&self) -> Result<Pool<Manager>, Failure> {
        self.pool.clone().ok_or(Failure::NoConnection)
    }

    /// Listens with a session beside the pool, on a thread of its own.
    ///
    /// # Errors
    /// The session could not be opened, or was lost.
    pub async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        self.listening.listen(channel, events).await
    }

    pub fn in_use(&self) -> PoolUse {
        let pool = self.pool.as_ref();
        pool.map_or(PoolUse { size: 0, in_use: 0 }, blocking_lane::in_use)
    }
}

/// A `postgres::Client` panics when dropped on an async thread, and the last request may well end on one.
impl Drop for Clients {
    fn drop(&mut self) {
        let pool = self.pool.take();
        let closing = thread::Builder::new().spawn(move || drop(pool));
        let _ = closing.map(thread::JoinHandle::join);
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("in_use", &self.in_use())
            .finish_non_exhaustive()
    }
}
