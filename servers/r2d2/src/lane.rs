//! One job a request on a bounded number of blocking threads.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use front::{Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work};
use pollster::block_on;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::Clients;

/// A pool of `postgres` clients, and as many permits as there are threads to use them.
#[derive(Debug)]
pub struct R2d2 {
    clients: Clients,
    permits: Arc<Semaphore>,
    queue_wait: Duration,
}

impl Lane for R2d2 {
    const NAME: &'static str = "r2d2";
    const KIND: Kind = Kind::Blocking;
    const FILES_PER_CONNECTION: u32 = Clients::FILES_EACH;
    const CRATES: &'static [&'static str] = Clients::CRATES;

    async fn open(config: &Config, statements: &[String]) -> Result<R2d2, OpenError> {
        Ok(R2d2 {
            clients: Clients::open(config, R2d2::NAME, statements).await?,
            permits: Arc::new(Semaphore::new(config.threads() as usize)),
            queue_wait: config.queue_wait,
        })
    }

    /// The work goes to a thread with its permit. If the request is dropped meanwhile, it goes on to its end and only
    /// then gives back first the connection, then the permit.
    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let deadline = Instant::now() + self.queue_wait;
        let permit = self.permit().await?;
        let pool = self.clients.pool()?;
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

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        self.clients.listen(channel, events).await
    }

    fn pool_use(&self) -> PoolUse {
        self.clients.in_use()
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const THREADS: &str = "a job takes one of `threads` permits before it is handed to tokio's blocking pool, \
            and gives it back when its statement has ended";
        match profile {
            Profile::Parity => &[THREADS, Clients::PARITY],
            Profile::Defaults => &[THREADS, Clients::DEFAULTS],
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
