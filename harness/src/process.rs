//! One running server: started or attached to, observed over its own HTTP routes, and always stopped if it was started.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::Value;

use crate::attach::Attachment;
use crate::cpus::{self, CpuSet};
use crate::database::leftovers::RunFolder;
use crate::folders::Folders;
use crate::server::Server;
use crate::signals;
use crate::stages::Timings;

/// A server that has not said it is ready by then never will.
pub const READY_LIMIT: Duration = Duration::from_secs(30);
/// The servers promise to drain within 5 s.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for an answer of `/about` or `/usage`.
const OBSERVE_LIMIT: Duration = Duration::from_secs(5);
/// How long the end of stderr is waited for when a message needs it.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(200);
/// How much of what a server wrote to stderr is kept for an error's text.
const KEPT_LINES: usize = 5;

/// What a server is started with; the same for every server of a campaign.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database_url: String,
    pub pool: usize,
    pub threads: Option<usize>,
    pub profile: Profile,
    pub definitions: std::path::PathBuf,
    pub queries: std::path::PathBuf,
    pub cpus: CpuSet,
    pub ready_limit: Duration,
}

impl Settings {
    /// On any CPU, with the server's own number of threads and the usual time to start. The database is told by its URL and
    /// the connections of the pool.
    pub fn of(
        server: &Server,
        profile: Profile,
        folders: &Folders,
        (database_url, pool): (&str, usize),
    ) -> Settings {
        Settings {
            database_url: database_url.to_owned(),
            pool,
            threads: server.threads,
            profile,
            definitions: folders.definitions.clone(),
            queries: folders.queries.clone(),
            cpus: CpuSet::new(),
            ready_limit: READY_LIMIT,
        }
    }
}

/// Which settings of the driver's pool a server uses.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The same behaviour from every pool: fixed size, no pings where the library can do without
    Parity,
    /// Each library as it ships, at the same pool size
    Defaults,
}

impl Profile {
    pub fn name(self) -> &'static str {
        match self {
            Profile::Parity => "parity",
            Profile::Defaults => "defaults",
        }
    }
}

/// A server that has said it is ready. Dropping it kills it if it was started here.
#[derive(Debug)]
pub struct RunningServer {
    name: String,
    /// None where it ran already.
    process: Option<Process>,
    agent: ureq::Agent,
    pub address: SocketAddr,
    /// What `/about` says.
    pub about: Value,
}

#[derive(Debug)]
struct Process {
    child: Child,
    stderr: Option<LastLines>,
}

/// What `/usage` says of the process since its start.
#[derive(Debug, Clone, Deserialize)]
pub struct Usage {
    /// The only account of a process that cannot be seen, as is the next; not every server gives them.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    #[serde(default)]
    pub uptime_seconds: Option<f64>,
    pub rss_bytes: u64,
    pub threads: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Where the time of its requests went, if the server tells.
    #[serde(default)]
    pub timings: Option<Timings>,
}

impl RunningServer {
    /// Starts the server on its CPUs and waits for its ready line. One that runs already has to run with these settings.
    ///
    /// # Errors
    /// It cannot be started, ends, or is not ready in time; each with the last it said on stderr. It runs already, with
    /// other settings.
    pub fn start(
        server: &Server,
        settings: &Settings,
        run: &RunFolder,
        stop: &AtomicBool,
    ) -> Result<RunningServer> {
        if let Some(attachment) = &server.attached {
            let running = RunningServer::attach(server, attachment)?;
            running.refuse_other_settings(settings)?;
            return Ok(running);
        }
        let mut child = spawn(server, settings)?;
        run.record_child(child.id())?;
        let stderr = child.stderr.take().map(LastLines::of);
        let ready = child.stdout.take().map(first_line);
        // From here on the child is owned by a value whose drop kills it.
        let mut running = RunningServer {
            name: server.name.clone(),
            process: Some(Process { child, stderr }),
            agent: agent(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            about: Value::Null,
        };
        let ready = ready.ok_or_else(|| anyhow!("no pipe to stdout"))?;
        running.address = running.wait_ready(&ready, settings.ready_limit, stop)?;
        running.about = running.get("/about")?;
        Ok(running)
    }

    /// A server that runs already.
    ///
    /// # Errors
    /// Its host cannot be found, or it does not answer `/about`.
    pub fn attach(server: &Server, attachment: &Attachment) -> Result<RunningServer> {
        let what = || format!("server `{}` attached at {attachment}", server.name);
        let address = attachment.address().with_context(what)?;
        let mut running = RunningServer {
            name: server.name.clone(),
            process: None,
            agent: agent(),
            address,
            about: Value::Null,
        };
        let answer = running.get("/about");
        running.about = answer.with_context(what)?;
        Ok(running)
    }

    /// None where it was attached to: a pid that it tells is one of a machine or container that need not be this one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// The name of its sessions in PostgreSQL, if it tells.
    pub fn session_name(&self) -> Option<String> {
        self.about["application_name"].as_str().map(str::to_owned)
    }

    /// Which profile it runs in, if it tells.
    pub fn profile(&self) -> Option<Profile> {
        serde_json::from_value(self.about["profile"].clone()).ok()
    }

    fn refuse_other_settings(&self, settings: &Settings) -> Result<()> {
        let pool = self.about["pool"].as_u64();
        if pool != Some(settings.pool as u64) {
            bail!(
                "server `{}` runs with {} connections in its pool, and --pool asks for {}; both have to be the same",
                self.name,
                self.about["pool"],
                settings.pool
            );
        }
        if self.profile() != Some(settings.profile) {
            bail!(
                "server `{}` runs in the profile {}, and --profile asks for {}; both have to be the same",
                self.name,
                self.about["profile"],
                settings.profile.name()
            );
        }
        let threads = self.about["threads"].as_u64();
        match settings.threads {
            // A nonblocking lane says 0, and takes no notice.
            Some(asked) if threads.is_some_and(|own| own != 0 && own != asked as u64) => bail!(
                "server `{}` runs with {} threads, and {asked} are asked for; both have to be the same",
                self.name,
                self.about["threads"]
            ),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// The server does not answer, or not as the contract says.
    pub fn usage(&self) -> Result<Usage> {
        let usage = self.get("/usage")?;
        serde_json::from_value(usage).with_context(|| format!("server `{}`: /usage", self.name))
    }

    /// Asks the server to end (SIGTERM) and waits until it has drained. One that was attached to runs on.
    ///
    /// # Errors
    /// It does not end in time, or with another status than 0.
    pub fn stop(mut self) -> Result<()> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        process.signal(Signal::SIGTERM);
        let end = Instant::now() + STOP_LIMIT;
        // The wait is bounded and has to happen after an interruption too, so it looks at no flag.
        while Instant::now() < end {
            let exited = process.child.try_wait();
            if let Some(status) = exited.with_context(|| format!("server `{}`", self.name))? {
                return self.judge_exit(status);
            }
            thread::sleep(Duration::from_millis(2));
        }
        bail!(
            "server `{}` did not end within {} s of SIGTERM",
            self.name,
            STOP_LIMIT.as_secs()
        )
    }

    fn judge_exit(&self, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        bail!(
            "server `{}` ended with {status} after SIGTERM{}",
            self.name,
            self.last_words()
        )
    }

    fn wait_ready(
        &mut self,
        ready: &Receiver<Option<String>>,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<SocketAddr> {
        let line = signals::wait_for(stop, limit, || {
            match ready.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Ok(Some(None)),
            }
        })?;
        match line {
            Some(Some(line)) => {
                address_of(&line).with_context(|| format!("server `{}`", self.name))
            }
            Some(None) => {
                let process = self.process.as_mut().map(|process| process.child.wait());
                let status = process
                    .transpose()
                    .with_context(|| format!("server `{}`", self.name))?;
                let status = status.map_or_else(String::new, |status| format!(" ({status})"));
                bail!(
                    "server `{}` ended before it was ready{status}{}",
                    self.name,
                    self.last_words()
                )
            }
            None => bail!(
                "server `{}` was not ready within {} s: no ready line on stdout{}",
                self.name,
                limit.as_secs_f64(),
                self.last_words(),
            ),
        }
    }

    fn get(&self, path: &str) -> Result<Value> {
        let url = format!("http://{}{path}", self.address);
        let what = || format!("server `{}`: GET {path}{}", self.name, self.last_words());
        let text = self
            .agent
            .get(&url)
            .call()
            .with_context(what)?
            .body_mut()
            .read_to_string()
            .with_context(what)?;
        serde_json::from_str(&text).with_context(what)
    }

    /// The end of what the server wrote to stderr, ready to follow a message.
    fn last_words(&self) -> String {
        let stderr = self
            .process
            .as_ref()
            .and_then(|process| process.stderr.as_ref());
        let lines = stderr.map(LastLines::text).unwrap_or_default();
        if lines.is_empty() {
            lines
        } else {
            format!(": {lines}")
        }
    }
}

impl Process {
    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // It can only fail because the process is gone, which is what is wanted.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn spawn(server: &Server, settings: &Settings) -> Result<Child> {
    let Some((program, arguments)) = server.run.split_first() else {
        bail!("server `{}`: nothing to run", server.name)
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["--listen", "127.0.0.1:0"])
        .args(["--pool", &settings.pool.to_string()])
        .args(["--profile", settings.profile.name()])
        .arg("--workloads")
        .arg(&settings.definitions)
        .arg("--sql")
        .arg(&settings.queries)
        // Not a flag: the URL may hold a password, and flags are seen by everybody.
        .env("DATABASE_URL", &settings.database_url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C at a terminal goes to its whole process group; the harness ends the servers in its own order.
        .process_group(0);
    if let Some(threads) = settings.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    let what = || format!("server `{}`: cannot start {program}", server.name);
    cpus::spawn_on(&settings.cpus, move || command.spawn()).with_context(what)
}

#[derive(Deserialize)]
struct ReadyLine {
    ready: Ready,
}

#[derive(Deserialize)]
struct Ready {
    address: SocketAddr,
}

fn address_of(line: &str) -> Result<SocketAddr> {
    let ready: ReadyLine = serde_json::from_str(line).map_err(|error| {
        anyhow!(
            "its first line on stdout is not the ready line ({error}): {}",
            line.trim()
        )
    })?;
    Ok(ready.ready.address)
}

/// The first line of stdout; `None` when the stream ends without one. The rest is read and dropped, so that a
/// server that prints more never blocks on a full pipe.
fn first_line(stdout: ChildStdout) -> Receiver<Option<String>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        let read = reader.read_line(&mut line).unwrap_or(0);
        let _ = sender.send((read > 0).then_some(line));
        let _ = std::io::copy(&mut reader.by_ref(), &mut std::io::sink());
    });
    receiver
}

/// The last lines of a server's stderr, read as they come.
#[derive(Debug)]
struct LastLines {
    kept: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl LastLines {
    fn of(stderr: ChildStderr) -> LastLines {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Arc::clone(&kept);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let Ok(mut lines) = lines.lock() else { return };
                if lines.len() == KEPT_LINES {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        });
        LastLines { kept, reader }
    }

    /// In one line. A server that has ended may have said its last just now, so the reader is given a moment.
    fn text(&self) -> String {
        let end = Instant::now() + LAST_WORDS_LIMIT;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        let lines = self
            .kept
            .lock()
            .map(|lines| lines.iter().cloned().collect::<Vec<_>>());
        lines.unwrap_or_default().join(" | ")
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(OBSERVE_LIMIT))
        .build()
        .into()
}
