//! A lane without a database, and a server that runs it. Its rows come from the script; a test steers it, and reads what
//! was asked of it.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use clap::Parser;
use front::{
    Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, RowSink, Session, StartError,
    StatementId, Work,
};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use workloads::{FromRow, FromRows, Param, Value};

use crate::client::Client;
use crate::row::{Row, bound, number};
use crate::script::{self, DRIVER_TEXT, SILENT};

/// How a test steers the lane of its own server.
#[derive(Debug)]
pub(crate) struct Control {
    /// Each permit lets one delay end.
    pub(crate) delays: Semaphore,
    /// Delays that have begun.
    pub(crate) begun: AtomicU32,
    /// A permit lets the lane open.
    pub(crate) opening: Semaphore,
    pub(crate) refuses: AtomicBool,
    pub(crate) closed: AtomicBool,
    /// So many transactions are still to be ended for the sake of another one.
    pub(crate) conflicts: AtomicU32,
    /// Rows that have been streamed.
    pub(crate) streamed: AtomicU32,
    /// What was asked of a connection or of the lane, in order.
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            delays: Semaphore::new(0),
            begun: AtomicU32::new(0),
            opening: Semaphore::new(1),
            refuses: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            conflicts: AtomicU32::new(0),
            streamed: AtomicU32::new(0),
            asked: Mutex::default(),
        }
    }
}

impl Control {
    fn note(&self, asked: impl Into<String>) {
        self.asked.lock().unwrap().push(asked.into());
    }

    /// What was asked since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// A lane learns its control by the database's URL, which is all that reaches it.
static CONTROLS: LazyLock<Mutex<HashMap<String, Arc<Control>>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
struct Fake {
    control: Arc<Control>,
    statements: Vec<String>,
}

impl Lane for Fake {
    const NAME: &'static str = "fake";
    const KIND: Kind = Kind::Blocking;
    const CRATES: &'static [&'static str] = &["workloads"];

    async fn open(config: &Config, statements: &[String]) -> Result<Fake, OpenError> {
        // Several workloads share the statement of the shape `item`.
        let distinct: BTreeSet<_> = statements.iter().collect();
        assert_eq!(statements.len(), distinct.len(), "{statements:?}");
        let control = Arc::clone(&CONTROLS.lock().unwrap()[&config.database_url]);
        control.opening.acquire().await.unwrap().forget();
        if control.refuses.load(Ordering::Relaxed) {
            return Err(OpenError::connection("somewhere:5432", 3, 16, DRIVER_TEXT));
        }
        Ok(Fake {
            control,
            statements: statements.to_vec(),
        })
    }

    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        laps.connected();
        let answer = work.run(&mut Lent(self)).await?;
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        self.control.note(format!("wait {duration:?}"));
        tokio::time::sleep(duration).await;
        Ok(())
    }

    fn pool_use(&self) -> PoolUse {
        PoolUse { size: 2, in_use: 1 }
    }

    fn notes(_profile: Profile) -> &'static [&'static str] {
        &["made up"]
    }

    async fn close(&self) {
        self.control.closed.store(true, Ordering::Relaxed);
    }
}

/// A connection to nowhere.
struct Lent<'a>(&'a Fake);

impl Lent<'_> {
    fn send(&self, statement: StatementId, params: &[Param<'_>]) -> (&str, Vec<Value>) {
        let statement = self.0.statements[statement.index()].as_str();
        let params: Vec<Value> = params.iter().map(bound).collect();
        let shown = |param: &Value| param.to_text().unwrap_or_else(|| "null".to_owned());
        let shown: Vec<String> = params.iter().map(shown).collect();
        let asked = format!("{statement} {}", shown.join(" "));
        self.0.control.note(asked.trim_end());
        (statement, params)
    }

    async fn rows(
        &self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let (statement, params) = self.send(statement, params);
        let control = &self.0.control;
        if statement == "ten ms" {
            control.begun.fetch_add(1, Ordering::Relaxed);
            control.delays.acquire().await.unwrap().forget();
        }
        script::rows(statement, &params, &control.conflicts)
    }
}

impl Session for Lent<'_> {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        let rows = self.rows(statement, params).await?;
        assert!(rows.len() <= 1, "{rows:?}");
        let row = rows.first().map(T::from_row).transpose()?;
        Ok(row)
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        let mut all = T::default();
        for row in self.rows(statement, params).await? {
            all.push(&row)?;
        }
        Ok(all)
    }

    async fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        let (statement, params) = self.send(statement, params);
        let ("export", [rows, breaks_after]) = (statement, params.as_slice()) else {
            panic!("{statement} is not streamed");
        };
        if number(rows) == SILENT {
            self.0.control.begun.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        for id in 1..=number(rows) {
            if id > number(breaks_after) {
                return Err(Failure::from_sqlstate("57P01", DRIVER_TEXT));
            }
            sink.push(&script::measurement(id))?;
            self.0.control.streamed.fetch_add(1, Ordering::Relaxed);
            sink.ready().await?;
        }
        Ok(())
    }

    async fn transaction<W: Work>(&mut self, work: W) -> Result<W::Answer, Failure> {
        self.0.control.note("begin");
        let done = work.run(self).await;
        let end = if done.is_ok() { "commit" } else { "rollback" };
        self.0.control.note(end);
        done
    }

    async fn wait(&mut self, duration: Duration) {
        self.0.control.note(format!("hold {duration:?}"));
        tokio::time::sleep(duration).await;
    }
}

/// A server in this process, on a port of its own.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) control: Arc<Control>,
    pub(crate) finished: JoinHandle<Result<(), StartError>>,
    stop: Option<oneshot::Sender<()>>,
    ready: mpsc::UnboundedReceiver<String>,
}

impl Server {
    /// Starts a server with these flags, and waits until it is ready.
    pub(crate) async fn start(flags: &[&str]) -> Server {
        let mut server = Server::begin(flags, Control::default()).await;
        server.ready_line().await;
        server
    }

    /// Starts a server without waiting.
    pub(crate) async fn begin(flags: &[&str], control: Control) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let control = Arc::new(control);
        let url = format!("fake://{address}");
        CONTROLS
            .lock()
            .unwrap()
            .insert(url.clone(), Arc::clone(&control));
        let config = config(&url, flags);
        let (stop, stopped) = oneshot::channel();
        let (lines, ready) = mpsc::unbounded_channel();
        let finished = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            front::run::<Fake>(&config, listener, shutdown, &mut Lines(lines)).await
        });
        Server {
            address,
            control,
            finished,
            stop: Some(stop),
            ready,
        }
    }

    pub(crate) async fn ready_line(&mut self) -> String {
        let mut line = String::new();
        while !line.ends_with('\n') {
            let Some(more) = self.ready.recv().await else {
                panic!("the server ended: {:?}", (&mut self.finished).await);
            };
            line += &more;
        }
        line
    }

    /// Whether nothing has been written to stdout so far.
    pub(crate) fn is_silent(&self) -> bool {
        self.ready.is_empty()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until this many delays have begun.
    pub(crate) async fn begun(&self, count: u32) {
        while self.control.begun.load(Ordering::Relaxed) < count {
            tokio::task::yield_now().await;
        }
    }
}

fn config(url: &str, flags: &[&str]) -> Config {
    let given = ["server", "--database-url", url];
    let mut config = Config::parse_from(given.iter().chain(flags));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/front");
    config.sql = own.join("queries");
    // One that a test gives is absolute.
    if config.workloads.is_relative() {
        config.workloads = own.join("definitions");
    }
    config
}

/// A stdout that a test reads.
struct Lines(mpsc::UnboundedSender<String>);

impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0
            .send(String::from_utf8(text.to_vec()).unwrap())
            .map_err(io::Error::other)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
