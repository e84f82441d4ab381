//! The folder of a run, and the end of whatever an earlier run could not end itself.
//!
//! A run's folder is `<temp>/lanebench-<uid>-<pid>-<n>`. Its file `owner` is locked for as long as the run lives; the
//! kernel lets go of the lock at any death, `kill -9` included, so a folder whose lock is free belongs to nobody. Its
//! file `children` names the processes the run started, by pid *and* start time, so that a pid which meanwhile
//! belongs to a stranger is never touched.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, geteuid};

const OWNER: &str = "owner";
const CHILDREN: &str = "children";
/// How long a process may take to die of a signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// The folder of this run; removed with everything in it when dropped.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Held for its lock alone.
    _owner: File,
}

impl RunFolder {
    /// Removes what dead runs left behind, then makes a folder for this one.
    ///
    /// # Errors
    /// The temporary folder cannot be read or written, or a leftover process does not die.
    pub fn create() -> Result<Self> {
        sweep()?;
        let temp = std::env::temp_dir();
        let path = make_folder(&temp)
            .with_context(|| format!("no folder can be made in {}", temp.display()))?;
        match claim(&path) {
            Ok(owner) => Ok(Self {
                path,
                _owner: owner,
            }),
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                Err(error.context(format!("{} cannot be claimed", path.display())))
            }
        }
    }

    /// Where this run may keep files; others may pass through it but not list it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a process we started, so that the next run can kill it (with its process group) if this one is killed.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn record_child(&self, pid: u32) -> Result<()> {
        self.record(pid, Signal::SIGKILL)
    }

    /// As [`record_child`](Self::record_child), for a process that is first asked by `signal`, since it would leave shared
    /// memory behind if it were killed.
    pub(crate) fn record(&self, pid: u32, signal: Signal) -> Result<()> {
        let Some(started) = start_time(pid) else {
            return Ok(()); // Dead already, or a system without /proc, where we could not tell it from a stranger.
        };
        let path = self.path.join(CHILDREN);
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{pid} {started} {signal}\n").as_bytes()))
            .with_context(|| format!("{} cannot be written", path.display()))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!(
                "lanebench: {} cannot be removed: {error}",
                self.path.display()
            );
        }
    }
}

/// Kills the recorded processes of runs that died, and removes their folders.
///
/// # Errors
/// The temporary folder cannot be read, or a leftover cannot be removed.
pub fn sweep() -> Result<()> {
    for path in folders()? {
        if let Some(_claim) = abandoned(&path)? {
            end_children(&path)?;
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error)
                        .with_context(|| format!("leftover {} cannot be removed", path.display()));
                }
                _ => {} // Gone: by us, or by the run itself, which died on its last step.
            }
        }
    }
    Ok(())
}

/// The folders of runs that are alive.
pub(crate) fn living() -> Result<Vec<PathBuf>> {
    let mut living = Vec::new();
    for path in folders()? {
        if abandoned(&path)?.is_none() {
            living.push(path);
        }
    }
    Ok(living)
}

fn prefix() -> String {
    format!("lanebench-{}-", geteuid())
}

/// Every run folder of this user, dead or alive.
fn folders() -> Result<Vec<PathBuf>> {
    let temp = std::env::temp_dir();
    let unreadable = || format!("the temporary folder {} cannot be read", temp.display());
    let mut folders = Vec::new();
    for entry in fs::read_dir(&temp).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix()))
            // Not followed if a link; and a folder that someone else made in a shared /tmp is none of ours.
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == geteuid().as_raw());
        if ours {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

/// The claim on a folder whose run is dead; none if the run is alive.
fn abandoned(path: &Path) -> Result<Option<Claim>> {
    let owner = match File::open(path.join(OWNER)) {
        Ok(owner) => owner,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Its run is about to claim it, or died before it could.
            let alive = maker(path).is_some_and(|pid| start_time(pid).is_some());
            return Ok((!alive).then_some(Claim::Unowned));
        }
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be opened", path.display()));
        }
    };
    match owner.try_lock() {
        Ok(()) => Ok(Some(Claim::Owner(owner))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", path.display()))
        }
    }
}

/// Keeps other sweeps away from an abandoned folder.
enum Claim {
    Unowned,
    Owner(#[expect(dead_code, reason = "held for its lock alone")] File),
}

fn maker(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix(&prefix())?;
    name.split('-').next()?.parse().ok()
}

fn make_folder(temp: &Path) -> std::io::Result<PathBuf> {
    let pid = std::process::id();
    let mut number = 0;
    loop {
        let path = temp.join(format!("{}{pid}-{number}", prefix()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Locks the owner file before it gets its name, so that a sweep never sees it unlocked while we live.
fn claim(path: &Path) -> Result<File> {
    // An unprivileged user that runs PostgreSQL for root has to pass through.
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    let unnamed = path.join("owner.new");
    let mut owner = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unnamed)?;
    owner.try_lock()?;
    writeln!(owner, "{}", std::process::id())?;
    fs::rename(unnamed, path.join(OWNER))?;
    Ok(owner)
}

fn end_children(folder: &Path) -> Result<()> {
    let notes = match fs::read_to_string(folder.join(CHILDREN)) {
        Ok(notes) => notes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", folder.display()));
        }
    };
    for note in notes.lines() {
        // A last line cut short by the kill names nobody.
        if let [pid, started, signal] = note.split(' ').collect::<Vec<_>>()[..]
            && let (Ok(pid), Ok(signal)) = (pid.parse(), signal.parse())
        {
            end(pid, started, signal)
                .with_context(|| format!("leftover of {}", folder.display()))?;
        }
    }
    Ok(())
}

fn end(pid: u32, started: &str, signal: Signal) -> Result<()> {
    let gone = || start_time(pid).is_none_or(|time| time != started);
    if gone() {
        return Ok(());
    }
    for signal in [signal, Signal::SIGKILL] {
        send(pid, signal);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if gone() && group_is_gone(pid) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    bail!("process {pid} does not die: end it by hand")
}

/// Kills a process and its group, or sends it alone any other signal: what it started is then its own to end.
pub(crate) fn send(pid: u32, signal: Signal) {
    // Never 0 or negative, which would mean groups of others.
    let Some(target) = i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 0)
        .map(Pid::from_raw)
    else {
        return;
    };
    if signal == Signal::SIGKILL {
        let _ = killpg(target, signal);
    }
    let _ = kill(target, signal);
}

/// Whether no process is left in the group that process `leader` once opened.
pub(crate) fn group_is_gone(leader: u32) -> bool {
    let leader = leader.to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    !names.any(|pid| {
        pid.parse()
            .ok()
            .and_then(stat)
            .is_some_and(|stat| stat.group == leader)
    })
}

/// When a process started, as boot id and clock ticks since that boot: together with its pid this names one process for
/// all time. None if there is no such process, or only its zombie.
fn start_time(pid: u32) -> Option<String> {
    let ticks = stat(pid)?.start_ticks;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{}/{ticks}", boot.trim()))
}

struct Stat {
    group: String,
    start_ticks: String,
}

/// What the kernel says of a process; none if there is no such process, or only its zombie.
fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may hold anything; the state (field 3) follows it.
    let fields: Vec<_> = line
        .get(line.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    let [state, _parent, group, ..] = fields[..] else {
        return None;
    };
    let start_ticks = fields.get(19)?; // field 22
    let dead = matches!(state, "Z" | "X");
    (!dead).then(|| Stat {
        group: group.to_owned(),
        start_ticks: (*start_ticks).to_owned(),
    })
}
