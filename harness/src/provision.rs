//! An open, seeded and watched database, ready for servers to use.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use clap::Args;
use workloads::Workload;

use crate::campaign::DatabaseRecord;
use crate::database::leftovers::RunFolder;
use crate::database::seed::{self, Scale, Seeded};
use crate::database::settle::Settler;
use crate::database::{self, Choice, Database};
use crate::monitor::Monitor;
use crate::notice;
use crate::server::Server;

/// Connections that stay free for the harness and for an administrator.
const SPARE_CONNECTIONS: usize = 5;

/// Flags of every command that needs a database.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// auto (DATABASE_URL, else PostgreSQL on this machine, else downloaded), local, download, or a URL
    #[arg(
        long,
        default_value = "auto",
        value_name = "D",
        help_heading = "Database"
    )]
    pub database: Choice,

    /// How many times the default number of rows to seed
    #[arg(long, default_value_t, value_name = "F", help_heading = "Database")]
    pub scale: Scale,

    /// Seed nothing: the statements are about tables of your own
    #[arg(long, conflicts_with = "scale", help_heading = "Database")]
    pub no_shop: bool,
}

impl DatabaseArgs {
    /// # Errors
    /// A workload writes, and its rows could not be put back.
    pub fn refuse_writes<'a>(
        &self,
        workloads: impl IntoIterator<Item = &'a Workload>,
    ) -> Result<()> {
        let mut writing = workloads.into_iter().filter(|workload| workload.writes());
        match writing.next() {
            Some(workload) if self.no_shop => bail!(
                "workload `{}` writes, and with --no-shop nothing could put your rows back; measure reads, or use the shop",
                workload.name
            ),
            _ => Ok(()),
        }
    }
}

/// What a record has as its content where nothing was seeded.
pub const NO_SHOP: &str = "no shop";

/// A database with the shop in it. Dropping it ends what was started for it.
#[derive(Debug)]
pub struct Provisioned {
    pub database: Database,
    /// Nothing with `--no-shop`.
    pub seeded: Option<Seeded>,
    pub monitor: Monitor,
    pub settler: Settler,
    /// Where children are noted, for the next run to find should this one be killed.
    pub run_folder: Arc<RunFolder>,
}

impl Provisioned {
    /// Opens the database, refuses a pool it has no room for, and seeds it. Says on stderr what it did.
    ///
    /// # Errors
    /// One line: no database, no room, no seed, or an interruption.
    pub fn open(args: &DatabaseArgs, pool: usize, stop: &AtomicBool) -> Result<Provisioned> {
        let run_folder = Arc::new(RunFolder::create()?);
        let database = database::open(&args.database, &run_folder, stop)?;
        notice::say(&format!("database: {}", database.source));
        refuse_oversized(pool, &database)?;
        let seeded = match args.no_shop {
            true => None,
            false => Some(seed::ensure(&database.url, args.scale, stop)?),
        };
        match &seeded {
            Some(seeded) => announce(seeded),
            None => notice::say("no shop: the statements have to find tables of your own"),
        }
        let monitor = Monitor::connect(&database)?;
        let settler = Settler::of(&database, args.scale, &monitor)?;
        Ok(Provisioned {
            database,
            seeded,
            monitor,
            settler,
            run_folder,
        })
    }

    /// Makes the database ready for a trial, once the server before it has left.
    ///
    /// # Errors
    /// The database is lost, a session stays open, or an interruption.
    pub fn settle(&mut self, stop: &AtomicBool) -> Result<()> {
        self.monitor.wait_until_alone(stop)?;
        self.settler.settle(&self.monitor, stop)?;
        Ok(())
    }

    /// What a workload writes through a server that lives on may be counted only after the next restore.
    pub fn expect_load(&mut self, server: &Server, workload: &Workload) {
        if server.attached.is_some() && workload.writes() {
            self.settler.distrust();
        }
    }

    /// What a campaign keeps of it.
    pub fn record(&self) -> DatabaseRecord {
        DatabaseRecord {
            source: self.database.source.clone(),
            version: self.database.server_version.clone(),
            settings: self
                .database
                .settings
                .iter()
                .map(|setting| (setting.name.clone(), setting.value.clone()))
                .collect(),
            scale: self
                .seeded
                .as_ref()
                .map_or_else(Scale::default, |seeded| seeded.scale)
                .to_string(),
            content: self
                .seeded
                .as_ref()
                .map_or_else(|| NO_SHOP.to_owned(), |seeded| seeded.fingerprint.clone()),
            between_trials: self.settler.describe(),
            statements_unobserved: self.monitor.unobserved().map(str::to_owned),
        }
    }
}

fn announce(seeded: &Seeded) {
    let done = if seeded.skipped {
        "is seeded already"
    } else {
        "seeded"
    };
    notice::say(&format!(
        "shop {done}, scale {}, content {} ({:.1} s)",
        seeded.scale,
        seeded.fingerprint,
        seeded.took.as_secs_f64()
    ));
}

fn refuse_oversized(pool: usize, database: &Database) -> Result<()> {
    let most = (database.max_connections as usize).saturating_sub(SPARE_CONNECTIONS);
    if pool > most {
        bail!(
            "--pool {pool}: this database has room for {} connections, which leaves {most} for a pool; ask for fewer, or raise max_connections",
            database.max_connections
        );
    }
    Ok(())
}
