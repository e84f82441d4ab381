//! What is known about an open server: its version, its settings, its limits, and whether statements can be counted.

use std::fs;

use anyhow::{Context, Result, bail};
use postgres::{Client, GenericClient};

use super::binaries::OLDEST_MAJOR;
use super::connection::{connect, describe, with_database};

/// The database that watching connects to: initdb makes it, and hardly anybody works in it.
const MONITOR_DATABASE: &str = "postgres";

/// One setting of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// With its unit, as SHOW prints it.
    pub value: String,
}

/// Whether statements can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statements {
    /// By this view, qualified with its schema, in the monitor's database.
    Observed {
        view: String,
    },
    NotObserved {
        reason: String,
    },
}

pub(crate) struct Facts {
    pub(crate) monitor_url: String,
    pub(crate) monitor_apart: bool,
    pub(crate) server_version: String,
    pub(crate) max_connections: u32,
    pub(crate) settings: Vec<Setting>,
    pub(crate) statements: Statements,
    pub(crate) postmaster_pid: Option<u32>,
}

/// Asks the server behind `url`, whose database must exist and be in UTF-8.
pub(crate) fn gather(url: &str) -> Result<Facts> {
    let mut client = connect(url)?;
    let server_version = version(&mut client, url)?;
    let apart = with_database(url, MONITOR_DATABASE)?;
    let (mut monitor, monitor_url, monitor_apart) = match connect(&apart) {
        Ok(monitor) if apart != url => (monitor, apart, true),
        _ => (connect(url)?, url.to_owned(), false),
    };
    let max_connections = max_connections(&mut client)?;
    Ok(Facts {
        monitor_url,
        monitor_apart,
        server_version,
        max_connections,
        settings: settings(&mut client)?,
        statements: statements(&mut monitor),
        postmaster_pid: postmaster_pid(&mut client)?,
    })
}

fn version(client: &mut Client, url: &str) -> Result<String> {
    let row = client
        .query_one("SELECT current_setting('server_version_num')::int4, current_setting('server_version'), current_setting('server_encoding')", &[])
        .with_context(|| format!("{} does not say its version", describe(url)))?;
    let (number, version, encoding): (i32, String, String) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if number / 10_000 < OLDEST_MAJOR as i32 {
        bail!(
            "{}: PostgreSQL {version} is too old, lanebench needs {OLDEST_MAJOR} or later",
            describe(url)
        );
    }
    if encoding != "UTF8" {
        bail!(
            "{}: the database's encoding is {encoding}, lanebench needs UTF8",
            describe(url)
        );
    }
    Ok(version)
}

/// Connections open to a client that is no superuser.
fn max_connections(client: &mut Client) -> Result<u32> {
    let row = client.query_one(
        "SELECT current_setting('max_connections')::int4
              - current_setting('superuser_reserved_connections')::int4
              - coalesce(current_setting('reserved_connections', true), '0')::int4",
        &[],
    )?;
    Ok(u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0))
}

fn settings(client: &mut Client) -> Result<Vec<Setting>> {
    // What this session or its URL set is not the server's, and primary_conninfo may hold a password. Checksums are chosen
    // by initdb, which the server does not count as a setting.
    let rows = client.query(
        "SELECT name, current_setting(name) FROM pg_settings
         WHERE (source NOT IN ('default', 'override', 'client', 'session') OR name = 'data_checksums')
             AND name <> 'primary_conninfo'
         ORDER BY name COLLATE \"C\"",
        &[],
    )?;
    rows.iter()
        .map(|row| {
            Ok(Setting {
                name: row.try_get(0)?,
                value: row.try_get(1)?,
            })
        })
        .collect()
}

fn statements(monitor: &mut Client) -> Statements {
    match open_statements(monitor) {
        Ok(view) => Statements::Observed { view },
        Err(error) => {
            let reason = error
                .as_db_error()
                .map_or_else(|| error.to_string(), |refusal| refusal.message().to_owned());
            Statements::NotObserved { reason }
        }
    }
}

/// Leaves an extension behind only where it works: without its library loaded at start its view only fails.
fn open_statements(monitor: &mut Client) -> Result<String, postgres::Error> {
    let mut transaction = monitor.transaction()?;
    if view(&mut transaction)?.is_none() {
        transaction.batch_execute("CREATE EXTENSION pg_stat_statements")?;
    }
    let view = view(&mut transaction)?.unwrap_or_else(|| "pg_stat_statements".to_owned());
    transaction.query_one(&format!("SELECT count(*) FROM {view}"), &[])?;
    transaction.commit()?;
    Ok(view)
}

fn view(client: &mut impl GenericClient) -> Result<Option<String>, postgres::Error> {
    let row = client.query_opt(
        "SELECT quote_ident(nspname) || '.pg_stat_statements'
         FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
         WHERE extname = 'pg_stat_statements'",
        &[],
    )?;
    row.map(|row| row.try_get(0)).transpose()
}

/// The postmaster's pid, if the server is on this machine and its processes are ours to see. The backend's title shows
/// the port of our own connection: a process in a container has another pid, and another machine's none.
fn postmaster_pid(client: &mut Client) -> Result<Option<u32>> {
    let row = client.query_one("SELECT pg_backend_pid(), inet_client_port()", &[])?;
    let (backend, port): (i32, Option<i32>) = (row.try_get(0)?, row.try_get(1)?);
    let Some(port) = port else {
        return Ok(None); // a unix socket: nothing to tell our backend by
    };
    let title = fs::read(format!("/proc/{backend}/cmdline")).unwrap_or_default();
    let title = String::from_utf8_lossy(&title);
    if !title.starts_with("postgres: ") || !title.contains(&format!("({port})")) {
        return Ok(None);
    }
    let status = fs::read_to_string(format!("/proc/{backend}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    Ok(parent.and_then(|pid| pid.trim().parse().ok()))
}
