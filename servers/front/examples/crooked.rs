//! A lane that breaks the rules in the one way that `CROOKED` names, so that the harness can be shown to see it. It is
//! a plain deadpool lane otherwise, and keeps the process contract. A server.toml runs it, for instance, with
//! `run = ["env", "CROOKED=pings", "/.../target/debug/examples/crooked"]`. It knows no deadlines beside the front's.

use std::collections::HashMap;
use std::env;
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use clap::ValueEnum;
use deadpool_postgres::{Manager, Object, Pool};
use front::{Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, StatementId};
use tokio_postgres::{Error, NoTls, Row};
use workloads::{Delay, Item};

static FAULT: OnceLock<Fault> = OnceLock::new();
/// `caches` answers one request of so many without asking the database.
const CACHED_ONE_IN: u64 = 1_000;
/// `reconnects` gives up a connection after so many requests.
const REQUESTS_PER_CONNECTION: u64 = 200;
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
}

impl Fault {
    /// The statement that is sent where the workload has this one. It gives the same rows.
    fn statement(self, sql: &str) -> String {
        match self {
            Fault::ShortSleep => sql.replace("pg_sleep(0.010)", "pg_sleep(0.009)"),
            Fault::Slow => format!("SELECT q.* FROM ({sql}\n) AS q, pg_sleep(0.0005)"),
            _ => sql.to_owned(),
        }
    }
}

#[derive(Debug)]
struct Crooked {
    fault: Fault,
    pool: Pool,
    statements: Vec<String>,
    /// Requests so far.
    requests: AtomicU64,
    items: Cache<Item>,
    delays: Cache<Delay>,
}

impl Lane for Crooked {
    const NAME: &'static str = "crooked";
    const KIND: Kind = Kind::Nonblocking;
    const CRATES: &'static [&'static str] = &["deadpool-postgres", "tokio-postgres"];

    async fn open(config: &Config, statements: &[String]) -> Result<Crooked, OpenError> {
        let fault = FAULT.get().copied().unwrap_or(Fault::Honest);
        let statements: Vec<_> = statements.iter().map(|sql| fault.statement(sql)).collect();
        let size = config.pool + u32::from(fault == Fault::OpensOneMore);
        let pool = open_whole(config, size, &statements).await?;
        Ok(Crooked {
            fault,
            pool,
            statements,
            requests: AtomicU64::new(0),
            items: Cache::of(fault),
            delays: Cache::of(fault),
        })
    }

    async fn item(
        &self,
        statement: StatementId,
        id: i32,
        laps: &mut Laps,
    ) -> Result<Option<Item>, Failure> {
        let count = self.begin();
        if let Some(item) = self.items.instead(count, id) {
            return Ok(Some(item));
        }
        let (client, row) = self.query(statement, Some(id), laps).await?;
        let item = row.map(|row| item(&row)).transpose().map_err(failure)?;
        laps.decoded();
        self.give_back(client, count);
        self.items.remember(id, item.as_ref());
        Ok(item)
    }

    async fn delay(&self, statement: StatementId, laps: &mut Laps) -> Result<Delay, Failure> {
        let count = self.begin();
        if let Some(delay) = self.delays.instead(count, 0) {
            return Ok(delay);
        }
        let (client, row) = self.query(statement, None, laps).await?;
        let row = row.ok_or_else(|| Failure::Database("the statement gave no row".into()))?;
        let delay = Delay {
            waited_ms: row.try_get(0).map_err(failure)?,
        };
        laps.decoded();
        self.give_back(client, count);
        self.delays.remember(0, Some(&delay));
        Ok(delay)
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

impl Crooked {
    /// The number of this request, from 1.
    fn begin(&self) -> u64 {
        let count = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fault == Fault::Dies && count > REQUESTS_IN_A_LIFE {
            process::exit(1);
        }
        count
    }

    async fn query(
        &self,
        statement: StatementId,
        id: Option<i32>,
        laps: &mut Laps,
    ) -> Result<(Object, Option<Row>), Failure> {
        let client = self.pool.get().await.map_err(|_| Failure::NoConnection)?;
        laps.connected();
        if self.fault == Fault::Pings {
            client.simple_query("").await.map_err(failure)?;
        }
        let sql = &self.statements[statement.index()];
        let prepared = client.prepare_cached(sql).await.map_err(failure)?;
        let row = match id {
            Some(id) => client.query_opt(&prepared, &[&id]).await,
            None => client.query_opt(&prepared, &[]).await,
        };
        Ok((client, row.map_err(failure)?))
    }

    /// To the pool; or out of its hands, which closes it, and a request that finds none idle opens another.
    fn give_back(&self, client: Object, count: u64) {
        if self.fault == Fault::Reconnects && count.is_multiple_of(REQUESTS_PER_CONNECTION) {
            drop(Object::take(client));
        }
    }
}

/// Earlier answers by id, and how many requests are still to be answered from here: one whose answer is not known
/// leaves it to a later one. Nothing in a lane that does not cache.
#[derive(Debug)]
struct Cache<T>(Option<Mutex<(HashMap<i32, T>, u64)>>);

impl<T: Clone> Cache<T> {
    fn of(fault: Fault) -> Cache<T> {
        Cache((fault == Fault::Caches).then(Mutex::default))
    }

    fn instead(&self, count: u64, id: i32) -> Option<T> {
        let mut earlier = self.0.as_ref()?.lock().ok()?;
        earlier.1 += u64::from(count.is_multiple_of(CACHED_ONE_IN));
        let answer = earlier.0.get(&id).filter(|_| earlier.1 > 0).cloned()?;
        earlier.1 -= 1;
        Some(answer)
    }

    fn remember(&self, id: i32, answer: Option<&T>) {
        let earlier = self.0.as_ref().and_then(|earlier| earlier.lock().ok());
        if let (Some(mut earlier), Some(answer)) = (earlier, answer) {
            earlier.0.insert(id, answer.clone());
        }
    }
}

/// Takes every connection before giving one back, so that the pool has to open them all.
async fn open_whole(config: &Config, size: u32, statements: &[String]) -> Result<Pool, OpenError> {
    let parsed = config.database_url.parse::<tokio_postgres::Config>();
    let mut postgres = parsed.map_err(|error| OpenError::Url(error.into()))?;
    postgres.application_name("lanebench-crooked");
    let built = Pool::builder(Manager::new(postgres, NoTls))
        .max_size(size as usize)
        .build();
    let pool = built.map_err(|error| OpenError::Url(error.into()))?;
    let mut clients = Vec::new();
    for opened in 0..size {
        let got = pool.get().await;
        let refused = |error| OpenError::connection("--database-url", opened, size, error);
        let client = got.map_err(refused)?;
        for sql in statements {
            let prepared = client.prepare_cached(sql).await;
            prepared.map_err(|source| OpenError::prepare(sql, source))?;
        }
        clients.push(client);
    }
    Ok(pool)
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
    Failure::Database(error.into())
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
