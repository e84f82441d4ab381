//! One job a request, on a bounded number of blocking threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use blocking_lane::{PARITY, THREADS, Threads};
use diesel::r2d2::{Pool, PooledConnection};
use front::{Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work};
use pollster::block_on;

use crate::manager::Manager;
use crate::session::Lent;

/// A pool of diesel's connections, and the threads that use them.
pub(crate) struct Diesel {
    pool: Pool<Manager>,
    statements: Arc<[String]>,
    threads: Threads,
}

impl Lane for Diesel {
    const NAME: &'static str = "diesel";
    const KIND: Kind = Kind::Blocking;
    /// The part of `pq-src`'s version behind the plus sign is libpq's.
    const CRATES: &'static [&'static str] = &["diesel", "pq-src", "pq-sys", "r2d2"];

    async fn open(config: &Config, statements: &[String]) -> Result<Diesel, OpenError> {
        let manager = Manager::new(config, Diesel::NAME, statements)?;
        let statements = Arc::clone(&manager.statements);
        let address = manager.address.clone();
        Ok(Diesel {
            pool: blocking_lane::open(config, manager, &address).await?,
            statements,
            threads: Threads::new(config),
        })
    }

    async fn run<W: Work>(&self, work: W, laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let statements = Arc::clone(&self.statements);
        let job = move |connection: &mut PooledConnection<_>| {
            let mut session = Lent {
                connection,
                statements: &statements,
            };
            block_on(work.run(&mut session))
        };
        self.threads.run(self.pool.clone(), laps, job).await
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        self.threads.wait(duration).await
    }

    fn pool_use(&self) -> PoolUse {
        blocking_lane::in_use(&self.pool)
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const CACHE: &str = "diesel knows a statement of SQL text by its text: each request puts it together anew to \
            find it in diesel's cache; a query of diesel's own dialect is known by its type, which is cheaper";
        const START: &str = "diesel prepares a statement only to execute it: each is executed once as a connection is \
            made, with NULL for its parameters, in a read-only transaction that is rolled back";
        match profile {
            Profile::Parity => &[THREADS, CACHE, START, PARITY],
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

impl fmt::Debug for Diesel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diesel")
            .field("pool_use", &self.pool_use())
            .finish_non_exhaustive()
    }
}
