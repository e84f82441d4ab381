//! What the handlers of one server share, and the path every request to the database takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::response::Response;
use tokio::time::timeout;

use crate::admission::Admission;
use crate::live::Live;
use crate::log::Log;
use crate::timings::Timings;
use crate::{Config, Failure, Front, Lane, Timing, Work};

/// What a request may take beyond the two waits it is allowed: the time PostgreSQL needs to end a statement.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct App<L> {
    pub(crate) lane: L,
    pub(crate) config: Config,
    pub(crate) admission: Admission,
    pub(crate) failures: Failures,
    /// Transactions that were begun again, for the sake of another one.
    pub(crate) retries: Arc<AtomicU64>,
    pub(crate) timings: Timings,
    pub(crate) live: Live,
    pub(crate) started: Instant,
    deadline: Duration,
    log: Log,
}

/// Requests that were admitted and failed, by cause.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) no_connection: AtomicU64,
    pub(crate) connection_lost: AtomicU64,
    pub(crate) statement_timeout: AtomicU64,
    pub(crate) conflict: AtomicU64,
    pub(crate) database: AtomicU64,
}

impl<L: Lane> App<L> {
    pub(crate) fn new(lane: L, config: Config) -> App<L> {
        App {
            lane,
            admission: Admission::new(config.pool, config.queue),
            failures: Failures::default(),
            retries: Arc::default(),
            timings: Timings::new(config.timings == Timing::On),
            live: Live::default(),
            started: Instant::now(),
            deadline: config.queue_wait + config.statement_timeout + GRACE,
            log: Log::default(),
            config,
        }
    }

    /// A request's way to the database and back: a place while the lane does `work`, then the body, and the time of
    /// each stage. The lane has until the deadline, which is for a database that has gone silent; a slow statement is
    /// ended by PostgreSQL before it. Where the lane blocks the thread that is asking, nobody could tell the time.
    pub(crate) async fn ask_the_database<W: Work, T>(
        &self,
        work: W,
        encode: impl FnOnce(W::Answer) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut laps = self.timings.start();
        let place = self.admission.admit()?;
        laps.admitted();
        let asked = self.lane.run(work, laps);
        let asked = match L::FRONT {
            Front::Tasks => timeout(self.deadline, asked).await,
            Front::ThreadPerConnection => Ok(asked.await),
        };
        drop(place);
        let (answer, mut laps) = asked.unwrap_or(Err(Failure::StatementTimeout))?;
        laps.handed_over();
        let body = encode(answer)?;
        self.timings.record(laps);
        Ok(body)
    }

    /// The answer to a failure, which is noted.
    pub(crate) fn fail(&self, failure: Failure) -> Response {
        self.note(&failure);
        self.refuse(failure)
    }

    /// The answer to a failure that has been noted.
    pub(crate) fn refuse(&self, failure: Failure) -> Response {
        failure.into_response(self.config.queue_wait)
    }

    /// Counts a failure, and logs it if the operator can do something about it.
    pub(crate) fn note(&self, failure: &Failure) {
        let counter = match failure {
            // The client's own doing, or counted by the admission.
            Failure::BadId
            | Failure::BadParameter(_)
            | Failure::BadBody(_)
            | Failure::TooLarge
            | Failure::NoRoute
            | Failure::WrongMethod
            | Failure::Absent
            | Failure::Exists
            | Failure::ClientGone
            | Failure::NoMoreSubscribers
            | Failure::QueueFull => None,
            Failure::NoConnection => Some(&self.failures.no_connection),
            Failure::ConnectionLost(_) => Some(&self.failures.connection_lost),
            Failure::StatementTimeout => Some(&self.failures.statement_timeout),
            Failure::Conflict(_) => Some(&self.failures.conflict),
            Failure::Database(_) => Some(&self.failures.database),
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if let Failure::ConnectionLost(_) | Failure::Database(_) = failure {
            self.log.failure(failure);
        }
    }
}
