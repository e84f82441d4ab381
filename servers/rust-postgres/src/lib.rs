//! What the lanes on rust-postgres have in common, whether they wait in a task (tokio-postgres) or in a thread
//! (postgres): both crates have the same rows, parameters and errors.

use std::error::Error as _;
use std::io;
use std::pin::pin;

use bytes::BytesMut;
use front::{CONNECT_TIMEOUT, Failure, OpenError, RowSink};
use futures_util::TryStreamExt;
use tokio_postgres::config::{Config, Host};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, Row, RowStream};
use workloads::{Cell, ColumnError, Columns, FromRow, FromRows, Param};

/// The database of a server's flags, as `lane` connects to it.
///
/// # Errors
/// The URL cannot be read.
pub fn config(flags: &front::Config, lane: &str) -> Result<Config, OpenError> {
    let parsed = flags.database_url.parse::<Config>();
    let mut config = parsed.map_err(|error| OpenError::Url(error.into()))?;
    let limit = format!("-c statement_timeout={}", flags.statement_timeout_ms());
    let options = match config.get_options() {
        Some(given) => format!("{given} {limit}"),
        None => limit,
    };
    config
        .options(options)
        .application_name(front::application_name(lane))
        .connect_timeout(CONNECT_TIMEOUT);
    Ok(config)
}

/// The host and port to name in errors. Never the URL itself: it may hold a password.
pub fn address(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("{host}:{}", config.get_ports().first().unwrap_or(&5432))
}

/// What a driver's error is to the client.
pub fn failure(error: Error) -> Failure {
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

/// The row of an answer that has one at most.
///
/// # Errors
/// The statement failed, its answer does not fit, or it has a second row.
pub async fn optional<T: FromRow>(rows: RowStream) -> Result<Option<T>, Failure> {
    let mut rows = pin!(rows);
    let Some(row) = rows.try_next().await.map_err(failure)? else {
        return Ok(None);
    };
    if rows.try_next().await.map_err(failure)?.is_some() {
        return Err(Failure::Database("the statement gave a second row".into()));
    }
    Ok(Some(T::from_row(&PostgresRow(&row))?))
}

/// Every row of an answer.
///
/// # Errors
/// The statement failed, or its answer does not fit.
pub async fn all<T: FromRows>(rows: RowStream) -> Result<T, Failure> {
    let mut all = T::default();
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await.map_err(failure)? {
        all.push(&PostgresRow(&row))?;
    }
    Ok(all)
}

/// Gives the rows of an answer to a sink as they arrive, no faster than it takes them.
///
/// # Errors
/// The statement failed, its answer does not fit, or the sink is closed.
pub async fn stream(rows: RowStream, sink: &mut impl RowSink) -> Result<(), Failure> {
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await.map_err(failure)? {
        sink.push(&PostgresRow(&row))?;
        sink.ready().await?;
    }
    Ok(())
}

/// A row of either crate.
#[derive(Debug)]
pub struct PostgresRow<'a>(pub &'a Row);

impl Columns for PostgresRow<'_> {
    fn int4(&self, column: usize) -> Result<i32, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn text(&self, column: usize) -> Result<String, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<String>, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, ColumnError> {
        let raw: Option<Raw<'_>> = self.0.try_get(column).map_err(ColumnError::new)?;
        let oid = self.0.columns()[column].type_().oid();
        Ok(Cell {
            oid,
            value: raw.map(|Raw(bytes)| bytes),
        })
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, column: usize) -> &str {
        self.0.columns()[column].name()
    }
}

/// A value of any type, as it came.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> Result<Raw<'a>, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A parameter as both crates bind it.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a>(pub Param<'a>);

/// The parameters of a statement, to be bound.
pub fn bound<'a>(params: &'a [Param<'a>]) -> impl ExactSizeIterator<Item = Bound<'a>> {
    params.iter().map(|param| Bound(*param))
}

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Param::Int4(number) => number.to_sql_checked(kind, out),
            Param::Int4s(numbers) => numbers.to_sql_checked(kind, out),
            Param::Value(value) => {
                if value.oid() != kind.oid() {
                    return Err(format!(
                        "the statement takes {kind} where the definition says {}",
                        value.ty().name()
                    )
                    .into());
                }
                let Some(bytes) = value.binary() else {
                    return Ok(IsNull::Yes);
                };
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    /// What it holds is only known when it is bound.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
