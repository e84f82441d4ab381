//! The program as a user calls it, mostly wrongly: each mistake gets one clear line and exit status 2, and nothing is
//! left behind.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::TestDatabase;
use tempfile::TempDir;

/// A folder with one text workload and one server, and the program run on it.
struct Sandbox {
    folder: TempDir,
}

struct Said {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Sandbox {
    fn new() -> Sandbox {
        let folder = tempfile::tempdir().unwrap();
        for name in ["workloads", "sql", "servers/faulty"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let sandbox = Sandbox { folder };
        sandbox.workload(
            "about = \"Text.\"\nshape = \"text\"\nbody = \"Hello, World!\"\n[expect]\nstatements = 0\ntransactions = 0\n",
        );
        sandbox.server("dies");
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn workload(&self, definition: &str) {
        fs::write(self.path("workloads/hello.toml"), definition).unwrap();
    }

    fn server(&self, fault: &str) {
        let program = faulty_server();
        let text = format!(
            "about = \"Faulty.\"\nlane = \"blocking\"\nrun = [\"{}\", \"{fault}\"]\n",
            program.display()
        );
        fs::write(self.path("servers/faulty/server.toml"), text).unwrap();
    }

    fn lanebench(&self, arguments: &[&str]) -> Said {
        let output = program()
            .args(arguments)
            .arg("--workloads")
            .arg(self.path("workloads"))
            .arg("--sql")
            .arg(self.path("sql"))
            .arg("--servers")
            .arg(self.path("servers"))
            // Where private clusters and run folders go: looked at afterwards.
            .env("TMPDIR", self.folder.path())
            .output()
            .unwrap();
        said(&output)
    }

    /// Runs the one workload on `database`.
    fn run(&self, database: &str, more: &[&str]) -> Said {
        let out = self.path("results");
        let mut arguments = vec!["run", "hello", "--preset", "smoke", "--closed", "2"];
        arguments.extend([
            "--database",
            database,
            "--scale",
            "0.001",
            "--out",
            out.to_str().unwrap(),
        ]);
        arguments.extend(more);
        self.lanebench(&arguments)
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lanebench"))
}

fn said(output: &Output) -> Said {
    Said {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn faulty_server() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_faulty-server"))
}

impl Said {
    /// Exit status 2, and one line from `lanebench:` that holds `wanted`.
    #[track_caller]
    fn refuses_with(&self, wanted: &str) {
        let lines: Vec<&str> = self
            .stderr
            .lines()
            .filter(|line| line.starts_with("lanebench: "))
            .collect();
        assert_eq!(self.status, 2, "{}", self.stderr);
        assert_eq!(lines.len(), 1, "{}", self.stderr);
        assert!(
            lines[0].contains(wanted),
            "said: {}\nwanted: {wanted}",
            lines[0]
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

#[test]
fn a_mistyped_workload_or_server_is_answered_with_the_nearest_name() {
    let sandbox = Sandbox::new();
    let said = sandbox.lanebench(&["run", "helo"]);
    said.refuses_with("unknown workload `helo`; did you mean `hello`?");
    let said = sandbox.lanebench(&["run", "hello", "-s", "fualty"]);
    said.refuses_with("unknown server `fualty`; did you mean `faulty`?");
    assert!(!sandbox.path("results").exists());
}

#[test]
fn a_malformed_definition_is_refused_with_file_line_and_field() {
    let sandbox = Sandbox::new();
    sandbox.workload("about = \"Text.\"\nshape = \"text\"\nbodi = \"x\"\n");
    sandbox
        .lanebench(&["list"])
        .refuses_with("hello.toml:3: unknown field `bodi`");
}

#[test]
fn a_missing_statement_is_named_with_the_definition_that_asks_for_it() {
    let sandbox = Sandbox::new();
    sandbox.workload(
        "about = \"A.\"\nshape = \"delay\"\nsql = \"gone.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n",
    );
    sandbox
        .lanebench(&["run", "hello"])
        .refuses_with("hello.toml:3: cannot read");
}

#[test]
fn a_malformed_server_is_refused_with_file_line_and_field() {
    let sandbox = Sandbox::new();
    fs::write(
        sandbox.path("servers/faulty/server.toml"),
        "about = \"A.\"\nlane = \"sideways\"\nrun = [\"x\"]\n",
    )
    .unwrap();
    sandbox
        .lanebench(&["list"])
        .refuses_with("server.toml:2: unknown variant `sideways`");
}

#[test]
fn numbers_that_make_no_sense_are_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    for (flag, value) in [
        ("--pool", "0"),
        ("--closed", "0"),
        ("--closed", "99999"),
        ("--threads", "0"),
    ] {
        let said = sandbox.lanebench(&["run", "hello", flag, value]);
        said.refuses_with(&format!("{flag} {value}: it may be 1 to 10000"));
    }
    assert_eq!(
        sandbox
            .lanebench(&["run", "hello", "--preset", "tiny"])
            .status,
        2
    );
    assert_eq!(
        sandbox
            .lanebench(&["run", "hello", "--database", "mysql"])
            .status,
        2
    );
    assert_eq!(sandbox.lanebench(&["run"]).status, 2);
}

#[test]
fn a_database_that_refuses_is_named_without_its_password() {
    let sandbox = Sandbox::new();
    // Bound and not listening: nothing can answer there, and nobody else can take it.
    let unused = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let said = sandbox.run(
        &format!("postgres://nobody:secret@127.0.0.1:{unused}/none"),
        &[],
    );
    said.refuses_with(&format!("127.0.0.1:{unused}"));
    assert!(!said.stderr.contains("secret"), "{}", said.stderr);
    assert!(!sandbox.path("results").exists());
}

#[test]
fn a_pool_larger_than_the_database_allows_is_refused() {
    let database = TestDatabase::fresh();
    let sandbox = Sandbox::new();
    let said = sandbox.run(&database.url, &["--pool", "9999"]);
    said.refuses_with("--pool 9999: this database has room for");
}

#[test]
fn a_server_that_dies_at_its_start_is_named_with_its_last_words() {
    let database = TestDatabase::fresh();
    let sandbox = Sandbox::new();
    sandbox.server("dies");
    let said = sandbox.run(&database.url, &[]);
    said.refuses_with(
        "server `faulty` ended before it was ready (exit status: 3): no licence for a Monday",
    );
}

#[test]
fn a_server_that_never_becomes_ready_is_given_up() {
    let database = TestDatabase::fresh();
    let sandbox = Sandbox::new();
    sandbox.server("never-ready");
    let said = sandbox.run(&database.url, &["--ready-seconds", "0.3"]);
    said.refuses_with("server `faulty` was not ready within 0.3 s");
    assert!(processes_running(faulty_server(), "never-ready").is_empty());
}

#[test]
fn a_server_that_says_something_else_than_that_it_is_ready_is_refused() {
    let database = TestDatabase::fresh();
    let sandbox = Sandbox::new();
    sandbox.server("babbles");
    let said = sandbox.run(&database.url, &[]);
    said.refuses_with("server `faulty`: its first line on stdout is not the ready line");
    assert!(processes_running(faulty_server(), "babbles").is_empty());
}

#[test]
fn one_wrong_byte_fails_the_row_and_names_the_answer() {
    let database = TestDatabase::fresh();
    let sandbox = Sandbox::new();
    sandbox.server("one-byte");
    let said = sandbox.run(&database.url, &[]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    let said = sandbox.lanebench(&[
        "verify",
        "--database",
        &database.url,
        "--scale",
        "0.001",
        "--pool",
        "4",
    ]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert!(
        said.stdout.contains("FAILED") && said.stdout.contains("GET /hello"),
        "{}",
        said.stdout
    );
    assert!(processes_running(faulty_server(), "one-byte").is_empty());
}

/// Ids of processes of `program` whose first argument is `argument`.
fn processes_running(program: &Path, argument: &str) -> Vec<u32> {
    let wanted = format!("{}\0{argument}\0", program.display());
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(wanted.as_bytes()))
    })
    .collect()
}
