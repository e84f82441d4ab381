//! The database between two trials: the rows as they were seeded, in memory, nothing to be written out, nobody at work.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

use super::connection::{connect, interruptible};
use super::seed::{self, Scale};
use super::{Database, connection::describe};
use crate::monitor::Monitor;
use crate::signals::{self, Interrupted};

/// How long what others do in the server is waited for. What goes on after that shows in the checks of the trial.
const QUIET_LIMIT: Duration = Duration::from_secs(10);

/// Brings one database back to the state it was seeded in.
#[derive(Debug)]
pub struct Settler {
    url: String,
    scale: Scale,
    /// Row changes that the shop's tables had seen when the rows were last known to be right.
    changes: i64,
    prewarms: bool,
    checkpoints: bool,
}

impl Settler {
    /// For a database that has just been seeded at this scale.
    ///
    /// # Errors
    /// The database is lost.
    pub fn of(database: &Database, scale: Scale, monitor: &Monitor) -> Result<Settler> {
        let mut client = connect(&database.url)?;
        let mut settler = Settler {
            url: database.url.clone(),
            scale,
            changes: 0,
            prewarms: can_prewarm(&mut client, database.is_private())?,
            checkpoints: seed::checkpoint(&mut client)?,
        };
        drop(client);
        settler.changes = changes(&mut settler.connect(monitor)?)?;
        Ok(settler)
    }

    /// Puts back rows that have changed, loads tables and indexes into memory, writes out what is pending, and waits
    /// until nobody is at work. Gives whether rows had changed.
    ///
    /// # Errors
    /// The database is lost, or [`Interrupted`].
    pub fn settle(&mut self, monitor: &Monitor, stop: &AtomicBool) -> Result<bool> {
        let mut client = self.connect(monitor)?;
        let changed = changes(&mut client)? != self.changes;
        let (scale, prewarms, checkpoints) = (self.scale, self.prewarms, self.checkpoints);
        let settled = interruptible(&mut client, stop, |client| {
            client.batch_execute("SET statement_timeout = 0")?;
            if changed {
                seed::restore(client, scale)?;
            }
            if prewarms {
                client.batch_execute(PREWARM)?;
            }
            if checkpoints {
                seed::checkpoint(client)?;
            }
            Ok(())
        });
        settled.map_err(|error| {
            if error.is::<Interrupted>() {
                error
            } else {
                error.context(describe(&self.url))
            }
        })?;
        wait_until_quiet(&mut client, stop)?;
        drop(client);
        if changed {
            self.changes = changes(&mut self.connect(monitor)?)?;
        }
        Ok(changed)
    }

    /// What is done before every trial, in words.
    pub fn describe(&self) -> String {
        let or_not = |able: bool, what: &str, why: &str| match able {
            true => what.to_owned(),
            false => format!("no {what} ({why})"),
        };
        format!(
            "changed rows are put back (TRUNCATE, the seed, VACUUM); {}; {}; a wait until nobody is at work",
            or_not(
                self.prewarms,
                "prewarming",
                "the extension pg_prewarm is not there"
            ),
            or_not(
                self.checkpoints,
                "CHECKPOINT",
                "the role may not ask for one"
            ),
        )
    }

    /// A session that sees in the statistics what those before it did: a backend reports its own when it ends at the
    /// latest.
    fn connect(&self, monitor: &Monitor) -> Result<Client> {
        monitor.await_statistics();
        connect(&self.url)
    }
}

/// Inserts, updates and deletes of the shop's rows so far.
fn changes(client: &mut Client) -> Result<i64> {
    let row = client.query_one(
        "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables
         WHERE schemaname = 'shop'",
        &[],
    )?;
    Ok(row.try_get(0)?)
}

const PREWARM: &str = "SELECT count(pg_prewarm(oid)) FROM pg_class
     WHERE relnamespace = 'shop'::regnamespace AND relkind IN ('r', 'i')";

/// An extension is made in a database of our own only.
fn can_prewarm(client: &mut Client, private: bool) -> Result<bool> {
    if private {
        // Where the installation lacks it, the reads of the warm-up have to do.
        let _ = client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm");
    }
    let there = client.query_one("SELECT to_regproc('pg_prewarm') IS NOT NULL", &[])?;
    Ok(there.try_get(0)?)
}

/// Until no other client is in a statement, and no vacuum is under way.
fn wait_until_quiet(client: &mut Client, stop: &AtomicBool) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < QUIET_LIMIT {
        signals::check(stop)?;
        let row = client.query_one(
            "SELECT count(*) FROM pg_stat_activity
             WHERE pid <> pg_backend_pid()
                 AND (backend_type = 'autovacuum worker' OR (backend_type = 'client backend' AND state = 'active'))",
            &[],
        )?;
        if row.try_get::<_, i64>(0)? == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
