//! One job a request on a bounded number of blocking threads, behind an async front.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use front::{Config, Failure, Laps};
use r2d2::{ManageConnection, Pool, PooledConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// What the threads are, for the notes of a lane.
pub const THREADS: &str = "a job takes one of `threads` permits before it is handed to tokio's blocking pool, and gives \
    it back when its statement has ended";

/// As many permits as there are threads.
#[derive(Debug)]
pub struct Threads {
    permits: Arc<Semaphore>,
    queue_wait: Duration,
}

impl Threads {
    pub fn new(config: &Config) -> Threads {
        Threads {
            permits: Arc::new(Semaphore::new(config.threads() as usize)),
            queue_wait: config.queue_wait,
        }
    }

    /// Does a job with a connection on a thread. Both are waited for no longer than `queue_wait` together.
    ///
    /// The job takes its permit along. If the request is dropped meanwhile, the job goes on to its end and only then gives
    /// back first the connection, then the permit.
    ///
    /// # Errors
    /// There was no thread or no connection in time, or the job failed.
    pub async fn run<M: ManageConnection, T: Send + 'static>(
        &self,
        pool: Pool<M>,
        mut laps: Laps,
        job: impl FnOnce(&mut PooledConnection<M>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, Laps), Failure> {
        let deadline = Instant::now() + self.queue_wait;
        let permit = self.permit().await?;
        on_a_thread(move || {
            let _permit = permit;
            let wait = deadline.saturating_duration_since(Instant::now());
            let mut connection = pool.get_timeout(wait).map_err(|_| Failure::NoConnection)?;
            laps.connected();
            let answer = job(&mut connection)?;
            laps.decoded();
            Ok((answer, laps))
        })
        .await
    }

    /// Sleeps on a thread.
    ///
    /// # Errors
    /// There was no thread in time.
    pub async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        let permit = self.permit().await?;
        on_a_thread(move || {
            let _permit = permit;
            thread::sleep(duration);
            Ok(())
        })
        .await
    }

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
