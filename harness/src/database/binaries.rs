//! The PostgreSQL installations of this machine.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest major version that lanebench supports.
pub(crate) const OLDEST_MAJOR: u32 = 14;
/// Names the one folder to look in, for instance to choose between versions.
pub(crate) const BIN_VARIABLE: &str = "LANEBENCH_POSTGRES_BIN";
/// What a private cluster needs.
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];
/// Folders that hold one folder per major version, as packages lay them out (Debian, Red Hat, Homebrew twice).
const BY_VERSION: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];

/// A folder with the programs of one PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) bin: PathBuf,
    /// Such as `15.18`.
    pub(crate) version: String,
}

/// Every usable installation: pg_config's first, then the packaged ones, newest first, then those on the PATH; or the one
/// that `LANEBENCH_POSTGRES_BIN` names. Why a folder that looked promising is not among them goes to `reasons`.
pub(crate) fn on_this_machine(reasons: &mut Vec<String>) -> Vec<Installation> {
    let (candidates, named) = match std::env::var_os(BIN_VARIABLE).filter(|named| !named.is_empty())
    {
        Some(named) => (vec![PathBuf::from(named)], true),
        None => (
            pg_config()
                .into_iter()
                .chain(packaged())
                .chain(on_path())
                .collect(),
            false,
        ),
    };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for bin in candidates {
        let bin = fs::canonicalize(&bin).unwrap_or(bin);
        let promising = named || PROGRAMS.iter().any(|program| bin.join(program).exists());
        if !promising || !seen.insert(bin.clone()) {
            continue;
        }
        match inspect(&bin) {
            Ok(installation) => found.push(installation),
            Err(reason) => reasons.push(format!("{} {reason}", bin.display())),
        }
    }
    if found.is_empty() && reasons.is_empty() {
        reasons.push(
            "no initdb and postgres found (pg_config, /usr/lib/postgresql/*/bin, PATH)".to_owned(),
        );
    }
    found
}

/// Where pgbench may be: beside the servers' programs, and on the PATH.
pub fn pgbench_programs() -> Vec<PathBuf> {
    let installed = on_this_machine(&mut Vec::new());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = installed
        .into_iter()
        .map(|installation| installation.bin)
        .chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("pgbench")).collect()
}

/// The installation in `bin`, or why it is of no use.
pub(crate) fn inspect(bin: &Path) -> Result<Installation, String> {
    if let Some(missing) = PROGRAMS.iter().find(|program| !bin.join(program).is_file()) {
        return Err(format!("has no {missing}"));
    }
    let version = said(Command::new(bin.join("postgres")).arg("--version"))?;
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    let version = version.split(' ').nth(2).unwrap_or_default().to_owned();
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    match version[..digits].parse::<u32>() {
        Ok(major) if major >= OLDEST_MAJOR => Ok(Installation {
            bin: bin.to_owned(),
            version,
        }),
        Ok(_) => Err(format!(
            "is version {version}, lanebench needs {OLDEST_MAJOR} or later"
        )),
        Err(_) => Err("does not say its version".to_owned()),
    }
}

fn pg_config() -> Option<PathBuf> {
    said(Command::new("pg_config").arg("--bindir"))
        .ok()
        .map(PathBuf::from)
}

fn packaged() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for (folder, prefix) in BY_VERSION {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let major = name
                .to_str()
                .and_then(|name| name.strip_prefix(prefix))
                .and_then(|major| major.parse().ok());
            if let Some(major) = major {
                found.push((major, entry.path().join("bin")));
            }
        }
    }
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    found.into_iter().map(|(_, bin)| bin).collect()
}

/// Each folder of the PATH with a `postgres`, which may be a link into its installation.
fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path)
        .filter_map(|folder| fs::canonicalize(folder.join("postgres")).ok());
    programs
        .filter_map(|program| program.parent().map(Path::to_owned))
        .collect()
}

/// What a program says on its standard output, or why it does not.
fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let first = complaint.lines().next().unwrap_or("no reason given");
        return Err(format!("{program} fails: {first}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
