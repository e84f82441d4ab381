//! A connection to the database from the pool, used on the thread that serves the HTTP connection.

use std::thread;
use std::time::Duration;

use blocking_lane::PARITY;
use front::{Config, Events, Failure, Front, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work};
use server_r2d2::Clients;

/// A pool of `postgres` clients. The threads that use them are the front's.
#[derive(Debug)]
pub(crate) struct Threads {
    clients: Clients,
    queue_wait: Duration,
}

impl Lane for Threads {
    const NAME: &'static str = "threads";
    const KIND: Kind = Kind::Blocking;
    const FRONT: Front = Front::ThreadPerConnection;
    const FILES_PER_CONNECTION: u32 = Clients::FILES_EACH;
    const CRATES: &'static [&'static str] = Clients::CRATES;

    async fn open(config: &Config, statements: &[String]) -> Result<Threads, OpenError> {
        Ok(Threads {
            clients: Clients::open(config, Threads::NAME, statements).await?,
            queue_wait: config.queue_wait,
        })
    }

    /// Blocks where it is polled. It is suspended only in the middle of a stream, until the client has taken more of it.
    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let connection = self.clients.pool()?.get_timeout(self.queue_wait);
        let mut connection = connection.map_err(|_| Failure::NoConnection)?;
        laps.connected();
        let answer = work.run(&mut *connection).await?;
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        thread::sleep(duration);
        Ok(())
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        self.clients.listen(channel, events).await
    }

    fn pool_use(&self) -> PoolUse {
        self.clients.in_use()
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const THREADS: &str = "one of `threads` threads serves an HTTP connection and blocks in its statements; others \
            wait for it with their requests, which is no stage of `timings`, and a connection keeps its thread while \
            nobody does";
        const OBSERVED: &str = "/about and /usage never wait: the thread that accepts answers them";
        match profile {
            Profile::Parity => &[THREADS, OBSERVED, PARITY],
            Profile::Defaults => &[THREADS, OBSERVED, Clients::DEFAULTS],
        }
    }

    /// The pool has no way to close but to be dropped.
    async fn close(&self) {}
}
