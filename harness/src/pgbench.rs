//! What PostgreSQL gives pgbench on a workload's statement: no HTTP, no pool, the server's CPUs, as many connections as
//! the pool has busy. No lane can be expected to reach it; it says what the rest of a lane costs.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use postgres::config::Host;
use serde::{Deserialize, Serialize};
use workloads::{Distribution, Shape, Workload};

use crate::campaign::Plan;
use crate::cpus;
use crate::database::pgbench_programs;
use crate::provision::Provisioned;
use crate::rung::Rung;
use crate::signals;

/// Beyond what it was asked for, pgbench needs this long at most to connect and to end.
const GRACE: Duration = Duration::from_secs(20);
/// pgbench's Zipfian wants an exponent above 1 (its documentation: 1.001 to 1000).
const LEAST_EXPONENT: f64 = 1.001;

/// One run of pgbench, right after a block.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PgbenchRun {
    pub workload: String,
    pub rung: Rung,
    pub block: usize,
    /// One statement in flight on each; not more than the pool has.
    pub connections: usize,
    pub statements_per_second: f64,
    pub mean_latency_ms: f64,
}

/// A pgbench that can run.
#[derive(Debug)]
pub struct Pgbench {
    program: PathBuf,
}

impl Pgbench {
    /// `None` where there is none: beside PostgreSQL's programs, or on the PATH.
    pub fn find() -> Option<Pgbench> {
        let program = pgbench_programs().into_iter().find(|file| file.is_file())?;
        Some(Pgbench { program })
    }

    /// Runs a workload's statement at a rung of a closed loop. `None` where the workload has no statement of its own for
    /// pgbench, or the rung is open.
    ///
    /// # Errors
    /// pgbench fails, or an interruption.
    pub fn run(
        &self,
        workload: &Workload,
        (rung, block): (Rung, usize),
        plan: &Plan,
        provisioned: &Provisioned,
        stop: &AtomicBool,
    ) -> Result<Option<PgbenchRun>> {
        let (Rung::Closed { .. }, Some(script)) = (rung, script(&workload.shape)) else {
            return Ok(None);
        };
        let connections = rung.at_a_time(plan.pool);
        let seconds = seconds(plan);
        let text = self
            .output(&script, connections, seconds, plan, provisioned, stop)
            .with_context(|| format!("pgbench with {}", workload.name))?;
        let figure = |label: &str| {
            figure(&text, label).ok_or_else(|| anyhow!("pgbench does not say its `{label}`"))
        };
        Ok(Some(PgbenchRun {
            workload: workload.name.clone(),
            rung,
            block,
            connections,
            statements_per_second: figure("tps")?,
            mean_latency_ms: figure("latency average")?,
        }))
    }

    fn output(
        &self,
        script: &str,
        connections: usize,
        seconds: f64,
        plan: &Plan,
        provisioned: &Provisioned,
        stop: &AtomicBool,
    ) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
            .arg(format!("--client={connections}"))
            .arg(format!("--time={seconds:.0}"))
            .arg(format!("--random-seed={}", plan.seed))
            .arg("--file=-")
            .envs(connection_variables(&provisioned.database.url)?)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = cpus::spawn_on(&plan.cpus.server, move || command.spawn())
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        provisioned.run_folder.record_child(child.id())?;
        if let Some(mut stdin) = child.stdin.take() {
            // If it has ended already, its status and its complaint say why.
            let _ = stdin.write_all(script.as_bytes());
        }
        let limit = Duration::from_secs_f64(seconds) + GRACE;
        let ended = signals::wait_for(stop, limit, || Ok(child.try_wait()?));
        if !matches!(ended, Ok(Some(_))) {
            let _ = child.kill();
        }
        let output = child.wait_with_output()?;
        ended?.context("it did not end in time")?;
        if !output.status.success() {
            signals::check(stop)?;
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("{}", complaint.lines().last().unwrap_or("no reason given"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// How long a run lasts: it has nothing to warm up but its connections, whose opening it leaves out of its figures.
fn seconds(plan: &Plan) -> f64 {
    (plan.window_seconds / 3.0).round().max(1.0)
}

/// The load that [`Pgbench::run`] makes after a block, or none.
pub fn load_of(workload: &Workload, rung: Rung, plan: &Plan) -> Option<Duration> {
    let runs = !rung.is_open() && script(&workload.shape).is_some();
    runs.then(|| Duration::from_secs_f64(seconds(plan)))
}

/// The workload's own SQL, its parameter drawn by pgbench.
fn script(shape: &Shape) -> Option<String> {
    match shape {
        Shape::Delay { sql } => Some(format!("{sql};\n")),
        Shape::Item { sql, id } => {
            let draw = match id {
                Distribution::Uniform { from, to } => format!("random({from}, {to})"),
                Distribution::Zipf { from, to, exponent } => {
                    format!(
                        "random_zipfian({from}, {to}, {})",
                        exponent.max(LEAST_EXPONENT)
                    )
                }
            };
            Some(format!("\\set id {draw}\n{};\n", sql.replace("$1", ":id")))
        }
        // The others take several statements, none, or parameters that pgbench cannot draw.
        _ => None,
    }
}

/// The URL as libpq's variables: arguments are seen by everybody, and it may hold a password.
fn connection_variables(url: &str) -> Result<Vec<(&'static str, String)>> {
    let config: postgres::Config = url.parse().context("the database URL")?;
    let host = config.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let password = config
        .get_password()
        .map(|password| String::from_utf8_lossy(password).into_owned());
    let all = [
        ("PGHOST", host),
        ("PGPORT", config.get_ports().first().map(u16::to_string)),
        ("PGUSER", config.get_user().map(str::to_owned)),
        ("PGDATABASE", config.get_dbname().map(str::to_owned)),
        ("PGPASSWORD", password),
        ("PGOPTIONS", config.get_options().map(str::to_owned)),
    ];
    Ok(all
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect())
}

/// The number of a line such as `tps = 1234.5 (without initial connection time)`.
fn figure(text: &str, label: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    let value = line.trim_start().strip_prefix('=')?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: item.pgbench
number of clients: 16
number of transactions actually processed: 20000
latency average = 0.661 ms
initial connection time = 21.5 ms
tps = 24190.301223 (without initial connection time)
";

    #[test]
    fn its_figures_are_read_from_its_text() {
        assert_eq!(figure(OUTPUT, "tps"), Some(24_190.301_223));
        assert_eq!(figure(OUTPUT, "latency average"), Some(0.661));
        assert_eq!(figure("tps: none", "tps"), None);
    }

    #[test]
    fn the_statement_is_the_workloads_own() {
        let shape = Shape::Item {
            sql: "SELECT * FROM shop.items WHERE id = $1".to_owned(),
            id: Distribution::Zipf {
                from: 1,
                to: 100,
                exponent: 1.0,
            },
        };
        assert_eq!(
            script(&shape).unwrap(),
            "\\set id random_zipfian(1, 100, 1.001)\nSELECT * FROM shop.items WHERE id = :id;\n"
        );
    }

    #[test]
    fn a_password_goes_by_the_environment() {
        let url = "postgres://ann:s3cret@127.0.0.1:5433/shop";
        let variables = connection_variables(url).unwrap();
        assert!(variables.contains(&("PGPASSWORD", "s3cret".to_owned())));
        assert!(variables.contains(&("PGPORT", "5433".to_owned())));
    }
}
