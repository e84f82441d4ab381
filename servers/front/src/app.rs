//! What the handlers of one server share, and the path every request to the database takes.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::response::Response;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::admission::Admission;
use crate::log::Log;
use crate::timings::Timings;
use crate::{Config, Failure, Lane, Timing};

/// What a request may take beyond the two waits it is allowed: the time PostgreSQL needs to end a statement.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct App<L> {
    pub(crate) lane: L,
    pub(crate) config: Config,
    pub(crate) admission: Admission,
    pub(crate) failures: Failures,
    pub(crate) timings: Timings,
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
            timings: Timings::new(config.timings == Timing::On),
            started: Instant::now(),
            deadline: config.queue_wait + config.statement_timeout + GRACE,
            log: Log::default(),
            config,
        }
    }

    /// Runs an admitted request's work at the database, which keeps its place so long and never longer than the
    /// deadline. The deadline is for a database that has gone silent; a slow statement is ended by PostgreSQL
    /// before it.
    pub(crate) async fn at_the_database<T>(
        &self,
        _place: SemaphorePermit<'_>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.deadline, work)
            .await
            .unwrap_or(Err(Failure::StatementTimeout))
    }

    /// The answer to a failure, counted, and logged if the operator can do something about it.
    pub(crate) fn fail(&self, failure: Failure) -> Response {
        let counter = match &failure {
            // The client's own doing, or counted by the admission.
            Failure::BadId
            | Failure::NoRoute
            | Failure::NotGet
            | Failure::Absent
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
            self.log.failure(&failure);
        }
        failure.into_response(self.config.queue_wait)
    }
}
