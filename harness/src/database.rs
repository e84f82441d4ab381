//! Where PostgreSQL comes from: a URL, binaries on this machine, or binaries downloaded once. Owns the choice
//! between them and what is known about the database that was opened.

mod account;
mod binaries;
mod cluster;
pub mod command;
pub(crate) mod connection;
pub mod download;
mod facts;
pub mod leftovers;
pub mod seed;
pub mod settings;
pub mod settle;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow, bail};

use crate::signals::Interrupted;
use binaries::Installation;
pub use binaries::pgbench_programs;
use cluster::Cluster;
pub use facts::{Setting, Statements};
use leftovers::RunFolder;

/// The variable that names a database for `--database auto`.
pub const URL_VARIABLE: &str = "DATABASE_URL";

/// What `--database` says.
#[derive(Clone, PartialEq, Eq)]
pub enum Choice {
    /// `DATABASE_URL`, else binaries on this machine, else downloaded ones: the first that works.
    Auto,
    /// A private cluster from the binaries on this machine.
    Local,
    /// A private cluster from binaries downloaded once into the user's cache.
    Download,
    /// A server that runs already.
    Url(String),
}

impl FromStr for Choice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "local" => Ok(Self::Local),
            "download" => Ok(Self::Download),
            url if connection::is_url(url) => {
                connection::check(url)?;
                Ok(Self::Url(url.to_owned()))
            }
            _ => bail!(
                "give auto, local, download, or a URL such as postgres://user:password@host:5432/database"
            ),
        }
    }
}

/// Never shows a password.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Local => f.write_str("local"),
            Self::Download => f.write_str("download"),
            Self::Url(url) => f.write_str(&connection::describe(url)),
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({self})")
    }
}

/// An open database. A private cluster lives as long as this value: dropping it stops the server and removes its
/// folder.
pub struct Database {
    /// For servers and the seed; with a password, so never to be printed or passed as an argument.
    pub url: String,
    /// Another database of the same server, so that what watches never counts as load.
    pub monitor_url: String,
    /// Whether `monitor_url` really is another database; not so where the server has no `postgres` to connect to.
    pub monitor_apart: bool,
    /// Which source, version and path, in words.
    pub source: String,
    /// As the server names itself, such as `15.18 (Debian 15.18-0+deb12u1)`.
    pub server_version: String,
    /// Connections that a client may open at most, those reserved for superusers excluded.
    pub max_connections: u32,
    /// Every setting that is not at its default.
    pub settings: Vec<Setting>,
    /// Whether statements can be counted.
    pub statements: Statements,
    /// The postmaster's pid, where it is a process of this machine that we can see.
    pub postmaster_pid: Option<u32>,
    cluster: Option<Cluster>,
}

impl Database {
    /// Whether lanebench runs this server itself, so that it may do with it as it likes.
    pub fn is_private(&self) -> bool {
        self.cluster.is_some()
    }
}

/// Without the URLs, since they hold the password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Opens the database of `choice`.
///
/// # Errors
/// One line that names the source and what is wrong with it; for `auto` one message that names all three sources and why
/// each failed. [`Interrupted`] if `stop` is set meanwhile; nothing is left behind then.
pub fn open(choice: &Choice, folder: &Arc<RunFolder>, stop: &AtomicBool) -> Result<Database> {
    match choice {
        Choice::Auto => open_first(&[from_environment, from_local, from_download], folder, stop),
        Choice::Local => from_local(folder, stop),
        Choice::Download => from_download(folder, stop),
        Choice::Url(url) => open_url(url, "the URL given"),
    }
}

/// Opens a cluster of our own whatever `DATABASE_URL` says.
///
/// # Errors
/// As [`open`]; also when `choice` is a URL.
pub fn open_private(
    choice: &Choice,
    folder: &Arc<RunFolder>,
    stop: &AtomicBool,
) -> Result<Database> {
    match choice {
        Choice::Auto => open_first(&[from_local, from_download], folder, stop),
        Choice::Local | Choice::Download => open(choice, folder, stop),
        Choice::Url(_) => {
            bail!("a server that runs already cannot be started: give auto, local or download")
        }
    }
}

type Source = fn(&Arc<RunFolder>, &AtomicBool) -> Result<Database>;

/// The first that works. A source that is there but passed over is said on stderr, since the user may have meant it.
fn open_first(sources: &[Source], folder: &Arc<RunFolder>, stop: &AtomicBool) -> Result<Database> {
    let mut failures: Vec<anyhow::Error> = Vec::new();
    for source in sources {
        match source(folder, stop) {
            Ok(database) => {
                for failure in failures
                    .iter()
                    .filter(|failure: &&anyhow::Error| !failure.is::<NotSet>())
                {
                    eprintln!("passed over: {failure:#}");
                }
                return Ok(database);
            }
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    let reasons: String = failures
        .iter()
        .map(|failure| format!("\n  {failure:#}"))
        .collect();
    Err(anyhow!("no PostgreSQL to measure with:{reasons}"))
}

/// Nobody asked for this source, so it needs no word if the next one works.
#[derive(Debug, thiserror::Error)]
#[error("{URL_VARIABLE}: not set")]
struct NotSet;

fn from_environment(_: &Arc<RunFolder>, _: &AtomicBool) -> Result<Database> {
    let url = match std::env::var(URL_VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        Ok(_) | Err(std::env::VarError::NotPresent) => return Err(NotSet.into()),
        Err(std::env::VarError::NotUnicode(_)) => bail!("{URL_VARIABLE}: not valid UTF-8"),
    };
    open_url(&url, URL_VARIABLE).context(URL_VARIABLE)
}

fn from_local(folder: &Arc<RunFolder>, stop: &AtomicBool) -> Result<Database> {
    let mut reasons = Vec::new();
    for installation in binaries::on_this_machine(&mut reasons) {
        match start(&installation, folder, stop) {
            Ok(database) => return Ok(database),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    bail!("PostgreSQL on this machine: {}", reasons.join("; "))
}

fn from_download(folder: &Arc<RunFolder>, stop: &AtomicBool) -> Result<Database> {
    let fetched =
        download::installation(stop).and_then(|installation| start(&installation, folder, stop));
    fetched.map_err(|error| in_words(error, "downloaded PostgreSQL"))
}

/// With the source's name before it; an interruption stays one.
fn in_words(error: anyhow::Error, source: &'static str) -> anyhow::Error {
    if error.is::<Interrupted>() {
        error
    } else {
        error.context(source)
    }
}

fn start(
    installation: &Installation,
    folder: &Arc<RunFolder>,
    stop: &AtomicBool,
) -> Result<Database> {
    let cluster = Cluster::start(installation, folder, stop)?;
    let source = format!(
        "a private cluster of PostgreSQL {} from {}",
        installation.version,
        cluster.origin()
    );
    let facts = facts::gather(cluster.url())?;
    let postmaster_pid = Some(cluster.pid());
    Ok(assemble(
        cluster.url().to_owned(),
        source,
        facts,
        postmaster_pid,
        Some(cluster),
    ))
}

fn open_url(url: &str, origin: &str) -> Result<Database> {
    let facts = facts::gather(url)?;
    let source = format!(
        "{} ({origin}), PostgreSQL {}",
        connection::describe(url),
        facts.server_version
    );
    let postmaster_pid = facts.postmaster_pid;
    Ok(assemble(
        url.to_owned(),
        source,
        facts,
        postmaster_pid,
        None,
    ))
}

fn assemble(
    url: String,
    source: String,
    facts: facts::Facts,
    postmaster_pid: Option<u32>,
    cluster: Option<Cluster>,
) -> Database {
    Database {
        url,
        monitor_url: facts.monitor_url,
        monitor_apart: facts.monitor_apart,
        source,
        server_version: facts.server_version,
        max_connections: facts.max_connections,
        settings: facts.settings,
        statements: facts.statements,
        postmaster_pid,
        cluster,
    }
}
