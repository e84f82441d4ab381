//! The pool: opened whole, and opened and closed off the async threads.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use front::{CONNECT_TIMEOUT, Config, Events, Failure, OpenError, PoolUse, Profile, no_answer};
use r2d2::{Builder, Pool, PooledConnection};
use tokio::task::spawn_blocking;

use crate::connection::{Manager, Refusals};
use crate::listening::Listening;

/// How often opening the pool looks whether a connection was refused.
const REFUSAL_CHECK: Duration = Duration::from_millis(50);

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

    /// How pool and driver are set, for the notes of a lane.
    pub const PARITY: &str = "test_on_check_out(false): no ping; connections never expire";
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
        let (address, builder, size) = (manager.address.clone(), builder(config), config.pool);
        let opening = spawn_blocking(move || open_whole(builder, manager, size)).await;
        let pool = opening
            .unwrap_or_else(|panicked| Err(OpenError::connection(&address, 0, size, panicked)))?;
        Ok(Clients {
            pool: Some(pool),
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
        let state = self.pool.as_ref().map(Pool::state);
        state.map_or(PoolUse { size: 0, in_use: 0 }, |state| PoolUse {
            size: state.connections,
            in_use: state.connections.saturating_sub(state.idle_connections),
        })
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

fn builder(config: &Config) -> Builder<Manager> {
    let builder = Pool::builder().max_size(config.pool);
    match config.profile {
        Profile::Parity => builder
            .min_idle(Some(config.pool))
            .connection_timeout(config.queue_wait)
            .test_on_check_out(false)
            .idle_timeout(None)
            .max_lifetime(None),
        Profile::Defaults => builder,
    }
}

/// Takes every connection before giving one back, so that the pool has to open them all.
fn open_whole(
    builder: Builder<Manager>,
    manager: Manager,
    size: u32,
) -> Result<Pool<Manager>, OpenError> {
    let address = manager.address.clone();
    let refusals = Refusals::default();
    let pool = builder
        .error_handler(Box::new(refusals.clone()))
        .build_unchecked(manager);
    let mut connections = Vec::new();
    for opened in 0..size {
        let refused = match next(&pool, &refusals) {
            Ok(connection) => {
                connections.push(connection);
                continue;
            }
            Err(Some(OpenError::Connect { source, .. })) => {
                OpenError::connection(&address, opened, size, source)
            }
            Err(Some(refused)) => refused,
            Err(None) => OpenError::connection(&address, opened, size, no_answer()),
        };
        return Err(refused);
    }
    Ok(pool)
}

/// The next connection; else why it was refused, as soon as that is known, or nothing if nothing came.
fn next(
    pool: &Pool<Manager>,
    refusals: &Refusals,
) -> Result<PooledConnection<Manager>, Option<OpenError>> {
    let end = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match (pool.get_timeout(REFUSAL_CHECK), refusals.take()) {
            (Ok(connection), _) => return Ok(connection),
            (Err(_), None) if Instant::now() < end => {}
            (Err(_), refused) => return Err(refused),
        }
    }
}
