//! The servers under test, as their `server.toml` files describe them, and how they are built.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use workloads::Workload;

use crate::attach::Attachment;
use crate::folders::Folders;
use crate::notice;

/// How a server waits for the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    Nonblocking,
    Blocking,
    /// Nonblocking, with several statements in flight on each connection.
    Pipelined,
}

impl Lane {
    pub fn name(self) -> &'static str {
        match self {
            Lane::Nonblocking => "nonblocking",
            Lane::Blocking => "blocking",
            Lane::Pipelined => "pipelined",
        }
    }
}

/// One server: any program, in any language, that keeps the process contract.
#[derive(Debug, Clone)]
pub struct Server {
    /// The name of its folder.
    pub name: String,
    pub about: String,
    pub lane: Lane,
    /// The number of threads that belongs to the server: `--threads` of the harness does not change it.
    pub threads: Option<usize>,
    /// Measured only where it is named.
    pub extra: bool,
    /// The command that builds it, run at the repository's root; empty where nothing needs building.
    pub build: Vec<String>,
    /// The command that runs it; its first word is absolute, or found on the PATH.
    pub run: Vec<String>,
    /// Shapes and workloads it does not serve, each with the reason.
    pub skip: BTreeMap<String, String>,
    /// Where it runs already, if it is not the harness that starts it.
    pub attached: Option<Attachment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireServer {
    about: String,
    lane: Lane,
    #[serde(default)]
    threads: Option<NonZeroUsize>,
    #[serde(default)]
    extra: bool,
    #[serde(default)]
    build: Vec<String>,
    run: Vec<String>,
    #[serde(default)]
    skip: BTreeMap<String, String>,
}

impl Server {
    /// Every server of the folder, ordered by name.
    ///
    /// # Errors
    /// The first `server.toml` that cannot be read or is refused, or a folder without any.
    pub fn read_all(folders: &Folders) -> Result<Vec<Server>> {
        let folder = &folders.servers;
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry
                .with_context(|| format!("cannot read {}", folder.display()))?
                .path()
                .join("server.toml");
            if file.is_file() {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            bail!(
                "{}: no server is described here; one is a folder with a server.toml",
                folder.display()
            );
        }
        files.iter().map(|file| read(file, &folders.root)).collect()
    }

    /// Why the server does not serve a workload, if it does not: it skips the workload itself, or something that its
    /// requests are mixed from, or what goes on beside it.
    pub fn skips(&self, workload: &Workload) -> Option<&str> {
        let of = |workload: &Workload| {
            let by_name = self.skip.get(&workload.name);
            by_name.or_else(|| self.skip.get(workload.shape.name()))
        };
        let parts = workload.parts();
        let own = of(workload).or_else(|| parts.iter().find_map(|part| of(part)));
        own.map(String::as_str).or_else(|| {
            let background = workload.background.as_ref()?;
            self.skips(&background.workload)
        })
    }

    /// The files that `run` starts, the program itself before those it is told to start (`env X=1 program`).
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        let files = self.run.iter().map(Path::new);
        files.filter(|path| path.is_absolute() && path.is_file())
    }

    /// Runs the build command. What it prints goes to stderr.
    ///
    /// # Errors
    /// The command cannot be started, or fails.
    pub fn build(&self, root: &Path) -> Result<()> {
        let Some((program, arguments)) = self.build.split_first() else {
            return Ok(());
        };
        let command = self.build.join(" ");
        let status = Command::new(program)
            .args(arguments)
            .current_dir(root)
            // `run` names a path below the root: that is where the build has to put it.
            .env("CARGO_TARGET_DIR", root.join("target"))
            .envs(notice::is_quiet().then_some(("CARGO_TERM_QUIET", "true")))
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .status()
            .with_context(|| format!("server `{}`: cannot run `{command}`", self.name))?;
        if !status.success() {
            bail!("server `{}`: `{command}` failed ({status})", self.name);
        }
        Ok(())
    }
}

fn read(file: &Path, root: &Path) -> Result<Server> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let wire: WireServer = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        anyhow::anyhow!("{}:{line}: {message}", file.display())
    })?;
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let Some(name) = folder else {
        bail!("{}: the folder's name is not text", file.display())
    };
    let mut run = wire.run;
    match run.first_mut() {
        // A bare word is looked up on the PATH, as a shell would.
        Some(program) if program.contains('/') => *program = absolute(root, program),
        Some(_) => {}
        None => bail!(
            "{}: `run` is empty; name the program that starts the server",
            file.display()
        ),
    }
    Ok(Server {
        name: name.to_owned(),
        about: wire.about,
        lane: wire.lane,
        extra: wire.extra,
        threads: wire.threads.map(NonZeroUsize::get),
        build: wire.build,
        run,
        skip: wire.skip,
        attached: None,
    })
}

fn absolute(root: &Path, program: &str) -> String {
    let path: PathBuf = root.join(program);
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use workloads::Catalog;

    use super::*;

    fn server(skip: &[&str]) -> Server {
        let reason = |name: &&str| ((*name).to_owned(), format!("no {name}"));
        Server {
            extra: false,
            name: "partial".to_owned(),
            about: String::new(),
            lane: Lane::Pipelined,
            threads: None,
            build: Vec::new(),
            run: Vec::new(),
            skip: skip.iter().map(reason).collect(),
            attached: None,
        }
    }

    fn described(text: &str) -> Result<Server> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("server.toml");
        fs::write(
            &file,
            format!("about = \"Some.\"\nlane = \"blocking\"\nrun = [\"some\"]\n{text}"),
        )?;
        read(&file, folder.path())
    }

    #[test]
    fn a_number_of_threads_may_belong_to_the_server() {
        assert_eq!(described("").unwrap().threads, None);
        assert_eq!(described("threads = 1").unwrap().threads, Some(1));
        let refusal = described("threads = 0").unwrap_err().to_string();
        assert!(refusal.contains("server.toml:4: "), "{refusal}");
    }

    #[test]
    fn what_a_workload_is_made_of_decides_whether_it_is_skipped() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let catalog = Catalog::read(
            &root.join("workloads/definitions"),
            &root.join("sql/queries"),
        )
        .unwrap();
        let skipped = |skip: &str, workload: &str| {
            let workload = catalog.find(workload).unwrap();
            server(&[skip]).skips(workload).map(str::to_owned)
        };
        let because = |reason: &str| Some(reason.to_owned());
        assert_eq!(skipped("transfer", "transfer"), because("no transfer"));
        // By the shape, under another name.
        assert_eq!(skipped("transfer", "transfer-hot"), because("no transfer"));
        // A part of a mix, and what goes on beside.
        assert_eq!(skipped("report", "long-tail"), because("no report"));
        assert_eq!(skipped("item", "long-tail"), because("no item"));
        assert_eq!(skipped("delay", "isolation"), because("no delay"));
        for (skip, workload) in [("transfer", "long-tail"), ("delay", "hello")] {
            assert_eq!(skipped(skip, workload), None);
        }
    }
}
