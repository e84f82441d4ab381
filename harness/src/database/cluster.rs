//! A private PostgreSQL: made in the run's folder, served on a free loopback port behind a random password, and gone
//! without a trace when dropped.
//!
//! The lanes, the seed and the monitor all connect as its superuser `lanebench`. The password keeps the machine's other
//! users out, who could otherwise run programs as us through it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::Signal;
use postgres::Client;

use super::account::Account;
use super::binaries::Installation;
use super::connection::{connect, with_database};
use super::leftovers::{RunFolder, group_is_gone, send};
use super::settings;
use crate::signals::check;

const USER: &str = "lanebench";
const DATABASE: &str = "lanebench";
const POLL: Duration = Duration::from_millis(10);
const INITDB_TIMEOUT: Duration = Duration::from_secs(60);
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// initdb stops at the end of its step, with what it started; killed in the middle, that would leave shared memory behind.
const ABORT: Signal = Signal::SIGTERM;
/// Immediate shutdown: gives shared memory back, but writes no checkpoint of what is about to be removed.
const SHUTDOWN: Signal = Signal::SIGQUIT;
/// How long a process may take to end of a signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running private cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    server: Server,
    url: String,
    origin: String,
    /// Outlives the server, and is removed after it.
    _home: Home,
    _folder: Arc<RunFolder>,
}

impl Cluster {
    pub(crate) fn start(
        installation: &Installation,
        folder: &Arc<RunFolder>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let bin = installation.bin.display();
        Self::try_start(installation, folder, stop).map_err(|error| {
            if error.is::<crate::signals::Interrupted>() {
                error
            } else {
                error.context(format!("{bin}"))
            }
        })
    }

    fn try_start(
        installation: &Installation,
        folder: &Arc<RunFolder>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let account = Account::find()?;
        account.check_can_enter(folder.path())?;
        account.check_can_enter(&installation.bin)?;
        let home = Home::make(folder.path(), &account)?;
        let password = random_password()?;
        let maker = Maker {
            installation,
            account: &account,
            home: &home,
            folder,
            stop,
        };
        maker.initdb(&password)?;
        // A free port may be taken before PostgreSQL gets to it, so a second try; and an installation without contrib
        // cannot count statements, so a third without that.
        let mut refusal = None;
        for count_statements in [true, true, false] {
            match maker.serve(&password, count_statements) {
                Ok((server, url)) => {
                    let origin = maker.origin();
                    return Ok(Self {
                        server,
                        url,
                        origin,
                        _home: home,
                        _folder: Arc::clone(folder),
                    });
                }
                Err(error) if error.is::<crate::signals::Interrupted>() => return Err(error),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| anyhow!("the server does not start")))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.child.id()
    }

    /// The programs' folder, and the user they run as where that is not the caller.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

/// The folder of the cluster, removed when dropped.
#[derive(Debug)]
struct Home(PathBuf);

impl Home {
    fn make(run: &Path, account: &Account) -> Result<Self> {
        let path = run.join("postgres");
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        let home = Self(path);
        account.own(&home.0)?;
        Ok(home)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("lanebench: {} cannot be removed: {error}", self.0.display());
        }
    }
}

/// A child process that is ended when dropped: by `ending`, and if that does not help, by force and with its group.
#[derive(Debug)]
struct Server {
    child: Child,
    ending: Signal,
}

impl Server {
    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .context("the server cannot be waited for")
    }

    fn gone_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while matches!(self.child.try_wait(), Ok(None)) || !group_is_gone(self.child.id()) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.child.id();
        for signal in [self.ending, Signal::SIGKILL] {
            if self.gone_within(Duration::ZERO) {
                return;
            }
            send(pid, signal);
            if self.gone_within(PATIENCE) {
                return;
            }
        }
        eprintln!("lanebench: PostgreSQL (pid {pid}) does not end");
    }
}

/// What the steps of making a cluster share.
struct Maker<'a> {
    installation: &'a Installation,
    account: &'a Account,
    home: &'a Home,
    folder: &'a RunFolder,
    stop: &'a AtomicBool,
}

impl Maker<'_> {
    fn origin(&self) -> String {
        let bin = self.installation.bin.display();
        match self.account {
            Account::Ours => format!("{bin}"),
            Account::Other { name, .. } => format!("{bin}, run as user {name}"),
        }
    }

    fn initdb(&self, password: &str) -> Result<()> {
        let password_file = self.home.0.join("password");
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&password_file)
            .and_then(|mut file| file.write_all(password.as_bytes()))
            .with_context(|| format!("{} cannot be written", password_file.display()))?;
        self.account.own(&password_file)?;
        let log = self.home.0.join("initdb.log");
        let mut command = self.command("initdb", &log)?;
        command
            .arg("--pgdata")
            .arg(self.home.data())
            .arg("--pwfile")
            .arg(&password_file);
        command.args([
            "--username",
            USER,
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--data-checksums",
        ]);
        command.args([
            "--auth-host",
            "scram-sha-256",
            "--auth-local",
            "reject",
            "--no-sync",
            "--no-instructions",
        ]);
        let child = command.spawn().context("initdb cannot be run")?;
        let mut initdb = Server {
            child,
            ending: ABORT,
        };
        self.folder.record(initdb.child.id(), ABORT)?;
        let deadline = Instant::now() + INITDB_TIMEOUT;
        let status = loop {
            if let Some(status) = initdb.exited()? {
                break status;
            }
            check(self.stop)?;
            if Instant::now() >= deadline {
                bail!("initdb takes longer than {} s", INITDB_TIMEOUT.as_secs());
            }
            thread::sleep(POLL);
        };
        if !status.success() {
            bail!("initdb fails: {}", last_complaint(&log));
        }
        fs::remove_file(&password_file)
            .with_context(|| format!("{} cannot be removed", password_file.display()))
    }

    /// Starts the server and makes the database in it.
    fn serve(&self, password: &str, count_statements: bool) -> Result<(Server, String)> {
        let port = free_port()?;
        let conf = self.home.data().join("postgresql.conf");
        fs::write(&conf, settings::configuration(port, count_statements))
            .with_context(|| format!("{} cannot be written", conf.display()))?;
        let log = self.home.0.join("server.log");
        let mut command = self.command("postgres", &log)?;
        command.arg("-D").arg(self.home.data());
        let child = command.spawn().context("postgres cannot be run")?;
        let mut server = Server {
            child,
            ending: SHUTDOWN,
        };
        self.folder.record(server.child.id(), SHUTDOWN)?;
        let url = format!("postgres://{USER}:{password}@127.0.0.1:{port}/{DATABASE}");
        let mut client =
            self.wait_until_ready(&mut server, &with_database(&url, "postgres")?, &log)?;
        client
            .batch_execute(&format!("CREATE DATABASE {DATABASE}"))
            .context("the database cannot be made")?;
        Ok((server, url))
    }

    fn wait_until_ready(&self, server: &mut Server, url: &str, log: &Path) -> Result<Client> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let refusal = match connect(url) {
                Ok(client) => return Ok(client),
                Err(refusal) => refusal,
            };
            if server.exited()?.is_some() {
                bail!("the server ends at its start: {}", last_complaint(log));
            }
            check(self.stop)?;
            if Instant::now() >= deadline {
                bail!(
                    "the server is not ready after {} s: {refusal:#}",
                    START_TIMEOUT.as_secs()
                );
            }
            thread::sleep(POLL);
        }
    }

    /// One of the installation's programs, in a process group of its own (a terminal's Ctrl-C must reach us alone, who
    /// then end it in order) and without the caller's PG* variables.
    fn command(&self, program: &str, log: &Path) -> Result<Command> {
        let log =
            File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
        let mut command = Command::new(self.installation.bin.join(program));
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("PG") || name.starts_with("LC_"))
            {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .current_dir(&self.home.0)
            .process_group(0)
            .stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        self.account.apply(&mut command);
        Ok(command)
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

fn random_password() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("/dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The line of a log that says why.
fn last_complaint(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let complaint = text
        .lines()
        .rev()
        .find(|line| line.contains("FATAL") || line.contains("error"));
    complaint
        .or_else(|| text.lines().last())
        .unwrap_or("it says nothing")
        .trim()
        .to_owned()
}
