//! `lanebench doctor`: what this machine lacks, or does, that would spoil a measurement.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Result;
use clap::Args;

use crate::checks::Verdict;
use crate::cpus::CpuPlan;
use crate::environment::Environment;
use crate::folders::{FolderArgs, Folders};
use crate::generator::GeneratorRecord;
use crate::provision::{DatabaseArgs, Provisioned};
use crate::signals;

/// Steal above this share of a second spoils a trial.
const MOST_STEAL_PERCENT: f64 = 0.5;
/// Other programs may use this much of one CPU.
const MOST_FOREIGN_PERCENT: f64 = 5.0;
/// A server with a pool, a generator's connections and their files fit into this many.
const FEWEST_OPEN_FILES: u64 = 4096;
const GENERATOR_CONNECTIONS: usize = 32;
const LOOK: Duration = Duration::from_secs(1);

/// Flags of `lanebench doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Good,
    /// Results are usable, but not to be published.
    Note,
    /// Fix this before measuring.
    Bad,
}

/// Prints a line for each thing looked at. Gives `Invalid` where one spoils every measurement.
///
/// # Errors
/// An interruption. Whatever else goes wrong is a line.
pub fn run(args: &DoctorArgs, stop: &AtomicBool) -> Result<Verdict> {
    let folders = Folders::find(&FolderArgs::default())?;
    let environment = Environment::read(&folders.root);
    let mut findings = vec![
        cpus(&environment),
        cpu_plan(),
        generator(),
        governor(&environment),
        clock(&environment),
        files(&environment),
        cgroup(&environment),
        virtual_machine(&environment),
        build(&environment),
        quiet(stop)?,
    ];
    findings.push(postgres(args, stop)?);
    for (finding, line) in &findings {
        let mark = match finding {
            Finding::Good => "ok  ",
            Finding::Note => "note",
            Finding::Bad => "BAD ",
        };
        println!("{mark}  {line}");
    }
    let bad = findings.iter().any(|(finding, _)| *finding == Finding::Bad);
    println!(
        "\n{}",
        if bad {
            "Fix what is marked BAD before measuring."
        } else {
            "Fit to measure."
        }
    );
    Ok(if bad {
        Verdict::Invalid
    } else {
        Verdict::Valid
    })
}

type Line = (Finding, String);

fn cpus(environment: &Environment) -> Line {
    let model = environment.cpu_model.as_deref().unwrap_or("unknown model");
    let line = format!("CPUs: {} usable, {model}", environment.cpus);
    match environment.cpus {
        0 | 1 => (
            Finding::Bad,
            format!("{line}; with one CPU the generator takes time from what it measures"),
        ),
        2 => (
            Finding::Note,
            format!("{line}; with two, server and database share one"),
        ),
        _ => (Finding::Good, line),
    }
}

fn cpu_plan() -> Line {
    match CpuPlan::for_this_machine() {
        Ok(plan) => (Finding::Good, format!("CPU plan: {}", plan.describe())),
        Err(error) => (Finding::Bad, format!("CPU plan: {error:#}")),
    }
}

fn generator() -> Line {
    let measured = CpuPlan::for_this_machine()
        .and_then(|plan| GeneratorRecord::measure(&plan, GENERATOR_CONNECTIONS));
    match measured {
        Ok(record) => (Finding::Good, format!("generator: {}", record.describe())),
        Err(error) => (Finding::Bad, format!("generator: {error:#}")),
    }
}

fn governor(environment: &Environment) -> Line {
    match environment.governor.as_deref() {
        Some("performance") => (
            Finding::Good,
            "CPU frequency governor: performance".to_owned(),
        ),
        Some(other) => (
            Finding::Note,
            format!("CPU frequency governor: {other}; `performance` gives steadier figures"),
        ),
        None => (
            Finding::Note,
            "CPU frequency governor: not visible from here".to_owned(),
        ),
    }
}

fn clock(environment: &Environment) -> Line {
    match environment.clock_source.as_deref() {
        Some(source @ ("tsc" | "kvm-clock" | "arch_sys_counter")) => {
            (Finding::Good, format!("clock: {source}"))
        }
        Some(source) => (
            Finding::Bad,
            format!("clock: {source} is slow to read; boot with clocksource=tsc"),
        ),
        None => (
            Finding::Note,
            "clock: source not visible from here".to_owned(),
        ),
    }
}

fn files(environment: &Environment) -> Line {
    match environment.open_files_limit {
        Some(limit) if limit < FEWEST_OPEN_FILES => (
            Finding::Note,
            format!(
                "open files: {limit}; more than about {} connections need `ulimit -n`",
                limit / 2
            ),
        ),
        Some(limit) => (Finding::Good, format!("open files: {limit}")),
        None => (Finding::Good, "open files: no limit".to_owned()),
    }
}

fn cgroup(environment: &Environment) -> Line {
    match environment.cgroup_cpu_limit {
        Some(limit) if limit < environment.cpus as f64 => (
            Finding::Bad,
            format!("control group: throttled to {limit:.2} CPUs; raise the limit"),
        ),
        Some(limit) => (Finding::Good, format!("control group: {limit:.2} CPUs")),
        None => (Finding::Good, "control group: no CPU limit".to_owned()),
    }
}

fn virtual_machine(environment: &Environment) -> Line {
    if environment.virtual_machine {
        (
            Finding::Note,
            "virtual machine: neighbours may take time; compare within one run only".to_owned(),
        )
    } else {
        (Finding::Good, "virtual machine: no".to_owned())
    }
}

fn build(environment: &Environment) -> Line {
    if environment.build_profile == "release" {
        (Finding::Good, "build: release".to_owned())
    } else {
        (
            Finding::Bad,
            format!(
                "build: {}; the generator needs --release",
                environment.build_profile
            ),
        )
    }
}

/// Looks at all CPUs for a second: nothing of ours runs meanwhile, so whatever is busy would disturb a trial.
fn quiet(stop: &AtomicBool) -> Result<Line> {
    let Some(before) = CpuTicks::read() else {
        return Ok((
            Finding::Note,
            "other load: not visible from here".to_owned(),
        ));
    };
    let end = Instant::now() + LOOK;
    while Instant::now() < end {
        signals::check(stop)?;
        thread::sleep(Duration::from_millis(20));
    }
    let Some(after) = CpuTicks::read() else {
        return Ok((
            Finding::Note,
            "other load: not visible from here".to_owned(),
        ));
    };
    let share = |ticks: u64| 100.0 * ticks as f64 / (after.total - before.total).max(1) as f64;
    let (busy, steal) = (
        share(after.busy - before.busy),
        share(after.steal - before.steal),
    );
    let line = format!(
        "other load: CPUs {busy:.1} % busy, {steal:.1} % stolen, over {} s",
        LOOK.as_secs()
    );
    if busy > MOST_FOREIGN_PERCENT || steal > MOST_STEAL_PERCENT {
        return Ok((
            Finding::Bad,
            format!("{line}; end other programs, or wait for a quiet moment"),
        ));
    }
    Ok((Finding::Good, line))
}

/// Sums over all CPUs of `/proc/stat`'s first line (proc(5)), in ticks.
struct CpuTicks {
    busy: u64,
    steal: u64,
    total: u64,
}

impl CpuTicks {
    fn read() -> Option<CpuTicks> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let ticks = text
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .map(|tick| tick.parse().ok());
        let ticks = ticks.collect::<Option<Vec<u64>>>()?;
        // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.first_chunk()?;
        let busy = user + nice + system + irq + softirq;
        Some(CpuTicks {
            busy,
            steal,
            total: busy + idle + iowait + steal,
        })
    }
}

fn postgres(args: &DoctorArgs, stop: &AtomicBool) -> Result<Line> {
    let provisioned = match Provisioned::open(&args.database, 1, stop) {
        Ok(provisioned) => provisioned,
        Err(error) if error.is::<signals::Interrupted>() => return Err(error),
        Err(error) => return Ok((Finding::Bad, format!("database: {error:#}"))),
    };
    let Provisioned {
        database, monitor, ..
    } = &provisioned;
    let line = format!(
        "database: {}, PostgreSQL {}",
        database.source, database.server_version
    );
    Ok(match monitor.unobserved() {
        None => (Finding::Good, line),
        Some(why) => (
            Finding::Note,
            format!("{line}; statements cannot be counted: {why}"),
        ),
    })
}
