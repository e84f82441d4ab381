//! Opening the pool off the async threads, and one job a request on a bounded number of blocking threads.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use front::{
    CONNECT_TIMEOUT, Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work,
    no_answer,
};
use pollster::block_on;
use r2d2::{Builder, Pool, PooledConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::connection::{Manager, Refusals};

/// How often opening the pool looks whether a connection was refused.
const REFUSAL_CHECK: Duration = Duration::from_millis(50);

/// A pool of `postgres` clients, and as many permits as there are threads to use them.
pub(crate) struct R2d2 {
    /// Empty while it is being dropped, and never before.
    pool: Option<Pool<Manager>>,
    permits: Arc<Semaphore>,
    queue_wait: Duration,
}

impl Lane for R2d2 {
    const NAME: &'static str = "r2d2";
    const KIND: Kind = Kind::Blocking;
    /// The socket, and four of the runtime that each client has to itself. Without them `postgres` panics.
    const FILES_PER_CONNECTION: u32 = 5;
    const CRATES: &'static [&'static str] =
        &["postgres", "r2d2", "r2d2_postgres", "tokio-postgres"];

    async fn open(config: &Config, statements: &[String]) -> Result<R2d2, OpenError> {
        let manager = Manager::new(config, R2d2::NAME, statements)?;
        let (address, builder, size) = (manager.address.clone(), builder(config), config.pool);
        let opening = spawn_blocking(move || open_whole(builder, manager, size)).await;
        let pool = opening
            .unwrap_or_else(|panicked| Err(OpenError::connection(&address, 0, size, panicked)))?;
        let permits = Arc::new(Semaphore::new(config.threads() as usize));
        Ok(R2d2 {
            pool: Some(pool),
            permits,
            queue_wait: config.queue_wait,
        })
    }

    /// The work goes to a thread with its permit. If the request is dropped meanwhile, it goes on to its end and only
    /// then gives back first the connection, then the permit.
    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let deadline = Instant::now() + self.queue_wait;
        let permit = self.permit().await?;
        let pool = self.pool.clone().ok_or(Failure::NoConnection)?;
        on_a_thread(move || {
            let _permit = permit;
            let wait = deadline.saturating_duration_since(Instant::now());
            let mut connection = pool.get_timeout(wait).map_err(|_| Failure::NoConnection)?;
            laps.connected();
            let answer = block_on(work.run(&mut *connection))?;
            laps.decoded();
            Ok((answer, laps))
        })
        .await
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        let permit = self.permit().await?;
        on_a_thread(move || {
            let _permit = permit;
            thread::sleep(duration);
            Ok(())
        })
        .await
    }

    fn pool_use(&self) -> PoolUse {
        let state = self.pool.as_ref().map(Pool::state);
        state.map_or(PoolUse { size: 0, in_use: 0 }, |state| PoolUse {
            size: state.connections,
            in_use: state.connections.saturating_sub(state.idle_connections),
        })
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const THREADS: &str = "a job takes one of `threads` permits before it is handed to tokio's blocking pool, \
            and gives it back when its statement has ended";
        match profile {
            Profile::Parity => &[
                THREADS,
                "test_on_check_out(false): no ping; connections never expire",
            ],
            Profile::Defaults => &[
                THREADS,
                "as it ships: pings at check-out with an empty query, which is a transaction but no statement; \
                 idle_timeout 10 min, max_lifetime 30 min",
            ],
        }
    }

    /// The pool has no way to close but to be dropped.
    async fn close(&self) {}
}

impl R2d2 {
    /// One of the threads, to be waited for no longer than `queue_wait`.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = timeout(self.queue_wait, Arc::clone(&self.permits).acquire_owned()).await;
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Failure::NoConnection),
        }
    }
}

async fn on_a_thread<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(job).await;
    done.unwrap_or_else(|error| Err(Failure::Database(error.into())))
}

/// A `postgres::Client` panics when dropped on an async thread, and the last request may well end on one.
impl Drop for R2d2 {
    fn drop(&mut self) {
        let pool = self.pool.take();
        let closing = thread::Builder::new().spawn(move || drop(pool));
        let _ = closing.map(thread::JoinHandle::join);
    }
}

impl fmt::Debug for R2d2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("R2d2")
            .field("pool_use", &self.pool_use())
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
