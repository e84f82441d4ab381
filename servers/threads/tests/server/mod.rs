//! The server as a process, and clients that keep their connections.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use harness::database::leftovers::RunFolder;
use harness::database::{self, Choice};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

const EXPECT: &str = "[expect]\nstatements = 1\ntransactions = 1\n";

/// PostgreSQL, and definitions that need nothing but it.
pub(crate) struct Database {
    url: String,
    folder: TempDir,
    _private: database::Database,
}

impl Database {
    pub(crate) fn open() -> Database {
        let folder = Arc::new(RunFolder::create().unwrap());
        let opened = database::open(&Choice::Auto, &folder, &AtomicBool::new(false)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        define(folder.path());
        Database {
            url: opened.url.clone(),
            folder,
            _private: opened,
        }
    }

    pub(crate) fn start(&self, flags: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_server-threads"));
        command
            .args(flags)
            .arg("--workloads")
            .arg(self.folder.path())
            .arg("--sql")
            .arg(self.folder.path())
            .env("DATABASE_URL", &self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let base = format!("http://{}", ready["ready"]["address"].as_str().unwrap());
        Server { child, base }
    }
}

fn define(folder: &Path) {
    let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
    for (name, milliseconds) in [("ten-ms", 10), ("slow", 400)] {
        let sql = format!("SELECT {milliseconds} AS waited_ms FROM pg_sleep({milliseconds} / 1e3)");
        write(&format!("{name}.sql"), &sql);
        let text = format!("about = \"Waits.\"\nshape = \"delay\"\nsql = \"{name}.sql\"\n{EXPECT}");
        write(&format!("{name}.toml"), &text);
    }
    let rows = "SELECT number, repeat('row', 50) AS text FROM generate_series(1, 20000) AS number";
    write("export.sql", rows);
    let export = format!("about = \"Rows.\"\nshape = \"export\"\nsql = \"export.sql\"\n{EXPECT}");
    write("export.toml", &export);
    let free = "about = \"Waits.\"\nshape = \"free\"\nwait_ms = 200\n[expect]\nstatements = 0\ntransactions = 0\n";
    write("free.toml", free);
}

pub(crate) struct Server {
    child: Child,
    base: String,
}

impl Server {
    pub(crate) fn client(&self) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT));
        Client {
            base: self.base.clone(),
            agent: config.build().into(),
        }
    }

    /// A request from each of so many clients at the same time.
    pub(crate) fn get_together(&self, path: &str, clients: usize) -> Vec<Answer> {
        thread::scope(|scope| {
            let asked: Vec<_> = (0..clients)
                .map(|_| scope.spawn(|| self.client().get(path)))
                .collect();
            let answers = asked.into_iter().map(|answer| answer.join().unwrap());
            answers.collect()
        })
    }

    pub(crate) fn usage(&self) -> Value {
        serde_json::from_str(&self.client().get("/usage").body).unwrap()
    }

    /// Checks that it ends well when it is told to.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < LIMIT, "still running");
            thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks one request after another on one connection, as long as the server keeps it.
pub(crate) struct Client {
    base: String,
    agent: ureq::Agent,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) closes: bool,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn get(&self, path: &str) -> Answer {
        let mut response = self.call(path);
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        Answer {
            status: response.status().as_u16(),
            closes: header("connection") == Some("close"),
            retry_after: header("retry-after").map(str::to_owned),
            body: response.body_mut().read_to_string().unwrap(),
        }
    }

    /// The body of an answer, to be read.
    pub(crate) fn begin(&self, path: &str) -> impl Read + use<> {
        self.call(path).into_body().into_reader()
    }

    fn call(&self, path: &str) -> ureq::http::Response<ureq::Body> {
        self.agent
            .get(format!("{}{path}", self.base))
            .call()
            .unwrap()
    }
}
