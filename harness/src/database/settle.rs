//! The database between two trials: the rows as they were seeded, in memory, nothing to be written out, nobody at work.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

use super::connection::{connect, interruptible};
use super::seed::{self, Scale};
use super::{Database, connection::describe};
use crate::signals::{self, Interrupted};

/// How long what others do in the server is waited for. What goes on after that shows in the checks of the trial.
const QUIET_LIMIT: Duration = Duration::from_secs(10);
/// Until PostgreSQL 14 a collector process takes in statistics, about twice a second.
const COLLECTOR_LAG: Duration = Duration::from_millis(1100);

/// Brings one database back to the state it was seeded in.
#[derive(Debug)]
pub struct Settler {
    url: String,
    scale: Scale,
    /// Row changes that the shop's tables had seen when the rows were last known to be right.
    changes: i64,
    prewarms: bool,
    checkpoints: bool,
    has_collector: bool,
}

impl Settler {
    /// For a database that has just been seeded at this scale.
    ///
    /// # Errors
    /// The database is lost.
    pub fn of(database: &Database, scale: Scale) -> Result<Settler> {
        let mut client = connect(&database.url)?;
        let version = "SELECT current_setting('server_version_num')::int4 < 150000";
        let has_collector = client.query_one(version, &[])?.try_get(0)?;
        let mut settler = Settler {
            url: database.url.clone(),
            scale,
            changes: 0,
            prewarms: can_prewarm(&mut client, database.is_private())?,
            checkpoints: seed::checkpoint(&mut client)?,
            has_collector,
        };
        drop(client);
        settler.changes = settler.changes_by_now()?;
        Ok(settler)
    }

    /// Puts back rows that have changed, loads tables and indexes into memory, writes out what is pending, and waits
    /// until nobody is at work. Gives whether rows had changed.
    ///
    /// # Errors
    /// The database is lost, or [`Interrupted`].
    pub fn settle(&mut self, stop: &AtomicBool) -> Result<bool> {
        let changed = self.changes_by_now()? != self.changes;
        let mut client = connect(&self.url)?;
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
            self.changes = self.changes_by_now()?;
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

    /// Inserts, updates and deletes of the shop's rows so far. A backend reports its own when it ends at the latest, so
    /// this reads them in a session of its own, after the others have gone.
    fn changes_by_now(&self) -> Result<i64> {
        if self.has_collector {
            thread::sleep(COLLECTOR_LAG);
        }
        let row = connect(&self.url)?.query_one(
            "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables
             WHERE schemaname = 'shop'",
            &[],
        )?;
        Ok(row.try_get(0)?)
    }
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
