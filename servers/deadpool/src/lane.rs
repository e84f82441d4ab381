//! Opening the pool, and one statement a request on a connection of it.

use std::error::Error as _;
use std::io;

use deadpool_postgres::{Manager, Object, Pool, PoolBuilder, PoolError, Runtime};
use front::{
    CONNECT_TIMEOUT, Cause, Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile,
    StatementId, no_answer,
};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, NoTls, Row};
use workloads::{Delay, Item};

/// A pool of tokio-postgres clients, each with every statement in its cache.
#[derive(Debug)]
pub(crate) struct Deadpool {
    pool: Pool,
    statements: Vec<String>,
}

impl Lane for Deadpool {
    const NAME: &'static str = "deadpool";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &["deadpool", "deadpool-postgres", "tokio-postgres"];

    async fn open(config: &Config, statements: &[String]) -> Result<Deadpool, OpenError> {
        let postgres = postgres_config(config)?;
        let address = address(&postgres);
        let pool = builder(config, postgres).build();
        let pool =
            pool.map_err(|source| OpenError::connection(&address, 0, config.pool, source))?;
        open_whole(&pool, config.pool, statements, &address).await?;
        Ok(Deadpool {
            pool,
            statements: statements.to_vec(),
        })
    }

    async fn item(
        &self,
        statement: StatementId,
        id: i32,
        laps: &mut Laps,
    ) -> Result<Option<Item>, Failure> {
        let row = self.query(statement, &[&id], laps).await?;
        let item = row.map(|row| item(&row)).transpose().map_err(failure)?;
        laps.decoded();
        Ok(item)
    }

    async fn delay(&self, statement: StatementId, laps: &mut Laps) -> Result<Delay, Failure> {
        let row = self.query(statement, &[], laps).await?;
        let row = row.ok_or_else(|| Failure::Database("the statement gave no row".into()))?;
        let waited_ms = row.try_get(0).map_err(failure)?;
        laps.decoded();
        Ok(Delay { waited_ms })
    }

    fn pool_use(&self) -> PoolUse {
        let status = self.pool.status();
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        PoolUse {
            size: narrow(status.size),
            in_use: narrow(status.size - status.available),
        }
    }

    fn notes(profile: Profile) -> &'static [&'static str] {
        match profile {
            Profile::Parity => &["RecyclingMethod::Fast: no ping; connections never expire"],
            Profile::Defaults => {
                &["as it ships: RecyclingMethod::Fast, no ping, no timeout in the pool"]
            }
        }
    }

    async fn close(&self) {
        self.pool.close();
    }
}

impl Deadpool {
    async fn query(
        &self,
        statement: StatementId,
        params: &[&(dyn ToSql + Sync)],
        laps: &mut Laps,
    ) -> Result<Option<Row>, Failure> {
        let mut loan = Loan(None);
        let client = loan.0.insert(self.pool.get().await.map_err(pool_failure)?);
        laps.connected();
        let statement = client
            .prepare_cached(&self.statements[statement.index()])
            .await
            .map_err(failure)?;
        let row = client.query_opt(&statement, params).await;
        // The statement has ended, so the connection may go back at once.
        loan.0 = None;
        row.map_err(failure)
    }
}

/// A connection with a statement on it, perhaps.
///
/// If the request is dropped meanwhile, tokio-postgres goes on reading the answer in its own task, and the pool
/// would lend the busy connection to the next request, whose statement would wait behind. A Sync, which is no
/// statement and no transaction, is answered when the connection has become idle; it goes back only then.
struct Loan(Option<Object>);

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { client.check_connection().await });
        }
    }
}

fn postgres_config(config: &Config) -> Result<tokio_postgres::Config, OpenError> {
    let parsed = config.database_url.parse::<tokio_postgres::Config>();
    let mut postgres = parsed.map_err(|error| OpenError::Url(error.into()))?;
    let limit = format!("-c statement_timeout={}", config.statement_timeout_ms());
    let options = match postgres.get_options() {
        Some(given) => format!("{given} {limit}"),
        None => limit,
    };
    postgres
        .options(options)
        .application_name("lanebench-deadpool")
        .connect_timeout(CONNECT_TIMEOUT);
    Ok(postgres)
}

/// The host and port to name in errors. Never the URL itself: it may hold a password.
fn address(postgres: &tokio_postgres::Config) -> String {
    let host = match postgres.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("{host}:{}", postgres.get_ports().first().unwrap_or(&5432))
}

fn builder(config: &Config, postgres: tokio_postgres::Config) -> PoolBuilder {
    let builder = Pool::builder(Manager::new(postgres, NoTls)).max_size(config.pool as usize);
    match config.profile {
        // `Manager::new` recycles `Fast`, which is parity already.
        Profile::Parity => builder
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(config.queue_wait))
            .create_timeout(Some(CONNECT_TIMEOUT)),
        Profile::Defaults => builder,
    }
}

/// Takes every connection before giving one back, so that the pool has to open them all.
async fn open_whole(
    pool: &Pool,
    size: u32,
    statements: &[String],
    address: &str,
) -> Result<(), OpenError> {
    let mut clients = Vec::new();
    for opened in 0..size {
        let got = timeout(CONNECT_TIMEOUT, pool.get()).await;
        let client = got
            .map_or_else(|_| Err(no_answer()), |got| got.map_err(pool_cause))
            .map_err(|source| OpenError::connection(address, opened, size, source))?;
        for sql in statements {
            let prepared = client.prepare_cached(sql).await;
            prepared.map_err(|source| OpenError::prepare(sql, source))?;
        }
        clients.push(client);
    }
    Ok(())
}

/// Without what deadpool says around it.
fn pool_cause(error: PoolError) -> Cause {
    match error {
        PoolError::Backend(error) => error.into(),
        PoolError::Timeout(_) => no_answer(),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            error.into()
        }
    }
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

fn pool_failure(error: PoolError) -> Failure {
    match error {
        PoolError::Timeout(_) | PoolError::Closed => Failure::NoConnection,
        PoolError::Backend(error) => failure(error),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            Failure::Database(error.into())
        }
    }
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
