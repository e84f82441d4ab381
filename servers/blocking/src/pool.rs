//! A pool that is opened whole, off the async threads, and says why if it cannot be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use front::{CONNECT_TIMEOUT, Config, OpenError, PoolUse, Profile, no_answer};
use r2d2::{Builder, HandleError, ManageConnection, Pool, PooledConnection};
use tokio::task::spawn_blocking;

/// How often opening the pool looks whether a connection was refused.
const REFUSAL_CHECK: Duration = Duration::from_millis(50);

/// How the pool is set in the profile `parity`, for the notes of a lane.
pub const PARITY: &str = "test_on_check_out(false): no ping; connections never expire";

/// Opens all of `config.pool`. `address` is what errors name. Must be called within a runtime, of which it takes one
/// blocking thread.
///
/// # Errors
/// The first connection that could not be made, or statement that was refused.
pub async fn open<M>(config: &Config, manager: M, address: &str) -> Result<Pool<M>, OpenError>
where
    M: ManageConnection<Error = OpenError>,
{
    let (builder, size, address) = (builder(config), config.pool, address.to_owned());
    let to = address.clone();
    let opening = spawn_blocking(move || open_whole(builder, manager, size, &to)).await;
    opening.unwrap_or_else(|panicked| Err(OpenError::connection(&address, 0, size, panicked)))
}

/// What of a pool is lent now.
pub fn in_use<M: ManageConnection>(pool: &Pool<M>) -> PoolUse {
    let state = pool.state();
    PoolUse {
        size: state.connections,
        in_use: state.connections.saturating_sub(state.idle_connections),
    }
}

fn builder<M: ManageConnection>(config: &Config) -> Builder<M> {
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
fn open_whole<M>(
    builder: Builder<M>,
    manager: M,
    size: u32,
    address: &str,
) -> Result<Pool<M>, OpenError>
where
    M: ManageConnection<Error = OpenError>,
{
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
                OpenError::connection(address, opened, size, source)
            }
            Err(Some(refused)) => refused,
            Err(None) => OpenError::connection(address, opened, size, no_answer()),
        };
        return Err(refused);
    }
    Ok(pool)
}

/// The next connection; else why it was refused, as soon as that is known, or nothing if nothing came.
fn next<M: ManageConnection>(
    pool: &Pool<M>,
    refusals: &Refusals,
) -> Result<PooledConnection<M>, Option<OpenError>> {
    let end = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match (pool.get_timeout(REFUSAL_CHECK), refusals.take()) {
            (Ok(connection), _) => return Ok(connection),
            (Err(_), None) if Instant::now() < end => {}
            (Err(_), refused) => return Err(refused),
        }
    }
}

/// Keeps the last error of connecting. r2d2 retries in the background and gives whoever waits a text at best.
#[derive(Debug, Clone, Default)]
struct Refusals(Arc<Mutex<Option<OpenError>>>);

impl Refusals {
    fn take(&self) -> Option<OpenError> {
        self.last().take()
    }

    fn last(&self) -> MutexGuard<'_, Option<OpenError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandleError<OpenError> for Refusals {
    fn handle_error(&self, error: OpenError) {
        *self.last() = Some(error);
    }
}
