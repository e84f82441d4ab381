//! A lane without a database, and a server that runs it. What a request meets is decided by its id.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use clap::Parser;
use front::{
    Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, StartError, StatementId,
};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use workloads::{Delay, Item};

use crate::client::Client;

/// What a driver might say, which no client may ever see.
pub(crate) const DRIVER_TEXT: &str = "password authentication failed";

pub(crate) const CONFLICT: i32 = 409;
pub(crate) const ABSENT: i32 = 404;
pub(crate) const DATABASE: i32 = 500;
pub(crate) const NO_CONNECTION: i32 = 5030;
pub(crate) const CONNECTION_LOST: i32 = 5031;
pub(crate) const STATEMENT_TIMEOUT: i32 = 504;

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
}

impl Default for Control {
    fn default() -> Control {
        Control {
            delays: Semaphore::new(0),
            begun: AtomicU32::new(0),
            opening: Semaphore::new(1),
            refuses: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }
}

/// A lane learns its control by the database's URL, which is all that reaches it.
static CONTROLS: LazyLock<Mutex<HashMap<String, Arc<Control>>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
struct Fake {
    control: Arc<Control>,
}

impl Lane for Fake {
    const NAME: &'static str = "fake";
    const KIND: Kind = Kind::Blocking;
    const CRATES: &'static [&'static str] = &["workloads"];

    async fn open(config: &Config, statements: &[String]) -> Result<Fake, OpenError> {
        // Two workloads share the statement of the shape `item`.
        assert_eq!(statements.len(), 2, "{statements:?}");
        let control = Arc::clone(&CONTROLS.lock().unwrap()[&config.database_url]);
        control.opening.acquire().await.unwrap().forget();
        if control.refuses.load(Ordering::Relaxed) {
            return Err(OpenError::connection("somewhere:5432", 3, 16, DRIVER_TEXT));
        }
        Ok(Fake { control })
    }

    async fn item(
        &self,
        _statement: StatementId,
        id: i32,
        laps: &mut Laps,
    ) -> Result<Option<Item>, Failure> {
        laps.connected();
        laps.decoded();
        match id {
            ABSENT => Ok(None),
            CONFLICT => Err(Failure::from_sqlstate("40001", DRIVER_TEXT)),
            DATABASE => Err(Failure::from_sqlstate("42P01", DRIVER_TEXT)),
            CONNECTION_LOST => Err(Failure::from_sqlstate("57P01", DRIVER_TEXT)),
            STATEMENT_TIMEOUT => Err(Failure::from_sqlstate("57014", DRIVER_TEXT)),
            NO_CONNECTION => Err(Failure::NoConnection),
            _ => Ok(Some(lamp(id))),
        }
    }

    async fn delay(&self, _statement: StatementId, laps: &mut Laps) -> Result<Delay, Failure> {
        laps.connected();
        self.control.begun.fetch_add(1, Ordering::Relaxed);
        self.control.delays.acquire().await.unwrap().forget();
        laps.decoded();
        Ok(Delay { waited_ms: 10 })
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

fn lamp(id: i32) -> Item {
    Item {
        id,
        owner_id: 7,
        title: "Lamp".to_owned(),
        description: None,
        price_cents: 1999,
        stock: 3,
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
            line += &self.ready.recv().await.unwrap();
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    config.sql = root.join(config.sql);
    config.workloads = root.join(config.workloads);
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
