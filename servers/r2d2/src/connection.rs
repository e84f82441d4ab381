//! A connection with its statements, and the manager that makes them for r2d2. All of it blocks: a
//! `postgres::Client` runs a small runtime of its own, and panics when used or dropped on an async thread.

use std::fmt;
use std::thread;
use std::time::Duration;

use front::{Config, Failure, OpenError, RowSink, Session, StatementId, Work};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Error, NoTls, Statement};
use r2d2::ManageConnection;
use r2d2_postgres::PostgresConnectionManager;
use rust_postgres::{Bound, PostgresRow, address, bound, config, failure};
use workloads::{FromRow, FromRows, Param};

/// A client, and every statement prepared on it.
pub struct Connection {
    client: Client,
    statements: Vec<Statement>,
    /// Its transaction could not be ended: it is not to be lent again.
    in_transaction: bool,
}

impl Connection {
    fn command(&mut self, sql: &str) -> Result<(), Failure> {
        self.client.batch_execute(sql).map_err(failure)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("statements", &self.statements.len())
            .field("in_transaction", &self.in_transaction)
            .finish_non_exhaustive()
    }
}

/// Every call blocks until its answer is there.
impl Session for Connection {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        let statement = &self.statements[statement.index()];
        let bound: Vec<_> = bound(params).collect();
        let row = self.client.query_opt(statement, &references(&bound));
        let row = row.map_err(failure)?;
        Ok(row.map(|row| T::from_row(&PostgresRow(&row))).transpose()?)
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        let statement = &self.statements[statement.index()];
        let bound: Vec<_> = bound(params).collect();
        let rows = self.client.query(statement, &references(&bound));
        let mut all = T::default();
        for row in rows.map_err(failure)? {
            all.push(&PostgresRow(&row))?;
        }
        Ok(all)
    }

    async fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        let statement = &self.statements[statement.index()];
        let rows = self.client.query_raw(statement, bound(params));
        let mut rows = rows.map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            sink.push(&PostgresRow(&row))?;
            sink.ready().await?;
        }
        Ok(())
    }

    async fn transaction<W: Work>(&mut self, work: W) -> Result<W::Answer, Failure> {
        self.in_transaction = true;
        self.command("BEGIN")?;
        let done = work.run(self).await;
        self.command(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        self.in_transaction = false;
        done
    }

    async fn wait(&mut self, duration: Duration) {
        thread::sleep(duration);
    }
}

fn references<'a>(bound: &'a [Bound<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    bound.iter().map(|bound| bound as _).collect()
}

/// r2d2's own manager for `postgres`, with statements prepared as part of connecting.
#[derive(Debug)]
pub struct Manager {
    clients: PostgresConnectionManager<NoTls>,
    statements: Vec<String>,
    /// The host and port to name in errors. Never the URL itself: it may hold a password.
    pub(crate) address: String,
}

impl Manager {
    pub(crate) fn new(
        flags: &Config,
        lane: &str,
        statements: &[String],
    ) -> Result<Manager, OpenError> {
        let config = config(flags, lane)?;
        let address = address(&config);
        Ok(Manager {
            clients: PostgresConnectionManager::new(config.into(), NoTls),
            statements: statements.to_vec(),
            address,
        })
    }

    fn connect_error(&self, source: Error) -> OpenError {
        OpenError::Connect {
            address: self.address.clone(),
            source: source.into(),
        }
    }
}

impl ManageConnection for Manager {
    type Connection = Connection;
    type Error = OpenError;

    fn connect(&self) -> Result<Connection, OpenError> {
        let mut client = self
            .clients
            .connect()
            .map_err(|source| self.connect_error(source))?;
        let mut prepare = |sql: &String| {
            client
                .prepare(sql)
                .map_err(|source| OpenError::prepare(sql, source))
        };
        let statements = self
            .statements
            .iter()
            .map(&mut prepare)
            .collect::<Result<_, _>>()?;
        Ok(Connection {
            client,
            statements,
            in_transaction: false,
        })
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), OpenError> {
        self.clients
            .is_valid(&mut connection.client)
            .map_err(|source| self.connect_error(source))
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.in_transaction || self.clients.has_broken(&mut connection.client)
    }
}
