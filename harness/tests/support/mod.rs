//! The database of the tests: a container when a Docker engine answers, else a private cluster from the binaries of this
//! machine. `LANEBENCH_TEST_DATABASE=container|local|<URL>` forces one, and not getting it then fails the test.
//!
//! The server is shared by the tests that run at the same time and goes with the last of them; each has a database of
//! its own in it.

#![allow(dead_code, reason = "each test program uses its part of this")]
#![allow(clippy::unwrap_used)]

pub(crate) mod campaigns;
pub(crate) mod containers;
pub(crate) mod program;
pub(crate) mod servers;

use std::env;
use std::io::{Write, stderr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use anyhow::{Context, Result, anyhow};
use harness::database::leftovers::RunFolder;
use harness::database::{self, Choice, Database};
use postgres::{Client, NoTls};
use testcontainers_modules::postgres::Postgres;
use testcontainers_modules::testcontainers::runners::SyncRunner;
use testcontainers_modules::testcontainers::{Container, ImageExt};

const FORCE_VARIABLE: &str = "LANEBENCH_TEST_DATABASE";
const IMAGE_VARIABLE: &str = "LANEBENCH_POSTGRES_IMAGE";
const DEFAULT_IMAGE: &str = "postgres:17";
/// Names the process that a container was started for.
const LABEL: &str = "lanebench.test.process";

/// An empty database, dropped at the end.
pub(crate) struct TestDatabase {
    pub(crate) url: String,
    name: String,
    server: Arc<Server>,
}

impl TestDatabase {
    /// In the server that all tests share.
    pub(crate) fn fresh() -> Self {
        let server =
            shared().unwrap_or_else(|error| panic!("no database for the tests: {error:#}"));
        Self::within(server)
    }

    fn within(server: Arc<Server>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lanebench_test_{}_{number}", std::process::id());
        client(server.url())
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .unwrap();
        Self {
            url: with_database(server.url(), &name),
            name,
            server,
        }
    }

    /// A connection to it.
    pub(crate) fn client(&self) -> Client {
        client(&self.url)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let dropped = Client::connect(self.server.url(), NoTls).and_then(|mut client| {
            client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name))
        });
        if let Err(error) = dropped {
            say(&format!("database {} is left behind: {error}", self.name));
        }
    }
}

/// For tests that watch the whole server or measure: side by side they would see and disturb each other.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database in a container of its own.
pub(crate) fn container(image: &str) -> Result<TestDatabase> {
    Ok(TestDatabase::within(Arc::new(Server::container(image)?)))
}

/// Whether the databases of the tests must be containers, or must not.
pub(crate) fn forced() -> Option<String> {
    env::var(FORCE_VARIABLE)
        .ok()
        .filter(|forced| !forced.is_empty())
}

/// Says something that shows although the test passes, which the print macros do not.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

enum Server {
    Container {
        url: String,
        image: String,
        _container: Box<Container<Postgres>>,
    },
    Local(Box<Database>),
    Given(String),
}

impl Server {
    fn url(&self) -> &str {
        match self {
            Self::Container { url, .. } | Self::Given(url) => url,
            Self::Local(database) => &database.url,
        }
    }

    fn container(image: &str) -> Result<Self> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(remove_orphans);
        let (name, tag) = image
            .rsplit_once(':')
            .context("an image is given as name:tag")?;
        let container = Postgres::default()
            .with_name(name)
            .with_tag(tag)
            .with_label(LABEL, std::process::id().to_string())
            .with_cmd([
                "-c",
                "shared_preload_libraries=pg_stat_statements",
                "-c",
                "max_connections=300",
                "-c",
                "fsync=off",
                // As in a private cluster: its workers' transactions would count as the lane's.
                "-c",
                "autovacuum=off",
                "-c",
                "max_parallel_workers_per_gather=0",
            ])
            .start()?;
        let (host, port) = (container.get_host()?, container.get_host_port_ipv4(5432)?);
        let url = format!("postgres://postgres:postgres@{host}:{port}/postgres");
        Ok(Self::Container {
            url,
            image: image.to_owned(),
            _container: Box::new(container),
        })
    }

    fn local() -> Result<Self> {
        let folder = Arc::new(RunFolder::create()?);
        Ok(Self::Local(Box::new(database::open(
            &Choice::Local,
            &folder,
            &AtomicBool::new(false),
        )?)))
    }

    fn choose() -> Result<Self> {
        let image = env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
        match forced().as_deref() {
            Some("container") => Self::container(&image),
            Some("local") => Self::local(),
            Some(url) if url.contains("://") => Ok(Self::Given(url.to_owned())),
            Some(other) => Err(anyhow!(
                "{FORCE_VARIABLE} is container, local or a URL, not {other:?}"
            )),
            None => Self::container(&image).or_else(|refusal| {
                say(&format!("no container for the tests: {refusal:#}"));
                Self::local()
            }),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Container { image, .. } => format!("a container of {image}"),
            Self::Local(database) => database.source.clone(),
            Self::Given(_) => format!("the server of {FORCE_VARIABLE}"),
        }
    }
}

fn shared() -> Result<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    static SAY: Once = Once::new();
    let mut shared = SHARED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(Server::choose()?);
    SAY.call_once(|| say(&format!("tests use {}", server.describe())));
    *shared = Arc::downgrade(&server);
    Ok(server)
}

/// Removes the containers of test processes that were killed before they could.
fn remove_orphans() {
    let format = format!("{{{{.ID}}}} {{{{.Label \"{LABEL}\"}}}}");
    let listed = Command::new("docker")
        .args([
            "ps",
            "--all",
            "--filter",
            &format!("label={LABEL}"),
            "--format",
            &format,
        ])
        .output();
    let Ok(listed) = listed else { return };
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        if let Some((id, pid)) = line.split_once(' ')
            && !std::path::Path::new("/proc").join(pid).exists()
        {
            let _ = Command::new("docker")
                .args(["rm", "--force", "--volumes", id])
                .output();
        }
    }
}

fn client(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

fn with_database(url: &str, database: &str) -> String {
    let mut url = url::Url::parse(url).unwrap();
    url.set_path(database);
    url.into()
}
