//! A connection with its statements, and the manager that makes them for r2d2. All of it blocks: a
//! `postgres::Client` runs a small runtime of its own, and panics when used or dropped on an async thread.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use front::{CONNECT_TIMEOUT, Config, Failure, OpenError, StatementId};
use postgres::config::Host;
use postgres::types::ToSql;
use postgres::{Client, Error, NoTls, Row, Statement};
use r2d2::{HandleError, ManageConnection};
use r2d2_postgres::PostgresConnectionManager;
use workloads::{Delay, Item};

/// A client, and every statement prepared on it.
pub(crate) struct Connection {
    client: Client,
    statements: Vec<Statement>,
}

impl Connection {
    pub(crate) fn item(
        &mut self,
        statement: StatementId,
        id: i32,
    ) -> Result<Option<Item>, Failure> {
        let row = self.query(statement, &[&id])?;
        row.map(|row| item(&row)).transpose().map_err(failure)
    }

    pub(crate) fn delay(&mut self, statement: StatementId) -> Result<Delay, Failure> {
        let row = self.query(statement, &[])?;
        let row = row.ok_or_else(|| Failure::Database("the statement gave no row".into()))?;
        Ok(Delay {
            waited_ms: row.try_get(0).map_err(failure)?,
        })
    }

    fn query(
        &mut self,
        statement: StatementId,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Failure> {
        self.client
            .query_opt(&self.statements[statement.index()], params)
            .map_err(failure)
    }
}

/// r2d2's own manager for `postgres`, with statements prepared as part of connecting.
#[derive(Debug)]
pub(crate) struct Manager {
    clients: PostgresConnectionManager<NoTls>,
    statements: Vec<String>,
    /// The host and port to name in errors. Never the URL itself: it may hold a password.
    pub(crate) address: String,
}

impl Manager {
    pub(crate) fn new(config: &Config, statements: &[String]) -> Result<Manager, OpenError> {
        let parsed = config.database_url.parse::<postgres::Config>();
        let mut postgres = parsed.map_err(|error| OpenError::Url(error.into()))?;
        let limit = format!("-c statement_timeout={}", config.statement_timeout_ms());
        let options = match postgres.get_options() {
            Some(given) => format!("{given} {limit}"),
            None => limit,
        };
        postgres
            .options(&options)
            .application_name("lanebench-r2d2")
            .connect_timeout(CONNECT_TIMEOUT);
        let address = address(&postgres);
        Ok(Manager {
            clients: PostgresConnectionManager::new(postgres, NoTls),
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
        Ok(Connection { client, statements })
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), OpenError> {
        self.clients
            .is_valid(&mut connection.client)
            .map_err(|source| self.connect_error(source))
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        self.clients.has_broken(&mut connection.client)
    }
}

/// Keeps the last error of connecting. r2d2 retries in the background and gives whoever waits a text at best.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<OpenError>>>);

impl Refusals {
    pub(crate) fn take(&self) -> Option<OpenError> {
        self.last().take()
    }

    fn last(&self) -> MutexGuard<'_, Option<OpenError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandleError<OpenError> for Refusals {
    fn handle_error(&self, error: OpenError) {
        *self.last() = Some(error);
    }
}

fn address(postgres: &postgres::Config) -> String {
    let host = match postgres.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("{host}:{}", postgres.get_ports().first().unwrap_or(&5432))
}

fn item(row: &Row) -> Result<Item, Error> {
    Ok(Item {
        id: row.try_get(0)?,
        owner_id: row.try_get(1)?,
        title: row.try_get(2)?,
        description: row.try_get(3)?,
        price_cents: row.try_get(4)?,
        stock: row.try_get(5)?,
    })
}

fn failure(error: Error) -> Failure {
    if let Some(code) = error.code().cloned() {
        return Failure::from_sqlstate(code.code(), error);
    }
    let broken = error.is_closed()
        || error
            .source()
            .is_some_and(|source| source.is::<io::Error>());
    if broken {
        Failure::ConnectionLost(error.into())
    } else {
        Failure::Database(error.into())
    }
}
