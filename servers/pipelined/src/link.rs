//! One connection with its prepared statements, and how much is on its way on it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use front::{CONNECT_TIMEOUT, Cause, StatementId, no_answer};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use crate::gathered::Gathered;

/// A connection that any number of requests use at the same time.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: Client,
    statements: Vec<Statement>,
    /// What the statements on their way are expected to take.
    backlog_ns: AtomicU64,
    /// Requests that have taken it.
    pub(crate) requests: AtomicU32,
    /// When the latest answer was complete, after `opened`.
    answered_ns: AtomicU64,
    opened: Instant,
}

/// Why a connection could not be made.
#[derive(Debug)]
pub(crate) enum LinkError {
    Connect(Cause),
    /// The statement at this place was refused.
    Prepare(usize, Error),
}

/// Ends when the connection has.
pub(crate) type Ended = JoinHandle<Result<(), Error>>;

impl Link {
    /// Connects, and prepares every statement.
    pub(crate) async fn open(
        config: &Config,
        statements: &[String],
    ) -> Result<(Link, Ended), LinkError> {
        let opening = timeout(CONNECT_TIMEOUT, Link::open_at_leisure(config, statements));
        opening
            .await
            .unwrap_or_else(|_| Err(LinkError::Connect(no_answer())))
    }

    async fn open_at_leisure(
        config: &Config,
        statements: &[String],
    ) -> Result<(Link, Ended), LinkError> {
        let connected = config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| LinkError::Connect(error.into()))?;
        let ended = tokio::spawn(Gathered::new(connection));
        let mut prepared = Vec::with_capacity(statements.len());
        for (place, sql) in statements.iter().enumerate() {
            let statement = client.prepare(sql).await;
            prepared.push(statement.map_err(|error| LinkError::Prepare(place, error))?);
        }
        let link = Link {
            client,
            statements: prepared,
            backlog_ns: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            answered_ns: AtomicU64::new(0),
            opened: Instant::now(),
        };
        Ok((link, ended))
    }

    pub(crate) fn statement(&self, id: StatementId) -> &Statement {
        &self.statements[id.index()]
    }

    /// What a statement sent now would wait for; `None` if nothing can be sent any more.
    pub(crate) fn backlog_ns(&self) -> Option<u64> {
        (!self.client.is_closed()).then(|| self.backlog_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn expect(&self, cost_ns: u64) {
        self.backlog_ns.fetch_add(cost_ns, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, cost_ns: u64) {
        self.backlog_ns.fetch_sub(cost_ns, Ordering::Relaxed);
    }

    /// Notes that a statement sent at `sent` has been answered. Gives how long the connection worked on it: since it was
    /// sent, or since the answer before if that was later.
    pub(crate) fn answered(&self, sent: Instant) -> Duration {
        let now_ns = nanoseconds(self.opened.elapsed());
        let sent_ns = nanoseconds(sent.saturating_duration_since(self.opened));
        let before_ns = self.answered_ns.fetch_max(now_ns, Ordering::Relaxed);
        Duration::from_nanos(now_ns.saturating_sub(before_ns.max(sent_ns)))
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
