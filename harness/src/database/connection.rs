//! Connecting to a PostgreSQL by its URL: what may be said of the URL, and what a refusal means.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use crate::signals::Interrupted;

/// For a URL that sets no `connect_timeout` of its own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a statement under way asks whether to go on.
const STOP_POLL: Duration = Duration::from_millis(50);

const EXPECTED: &str = "expected postgres://user:password@host:5432/database";

/// Whether `text` claims to be a PostgreSQL URL.
pub(crate) fn is_url(text: &str) -> bool {
    ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
}

/// Fails if `url` is not a PostgreSQL URL with a host. Never repeats the URL, which may hold a password.
pub(crate) fn check(url: &str) -> Result<()> {
    parse(url).map(|_| ())
}

/// A URL as `user@host:port/database`.
pub(crate) fn describe(url: &str) -> String {
    match parse(url) {
        Ok(config) => Place::of(&config).to_string(),
        Err(error) => error.to_string(),
    }
}

/// The same server, another database.
pub(crate) fn with_database(url: &str, database: &str) -> Result<String> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or_else(|| anyhow!("not a PostgreSQL URL"))?;
    let (before, query) = match rest.split_once('?') {
        Some((before, query)) => (before, format!("?{query}")),
        None => (rest, String::new()),
    };
    let authority = before
        .split_once('/')
        .map_or(before, |(authority, _)| authority);
    Ok(format!("{scheme}://{authority}/{database}{query}"))
}

/// Opens one connection.
///
/// # Errors
/// One line with the user, host, port and database, what is wrong, and never the password.
pub(crate) fn connect(url: &str) -> Result<Client> {
    let mut config = parse(url)?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("lanebench");
    }
    config
        .connect(NoTls)
        .map_err(|error| explain(&error, &Place::of(&config)))
}

/// Does `work` and cancels the statement it is at once `stop` is set.
///
/// # Errors
/// Those of `work`; [`Interrupted`] in their place if it was stopped.
pub(crate) fn interruptible<T>(
    client: &mut Client,
    stop: &AtomicBool,
    work: impl FnOnce(&mut Client) -> Result<T>,
) -> Result<T> {
    let cancel = client.cancel_token();
    // Closed when the work ends in whatever way, a panic included.
    let (working, ended) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(STOP_POLL) == Err(RecvTimeoutError::Timeout) {
                if stop.load(Ordering::Relaxed) {
                    // Again and again: the statement may be between two others. If the server is gone, so is the work.
                    let _ = cancel.cancel_query(NoTls);
                }
            }
        });
        let result = work(client);
        drop(working);
        result
    });
    result.map_err(|error| {
        if stop.load(Ordering::Relaxed) {
            Interrupted.into()
        } else {
            error
        }
    })
}

fn parse(url: &str) -> Result<Config> {
    // The `key=value` form is refused as well: not every driver under measurement reads it.
    if !is_url(url) {
        bail!("not a PostgreSQL URL ({EXPECTED})");
    }
    let config: Config = url.parse().map_err(|error: postgres::Error| {
        let reason = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        anyhow!("not a PostgreSQL URL: {reason} ({EXPECTED})")
    })?;
    let named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
    if !config.get_hosts().iter().any(named) {
        bail!("a PostgreSQL URL without a host ({EXPECTED})");
    }
    Ok(config)
}

/// Where a connection goes, in words fit to print.
struct Place {
    user: String,
    host: String,
    port: u16,
    database: String,
}

impl Place {
    fn of(config: &Config) -> Self {
        let host = config
            .get_hosts()
            .first()
            .map_or_else(String::new, |host| match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            });
        let user = config.get_user().unwrap_or("(your user)").to_owned();
        Self {
            host,
            port: config.get_ports().first().copied().unwrap_or(5432),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}@{}:{}/{}",
            self.user, self.host, self.port, self.database
        )
    }
}

fn explain(error: &postgres::Error, place: &Place) -> anyhow::Error {
    let Place {
        user,
        host,
        port,
        database,
    } = place;
    if let Some(refusal) = error.as_db_error() {
        let code = refusal.code();
        return if *code == SqlState::INVALID_PASSWORD {
            anyhow!("{place}: wrong password for user {user}")
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            anyhow!("{place}: there is no database {database} on {host}:{port}; create it first")
        } else if *code == SqlState::TOO_MANY_CONNECTIONS {
            anyhow!(
                "{place}: the server has no free connection ({})",
                refusal.message()
            )
        } else {
            anyhow!(
                "{place}: the server refuses: {} (SQLSTATE {})",
                refusal.message(),
                code.code()
            )
        };
    }
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
        Some(io) if io.kind() == ErrorKind::ConnectionRefused => {
            anyhow!("{place}: nothing listens on {host}:{port}; is the server running?")
        }
        Some(io) if io.kind() == ErrorKind::TimedOut => {
            anyhow!("{place}: {host}:{port} does not answer in time")
        }
        Some(io) => anyhow!("{place}: cannot connect to {host}:{port}: {io}"),
        None => anyhow!(
            "{place}: {}",
            cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
        ),
    }
}
