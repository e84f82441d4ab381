//! The database between two trials: the rows as they were seeded, in memory, nothing to be written out, nobody at work.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::{Client, Transaction};

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
    /// What each of the shop's tables had seen when its rows were last known to be right.
    changes: Changes,
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
            changes: Changes::new(),
            prewarms: can_prewarm(&mut client, database.is_private())?,
            checkpoints: seed::checkpoint(&mut client)?,
        };
        drop(client);
        settler.changes = changes(&mut settler.connect(monitor)?)?;
        Ok(settler)
    }

    /// Puts back the rows of tables that have changed, loads tables and indexes into memory, writes out what is pending,
    /// and waits until nobody is at work. Gives whether rows had changed.
    ///
    /// # Errors
    /// The database is lost, or [`Interrupted`].
    pub fn settle(&mut self, monitor: &Monitor, stop: &AtomicBool) -> Result<bool> {
        let mut client = self.connect(monitor)?;
        let changed = changed(&self.changes, &changes(&mut client)?);
        let (scale, prewarms, checkpoints) = (self.scale, self.prewarms, self.checkpoints);
        let settled = interruptible(&mut client, stop, |client| {
            client.batch_execute("SET statement_timeout = 0")?;
            if !changed.is_empty() {
                restore(client, scale, &changed)?;
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
        if !changed.is_empty() {
            self.changes = changes(&mut self.connect(monitor)?)?;
        }
        Ok(!changed.is_empty())
    }

    /// From a server that lives on, PostgreSQL may count changes only later: until then every table counts as changed.
    pub fn distrust(&mut self) {
        self.changes.clear();
    }

    /// What is done before every trial, in words.
    pub fn describe(&self) -> String {
        let or_not = |able: bool, what: &str, why: &str| match able {
            true => what.to_owned(),
            false => format!("no {what} ({why})"),
        };
        format!(
            "tables that changed are put back (TRUNCATE, their seed, VACUUM); {}; {}; a wait until nobody is at work",
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

/// A number for each table that grows with what is done to its rows.
type Changes = BTreeMap<String, i64>;

/// Inserts, updates and deletes so far, rolled back ones included, since those leave their traces too; and how far an
/// identity has come.
fn changes(client: &mut Client) -> Result<Changes> {
    let rows = client.query(
        "SELECT relname::text, n_tup_ins + n_tup_upd + n_tup_del + coalesce(pg_sequence_last_value(seqrelid), 0)
         FROM pg_stat_user_tables
             LEFT JOIN (pg_depend JOIN pg_sequence ON classid = 'pg_class'::regclass AND objid = seqrelid
                 AND deptype = 'i') ON refobjid = relid
         WHERE schemaname = 'shop'",
        &[],
    )?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

/// The tables that are not as they were.
fn changed(before: &Changes, now: &Changes) -> Vec<&'static str> {
    let is_changed = |name: &&str| before.get(*name) != now.get(*name);
    seed::table_names().into_iter().filter(is_changed).collect()
}

/// Puts the rows of `changed` tables back as they were seeded. The tables stay, and with their object ids the ids of the
/// statements that name them.
fn restore(client: &mut Client, scale: Scale, changed: &[&'static str]) -> Result<()> {
    let mut transaction = client.transaction()?;
    transaction.batch_execute("SET LOCAL search_path = ''")?;
    let keys = Keys::of(&mut transaction, changed)?;
    transaction.batch_execute(&keys.take_off)?;
    transaction.batch_execute(&format!(
        "TRUNCATE {} RESTART IDENTITY",
        seed::qualified(changed)
    ))?;
    seed::insert_rows(&mut transaction, scale, changed)?;
    transaction.batch_execute(&keys.put_back)?;
    transaction.commit()?;
    seed::vacuum(client, changed)
}

/// What is cheaper to make anew after loading than to keep up while loading, as statements: the foreign keys from and to
/// some tables (which would also forbid to truncate the one without the other) and the indexes that are no constraint's.
struct Keys {
    take_off: String,
    put_back: String,
}

impl Keys {
    /// Expects an empty search path, so that every name is qualified.
    fn of(transaction: &mut Transaction<'_>, tables: &[&str]) -> Result<Self> {
        let row = transaction.query_one(
            "WITH shop AS (
                 SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace('shop') AND relname = ANY ($1)
             )
             SELECT coalesce(string_agg(take_off, ';'), ''), coalesce(string_agg(put_back, ';'), '') FROM (
                 SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS take_off,
                        format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
                            pg_get_constraintdef(oid)) AS put_back
                 FROM pg_constraint
                 WHERE contype = 'f'
                     AND (conrelid IN (SELECT oid FROM shop) OR confrelid IN (SELECT oid FROM shop))
                 UNION ALL
                 SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
                 FROM pg_index
                 WHERE indrelid IN (SELECT oid FROM shop)
                     AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
             ) AS keys",
            &[&tables],
        )?;
        Ok(Self {
            take_off: row.try_get(0)?,
            put_back: row.try_get(1)?,
        })
    }
}

/// Large values lie in tables of their own, elsewhere.
const PREWARM: &str = "WITH shop AS (
         SELECT oid, reltoastrelid FROM pg_class WHERE relnamespace = to_regnamespace('shop') AND relkind = 'r'
     ), relations AS (
         SELECT oid FROM shop UNION ALL SELECT reltoastrelid FROM shop WHERE reltoastrelid <> 0
     )
     SELECT count(pg_prewarm(oid)) FROM (
         SELECT oid FROM relations UNION ALL
         SELECT indexrelid FROM pg_index JOIN relations ON oid = indrelid
     ) AS all_of_them";

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
