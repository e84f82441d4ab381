//! Opening the pool, and one statement a request on a connection of it.

use std::time::Duration;

use deadpool_postgres::{Manager, Object, Pool, PoolBuilder, PoolError, Runtime};
use front::{
    CONNECT_TIMEOUT, Cause, Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile,
    RowSink, Session, StatementId, Work, no_answer,
};
use rust_postgres::{address, all, bound, config, failure, optional, stream};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{NoTls, RowStream};
use workloads::{FromRow, FromRows, Param};

use crate::listening;

/// A pool of tokio-postgres clients, each with every statement in its cache.
#[derive(Debug)]
pub(crate) struct Deadpool {
    pool: Pool,
    statements: Vec<String>,
    postgres: tokio_postgres::Config,
}

impl Lane for Deadpool {
    const NAME: &'static str = "deadpool";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &["deadpool", "deadpool-postgres", "tokio-postgres"];

    async fn open(flags: &Config, statements: &[String]) -> Result<Deadpool, OpenError> {
        let postgres = config(flags, Deadpool::NAME)?;
        let address = address(&postgres);
        let pool = builder(flags, postgres.clone()).build();
        let pool = pool.map_err(|source| OpenError::connection(&address, 0, flags.pool, source))?;
        open_whole(&pool, flags.pool, statements, &address).await?;
        Ok(Deadpool {
            pool,
            statements: statements.to_vec(),
            postgres,
        })
    }

    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let client = self.pool.get().await.map_err(pool_failure)?;
        laps.connected();
        let mut loan = Loan {
            client: Some(client),
            statements: &self.statements,
            in_transaction: false,
        };
        let answer = work.run(&mut loan).await?;
        loan.give_back();
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        sleep(duration).await;
        Ok(())
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        listening::listen(&self.postgres, channel, events).await
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

/// A connection that a request holds.
///
/// If the request fails or is dropped, there may be a statement on it still. tokio-postgres goes on reading the answer in
/// its own task, and the pool would lend the busy connection to the next request, whose statement would wait behind. A
/// Sync, which is no statement and no transaction, is answered when the connection has become idle; a ROLLBACK, when its
/// transaction is over as well. It goes back only then.
struct Loan<'a> {
    /// Empty once it has been given back.
    client: Option<Object>,
    statements: &'a [String],
    in_transaction: bool,
}

impl Loan<'_> {
    fn client(&self) -> Result<&Object, Failure> {
        self.client.as_ref().ok_or(Failure::NoConnection)
    }

    /// Every statement has ended, so it may go back at once.
    fn give_back(&mut self) {
        if !self.in_transaction {
            self.client = None;
        }
    }

    async fn rows(
        &self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<RowStream, Failure> {
        let client = self.client()?;
        let sql = &self.statements[statement.index()];
        let statement = client.prepare_cached(sql).await.map_err(failure)?;
        client
            .query_raw(&statement, bound(params))
            .await
            .map_err(failure)
    }

    async fn command(&self, sql: &str) -> Result<(), Failure> {
        self.client()?.batch_execute(sql).await.map_err(failure)
    }
}

impl Session for Loan<'_> {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        optional(self.rows(statement, params).await?).await
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        all(self.rows(statement, params).await?).await
    }

    async fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        stream(self.rows(statement, params).await?, sink).await
    }

    async fn transaction<W: Work>(&mut self, work: W) -> Result<W::Answer, Failure> {
        self.in_transaction = true;
        self.command("BEGIN").await?;
        let done = work.run(self).await;
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.command(end).await?;
        self.in_transaction = false;
        done
    }

    async fn wait(&mut self, duration: Duration) {
        sleep(duration).await;
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let (Some(client), Ok(runtime)) = (self.client.take(), Handle::try_current()) else {
            return;
        };
        let in_transaction = self.in_transaction;
        runtime.spawn(async move {
            match in_transaction {
                true => client.batch_execute("ROLLBACK").await,
                false => client.check_connection().await,
            }
        });
    }
}

fn builder(flags: &Config, postgres: tokio_postgres::Config) -> PoolBuilder {
    let builder = Pool::builder(Manager::new(postgres, NoTls)).max_size(flags.pool as usize);
    match flags.profile {
        // `Manager::new` recycles `Fast`, which is parity already.
        Profile::Parity => builder
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(flags.queue_wait))
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

fn pool_failure(error: PoolError) -> Failure {
    match error {
        PoolError::Timeout(_) | PoolError::Closed => Failure::NoConnection,
        PoolError::Backend(error) => failure(error),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            Failure::Database(error.into())
        }
    }
}
