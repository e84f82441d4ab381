//! Opening the pool off the async threads, and one job a request on a bounded number of blocking threads.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use diesel::r2d2::{Builder, Pool, PooledConnection};
use front::{
    CONNECT_TIMEOUT, Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work,
    no_answer,
};
use pollster::block_on;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::manager::{Manager, Refusals};
use crate::session::Lent;

/// How often opening the pool looks whether a connection was refused.
const REFUSAL_CHECK: Duration = Duration::from_millis(50);

/// A pool of diesel's connections, and as many permits as there are threads to use them.
pub(crate) struct Diesel {
    pool: Pool<Manager>,
    statements: Arc<[String]>,
    permits: Arc<Semaphore>,
    queue_wait: Duration,
}

impl Lane for Diesel {
    const NAME: &'static str = "diesel";
    const KIND: Kind = Kind::Blocking;
    /// The part of `pq-src`'s version behind the plus sign is libpq's.
    const CRATES: &'static [&'static str] = &["diesel", "pq-src", "pq-sys", "r2d2"];

    async fn open(config: &Config, statements: &[String]) -> Result<Diesel, OpenError> {
        let manager = Manager::new(config, Diesel::NAME, statements)?;
        let statements = Arc::clone(&manager.statements);
        let (address, builder, size) = (manager.address.clone(), builder(config), config.pool);
        let opening = spawn_blocking(move || open_whole(builder, manager, size)).await;
        let pool = opening
            .unwrap_or_else(|panicked| Err(OpenError::connection(&address, 0, size, panicked)))?;
        Ok(Diesel {
            pool,
            statements,
            permits: Arc::new(Semaphore::new(config.threads() as usize)),
            queue_wait: config.queue_wait,
        })
    }

    /// The work goes to a thread with its permit. If the request is dropped meanwhile, it goes on to its end and only
    /// then gives back first the connection, then the permit.
    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let deadline = Instant::now() + self.queue_wait;
        let permit = self.permit().await?;
        let (pool, statements) = (self.pool.clone(), Arc::clone(&self.statements));
        on_a_thread(move || {
            let _permit = permit;
            let wait = deadline.saturating_duration_since(Instant::now());
            let mut connection = pool.get_timeout(wait).map_err(|_| Failure::NoConnection)?;
            laps.connected();
            let mut session = Lent {
                connection: &mut connection,
                statements: &statements,
            };
            let answer = block_on(work.run(&mut session))?;
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
        let state = self.pool.state();
        PoolUse {
            size: state.connections,
            in_use: state.connections.saturating_sub(state.idle_connections),
        }
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const THREADS: &str = "a job takes one of `threads` permits before it is handed to tokio's blocking pool, \
            and gives it back when its statement has ended";
        const CACHE: &str = "diesel knows a statement of SQL text by its text: each request puts it together anew to \
            find it in diesel's cache; a query of diesel's own dialect is known by its type, which is cheaper";
        const START: &str = "diesel prepares a statement only to execute it: each is executed once as a connection is \
            made, with NULL for its parameters, in a read-only transaction that is rolled back";
        match profile {
            Profile::Parity => &[
                THREADS,
                CACHE,
                START,
                "test_on_check_out(false): no ping; connections never expire",
            ],
            Profile::Defaults => &[
                THREADS,
                CACHE,
                START,
                "as it ships: pings at check-out with SELECT 1, which is a statement and a transaction; \
                 idle_timeout 10 min, max_lifetime 30 min",
            ],
        }
    }

    /// The pool has no way to close but to be dropped.
    async fn close(&self) {}
}

impl Diesel {
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

impl fmt::Debug for Diesel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diesel")
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
