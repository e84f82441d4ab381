//! What PostgreSQL itself saw: statements, transactions and sessions of the database under load.
//!
//! The monitor is connected to another database of the same server, so that its own work never counts as load.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use postgres::Client;

use crate::database::connection::connect;
use crate::database::{Database, Statements as Counted};
use crate::signals;

/// How long the sessions of a server that has ended may linger.
const SESSIONS_LIMIT: Duration = Duration::from_secs(10);
/// Until PostgreSQL 14 a collector process takes in statistics, about twice a second.
const COLLECTOR_LAG: Duration = Duration::from_millis(1100);
const FIRST_WITHOUT_COLLECTOR: u32 = 150_000;

/// A connection for watching.
pub struct Monitor {
    client: Client,
    database: String,
    server_version: u32,
    counted: Counted,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// Running totals of `pg_stat_statements` over every statement in the database, BEGIN and SET included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statements {
    pub calls: u64,
    pub execution_ms: f64,
}

impl Statements {
    pub fn since(self, earlier: Statements) -> Statements {
        Statements {
            calls: self.calls.saturating_sub(earlier.calls),
            execution_ms: self.execution_ms - earlier.execution_ms,
        }
    }
}

impl Monitor {
    /// # Errors
    /// The connection fails. A missing `pg_stat_statements` is no error: [`Monitor::statements`] then gives `None`.
    pub fn connect(database: &Database) -> Result<Monitor> {
        let mut client = connect(&database.monitor_url)?;
        let version: String = client
            .query_one("SHOW server_version_num", &[])?
            .try_get(0)?;
        Ok(Monitor {
            client,
            database: connect(&database.url)?
                .query_one("SELECT current_database()", &[])?
                .try_get(0)?,
            server_version: version.parse().context("server_version_num")?,
            counted: database.statements.clone(),
        })
    }

    /// Why statements are not observed; `None` when they are.
    pub fn unobserved(&self) -> Option<&str> {
        match &self.counted {
            Counted::Observed { .. } => None,
            Counted::NotObserved { reason } => Some(reason),
        }
    }

    /// `None` where `pg_stat_statements` cannot be read.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn statements(&mut self) -> Result<Option<Statements>> {
        let Counted::Observed { view } = &self.counted else {
            return Ok(None);
        };
        let query = format!(
            "SELECT coalesce(sum(s.calls), 0)::int8, coalesce(sum(s.total_exec_time), 0)::float8
             FROM {view} s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1"
        );
        let row = self.client.query_one(&query, &[&self.database])?;
        Ok(Some(Statements {
            calls: row.try_get::<_, i64>(0)?.cast_unsigned(),
            execution_ms: row.try_get(1)?,
        }))
    }

    /// Committed transactions of the database so far. Backends report theirs when they end at the latest: ask for
    /// them with [`Monitor::wait_until_alone`] before.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn commits(&mut self) -> Result<u64> {
        if self.server_version < FIRST_WITHOUT_COLLECTOR {
            thread::sleep(COLLECTOR_LAG);
        }
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
        let row = self.client.query_one(query, &[&self.database])?;
        Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
    }

    /// Sessions of clients in the database.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn sessions(&mut self) -> Result<u64> {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
        let row = self.client.query_one(query, &[&self.database])?;
        Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
    }

    /// Waits until no client has a session in the database.
    ///
    /// # Errors
    /// Some session stays, or the wait is interrupted.
    pub fn wait_until_alone(&mut self, stop: &AtomicBool) -> Result<()> {
        let alone = signals::wait_for(stop, SESSIONS_LIMIT, || {
            Ok((self.sessions()? == 0).then_some(()))
        })?;
        if alone.is_none() {
            bail!(
                "{} session(s) stay open in the database `{}`; close the programs that use it",
                self.sessions()?,
                self.database
            );
        }
        Ok(())
    }
}
