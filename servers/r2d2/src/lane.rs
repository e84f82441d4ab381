//! One job a request on a bounded number of blocking threads.

use std::time::Duration;

use blocking_lane::{PARITY, THREADS, Threads};
use front::{Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work};
use pollster::block_on;
use r2d2::PooledConnection;

use crate::Clients;

/// A pool of `postgres` clients, and the threads that use them.
#[derive(Debug)]
pub struct R2d2 {
    clients: Clients,
    threads: Threads,
}

impl Lane for R2d2 {
    const NAME: &'static str = "r2d2";
    const KIND: Kind = Kind::Blocking;
    const FILES_PER_CONNECTION: u32 = Clients::FILES_EACH;
    const CRATES: &'static [&'static str] = Clients::CRATES;

    async fn open(config: &Config, statements: &[String]) -> Result<R2d2, OpenError> {
        Ok(R2d2 {
            clients: Clients::open(config, R2d2::NAME, statements).await?,
            threads: Threads::new(config),
        })
    }

    async fn run<W: Work>(&self, work: W, laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let pool = self.clients.pool()?;
        let job = |connection: &mut PooledConnection<_>| block_on(work.run(&mut **connection));
        self.threads.run(pool, laps, job).await
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        self.threads.wait(duration).await
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        self.clients.listen(channel, events).await
    }

    fn pool_use(&self) -> PoolUse {
        self.clients.in_use()
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        match profile {
            Profile::Parity => &[THREADS, PARITY],
            Profile::Defaults => &[THREADS, Clients::DEFAULTS],
        }
    }

    /// The pool has no way to close but to be dropped.
    async fn close(&self) {}
}
