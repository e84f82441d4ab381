//! A lane that breaks the rules in the one way that `CROOKED` names, so that the harness can be shown to see it. It is
//! a plain deadpool lane otherwise, and keeps the process contract. A server.toml runs it, for instance, with
//! `run = ["env", "CROOKED=pings", "/.../target/debug/examples/crooked"]`. It knows no deadlines beside the front's.

use std::collections::HashMap;
use std::env;
use std::future::{pending, poll_fn};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use deadpool_postgres::{Manager, Object, Pool};
use front::{
    Config, Events, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, RowSink, Session,
    StatementId, Work, listen_statement,
};
use futures_util::TryStreamExt;
use rust_postgres::{PostgresRow, address, all, bound, config, failure, stream};
use tokio::time::sleep;
use tokio_postgres::{AsyncMessage, NoTls, Row, RowStream};
use workloads::{FromRow, FromRows, Param};

static FAULT: OnceLock<Fault> = OnceLock::new();
/// `caches` answers one request of so many without asking the database.
const CACHED_ONE_IN: u64 = 1_000;
/// `reconnects` gives up a connection after so many requests.
const REQUESTS_PER_CONNECTION: u64 = 200;
/// `forgets` is honest for so many requests: as many as a verification has, and some.
const REQUESTS_BEFORE_FORGETTING: u64 = 1_200;
/// `dies` serves so many requests: enough to pass the verification before the load.
const REQUESTS_IN_A_LIFE: u64 = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fault {
    /// The control.
    Honest,
    /// Answers one request in a thousand from earlier answers.
    Caches,
    /// Holds and uses one connection more than the pool may have.
    OpensOneMore,
    /// Sends an empty query before each statement, which is a transaction but no statement.
    Pings,
    /// Sleeps 9 ms where the SQL says 10, and answers the same.
    ShortSleep,
    /// Sleeps half a millisecond more than the SQL says, in the same statement; PostgreSQL rounds that up to 1 ms.
    Slow,
    /// Closes a connection every 200 requests, and opens another.
    Reconnects,
    /// Is gone after 3,000 requests, those in flight unanswered.
    Dies,
    /// Rolls one transaction in a hundred back and answers as if it had been committed, once the verification before the
    /// load is over.
    Forgets,
    /// Does not send each fifth event on.
    LosesEvents,
    /// Sends each fifth event on twice.
    RepeatsEvents,
}

impl Fault {
    /// The statement that is sent where the workload has this one. It gives the same rows.
    fn statement(self, sql: &str) -> String {
        let only_reads = sql.starts_with("SELECT") && !sql.contains("FOR UPDATE");
        match self {
            Fault::ShortSleep => sql.replace("pg_sleep(0.010)", "pg_sleep(0.009)"),
            Fault::Slow if only_reads => {
                format!("SELECT q.* FROM ({sql}\n) AS q, pg_sleep(0.0005)")
            }
            _ => sql.to_owned(),
        }
    }

    /// How often an event is sent on that is so many a session has heard.
    fn times(self, heard: u64) -> usize {
        match self {
            Fault::LosesEvents if heard.is_multiple_of(5) => 0,
            Fault::RepeatsEvents if heard.is_multiple_of(5) => 2,
            _ => 1,
        }
    }
}

#[derive(Debug)]
struct Crooked {
    fault: Fault,
    pool: Pool,
    statements: Vec<String>,
    postgres: tokio_postgres::Config,
    /// Requests so far.
    requests: AtomicU64,
    cache: Cache,
}

impl Lane for Crooked {
    const NAME: &'static str = "crooked";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &["deadpool-postgres", "tokio-postgres"];

    async fn open(flags: &Config, statements: &[String]) -> Result<Crooked, OpenError> {
        let fault = FAULT.get().copied().unwrap_or(Fault::Honest);
        let statements: Vec<_> = statements.iter().map(|sql| fault.statement(sql)).collect();
        let size = flags.pool + u32::from(fault == Fault::OpensOneMore);
        let pool = open_whole(flags, size, &statements).await?;
        Ok(Crooked {
            fault,
            pool,
            statements,
            postgres: config(flags, Crooked::NAME)?,
            requests: AtomicU64::new(0),
            cache: Cache((fault == Fault::Caches).then(Mutex::default)),
        })
    }

    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fault == Fault::Dies && request > REQUESTS_IN_A_LIFE {
            process::exit(1);
        }
        let client = self.pool.get().await.map_err(|_| Failure::NoConnection)?;
        laps.connected();
        let mut loan = Loan {
            lane: self,
            request,
            client: Some(client),
            in_transaction: false,
        };
        let answer = work.run(&mut loan).await?;
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        sleep(duration).await;
        Ok(())
    }

    async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        let connected = self.postgres.connect(NoTls).await;
        let (client, mut connection) = connected.map_err(failure)?;
        let hear = async {
            let mut heard = 0;
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message.map_err(failure)? {
                    heard += 1;
                    for _ in 0..self.fault.times(heard) {
                        events.send(notification.payload()).await;
                    }
                }
            }
            Err(Failure::ConnectionLost("the session was closed".into()))
        };
        let listen = async {
            let listening = client.batch_execute(&listen_statement(channel)).await;
            listening.map_err(failure)?;
            events.listening();
            pending().await
        };
        tokio::select! {
            ended = hear => ended,
            failed = listen => failed,
        }
    }

    fn pool_use(&self) -> PoolUse {
        let status = self.pool.status();
        let narrow = |count| u32::try_from(count).unwrap_or(u32::MAX);
        PoolUse {
            size: narrow(status.size),
            in_use: narrow(status.size - status.available),
        }
    }

    fn notes(_profile: Profile) -> &'static [&'static str] {
        &["breaks the rules on purpose"]
    }

    async fn close(&self) {
        self.pool.close();
    }
}

/// A connection that a request holds.
struct Loan<'a> {
    lane: &'a Crooked,
    /// Its number, from 1.
    request: u64,
    client: Option<Object>,
    in_transaction: bool,
}

impl Loan<'_> {
    fn client(&self) -> Result<&Object, Failure> {
        self.client.as_ref().ok_or(Failure::NoConnection)
    }

    async fn rows(
        &self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<RowStream, Failure> {
        let client = self.client()?;
        if self.lane.fault == Fault::Pings {
            client.simple_query("").await.map_err(failure)?;
        }
        let sql = &self.lane.statements[statement.index()];
        let prepared = client.prepare_cached(sql).await.map_err(failure)?;
        let rows = client.query_raw(&prepared, bound(params)).await;
        rows.map_err(failure)
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
        let question = || (statement.index(), format!("{params:?}"));
        if let Some(row) = self.lane.cache.instead(self.request, question) {
            return Ok(Some(T::from_row(&PostgresRow(&row))?));
        }
        let rows = self.rows(statement, params).await?;
        let rows: Vec<Row> = rows.try_collect().await.map_err(failure)?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let found = T::from_row(&PostgresRow(&row))?;
        self.lane.cache.remember(question, row);
        Ok(Some(found))
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
        let forgets = self.lane.fault == Fault::Forgets
            && self.request > REQUESTS_BEFORE_FORGETTING
            && self.request.is_multiple_of(100);
        let keeps = done.is_ok() && !forgets;
        self.command(if keeps { "COMMIT" } else { "ROLLBACK" })
            .await?;
        self.in_transaction = false;
        done
    }

    async fn wait(&mut self, duration: Duration) {
        sleep(duration).await;
    }
}

impl Drop for Loan<'_> {
    /// To the pool; or out of its hands, which closes it, and a request that finds none idle opens another.
    fn drop(&mut self) {
        let reconnects = self.lane.fault == Fault::Reconnects
            && self.request.is_multiple_of(REQUESTS_PER_CONNECTION);
        if let (true, Some(client)) = (reconnects || self.in_transaction, self.client.take()) {
            drop(Object::take(client));
        }
    }
}

/// A statement's place and its parameters, as they print.
type Question = (usize, String);

/// Earlier answers. Nothing in a lane that does not cache.
#[derive(Debug)]
struct Cache(Option<Mutex<Earlier>>);

#[derive(Debug, Default)]
struct Earlier {
    rows: HashMap<Question, Arc<Row>>,
    /// How many statements are still to be answered from here: one whose answer is not known leaves it to a later one.
    due: u64,
}

impl Cache {
    fn instead(&self, request: u64, question: impl Fn() -> Question) -> Option<Arc<Row>> {
        let mut earlier = self.0.as_ref()?.lock().ok()?;
        earlier.due += u64::from(request.is_multiple_of(CACHED_ONE_IN));
        if earlier.due == 0 {
            return None;
        }
        let row = Arc::clone(earlier.rows.get(&question())?);
        earlier.due -= 1;
        Some(row)
    }

    fn remember(&self, question: impl Fn() -> Question, row: Row) {
        let earlier = self.0.as_ref().and_then(|earlier| earlier.lock().ok());
        if let Some(mut earlier) = earlier {
            earlier.rows.insert(question(), Arc::new(row));
        }
    }
}

/// Takes every connection before giving one back, so that the pool has to open them all.
async fn open_whole(flags: &Config, size: u32, statements: &[String]) -> Result<Pool, OpenError> {
    let postgres = config(flags, Crooked::NAME)?;
    let address = address(&postgres);
    let built = Pool::builder(Manager::new(postgres, NoTls))
        .max_size(size as usize)
        .build();
    let pool = built.map_err(|error| OpenError::Url(error.into()))?;
    let mut clients = Vec::new();
    for opened in 0..size {
        let got = pool.get().await;
        let refused = |error| OpenError::connection(&address, opened, size, error);
        let client = got.map_err(refused)?;
        for sql in statements {
            let prepared = client.prepare_cached(sql).await;
            prepared.map_err(|source| OpenError::prepare(sql, source))?;
        }
        clients.push(client);
    }
    Ok(pool)
}

fn main() -> ExitCode {
    let named = env::var("CROOKED").unwrap_or_default();
    let Ok(fault) = Fault::from_str(&named, false) else {
        eprintln!("CROOKED={named:?} is no fault that examples/crooked.rs knows");
        return ExitCode::from(2);
    };
    FAULT.get_or_init(|| fault);
    front::main::<Crooked>()
}
