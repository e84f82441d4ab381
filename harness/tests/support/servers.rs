//! The servers of this repository as processes on a seeded shop, and a client that asks them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use harness::database::seed::{self, Scale};
use harness::folders::{FolderArgs, Folders};
use harness::server::Server;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::TestDatabase;

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The servers of this repository, built once.
pub(crate) fn servers() -> &'static [Server] {
    static BUILT: OnceLock<Vec<Server>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folders = Folders::find(&FolderArgs::default()).unwrap();
        let servers = Server::read_all(&folders).unwrap();
        servers
            .iter()
            .for_each(|server| server.build(&folders.root).unwrap());
        servers
    })
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A seeded shop, and definitions with a statement that takes 300 ms.
pub(crate) struct Shop {
    pub(crate) database: TestDatabase,
    pub(crate) folder: TempDir,
}

impl Shop {
    pub(crate) fn open() -> Shop {
        let database = TestDatabase::fresh();
        seed::ensure(
            &database.url,
            "0.01".parse::<Scale>().unwrap(),
            &AtomicBool::new(false),
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        for file in ["point-read.toml", "ten-ms.toml", "hello.toml"] {
            fs::copy(
                root().join("workloads/definitions").join(file),
                folder.path().join(file),
            )
            .unwrap();
        }
        for file in ["item.sql", "ten-ms.sql"] {
            fs::copy(
                root().join("sql/queries").join(file),
                folder.path().join(file),
            )
            .unwrap();
        }
        fs::write(
            folder.path().join("slow.toml"),
            "about = \"Slow.\"\nshape = \"delay\"\nsql = \"slow.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n",
        )
        .unwrap();
        fs::write(
            folder.path().join("slow.sql"),
            "SELECT 300 AS waited_ms FROM pg_sleep(0.3)",
        )
        .unwrap();
        Shop { database, folder }
    }

    pub(crate) fn command(&self, server: &Server, url: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(&server.run[0]);
        command
            .args(flags)
            .arg("--workloads")
            .arg(self.folder.path())
            .arg("--sql")
            .arg(self.folder.path())
            .env("DATABASE_URL", url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// With a pool of four.
    pub(crate) fn start(&self, server: &Server, flags: &[&str]) -> Running {
        let flags = [&["--pool", "4"], flags].concat();
        Running::start(self.command(server, &self.database.url, &flags))
    }

    /// The one line of a server that is expected not to start.
    #[track_caller]
    pub(crate) fn refusal(&self, server: &Server, url: &str, flags: &[&str]) -> String {
        let mut child = self.command(server, url, flags).spawn().unwrap();
        let status = wait(&mut child);
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(!status.success(), "{}", server.name);
        assert_eq!(said.lines().count(), 1, "{}: {said}", server.name);
        said
    }

    /// Superusers have no limit of their own, and the server's is for all tests together.
    pub(crate) fn url_of_a_role_with_three_connections(&self) -> String {
        let role = format!("few_{}", std::process::id());
        let create = format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'few' CONNECTION LIMIT 3; GRANT USAGE ON SCHEMA shop TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA shop TO {role}"
        );
        self.database.client().batch_execute(&create).unwrap();
        let mut url = url::Url::parse(&self.database.url).unwrap();
        url.set_username(&role).unwrap();
        url.set_password(Some("few")).unwrap();
        url.into()
    }

    pub(crate) fn sessions(&self) -> i64 {
        let query = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND application_name LIKE 'lanebench-%'";
        self.database.client().query_one(query, &[]).unwrap().get(0)
    }
}

pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("still running after {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) base: String,
    agent: ureq::Agent,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut said = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            panic!("not ready: {said}")
        });
        let base = format!("http://{}", ready["ready"]["address"].as_str().unwrap());
        assert_eq!(ready["ready"]["pid"].as_u64(), Some(u64::from(child.id())));
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT));
        Running {
            child,
            base,
            agent: config.build().into(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        let mut response = self
            .agent
            .get(format!("{}{path}", self.base))
            .call()
            .unwrap();
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        Answer {
            status: response.status().as_u16(),
            media_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            body: response.body_mut().read_to_string().unwrap(),
        }
    }

    /// `count` requests at the same time.
    pub(crate) fn get_together(&self, path: &str, count: usize) -> Vec<Answer> {
        thread::scope(|scope| {
            let asked: Vec<_> = (0..count).map(|_| scope.spawn(|| self.get(path))).collect();
            asked
                .into_iter()
                .map(|answer| answer.join().unwrap())
                .collect()
        })
    }

    pub(crate) fn usage(&self) -> Value {
        serde_json::from_str(&self.get("/usage").body).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        wait(&mut self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
