//! What PostgreSQL itself saw: statements, transactions and sessions of the database under load.
//!
//! The monitor is connected to another database of the same server, so that its own work never counts as load.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Statement};

use crate::database::connection::connect;
use crate::database::{Database, Statements as Counted};
use crate::signals;

/// How long the sessions of a server that has ended may linger.
const SESSIONS_LIMIT: Duration = Duration::from_secs(10);
/// Until PostgreSQL 14 a collector process takes in statistics, about twice a second.
const COLLECTOR_LAG: Duration = Duration::from_millis(1100);
const FIRST_WITHOUT_COLLECTOR: u32 = 150_000;

/// Counts its checkpoints in a view of its own.
const FIRST_WITH_CHECKPOINTER_VIEW: u32 = 170_000;
/// How many queries a figure names.
const QUERIES_NAMED: usize = 5;

/// How long a connection that was lost is tried to be had again: PostgreSQL may be starting anew.
const RECONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A connection for watching.
pub struct Monitor {
    client: Client,
    source: Source,
    /// The backend of this connection.
    pub pid: i32,
    database: String,
    /// Of the database under load.
    pub database_oid: u32,
    server_version: u32,
    /// Prepared, since they are asked within the window; the first only where statements are counted.
    statements: Option<Statement>,
    vitals: Statement,
}

/// Where it connects to, and by which view statements are counted.
#[derive(Clone)]
struct Source {
    url: String,
    target_url: String,
    counted: Counted,
    /// The names of sessions that may be there while they do nothing: those of servers that run already.
    attached: Vec<String>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// Running totals of `pg_stat_statements` over every statement in the database, BEGIN and SET included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statements {
    pub calls: u64,
    pub rows: u64,
    pub execution_ms: f64,
}

impl Statements {
    pub fn since(self, earlier: Statements) -> Statements {
        Statements {
            calls: self.calls.saturating_sub(earlier.calls),
            rows: self.rows.saturating_sub(earlier.rows),
            execution_ms: self.execution_ms - earlier.execution_ms,
        }
    }

    pub fn mean_ms(self) -> Option<f64> {
        (self.calls > 0).then(|| self.execution_ms / self.calls as f64)
    }
}

/// The same, by query id. Shown, it names the most frequent ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queries(BTreeMap<i64, Statements>);

impl<const N: usize> From<[(i64, Statements); N]> for Queries {
    fn from(queries: [(i64, Statements); N]) -> Queries {
        Queries(queries.into())
    }
}

impl Queries {
    /// What was executed since `earlier`; without the queries that were not.
    pub fn since(&self, earlier: &Queries) -> Queries {
        let newer = self.0.iter().map(|(&id, &now)| {
            let before = earlier.0.get(&id).copied().unwrap_or_default();
            (id, now.since(before))
        });
        Queries(
            newer
                .filter(|(_, statements)| statements.calls > 0)
                .collect(),
        )
    }

    /// How often each was executed.
    pub fn calls(&self) -> impl Iterator<Item = u64> {
        self.0.values().map(|statements| statements.calls)
    }

    /// The query that took the most time.
    pub fn longest(&self) -> Option<Statements> {
        let longest = |a: &Statements, b: &Statements| a.execution_ms.total_cmp(&b.execution_ms);
        self.0.values().copied().max_by(longest)
    }
}

impl fmt::Display for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queries: Vec<_> = self.0.iter().collect();
        queries.sort_by_key(|(_, statements)| std::cmp::Reverse(statements.calls));
        if queries.is_empty() {
            return f.write_str("no query");
        }
        for (place, (id, statements)) in queries.iter().take(QUERIES_NAMED).enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            write!(f, "{separator}query {id}: {} calls", statements.calls)?;
        }
        if queries.len() > QUERIES_NAMED {
            write!(f, ", and {} more", queries.len() - QUERIES_NAMED)?;
        }
        Ok(())
    }
}

/// What PostgreSQL says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    pub started: SystemTime,
    /// Checkpoints begun, running total.
    pub checkpoints: u64,
}

impl Monitor {
    /// # Errors
    /// The connection fails. A missing `pg_stat_statements` is no error: [`Monitor::statements`] then gives `None`.
    pub fn connect(database: &Database) -> Result<Monitor> {
        Monitor::open(Source {
            url: database.monitor_url.clone(),
            target_url: database.url.clone(),
            counted: database.statements.clone(),
            attached: Vec::new(),
        })
    }

    fn open(source: Source) -> Result<Monitor> {
        let mut client = connect(&source.url)?;
        let row = client.query_one(
            "SELECT current_setting('server_version_num')::int4, pg_backend_pid()",
            &[],
        )?;
        let server_version = row.try_get::<_, i32>(0)?;
        let server_version = u32::try_from(server_version).context("server_version_num")?;
        let target = connect(&source.target_url)?.query_one(
            "SELECT datname, oid FROM pg_database WHERE datname = current_database()",
            &[],
        )?;
        let statements = match &source.counted {
            Counted::Observed { view } => Some(client.prepare(&totals(view))?),
            Counted::NotObserved { .. } => None,
        };
        let vitals = client.prepare(vitals_query(server_version))?;
        Ok(Monitor {
            client,
            source,
            pid: row.try_get(1)?,
            database: target.try_get(0)?,
            database_oid: target.try_get(1)?,
            server_version,
            statements,
            vitals,
        })
    }

    fn reconnect(&mut self) -> Result<()> {
        let end = Instant::now() + RECONNECT_LIMIT;
        loop {
            match Monitor::open(self.source.clone()) {
                Ok(monitor) => {
                    *self = monitor;
                    return Ok(());
                }
                Err(error) if Instant::now() >= end => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Why statements are not observed; `None` when they are.
    pub fn unobserved(&self) -> Option<&str> {
        match &self.source.counted {
            Counted::Observed { .. } => None,
            Counted::NotObserved { reason } => Some(reason),
        }
    }

    /// `None` where `pg_stat_statements` cannot be read. Quick enough for the edges of a window.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn statements(&mut self) -> Result<Option<Statements>> {
        let Some(query) = &self.statements else {
            return Ok(None);
        };
        let row = self.client.query_one(query, &[&self.database_oid])?;
        Ok(Some(statements_of(&row)?))
    }

    /// The same for each query.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn queries(&mut self) -> Result<Option<Queries>> {
        let Counted::Observed { view } = &self.source.counted else {
            return Ok(None);
        };
        let query = format!(
            "SELECT sum(calls)::int8, sum(rows)::int8, sum(total_exec_time)::float8, coalesce(queryid, 0)
             FROM {view}(false) WHERE dbid = $1 GROUP BY 4"
        );
        let rows = self.client.query(&query, &[&self.database_oid])?;
        let queries = rows
            .iter()
            .map(|row| Ok((row.try_get(3)?, statements_of(row)?)));
        Ok(Some(Queries(queries.collect::<Result<_>>()?)))
    }

    /// Quick enough for the edges of a window. A connection that was lost is opened again, so that a PostgreSQL that was
    /// started anew can be told from one that is gone.
    ///
    /// # Errors
    /// The connection is lost for good.
    pub fn vitals(&mut self) -> Result<Vitals> {
        let row = match self.client.query_one(&self.vitals, &[]) {
            Err(error) if self.client.is_closed() || was_ended(&error) => {
                self.reconnect()?;
                self.client.query_one(&self.vitals, &[])?
            }
            answer => answer?,
        };
        Ok(vitals_of(&row)?)
    }

    /// A statement that another connection to the same server reads the vitals with.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn prepare_vitals(&self, client: &mut Client) -> Result<Statement, postgres::Error> {
        client.prepare(vitals_query(self.server_version))
    }

    /// Committed transactions of the database so far. Backends report theirs when they end at the latest: ask for
    /// them with [`Monitor::wait_until_alone`] before.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn commits(&mut self) -> Result<u64> {
        self.await_statistics();
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
        let row = self.client.query_one(query, &[&self.database])?;
        Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
    }

    /// Waits until what sessions that have ended did is in the statistics.
    pub fn await_statistics(&self) {
        if self.server_version < FIRST_WITHOUT_COLLECTOR {
            thread::sleep(COLLECTOR_LAG);
        }
    }

    /// From now on sessions of these names may be there, as long as they do nothing.
    pub fn allow_idle(&mut self, names: Vec<String>) {
        self.source.attached = names;
    }

    /// The names given to [`Monitor::allow_idle`].
    pub fn attached(&self) -> &[String] {
        &self.source.attached
    }

    /// Sessions of clients in the database, other than the monitor's own and those that may be there.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn sessions(&mut self) -> Result<u64> {
        let query = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                 AND (application_name <> ALL ($2) OR state IS DISTINCT FROM 'idle')";
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.database, &self.source.attached];
        let row = self.client.query_one(query, &parameters)?;
        Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
    }

    /// Waits until no client has a session in the database, and attached servers have no query under way.
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

/// The function behind the view, by the same name, can leave out the queries' text: the view reads it from a file.
fn totals(view: &str) -> String {
    format!(
        "SELECT coalesce(sum(calls), 0)::int8, coalesce(sum(rows), 0)::int8, coalesce(sum(total_exec_time), 0)::float8
         FROM {view}(false) WHERE dbid = $1"
    )
}

/// Whether the server said that it ends the session: the connection is found closed only a moment later.
fn was_ended(error: &postgres::Error) -> bool {
    let ending = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
    error.code().is_some_and(|code| ending.contains(code))
}

/// When it started, and how many checkpoints it has begun.
fn vitals_query(server_version: u32) -> &'static str {
    if server_version < FIRST_WITH_CHECKPOINTER_VIEW {
        "SELECT pg_postmaster_start_time(), checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
    } else {
        "SELECT pg_postmaster_start_time(), num_timed + num_requested FROM pg_stat_checkpointer"
    }
}

/// Of a row of [`Monitor::prepare_vitals`].
pub(crate) fn vitals_of(row: &postgres::Row) -> Result<Vitals, postgres::Error> {
    Ok(Vitals {
        started: row.try_get(0)?,
        checkpoints: row.try_get::<_, i64>(1)?.cast_unsigned(),
    })
}

fn statements_of(row: &postgres::Row) -> Result<Statements> {
    Ok(Statements {
        calls: row.try_get::<_, i64>(0)?.cast_unsigned(),
        rows: row.try_get::<_, i64>(1)?.cast_unsigned(),
        execution_ms: row.try_get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> Statements {
        Statements {
            calls,
            ..Statements::default()
        }
    }

    #[test]
    fn only_queries_that_were_executed_since_are_told() {
        let before = Queries::from([(1, calls(5)), (2, calls(9))]);
        let after = Queries::from([(1, calls(5)), (2, calls(12)), (3, calls(1))]);
        let since = after.since(&before);
        assert_eq!(since, Queries::from([(2, calls(3)), (3, calls(1))]));
        assert_eq!(since.to_string(), "query 2: 3 calls, query 3: 1 calls");
        assert_eq!(Queries::default().to_string(), "no query");
    }
}
