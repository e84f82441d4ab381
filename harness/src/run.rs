//! `lanebench run`: from the command line to a finished campaign.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use workloads::{Catalog, Workload};

use crate::attach::{self, AttachArgs};
use crate::campaign::{Ladder, Plan};
use crate::checks::Verdict;
use crate::cpus::CpuPlan;
use crate::environment::sha256;
use crate::folders::{FolderArgs, Folders};
use crate::notice;
use crate::preset::Preset;
use crate::process::{Profile, READY_LIMIT};
use crate::provision::DatabaseArgs;
use crate::results::ResultsFolder;
use crate::rung::{AskedRate, Rung};
use crate::selection::by_name;
use crate::serve::{self, Listen, Serving};
use crate::server::Server;
use crate::session::{Begin, Session};
use crate::signals;
use crate::stdout::OutputArgs;

/// More connections than this are a mistake rather than a measurement.
const MOST_CONNECTIONS: usize = 10_000;
/// A server that takes longer to start is not a service, and a longer window is a mistake.
const LONGEST_SECONDS: f64 = 3600.0;
/// Connections of the closed loop where nothing else is asked for.
const DEFAULT_CLOSED: [usize; 3] = [1, 8, 32];

/// In the place of a server's name.
pub const ALL: &str = "all";

/// Marks a server that is compared with itself.
pub const AGAIN: &str = " (again)";

/// Flags of `lanebench run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Workloads to run, by name (`lanebench list` shows all)
    #[arg(required_unless_present = "resume", value_name = "WORKLOAD")]
    pub names: Vec<String>,

    /// Servers to compare, by name; `all` for every one; one named twice is compared with itself [default:
    /// those that `lanebench list` does not call extra]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// How much to measure
    #[arg(long, value_enum, default_value = "snapshot")]
    pub preset: Preset,

    /// Blocks of every rung, instead of the preset's
    #[arg(long, value_name = "N", help_heading = "Lengths")]
    pub blocks: Option<usize>,

    /// Seconds of warm-up, instead of the preset's
    #[arg(long, value_name = "S", help_heading = "Lengths")]
    pub warmup: Option<f64>,

    /// Seconds of each window, instead of the preset's
    #[arg(long, value_name = "S", help_heading = "Lengths")]
    pub window: Option<f64>,

    /// Connections in each server's pool
    #[arg(long, env = "LANEBENCH_POOL", default_value_t = 16, value_name = "N")]
    pub pool: usize,

    /// Threads of the blocking lanes [default: as many as the pool has connections]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Closed loop: connections of each rung [default: 1,8,32; none if --rates is given]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub closed: Vec<usize>,

    /// Open loop: requests a second of each rung, or shares of the slowest server's capacity, such as 50%,80%
    #[arg(long, value_delimiter = ',', value_name = "R")]
    pub rates: Vec<AskedRate>,

    /// Open loop: connections to send on [default: four times the pool]
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,

    /// Open loop: how the instants of the requests are spread
    #[arg(long, value_enum, default_value = "uniform")]
    pub arrivals: Arrivals,

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

    /// Show the results on a web page, live, and go on showing them until Ctrl-C
    #[arg(long, num_args = 0..=1, default_missing_value = serve::DEFAULT, value_name = "ADDRESS")]
    pub serve: Option<Listen>,

    /// Keep every request of every trial, in Parquet files: observations-*.parquet (docs/data.md)
    #[arg(long)]
    pub records: bool,

    /// Go on with the interrupted campaign in this folder, by its own plan
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["names", "servers", "preset", "blocks", "warmup", "window", "pool", "threads", "closed",
            "rates", "connections", "arrivals", "profile", "seed", "out", "records", "attach"]
    )]
    pub resume: Option<PathBuf>,

    /// Say what would be measured, and that its results could be written; measure nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,

    #[command(flatten)]
    pub attach: AttachArgs,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// The spread of an open loop's instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    /// Equal distances
    Uniform,
    /// Exponential distances: independent users
    Poisson,
}

/// Runs the campaign and prints its tables on stdout. Gives the gravest verdict of its rows.
///
/// # Errors
/// Bad usage, an interruption (what was measured is saved), or a failure of the harness or the database.
pub fn run(args: &RunArgs, stop: &AtomicBool) -> Result<Verdict> {
    args.output.begin();
    let folders = Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    refuse_impossible(args)?;
    let ready_limit = Duration::from_secs_f64(args.ready_seconds);
    // Bound to a name, so that it serves until the end.
    let serving;
    let mut session = match &args.resume {
        Some(folder) => {
            serving = args.serving(folder)?;
            Session::resume(folder, &catalog, folders, &args.database, stop)?
        }
        None => {
            let workloads = chosen_workloads(&args.names, &catalog)?;
            args.database.refuse_writes(&workloads)?;
            let attached = attach::servers(&args.attach.attach, &folders)?;
            let servers = chosen_or_attached(&args.servers, &attached, &folders)?;
            let results = results_folder(args.out.clone(), &folders, &args.names.join("+"))?;
            let plan = plan(args, &workloads, &servers)?;
            if args.dry_run {
                return dry_run(&plan, &results);
            }
            serving = args.serving(results.path())?;
            let begin = Begin {
                plan,
                workloads,
                servers,
                attached,
                results,
            };
            Session::begin(begin, folders, &args.database, stop)?
        }
    };
    let ended = session.measure(ready_limit, stop);
    let verdict = session.close(ended, args.output)?;
    if let Some(serving) = &serving {
        notice::say(&format!("still serving {} (Ctrl-C ends it)", serving.url()));
        signals::wait(stop)?;
    }
    Ok(verdict)
}

impl RunArgs {
    /// The web app for the folder that `results` is in, if it is asked for. Where the database runs, it disturbs the
    /// generator and the servers least.
    fn serving(&self, results: &Path) -> Result<Option<Serving>> {
        let Some(listen) = &self.serve else {
            return Ok(None);
        };
        let results = std::path::absolute(results)
            .with_context(|| format!("no results in {}", results.display()))?;
        let (Some(shelf), Some(name)) = (results.parent(), results.file_name()) else {
            bail!(
                "{}: --serve needs a results folder in another folder",
                results.display()
            )
        };
        let cpus = CpuPlan::for_this_machine()?.database;
        let serving = Serving::start(shelf, listen, "--serve", &cpus)?;
        notice::say(&format!(
            "live at {}",
            serving.live_url(&name.to_string_lossy())
        ));
        Ok(Some(serving))
    }
}

/// The workloads named, each after the one that it is compared with.
///
/// # Errors
/// An unknown name.
pub fn chosen_workloads(names: &[String], catalog: &Catalog) -> Result<Vec<Workload>> {
    let find = |name: &String| {
        by_name("workload", name, &catalog.workloads, |workload| {
            &workload.name
        })
    };
    let mut chosen: Vec<Workload> = Vec::new();
    for name in names {
        let workload = find(name)?;
        let background = workload.background.as_ref();
        let alone = background.and_then(|background| background.alone.as_ref());
        for workload in alone.map(find).transpose()?.into_iter().chain([workload]) {
            if chosen.iter().all(|earlier| earlier.name != workload.name) {
                chosen.push(workload.clone());
            }
        }
    }
    Ok(chosen)
}

/// The servers named; all with the name `all`; those that every run compares, if none is named.
///
/// # Errors
/// An unknown name, or a `server.toml` that is refused.
pub fn chosen_servers(names: &[String], folders: &Folders) -> Result<Vec<Server>> {
    let all = Server::read_all(folders)?;
    match names {
        [] => return Ok(all.into_iter().filter(|server| !server.extra).collect()),
        [name] if name == ALL => return Ok(all),
        _ => {}
    }
    let mut chosen: Vec<Server> = Vec::new();
    for name in names {
        let mut server = by_name("server", name, &all, |server| &server.name)?.clone();
        while chosen.iter().any(|earlier| earlier.name == server.name) {
            server.name.push_str(AGAIN);
        }
        chosen.push(server);
    }
    Ok(chosen)
}

/// Those attached to, if any are; of these the ones that are named, if any are named.
///
/// # Errors
/// As [`chosen_servers`]; a server that is named and not attached to.
pub fn chosen_or_attached(
    names: &[String],
    attached: &[Server],
    folders: &Folders,
) -> Result<Vec<Server>> {
    if attached.is_empty() {
        return chosen_servers(names, folders);
    }
    match names {
        [] => return Ok(attached.to_vec()),
        [name] if name == ALL => return Ok(attached.to_vec()),
        _ => {}
    }
    let named = |name: &String| {
        let found = attached.iter().find(|server| server.name == *name);
        found
            .cloned()
            .with_context(|| format!("server `{name}` is not attached to (--attach)"))
    };
    names.iter().map(named).collect()
}

/// Says what a plan comes to, on stderr.
fn dry_run(plan: &Plan, results: &ResultsFolder) -> Result<Verdict> {
    results.refuse_unwritable()?;
    let rungs: usize = plan.ladders.iter().map(|ladder| ladder.rungs.len()).sum();
    let rungs = rungs + plan.shares.len() * plan.ladders.len();
    let trials = rungs * plan.servers.len() * plan.profiles.len() * plan.blocks;
    let workloads: Vec<&str> = plan
        .ladders
        .iter()
        .map(|ladder| ladder.workload.as_str())
        .collect();
    eprintln!(
        "would measure {} with {}: {trials} trials of {} s after {} s of warm-up, pool of {}, preset {}",
        workloads.join(", "),
        plan.servers.join(", "),
        plan.window_seconds,
        plan.warmup_seconds,
        plan.pool,
        plan.preset
    );
    Ok(Verdict::Valid)
}

fn refuse_impossible(args: &RunArgs) -> Result<()> {
    let counts = [
        ("--pool", Some(args.pool)),
        ("--threads", args.threads),
        ("--connections", args.connections),
        ("--blocks", args.blocks),
    ];
    let rungs = args
        .closed
        .iter()
        .map(|&connections| ("--closed", Some(connections)));
    for (flag, count) in counts.into_iter().chain(rungs) {
        refuse_count(flag, count)?;
    }
    refuse_seconds("--ready-seconds", Some(args.ready_seconds), 0.001)?;
    refuse_seconds("--warmup", args.warmup, 0.0)?;
    refuse_seconds("--window", args.window, 0.1)
}

/// # Errors
/// A number of connections, threads or blocks that makes no sense.
pub fn refuse_count(flag: &str, count: Option<usize>) -> Result<()> {
    match count {
        Some(count) if !(1..=MOST_CONNECTIONS).contains(&count) => {
            bail!("{flag} {count}: it may be 1 to {MOST_CONNECTIONS}")
        }
        _ => Ok(()),
    }
}

/// # Errors
/// A time below `least`, above an hour, or not a number.
pub fn refuse_seconds(flag: &str, seconds: Option<f64>, least: f64) -> Result<()> {
    match seconds {
        Some(seconds) if !(least..=LONGEST_SECONDS).contains(&seconds) => {
            bail!("{flag} {seconds}: it may be {least} to {LONGEST_SECONDS}")
        }
        _ => Ok(()),
    }
}

/// The folder asked for, else one below `results` with the time in its name.
///
/// # Errors
/// There is something in it.
pub fn results_folder(
    asked: Option<PathBuf>,
    folders: &Folders,
    name: &str,
) -> Result<ResultsFolder> {
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S");
    let default = || folders.root.join("results").join(format!("{time}-{name}"));
    ResultsFolder::at(asked.unwrap_or_else(default))
}

fn plan(args: &RunArgs, workloads: &[Workload], servers: &[Server]) -> Result<Plan> {
    let preset = args.preset.length();
    let blocks = args.blocks.unwrap_or(preset.blocks);
    let alone = servers.len() * args.profile.len() < 2;
    Ok(Plan {
        ladders: workloads
            .iter()
            .map(|workload| Ladder {
                workload: workload.name.clone(),
                definition: definition(workload),
                rungs: rungs(args, workload, workloads),
                alone: workload
                    .background
                    .as_ref()
                    .and_then(|background| background.alone.clone()),
            })
            .collect(),
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        profiles: args.profile.clone(),
        preset: args.preset.name().to_owned(),
        pool: args.pool,
        threads: args.threads,
        blocks,
        // Without a second server there is no ratio to be precise about.
        most_blocks: match args.blocks {
            None if !alone => preset.most_blocks,
            _ => blocks,
        },
        warmup_seconds: args.warmup.unwrap_or(preset.warmup.as_secs_f64()),
        window_seconds: args.window.unwrap_or(preset.window.as_secs_f64()),
        poisson: args.arrivals == Arrivals::Poisson,
        seed: args.seed,
        cpus: match servers.iter().any(|server| server.attached.is_some()) {
            true => CpuPlan::of_the_generator_alone()?,
            false => CpuPlan::for_this_machine()?,
        },
        shares: args
            .rates
            .iter()
            .filter_map(|rate| match rate {
                AskedRate::Share(share) => Some(*share),
                AskedRate::Absolute(_) => None,
            })
            .collect(),
        open_connections: args.connections.unwrap_or(4 * args.pool),
        records: args.records,
    })
}

/// See [`Ladder::definition`].
pub fn definition(workload: &Workload) -> String {
    let Workload {
        shape, background, ..
    } = workload;
    sha256(format!("{shape:?} {background:?}").as_bytes())
}

/// Without the rungs of the open loop whose rate is a share: they are added once the capacity is known.
fn rungs(args: &RunArgs, workload: &Workload, all: &[Workload]) -> Vec<Rung> {
    let connections = args.connections.unwrap_or(4 * args.pool);
    let closed: &[usize] = match (args.closed.as_slice(), args.rates.as_slice()) {
        ([], []) => match usual_rate(workload, all) {
            Some(rate) => return vec![Rung::Open { rate, connections }],
            None => &DEFAULT_CLOSED,
        },
        (closed, _) => closed,
    };
    let closed = closed
        .iter()
        .map(|&connections| Rung::Closed { connections });
    let open = args.rates.iter().filter_map(|&rate| match rate {
        AskedRate::Absolute(rate) => Some(Rung::Open { rate, connections }),
        AskedRate::Share(_) => None,
    });
    let mut rungs: Vec<Rung> = Vec::new();
    for rung in closed.chain(open) {
        if !rungs.contains(&rung) {
            rungs.push(rung);
        }
    }
    rungs
}

/// What is measured beside another workload has a rate of its own, and so has the one it is compared with.
fn usual_rate(workload: &Workload, all: &[Workload]) -> Option<f64> {
    let compared = |other: &&Workload| {
        let background = other.background.as_ref();
        other.name == workload.name
            || background
                .is_some_and(|background| background.alone.as_ref() == Some(&workload.name))
    };
    let mut rates = all
        .iter()
        .filter(compared)
        .filter_map(|other| other.background.as_ref()?.rate);
    rates.next().map(f64::from)
}
