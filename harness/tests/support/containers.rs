//! The images of this repository as containers beside a PostgreSQL, on a network of their own; all removed when dropped.

use std::env;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testcontainers_modules::testcontainers::core::wait::ExitWaitStrategy;
use testcontainers_modules::testcontainers::core::{Mount, WaitFor};
use testcontainers_modules::testcontainers::runners::SyncRunner;
use testcontainers_modules::testcontainers::{Container, ContainerRequest, GenericImage, ImageExt};

use super::servers::root;
use super::{DEFAULT_IMAGE, IMAGE_VARIABLE, LABEL, forced, remove_orphans, say};

/// Targets of the Dockerfile, and the names of the servers.
pub(crate) const SERVERS: [&str; 4] = ["deadpool", "sqlx", "r2d2", "threads"];
pub(crate) const HARNESS: &str = "lanebench";
/// Longest wait for what happens in containers.
const LIMIT: Duration = Duration::from_secs(120);
const PORT: u16 = 8080;

/// That a Docker engine answers.
pub(crate) struct Engine(());

/// None, which is said, where there is no engine or the tests are to do without; unless they must not.
pub(crate) fn engine() -> Option<Engine> {
    if env::var("LANEBENCH_TEST_IMAGES").as_deref() == Ok("no") {
        say("not run, images as containers: LANEBENCH_TEST_IMAGES=no");
        return None;
    }
    let why = match forced().as_deref() {
        None | Some("container") => match docker(&["info"]) {
            Ok(_) => return Some(Engine(())),
            Err(complaint) => complaint,
        },
        Some(_) => "the tests are to use another database than a container".to_owned(),
    };
    assert_ne!(
        forced().as_deref(),
        Some("container"),
        "no Docker engine: {why}"
    );
    say(&format!("not run, images as containers: {why}"));
    None
}

impl Engine {
    /// The images from the sources as they are; at once where they have been built from the same before.
    pub(crate) fn build(&self) {
        static BUILD: Once = Once::new();
        BUILD.call_once(|| {
            say("building the images, which takes minutes the first time");
            for target in SERVERS.into_iter().chain([HARNESS]) {
                let tag = image_of(target);
                let built = Command::new("docker")
                    .args(["build", "--quiet", "--build-arg", "COMMIT=tested"])
                    .args(["--target", target, "--tag", &tag, "."])
                    .current_dir(root())
                    .env("DOCKER_BUILDKIT", "1")
                    .output();
                said(built).unwrap_or_else(|complaint| panic!("{target}: {complaint}"));
            }
        });
    }
}

fn image_of(target: &str) -> String {
    format!("lanebench/{target}:test")
}

/// What the engine says of a target's image.
pub(crate) fn inspected(target: &str) -> Value {
    let said = docker(&[
        "image",
        "inspect",
        "--format",
        "{{json .}}",
        &image_of(target),
    ])
    .unwrap();
    serde_json::from_str(&said).unwrap()
}

/// What a command of the client printed, or what it complained about.
fn docker(arguments: &[&str]) -> Result<String, String> {
    said(
        Command::new("docker")
            .args(arguments)
            .stdin(Stdio::null())
            .output(),
    )
}

fn said(output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| format!("docker: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// A harness that has ended.
pub(crate) struct Ended {
    pub(crate) status: i64,
    /// Everything it printed.
    pub(crate) said: String,
}

/// A seeded PostgreSQL and servers, each with a pool of four.
pub(crate) struct Stack {
    servers: Vec<(&'static str, Container<GenericImage>)>,
    database: Container<GenericImage>,
    prefix: String,
}

impl Stack {
    pub(crate) fn start(engine: &Engine, servers: &[&'static str]) -> Stack {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        engine.build();
        remove_orphans();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("lanebench-test-{}-{number}", std::process::id());
        let mut stack = Stack {
            servers: Vec::new(),
            database: database(&prefix),
            prefix,
        };
        let seeded = stack.harness("database seed", None);
        assert_eq!(seeded.status, 0, "{}", seeded.said);
        for name in servers {
            let image = confined(name, &stack.prefix)
                .with_container_name(format!("{}-{name}", stack.prefix))
                .with_env_var("LANEBENCH_POOL", "4")
                .with_ready_conditions(vec![WaitFor::healthcheck()]);
            stack.servers.push((name, image.start().unwrap()));
        }
        stack
    }

    /// `lanebench …` with all servers attached, and perhaps a folder as its `results`.
    pub(crate) fn harness(&self, arguments: &str, results: Option<&Path>) -> Ended {
        let attached = self
            .servers
            .iter()
            .map(|(name, _)| format!("{name}=http://{}-{name}:{PORT}", self.prefix));
        let attached: Vec<String> = attached.collect();
        let mut image = confined(HARNESS, &self.prefix)
            .with_mount(Mount::tmpfs_mount("/tmp"))
            .with_env_var("LANEBENCH_ATTACH", attached.join(","))
            .with_ready_conditions(vec![WaitFor::exit(ExitWaitStrategy::new())])
            .with_cmd(arguments.split_whitespace());
        if let Some(results) = results {
            image = image.with_mount(Mount::bind_mount(
                results.display().to_string(),
                "/lanebench/results",
            ));
        }
        let container = image.start().unwrap();
        let [out, err] = [container.stdout_to_vec(), container.stderr_to_vec()].map(Result::unwrap);
        Ended {
            status: container.exit_code().unwrap().unwrap(),
            said: format!(
                "{}{}",
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&err)
            ),
        }
    }

    pub(crate) fn restart_database(&self) {
        docker(&["restart", "--time", "5", self.database.id()]).unwrap();
    }

    pub(crate) fn wait_for(&self, happened: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !happened() {
            assert!(Instant::now() < end, "it did not happen within {LIMIT:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// An image of ours as `compose.yaml` runs it: with no capabilities, and nothing to write to.
fn confined(target: &str, prefix: &str) -> ContainerRequest<GenericImage> {
    GenericImage::new(format!("lanebench/{target}"), "test".to_owned())
        .with_startup_timeout(LIMIT)
        .with_network(prefix)
        .with_label(LABEL, std::process::id().to_string())
        .with_readonly_rootfs(true)
        .with_cap_drop("ALL")
        .with_security_opt("no-new-privileges")
        .with_env_var(
            "DATABASE_URL",
            format!("postgres://postgres@{prefix}-postgres:5432/shop"),
        )
}

fn database(prefix: &str) -> Container<GenericImage> {
    let image = env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
    let (name, tag) = image.rsplit_once(':').unwrap();
    let settings = [
        "shared_preload_libraries=pg_stat_statements",
        "autovacuum=off",
        "max_parallel_workers_per_gather=0",
        "checkpoint_timeout=1h",
        "max_wal_size=4GB",
    ];
    let started = "database system is ready to accept connections";
    GenericImage::new(name, tag)
        // The first is the one that makes the cluster.
        .with_wait_for(WaitFor::message_on_stderr(started))
        .with_wait_for(WaitFor::message_on_stderr(started))
        .with_startup_timeout(LIMIT)
        .with_network(prefix)
        .with_container_name(format!("{prefix}-postgres"))
        .with_label(LABEL, std::process::id().to_string())
        .with_env_var("POSTGRES_HOST_AUTH_METHOD", "trust")
        // Not the one that the harness watches from.
        .with_env_var("POSTGRES_DB", "shop")
        .with_cmd(settings.iter().flat_map(|setting| ["-c", setting]))
        .start()
        .unwrap_or_else(|error| panic!("{image}: {error}"))
}
