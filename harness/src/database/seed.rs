//! The shop's rows: made by the database itself from the files in sql/, and made again only if they are not there already,
//! byte for byte.
//!
//! The schema `shop` carries lanebench's mark, a comment with the hash of what made it and the fingerprint of what it
//! then held. A schema `shop` without the mark is somebody else's and is never touched.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use postgres::error::SqlState;
use postgres::{Client, GenericClient, Transaction};

use super::connection::{connect, describe, interruptible};

const SCHEMA_SQL: &str = include_str!("../../../sql/schema.sql");
const SEED_SQL: &str = include_str!("../../../sql/seed.sql");
const KEYS_SQL: &str = include_str!("../../../sql/keys.sql");
/// Each table with what makes its rows, in an order in which they can be made.
const TABLES: [(&str, &str); 11] = [
    ("users", include_str!("../../../sql/seed/users.sql")),
    ("items", include_str!("../../../sql/seed/items.sql")),
    ("comments", include_str!("../../../sql/seed/comments.sql")),
    ("accounts", include_str!("../../../sql/seed/accounts.sql")),
    ("fortunes", include_str!("../../../sql/seed/fortunes.sql")),
    ("ledger", EMPTY),
    ("views", include_str!("../../../sql/seed/views.sql")),
    ("members", EMPTY),
    (
        "document_originals",
        include_str!("../../../sql/seed/document_originals.sql"),
    ),
    ("documents", include_str!("../../../sql/seed/documents.sql")),
    (
        "measurements",
        include_str!("../../../sql/seed/measurements.sql"),
    ),
];
/// Of a table that workloads fill.
const EMPTY: &str = "";
/// Begins the mark.
const MARK: &str = "Made by lanebench, which drops and remakes it at will.";
/// Any number, as long as every lanebench takes the same: one seed at a time.
const LOCK: i64 = 0x6c61_6e65;

/// How many times the default number of rows, in (0, 100].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

impl Default for Scale {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for Scale {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse::<f64>() {
            Ok(scale) if scale > 0.0 && scale <= 100.0 => Ok(Self(scale)),
            _ => bail!("the scale is a number above 0 and up to 100, such as 0.1"),
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One table as it was found or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub rows: i64,
}

/// The shop, ready to be measured with.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeded {
    /// Of every row, column, index and constraint; 32 hexadecimal digits, the same on every machine and version.
    pub fingerprint: String,
    pub scale: Scale,
    pub tables: Vec<Table>,
    /// Whether everything was there already.
    pub skipped: bool,
    pub took: Duration,
}

/// Makes sure that the shop is there at this scale, with every row as it was seeded.
///
/// # Errors
/// One line if the database cannot be reached, a schema `shop` is there that lanebench did not make, the role may not
/// create schemas, or something else depends on what would have to be replaced. [`Interrupted`](crate::signals::Interrupted) if
/// `stop` is set meanwhile.
pub fn ensure(url: &str, scale: Scale, stop: &AtomicBool) -> Result<Seeded> {
    let started = Instant::now();
    let mut client = connect(url)?;
    interruptible(&mut client, stop, |client| {
        ensure_with(client, scale, started)
    })
    .map_err(|error| {
        if error.is::<crate::signals::Interrupted>() {
            error
        } else {
            error.context(describe(url))
        }
    })
}

fn ensure_with(client: &mut Client, scale: Scale, started: Instant) -> Result<Seeded> {
    // The session's own settings must not show in the content's text, and a user's timeouts are meant for short work.
    client.batch_execute(
        "SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET extra_float_digits = 1; SET search_path = '';
         SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0",
    )?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK])?;
    let rows = TABLES.map(|(_, sql)| sql).join("\n");
    let source = md5(
        client,
        &format!("{scale}\n{SCHEMA_SQL}\n{SEED_SQL}\n{rows}\n{KEYS_SQL}"),
    )?;
    let found = find(client)?;
    if let Found::Ours(mark) = &found
        && let Some(content) = content(client)?
        && *mark == Mark::complete(&source, &content.fingerprint)
    {
        return Ok(content.seeded(scale, true, started));
    }
    if found == Found::Foreign {
        bail!(
            "there is a schema shop that lanebench did not make: rename or drop it (DROP SCHEMA shop CASCADE), or use \
             another database"
        );
    }
    load(client, scale, found != Found::Nothing)?;
    let content = content(client)?.context("the seed left a table out")?;
    Mark::complete(&source, &content.fingerprint).set(client)?;
    checkpoint(client)?;
    Ok(content.seeded(scale, false, started))
}

#[derive(PartialEq)]
enum Found {
    Nothing,
    Ours(Mark),
    Foreign,
}

fn find(client: &mut Client) -> Result<Found> {
    let comment = client.query_opt(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'shop'",
        &[],
    )?;
    Ok(
        match comment
            .map(|row| row.try_get::<_, Option<String>>(0))
            .transpose()?
        {
            None => Found::Nothing,
            Some(Some(text)) if text.starts_with(MARK) => Found::Ours(Mark(text)),
            Some(_) => Found::Foreign,
        },
    )
}

/// The comment on the schema.
#[derive(PartialEq)]
struct Mark(String);

impl Mark {
    fn incomplete() -> Self {
        Self(format!("{MARK} Incomplete."))
    }

    fn complete(source: &str, fingerprint: &str) -> Self {
        Self(format!("{MARK} Source {source}, content {fingerprint}."))
    }

    fn set(&self, client: &mut impl GenericClient) -> Result<()> {
        Ok(client.batch_execute(&format!("COMMENT ON SCHEMA shop IS '{}'", self.0))?)
    }
}

/// Replaces the shop in one transaction, so that no other session sees half of it, and leaves nothing for a vacuum to do
/// in a measured window.
fn load(client: &mut Client, scale: Scale, replace: bool) -> Result<()> {
    let mut transaction = client.transaction()?;
    if replace {
        remove(&mut transaction)?;
    }
    // In the same transaction as the rows, so that wal_level = minimal can leave them out of the log.
    transaction.batch_execute(SCHEMA_SQL).map_err(|error| match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            anyhow::anyhow!("the role may not create the schema shop: GRANT CREATE ON DATABASE, or give another role")
        }
        _ => anyhow::Error::new(error).context("sql/schema.sql"),
    })?;
    insert_rows(&mut transaction, scale, &table_names())?;
    transaction
        .batch_execute(KEYS_SQL)
        .context("sql/keys.sql")?;
    Mark::incomplete().set(&mut transaction)?;
    transaction.commit()?;
    vacuum(client, &table_names())
}

/// The seeded rows of these tables, which are empty.
pub(super) fn insert_rows(
    transaction: &mut Transaction<'_>,
    scale: Scale,
    tables: &[&str],
) -> Result<()> {
    transaction.execute(
        "SELECT set_config('lanebench.scale', $1, true)",
        &[&scale.to_string()],
    )?;
    transaction
        .batch_execute(SEED_SQL)
        .context("sql/seed.sql")?;
    for (name, sql) in TABLES.iter().filter(|(name, _)| tables.contains(name)) {
        transaction
            .batch_execute(sql)
            .with_context(|| format!("sql/seed/{name}.sql"))?;
    }
    Ok(())
}

/// Leaves nothing for a later vacuum to do in these tables, and statistics for the planner.
pub(super) fn vacuum(client: &mut Client, tables: &[&str]) -> Result<()> {
    client
        .batch_execute(&format!("VACUUM (FREEZE, ANALYZE) {}", qualified(tables)))
        .context("the vacuum after the seed")
}

/// Of the shop's tables, those that are ours.
pub(super) fn table_names() -> [&'static str; TABLES.len()] {
    TABLES.map(|(name, _)| name)
}

/// For a statement that takes a list of tables.
pub(super) fn qualified(tables: &[&str]) -> String {
    let names: Vec<String> = tables.iter().map(|name| format!("shop.{name}")).collect();
    names.join(", ")
}

/// Writes out now what the server would otherwise write within a measured window. `false`: the role may not ask for that.
pub(super) fn checkpoint(client: &mut Client) -> Result<bool> {
    match client.batch_execute("CHECKPOINT") {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// Drops what lanebench made and nothing else: whatever depends on it or lies beside it makes this fail.
fn remove(client: &mut impl GenericClient) -> Result<()> {
    let dropped = client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS {} RESTRICT",
            qualified(&table_names())
        ))
        .and_then(|()| client.batch_execute("DROP SCHEMA shop RESTRICT"));
    match dropped {
        Err(error) if error.code() == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) => {
            let detail = error
                .as_db_error()
                .and_then(|refusal| refusal.detail())
                .unwrap_or_default();
            let first = detail.lines().next().unwrap_or_default();
            bail!(
                "the schema shop is to be made anew, but holds what lanebench did not make: {first}; move it away"
            )
        }
        other => Ok(other?),
    }
}

struct Content {
    tables: Vec<Table>,
    fingerprint: String,
}

impl Content {
    fn seeded(self, scale: Scale, skipped: bool, started: Instant) -> Seeded {
        let Self {
            tables,
            fingerprint,
        } = self;
        Seeded {
            fingerprint,
            scale,
            tables,
            skipped,
            took: started.elapsed(),
        }
    }
}

/// The fingerprint of what is there; none if a table is missing. A table's is its count and the sum of a hash of each
/// row, so that the order in which rows lie does not matter.
fn content(client: &mut Client) -> Result<Option<Content>> {
    let mut parts = vec![structure(client)?];
    let mut tables = Vec::new();
    for name in table_names() {
        let exists = client.query_one(
            "SELECT to_regclass($1) IS NOT NULL",
            &[&format!("shop.{name}")],
        )?;
        if !exists.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        let row = client.query_one(
            &format!(
                "SELECT count(*), coalesce(sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::int8), 0)::text
                 FROM shop.{name} AS t"
            ),
            &[],
        )?;
        let (rows, sum): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        parts.push(format!("{name} {rows} {sum}"));
        tables.push(Table { name, rows });
    }
    let fingerprint = md5(client, &parts.join("\n"))?;
    Ok(Some(Content {
        tables,
        fingerprint,
    }))
}

/// Columns, constraints, indexes and where the identities stand: a dropped index changes every result, though not a
/// single row.
fn structure(client: &mut Client) -> Result<String> {
    // Not-null constraints are columns' business here: PostgreSQL 18 lists them as constraints, those before do not.
    let row = client.query_one(
        "SELECT coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE \"C\"), '') FROM (
             SELECT relname || ' ' || attnum || ' ' || attname || ' ' || format_type(atttypid, atttypmod)
                    || ' ' || attnotnull || coalesce(' ' || pg_get_expr(adbin, adrelid), '') AS line
             FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
                 LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
             WHERE relnamespace = to_regnamespace('shop') AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
                 AND relname = ANY ($1)
             UNION ALL
             SELECT relname || ' ' || conname || ' ' || pg_get_constraintdef(pg_constraint.oid)
             FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
             WHERE relnamespace = to_regnamespace('shop') AND contype <> 'n' AND relname = ANY ($1)
             UNION ALL
             SELECT relname || ' ' || pg_get_indexdef(indexrelid) || ' ' || indisvalid
             FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
             WHERE relnamespace = to_regnamespace('shop') AND relname = ANY ($1)
             UNION ALL
             SELECT relname || ' identity ' || refobjsubid || ' ' || coalesce(pg_sequence_last_value(seqrelid), 0)
             FROM pg_sequence JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = seqrelid AND deptype = 'i'
                 JOIN pg_class ON pg_class.oid = refobjid
             WHERE relnamespace = to_regnamespace('shop') AND relname = ANY ($1)
         ) AS lines",
        &[&table_names().as_slice()],
    )?;
    Ok(row.try_get(0)?)
}

fn md5(client: &mut Client, text: &str) -> Result<String> {
    Ok(client.query_one("SELECT md5($1)", &[&text])?.try_get(0)?)
}
