//! `lanebench database start|seed|url`: a private cluster to look at, between or beside runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::leftovers::{self, RunFolder};
use super::seed::{self, Scale, Seeded};
use super::{Choice, URL_VARIABLE, open, open_private};

/// Holds the URL of a `database start`, in its run folder.
const URL_FILE: &str = "url";
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Start a private, seeded PostgreSQL; it stays until Ctrl-C
    Start(StartArgs),
    /// Seed a database, unless all is there already
    Seed(SeedArgs),
    /// Print the URL of the running `database start`
    Url,
}

#[derive(Debug, Args)]
pub struct StartArgs {
    /// auto, local or download
    #[arg(long, default_value = "auto")]
    database: Choice,
    /// How many times the default number of rows
    #[arg(long, default_value_t)]
    scale: Scale,
}

#[derive(Debug, Args)]
pub struct SeedArgs {
    /// A URL; without it DATABASE_URL, else the running `database start`
    #[arg(long)]
    database: Option<Choice>,
    /// How many times the default number of rows
    #[arg(long, default_value_t)]
    scale: Scale,
}

/// Runs one of the commands. `stop` is set by a signal.
///
/// # Errors
/// One line each; see [`open`] and [`seed::ensure`].
pub fn run(command: &DatabaseCommand, stop: &AtomicBool) -> Result<()> {
    match command {
        DatabaseCommand::Start(args) => start(args, stop),
        DatabaseCommand::Seed(args) => seed(args, stop),
        DatabaseCommand::Url => {
            println!("{}", running_url()?);
            Ok(())
        }
    }
}

fn start(args: &StartArgs, stop: &AtomicBool) -> Result<()> {
    let folder = Arc::new(RunFolder::create()?);
    let database = open_private(&args.database, &folder, stop)?;
    eprintln!("{}", database.source);
    report(&seed::ensure(&database.url, args.scale, stop)?);
    publish(folder.path(), &database.url)?;
    println!("{}", database.url);
    eprintln!("Ctrl-C stops it and removes all of it.");
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(POLL);
    }
    Ok(())
}

fn seed(args: &SeedArgs, stop: &AtomicBool) -> Result<()> {
    let url = match &args.database {
        Some(Choice::Url(url)) => url.clone(),
        Some(other) => bail!(
            "`database seed --database {other}` would be gone at once: give the URL of a server"
        ),
        None => match std::env::var(URL_VARIABLE) {
            Ok(url) if !url.is_empty() => url,
            _ => running_url()?,
        },
    };
    let folder = Arc::new(RunFolder::create()?);
    let database = open(&Choice::Url(url), &folder, stop)?;
    eprintln!("{}", database.source);
    report(&seed::ensure(&database.url, args.scale, stop)?);
    Ok(())
}

fn report(seeded: &Seeded) {
    let tables = seeded
        .tables
        .iter()
        .map(|table| format!("{} {}", table.rows, table.name))
        .collect::<Vec<_>>();
    let done = if seeded.skipped {
        "already seeded, checked"
    } else {
        "seeded"
    };
    let (tables, seconds) = (tables.join(", "), seeded.took.as_secs_f64());
    eprintln!(
        "{done} in {seconds:.1} s: {tables}; fingerprint {}",
        seeded.fingerprint
    );
}

fn publish(folder: &Path, url: &str) -> Result<()> {
    let path = folder.join(URL_FILE);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600) // it holds the password
        .open(&path)
        .and_then(|mut file| file.write_all(url.as_bytes()))
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn running_url() -> Result<String> {
    let urls = leftovers::living()?
        .iter()
        .filter_map(|folder| fs::read_to_string(folder.join(URL_FILE)).ok())
        .collect::<Vec<_>>();
    match &urls[..] {
        [url] => Ok(url.clone()),
        [] => bail!("no `lanebench database start` is running"),
        several => bail!(
            "{} of `lanebench database start` are running; pass the URL that the right one printed",
            several.len()
        ),
    }
}
