//! The program `lanebench database`, run in a world of its own.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

use super::{forced, say};

/// The folder of this machine's PostgreSQL; none if it has none, which is fine unless the tests must use it.
pub(crate) fn local_binaries() -> Option<PathBuf> {
    let packaged = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let asked = Command::new("pg_config").arg("--bindir").output().ok();
    let asked = asked.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let found = asked
        .into_iter()
        .chain(packaged)
        .find(|bin| bin.join("initdb").exists());
    if found.is_none() {
        assert_ne!(
            forced().as_deref(),
            Some("local"),
            "no PostgreSQL binaries on this machine"
        );
        say("not tested: no PostgreSQL binaries on this machine");
    }
    found
}

/// A temporary folder that the user who runs PostgreSQL for root may pass through.
pub(crate) fn temp() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).unwrap();
    temp
}

/// `lanebench database …` in a world of its own: no DATABASE_URL, `temp` for its files and its cache.
pub(crate) fn lanebench(temp: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
    command
        .arg("database")
        .args(arguments)
        .env("TMPDIR", temp)
        .env("XDG_CACHE_HOME", temp.join("cache"));
    command
        .env_remove("DATABASE_URL")
        .env_remove("LANEBENCH_POSTGRES_BIN")
        .env_remove("RUST_BACKTRACE");
    command
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A `lanebench database start` that has printed its URL.
pub(crate) struct Started {
    child: Child,
    pub(crate) url: String,
}

impl Started {
    pub(crate) fn by(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        if url.is_empty() {
            let mut complaint = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut complaint)
                .unwrap();
            panic!("it did not start: {complaint}");
        }
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }

    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        self.child.wait().unwrap().code()
    }

    pub(crate) fn answers(&self) -> bool {
        postgres::Client::connect(&self.url, postgres::NoTls).is_ok()
    }
}

/// Processes that work in `folder`, as every PostgreSQL process does in its data.
pub(crate) fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    processes
        .filter(|process| {
            fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .collect()
}

#[track_caller]
pub(crate) fn assert_nothing_left(temp: &Path) {
    let files: Vec<_> = fs::read_dir(temp)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert_eq!(files, [] as [PathBuf; 0], "files");
    assert_eq!(processes_in(temp), [] as [PathBuf; 0], "processes");
    let since = fs::metadata(temp).unwrap().created().unwrap();
    // A segment of another test, just made, may not be mapped yet.
    let gone = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        abandoned_memory(since).is_empty()
    });
    assert!(gone, "shared memory: {:?}", abandoned_memory(since));
}

/// PostgreSQL's shared memory that no process has mapped: of POSIX and of System V, newer than `since`.
fn abandoned_memory(since: SystemTime) -> Vec<String> {
    let us = geteuid();
    let named = fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("PostgreSQL.")
                && entry
                    .metadata()
                    .is_ok_and(|meta| us.is_root() || meta.uid() == us.as_raw())
                && entry
                    .metadata()
                    .and_then(|meta| meta.modified())
                    .is_ok_and(|time| time >= since)
        });
    let mut abandoned: Vec<_> = named
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        abandoned.retain(|segment| !maps.contains(segment));
    }
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    for segment in fs::read_to_string("/proc/sysvipc/shm")
        .unwrap_or_default()
        .lines()
        .skip(1)
    {
        let fields: Vec<u64> = segment
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        let (attached, uid, changed) = (fields[6], fields[7], fields[13]);
        if attached == 0 && changed >= since && (us.is_root() || uid == u64::from(us.as_raw())) {
            abandoned.push(segment.to_owned());
        }
    }
    abandoned
}
