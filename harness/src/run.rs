//! `lanebench run`: from the command line to a finished campaign.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use workloads::{Catalog, Workload};

use crate::campaign::{Campaign, Plan, ResultsFolder, SCHEMA, ServerRecord, State};
use crate::checks::Verdict;
use crate::cpus::{self, CpuPlan};
use crate::environment::{self, Environment};
use crate::expected::Answers;
use crate::folders::{FolderArgs, Folders};
use crate::generator::GeneratorRecord;
use crate::inspection;
use crate::process::{Profile, READY_LIMIT, Settings};
use crate::progress::Progress;
use crate::provision::{DatabaseArgs, Provisioned};
use crate::selection::by_name;
use crate::server::Server;
use crate::signals;
use crate::table;
use crate::trial::{self, Bench, Place, Subject};

/// More connections than this are a mistake rather than a measurement.
const MOST_CONNECTIONS: usize = 10_000;
/// A server that takes longer is not a service.
const LONGEST_READY_SECONDS: f64 = 3600.0;
/// What a trial takes besides its warm-up and window, until the first has been seen.
const TRIAL_OVERHEAD: Duration = Duration::from_millis(800);

/// Flags of `lanebench run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Workloads to run, by name (`lanebench list` shows all)
    #[arg(required = true, value_name = "WORKLOAD")]
    pub names: Vec<String>,

    /// Servers to compare, by name [default: all]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// How much to measure
    #[arg(long, value_enum, default_value = "snapshot")]
    pub preset: Preset,

    /// Connections in each server's pool
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub pool: usize,

    /// Threads of the blocking lanes [default: as many as the pool has connections]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Closed loop: connections of each rung
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32], value_name = "N")]
    pub closed: Vec<usize>,

    /// Settings of the pools
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Profile::Parity])]
    pub profile: Vec<Profile>,

    /// Seed of the requests' parameters
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    /// How long a server may take to become ready
    #[arg(long, default_value_t = READY_LIMIT.as_secs_f64(), value_name = "S")]
    pub ready_seconds: f64,

    /// Folder for the results [default: results/<time>-<workloads>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,
}

/// How many blocks of which length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// One block of 1 s: does it work at all? Never publishable
    Smoke,
    /// Three blocks of 3 s after 1 s of warm-up: an answer in minutes
    Snapshot,
}

struct Length {
    blocks: usize,
    warmup: Duration,
    window: Duration,
}

impl Preset {
    fn length(self) -> Length {
        match self {
            Preset::Smoke => Length {
                blocks: 1,
                warmup: Duration::from_millis(250),
                window: Duration::from_secs(1),
            },
            Preset::Snapshot => Length {
                blocks: 3,
                warmup: Duration::from_secs(1),
                window: Duration::from_secs(3),
            },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Preset::Smoke => "smoke",
            Preset::Snapshot => "snapshot",
        }
    }
}

/// Runs the campaign and prints its tables on stdout. Gives the gravest verdict of its rows.
///
/// # Errors
/// Bad usage, an interruption (what was measured is saved), or a failure of the harness or the database.
pub fn run(args: &RunArgs, stop: &AtomicBool) -> Result<Verdict> {
    let folders = &Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    let workloads = chosen_workloads(&args.names, &catalog)?;
    let servers = chosen_servers(&args.servers, folders)?;
    refuse_impossible(args)?;
    let results = ResultsFolder::at(results_path(args, folders))?;
    let plan = plan(args, &workloads, &servers)?;
    build(&servers, folders, stop)?;

    eprintln!("CPUs: {}", plan.cpus.describe());
    let busiest = plan.closed.iter().copied().max().unwrap_or(1);
    let generator = GeneratorRecord::measure(&plan.cpus, busiest)?;
    eprintln!("generator: {}", generator.describe());
    let mut provisioned = Provisioned::open(&args.database, args.pool, stop)?;
    if let Some(postmaster) = provisioned
        .database
        .postmaster_pid
        .filter(|_| provisioned.database.is_private())
    {
        cpus::move_process(postmaster, &plan.cpus.database)
            .context("cannot pin PostgreSQL to its CPUs")?;
    }
    let campaign = Campaign {
        schema: SCHEMA,
        lanebench: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
        state: State::Running,
        command: std::env::args().collect(),
        environment: Environment::read(&folders.root),
        generator,
        database: provisioned.record(),
        servers: servers.iter().map(server_record).collect(),
        inspections: Vec::new(),
        trials: Vec::new(),
        plan,
    };
    let bench_plan = campaign.plan.clone();
    let mut bench = Bench {
        plan: &bench_plan,
        provisioned: &mut provisioned,
        stop,
    };
    let ready_limit = Duration::from_secs_f64(args.ready_seconds);
    let mut session = Session {
        campaign,
        results,
        workloads,
        servers,
        folders,
        ready_limit,
    };
    let ended = session.measure(&mut bench);
    session.close(ended)
}

fn chosen_workloads(names: &[String], catalog: &Catalog) -> Result<Vec<Workload>> {
    let chosen = names.iter().map(|name| {
        by_name("workload", name, &catalog.workloads, |workload| {
            &workload.name
        })
    });
    chosen.map(|workload| workload.cloned()).collect()
}

/// The servers named, or all.
///
/// # Errors
/// An unknown name, or a `server.toml` that is refused.
pub fn chosen_servers(names: &[String], folders: &Folders) -> Result<Vec<Server>> {
    let all = Server::read_all(folders)?;
    if names.is_empty() {
        return Ok(all);
    }
    names
        .iter()
        .map(|name| by_name("server", name, &all, |server| &server.name).cloned())
        .collect()
}

/// Builds each server by itself: one build of the whole workspace would give every server the features that any of
/// them asks for.
///
/// # Errors
/// A build fails, or is interrupted.
pub fn build(servers: &[Server], folders: &Folders, stop: &AtomicBool) -> Result<()> {
    for server in servers {
        signals::check(stop)?;
        eprintln!("building {}", server.name);
        server.build(&folders.root)?;
    }
    Ok(())
}

fn refuse_impossible(args: &RunArgs) -> Result<()> {
    let counts = [
        ("--pool", args.pool),
        ("--threads", args.threads.unwrap_or(1)),
    ];
    let rungs = args
        .closed
        .iter()
        .map(|&connections| ("--closed", connections));
    for (flag, count) in counts.into_iter().chain(rungs) {
        if !(1..=MOST_CONNECTIONS).contains(&count) {
            bail!("{flag} {count}: it may be 1 to {MOST_CONNECTIONS}");
        }
    }
    if !(0.001..=LONGEST_READY_SECONDS).contains(&args.ready_seconds) {
        bail!(
            "--ready-seconds {}: it may be 0.001 to {LONGEST_READY_SECONDS}",
            args.ready_seconds
        );
    }
    Ok(())
}

fn results_path(args: &RunArgs, folders: &Folders) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S");
    let default = || {
        folders
            .root
            .join("results")
            .join(format!("{time}-{}", args.names.join("+")))
    };
    args.out.clone().unwrap_or_else(default)
}

fn plan(args: &RunArgs, workloads: &[Workload], servers: &[Server]) -> Result<Plan> {
    let Length {
        blocks,
        warmup,
        window,
    } = args.preset.length();
    Ok(Plan {
        workloads: workloads
            .iter()
            .map(|workload| workload.name.clone())
            .collect(),
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        profiles: args.profile.clone(),
        preset: args.preset.name().to_owned(),
        publishable: false,
        pool: args.pool,
        threads: args.threads,
        closed: args.closed.clone(),
        blocks,
        warmup_seconds: warmup.as_secs_f64(),
        window_seconds: window.as_secs_f64(),
        seed: args.seed,
        cpus: CpuPlan::for_this_machine()?,
    })
}

fn server_record(server: &Server) -> ServerRecord {
    ServerRecord {
        name: server.name.clone(),
        lane: server.lane,
        about: server.about.clone(),
        binary_sha256: server
            .run
            .first()
            .and_then(|program| environment::sha256_of(Path::new(program))),
        says: Vec::new(),
    }
}

/// A campaign under way.
struct Session<'a> {
    campaign: Campaign,
    results: ResultsFolder,
    workloads: Vec<Workload>,
    servers: Vec<Server>,
    folders: &'a Folders,
    ready_limit: Duration,
}

impl Session<'_> {
    fn measure(&mut self, bench: &mut Bench<'_>) -> Result<()> {
        let servers = self.servers.clone();
        let subjects = self.subjects(&servers, bench)?;
        let answers = self
            .workloads
            .iter()
            .map(|workload| {
                Answers::derive(workload, &bench.provisioned.database.url, bench.plan.seed)
            })
            .collect::<Result<Vec<_>>>()?;
        self.inspect(bench, &subjects, &answers)?;
        self.trials(bench, &subjects, &answers)
    }

    /// Every server in every profile, each started once without a request.
    fn subjects<'s>(
        &mut self,
        servers: &'s [Server],
        bench: &mut Bench<'_>,
    ) -> Result<Vec<Subject<'s>>> {
        let mut subjects = Vec::new();
        for (server, record) in servers.iter().zip(&mut self.campaign.servers) {
            for &profile in &bench.plan.profiles {
                let settings = Settings {
                    database_url: bench.provisioned.database.url.clone(),
                    pool: bench.plan.pool,
                    threads: bench.plan.threads,
                    profile,
                    definitions: self.folders.definitions.clone(),
                    queries: self.folders.queries.clone(),
                    cpus: bench.plan.cpus.server.clone(),
                    ready_limit: self.ready_limit,
                };
                let (startup, says) =
                    inspection::startup_cost(server, &settings, bench.provisioned, bench.stop)?;
                record.says.push((profile, says));
                subjects.push(Subject {
                    server,
                    settings,
                    startup,
                });
            }
        }
        Ok(subjects)
    }

    fn inspect(
        &mut self,
        bench: &mut Bench<'_>,
        subjects: &[Subject<'_>],
        answers: &[Answers],
    ) -> Result<()> {
        for (workload, answers) in self.workloads.iter().zip(answers) {
            for subject in subjects
                .iter()
                .filter(|subject| subject.server.skips(workload).is_none())
            {
                let inspected = inspection::inspect(
                    subject.server,
                    &subject.settings,
                    (workload, answers),
                    subject.startup,
                    bench.provisioned,
                    bench.stop,
                );
                let inspection =
                    inspected.with_context(|| format!("server `{}`", subject.server.name))?;
                self.campaign.inspections.push(inspection);
            }
        }
        Ok(())
    }

    /// A block is every server once at one rung. The order rotates from block to block, so that over as many blocks
    /// as there are servers each has every place once.
    fn trials(
        &mut self,
        bench: &mut Bench<'_>,
        subjects: &[Subject<'_>],
        answers: &[Answers],
    ) -> Result<()> {
        let plan = bench.plan;
        let planned =
            Duration::from_secs_f64(plan.warmup_seconds + plan.window_seconds) + TRIAL_OVERHEAD;
        let mut progress = Progress::start(self.trial_count(subjects), planned);
        for (workload, answers) in self.workloads.iter().zip(answers) {
            for block in 0..plan.blocks {
                for &connections in &plan.closed {
                    for (position, subject) in rotated(subjects, block).enumerate() {
                        if subject.server.skips(workload).is_some() {
                            continue;
                        }
                        let name = table::label(&subject.server.name, subject.settings.profile);
                        let what = format!(
                            "{} {name}, {connections} connections, block {}",
                            workload.name,
                            block + 1
                        );
                        progress.trial_starts(&what);
                        let place = Place {
                            connections,
                            block,
                            position,
                        };
                        let trial = trial::run(bench, subject, workload, answers, place)?;
                        let rate = trial
                            .window
                            .as_ref()
                            .map_or(0.0, |window| window.requests_per_second);
                        progress.trial_ended(&format!(
                            "{what}: {rate:.0} req/s, {}",
                            trial.verdict.name()
                        ));
                        self.campaign.trials.push(trial);
                        self.results.save(&self.campaign)?;
                    }
                }
            }
        }
        progress.finish();
        Ok(())
    }

    fn trial_count(&self, subjects: &[Subject<'_>]) -> usize {
        let served = |workload| {
            subjects
                .iter()
                .filter(|subject| subject.server.skips(workload).is_none())
                .count()
        };
        let per_rung: usize = self.workloads.iter().map(served).sum();
        per_rung * self.campaign.plan.blocks * self.campaign.plan.closed.len()
    }

    fn close(mut self, ended: Result<()>) -> Result<Verdict> {
        let trials = &self.campaign.trials;
        let Some(gravest) = trials.iter().map(|trial| trial.verdict).max() else {
            return ended.map(|()| Verdict::Valid);
        };
        self.campaign.state = if ended.is_ok() {
            State::Complete
        } else {
            State::Interrupted
        };
        self.results.save(&self.campaign)?;
        for workload in &self.campaign.plan.workloads {
            print_workload(&self.campaign, workload);
        }
        eprintln!("results: {}", self.results.campaign_file().display());
        ended.map(|()| gravest)
    }
}

/// The subjects, starting with another one in each block.
fn rotated<T>(subjects: &[T], block: usize) -> impl Iterator<Item = &T> {
    let start = block % subjects.len().max(1);
    subjects[start..].iter().chain(&subjects[..start])
}

fn print_workload(campaign: &Campaign, workload: &str) {
    let plan = &campaign.plan;
    println!(
        "\n{workload}: closed loop, pool of {}, {} block(s) of {} s after {} s of warm-up; medians over the blocks",
        plan.pool, plan.blocks, plan.window_seconds, plan.warmup_seconds
    );
    println!("{}", table::of_workload(campaign, workload));
    for line in table::notes(campaign, workload) {
        println!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_three_blocks_each_of_three_servers_has_each_place_once() {
        let servers = ["deadpool", "r2d2", "sqlx"];
        let orders: Vec<Vec<_>> = (0..3)
            .map(|block| rotated(&servers, block).collect())
            .collect();
        for place in 0..3 {
            let mut seen: Vec<_> = orders.iter().map(|order| order[place]).collect();
            seen.sort();
            assert_eq!(seen, servers.iter().collect::<Vec<_>>());
        }
    }
}
