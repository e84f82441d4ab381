//! Opening the pool, and one statement a request on a connection of it.

use std::time::Duration;

use front::{
    CONNECT_TIMEOUT, Cause, Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile,
    RowSink, Session, StatementId, Work, no_answer,
};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPoolOptions};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, Connection, Error, Executor, PgConnection, PgPool, Postgres, SqlSafeStr, SqlStr,
};
use tokio::time::{sleep, timeout};
use workloads::{FromRow, FromRows, Param};

use crate::listening;
use crate::row::{SqlxRow, arguments};

/// sqlx's pool, each of its connections with every statement in its cache.
///
/// When a request is dropped, the pool's own release waits for the end of its statement before the connection is
/// lent again, so that nothing is to be done about that here.
#[derive(Debug)]
pub(crate) struct Sqlx {
    pool: PgPool,
    statements: Vec<SqlStr>,
    options: PgConnectOptions,
}

impl Lane for Sqlx {
    const NAME: &'static str = "sqlx";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &["sqlx"];

    async fn open(config: &Config, statements: &[String]) -> Result<Sqlx, OpenError> {
        let database = Database::read(config)?;
        // The pool retries a refused connection until its deadline and then tells of the deadline alone; a
        // connection of our own tells at once what is wrong.
        let first = database.connect().await;
        let first = first
            .map_err(|source| OpenError::connection(&database.address, 0, config.pool, source))?;
        let _ = first.close().await;
        let pool = pool_options(config).connect_lazy_with(database.options.clone());
        let statements: Vec<_> = statements
            .iter()
            .map(|sql| AssertSqlSafe(sql.clone()).into_sql_str())
            .collect();
        open_whole(&pool, config.pool, &statements, &database).await?;
        Ok(Sqlx {
            pool,
            statements,
            options: database.options,
        })
    }

    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        laps.connected();
        let mut loan = Loan {
            connection: &mut connection,
            statements: &self.statements,
        };
        let answer = work.run(&mut loan).await?;
        drop(connection);
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        sleep(duration).await;
        Ok(())
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        listening::listen(self.options.clone(), channel, events).await
    }

    fn pool_use(&self) -> PoolUse {
        let size = self.pool.size();
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX);
        PoolUse {
            size,
            in_use: size.saturating_sub(idle),
        }
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        const RELEASE: &str = "pings at release: a bare Sync, one more round trip but no statement and no \
            transaction, in a task of its own that keeps the connection until it is answered; sqlx has no switch for it";
        match profile {
            Profile::Parity => &[
                RELEASE,
                "test_before_acquire(false): no ping at check-out; connections never expire",
            ],
            Profile::Defaults => &[
                RELEASE,
                "as it ships: pings at check-out too, idle_timeout 10 min, max_lifetime 30 min",
            ],
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// A connection that a request holds.
struct Loan<'a> {
    connection: &'a mut PgConnection,
    statements: &'a [SqlStr],
}

impl Loan<'_> {
    fn query(
        &self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Query<'static, Postgres, PgArguments>, Failure> {
        // A second handle to the text, not a copy of it.
        let sql = self.statements[statement.index()].clone();
        Ok(sqlx::query_with(sql, arguments(params)?))
    }
}

impl Session for Loan<'_> {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        let query = self.query(statement, params)?;
        let row = query.fetch_optional(&mut *self.connection).await;
        let row = row.map_err(failure)?;
        Ok(row.map(|row| T::from_row(&SqlxRow(&row))).transpose()?)
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        let query = self.query(statement, params)?;
        let rows = query.fetch_all(&mut *self.connection).await;
        let mut all = T::default();
        for row in rows.map_err(failure)? {
            all.push(&SqlxRow(&row))?;
        }
        Ok(all)
    }

    async fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        let query = self.query(statement, params)?;
        let mut rows = query.fetch(&mut *self.connection);
        while let Some(row) = rows.try_next().await.map_err(failure)? {
            sink.push(&SqlxRow(&row))?;
            sink.ready().await?;
        }
        Ok(())
    }

    /// When it is dropped halfway, sqlx queues a ROLLBACK, which goes out before the connection is lent again.
    async fn transaction<W: Work>(&mut self, work: W) -> Result<W::Answer, Failure> {
        let mut transaction = self.connection.begin().await.map_err(failure)?;
        let mut inner = Loan {
            connection: &mut transaction,
            statements: self.statements,
        };
        let done = work.run(&mut inner).await;
        let ended = match &done {
            Ok(_) => transaction.commit().await,
            Err(_) => transaction.rollback().await,
        };
        ended.map_err(failure)?;
        done
    }

    async fn wait(&mut self, duration: Duration) {
        sleep(duration).await;
    }
}

fn pool_options(config: &Config) -> PgPoolOptions {
    let options = PgPoolOptions::new().max_connections(config.pool);
    match config.profile {
        Profile::Parity => options
            .min_connections(config.pool)
            .test_before_acquire(false)
            .acquire_timeout(config.queue_wait)
            .idle_timeout(None)
            .max_lifetime(None),
        Profile::Defaults => options,
    }
}

struct Database {
    options: PgConnectOptions,
    /// The host and port to name in errors. Never the URL itself: it may hold a password.
    address: String,
}

impl Database {
    fn read(config: &Config) -> Result<Database, OpenError> {
        let options: PgConnectOptions = config
            .database_url
            .parse()
            .map_err(|error: Error| OpenError::Url(error.into()))?;
        let address = match options.get_socket() {
            Some(folder) => format!("{}:{}", folder.display(), options.get_port()),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let options = options
            .application_name(&front::application_name(Sqlx::NAME))
            .options([("statement_timeout", config.statement_timeout_ms())]);
        Ok(Database { options, address })
    }

    async fn connect(&self) -> Result<PgConnection, Cause> {
        let connected = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&self.options)).await;
        Ok(connected.map_err(|_| no_answer())??)
    }

    /// The pool could not open another connection; trying without it gives the reason.
    async fn pool_error(&self, opened: u32, wanted: u32, error: impl Into<Cause>) -> OpenError {
        let source = match self.connect().await {
            Ok(_) => error.into(),
            Err(reason) => reason,
        };
        OpenError::connection(&self.address, opened, wanted, source)
    }
}

/// Takes every connection before giving one back, so that the pool has to open them all.
async fn open_whole(
    pool: &PgPool,
    size: u32,
    statements: &[SqlStr],
    database: &Database,
) -> Result<(), OpenError> {
    let mut connections = Vec::new();
    for opened in 0..size {
        let mut connection = match timeout(CONNECT_TIMEOUT, pool.acquire()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(database.pool_error(opened, size, error).await),
            Err(_) => return Err(database.pool_error(opened, size, no_answer()).await),
        };
        for sql in statements {
            let prepared = connection.prepare(sql.clone()).await;
            prepared.map_err(|source| OpenError::prepare(sql.as_str(), source))?;
        }
        connections.push(connection);
    }
    Ok(())
}

pub(crate) fn failure(error: Error) -> Failure {
    match &error {
        Error::PoolTimedOut | Error::PoolClosed => Failure::NoConnection,
        Error::Io(_) => Failure::ConnectionLost(error.into()),
        Error::Database(reported) => match reported.code().map(|code| code.into_owned()) {
            Some(code) => Failure::from_sqlstate(&code, error),
            None => Failure::Database(error.into()),
        },
        _ => Failure::Database(error.into()),
    }
}
