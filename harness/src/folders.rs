//! Where definitions, statements and servers lie.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

/// Flags that point lanebench at folders other than the repository's own.
#[derive(Debug, Clone, Default, Args)]
pub struct FolderArgs {
    /// Folder with the workloads' definitions (*.toml) [default: workloads/definitions of the repository]
    #[arg(long = "workloads", value_name = "DIR", help_heading = "Folders")]
    pub workloads_folder: Option<PathBuf>,

    /// Folder with the workloads' statements (*.sql) [default: sql/queries of the repository]
    #[arg(long = "sql", value_name = "DIR", help_heading = "Folders")]
    pub sql_folder: Option<PathBuf>,

    /// Folder with a folder for each server, holding its server.toml [default: servers of the repository]
    #[arg(long = "servers", value_name = "DIR", help_heading = "Folders")]
    pub servers_folder: Option<PathBuf>,
}

/// The folders in force, all absolute.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The repository: commands of a `server.toml` run here.
    pub root: PathBuf,
    pub definitions: PathBuf,
    pub queries: PathBuf,
    pub servers: PathBuf,
}

impl Folders {
    /// # Errors
    /// A folder that was asked for and is not there, or no repository found.
    pub fn find(args: &FolderArgs) -> Result<Folders> {
        let root = repository()?;
        Ok(Folders {
            definitions: folder(
                args.workloads_folder.as_deref(),
                "--workloads",
                root.join("workloads/definitions"),
            )?,
            queries: folder(
                args.sql_folder.as_deref(),
                "--sql",
                root.join("sql/queries"),
            )?,
            servers: folder(
                args.servers_folder.as_deref(),
                "--servers",
                root.join("servers"),
            )?,
            root,
        })
    }
}

fn folder(asked: Option<&Path>, flag: &str, default: PathBuf) -> Result<PathBuf> {
    let Some(asked) = asked else {
        return Ok(default);
    };
    let found = asked
        .canonicalize()
        .with_context(|| format!("{flag} {}", asked.display()))?;
    if !found.is_dir() {
        bail!("{flag} {}: not a folder", asked.display());
    }
    Ok(found)
}

/// The closest folder, from the current one upwards, that looks like the repository; else the one this program
/// was built from.
fn repository() -> Result<PathBuf> {
    let current = env::current_dir().context("cannot tell the current folder")?;
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let found = current.ancestors().chain(built_from).find(|folder| {
        folder.join("workloads/definitions").is_dir() && folder.join("servers").is_dir()
    });
    match found {
        Some(folder) => Ok(folder.to_owned()),
        None => bail!(
            "no lanebench repository at or above {}; run it from a clone of the repository",
            current.display()
        ),
    }
}
