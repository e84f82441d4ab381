//! `lanebench live`: how each server keeps its subscribers informed, by server-sent events from LISTEN and NOTIFY.

mod events;
mod publisher;
mod record;
mod stream;
mod subscribers;
mod trial;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use workloads::{Catalog, Shape, Workload};

use record::{LiveRecord, Row, SCHEMA, Unmeasured, text};
use trial::Aim;

use crate::checks::Verdict;
use crate::cpus::{self, CpuPlan};
use crate::environment::Environment;
use crate::folders::{FolderArgs, Folders};
use crate::notice;
use crate::process::{Profile, Settings};
use crate::progress::{Ahead, Progress, Step, Work};
use crate::provision::{DatabaseArgs, Provisioned};
use crate::results::ResultsFolder;
use crate::rig::{build, provision};
use crate::run::{self, chosen_servers, refuse_count};
use crate::selection::by_name;
use crate::server::Server;
use crate::session::server_records;
use crate::signals::Interrupted;
use crate::stdout::say;
use crate::table::label;

/// More events than this are a mistake.
const MOST_EVENTS: usize = 1_000_000;
const MOST_PER_SECOND: f64 = 100_000.0;
/// What a trial takes beside its events: to start, connect, rest and end.
const AROUND: Duration = Duration::from_secs(3);
/// Of `lanebench verify`.
const VERIFY_SUBSCRIBERS: usize = 4;
const VERIFY_EVENTS: usize = 20;
const VERIFY_PER_SECOND: f64 = 200.0;

/// Flags of `lanebench live`.
#[derive(Debug, Clone, Args)]
pub struct LiveArgs {
    /// The workload, by name; one of the shape `live` (`lanebench list` shows all)
    #[arg(value_name = "WORKLOAD", default_value = "feed-live")]
    pub name: String,

    /// Servers, by name [default: all]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// Subscribers of each trial. A blocking server gets as many threads and two more, since it may need one for each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1000], value_name = "N")]
    pub subscribers: Vec<usize>,

    /// Events that every subscriber has to get
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub events: usize,

    /// Events a second
    #[arg(long, default_value_t = 50.0, value_name = "R")]
    pub rate: f64,

    /// Connections in each server's pool, which listening does not use
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub pool: usize,

    /// Settings of the pools
    #[arg(long, value_enum, default_value = "parity")]
    pub profile: Profile,

    /// Folder for the results [default: results/<time>-<workload>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,
}

/// Measures every server with each number of subscribers, and prints a table.
///
/// # Errors
/// Bad usage, an interruption (what was measured is saved), or a failure of the database. A server's failure is a row.
pub fn run(args: &LiveArgs, stop: &AtomicBool) -> Result<Verdict> {
    let folders = Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    refuse_impossible(args)?;
    let (workload, channel) = chosen(&args.name, &catalog)?;
    let servers = match args.servers.as_slice() {
        [] => Server::read_all(&folders)?,
        names => chosen_servers(names, &folders)?,
    };
    let results = run::results_folder(args.out.clone(), &folders, &args.name)?;
    build(&servers, &folders, stop)?;
    let cpus = CpuPlan::for_this_machine()?;
    // One session more: the one that listens.
    let provisioned = provision(&cpus, &args.database, args.pool + 1, stop)?;
    // The thread that reads, and those it makes.
    cpus::move_process(std::process::id(), &cpus.generator).context("cannot pin the generator")?;
    let record = LiveRecord {
        schema: SCHEMA,
        lanebench: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
        command: std::env::args().collect(),
        workload: workload.name.clone(),
        channel: channel.to_owned(),
        environment: Environment::read(&folders.root),
        database: provisioned.record(),
        servers: server_records(&servers, std::slice::from_ref(workload)),
        rows: Vec::new(),
        cpus,
    };
    let mut live = Live {
        args,
        folders,
        workload,
        channel,
        provisioned,
        record,
        results,
    };
    let ended = live.all(&servers, stop);
    live.close(ended)
}

fn refuse_impossible(args: &LiveArgs) -> Result<()> {
    for count in &args.subscribers {
        refuse_count("--subscribers", Some(*count))?;
    }
    refuse_count("--pool", Some(args.pool))?;
    if !(1..=MOST_EVENTS).contains(&args.events) {
        bail!("--events {}: it may be 1 to {MOST_EVENTS}", args.events);
    }
    if !(args.rate > 0.0 && args.rate <= MOST_PER_SECOND) {
        bail!(
            "--rate {}: it may be up to {MOST_PER_SECOND} events a second, and more than 0",
            args.rate
        );
    }
    Ok(())
}

/// The workload of a name, and its channel.
fn chosen<'a>(name: &str, catalog: &'a Catalog) -> Result<(&'a Workload, &'a str)> {
    let workload = by_name("workload", name, &catalog.workloads, |workload| {
        &workload.name
    })?;
    match &workload.shape {
        Shape::Live { channel } => Ok((workload, channel)),
        other => bail!(
            "workload `{name}` is of the shape `{}`, which has requests rather than subscribers: `lanebench run {name}` \
             measures it",
            other.name()
        ),
    }
}

/// A run of the command.
struct Live<'a> {
    args: &'a LiveArgs,
    folders: Folders,
    workload: &'a Workload,
    channel: &'a str,
    provisioned: Provisioned,
    record: LiveRecord,
    results: ResultsFolder,
}

impl Live<'_> {
    fn all(&mut self, servers: &[Server], stop: &AtomicBool) -> Result<()> {
        let sending = Duration::from_secs_f64(self.args.events as f64 / self.args.rate);
        let step = |rung: usize| Step {
            work: Work::Trial,
            ladder: 0,
            rung,
        };
        let mut progress = Progress::start();
        let ahead = (0..self.args.subscribers.len()).map(|rung| Ahead {
            step: step(rung),
            count: servers.len(),
            planned: AROUND + sending,
        });
        progress.reckon(ahead.collect());
        for server in servers {
            for (rung, &subscribers) in self.args.subscribers.iter().enumerate() {
                let name = label(&server.name, self.args.profile);
                let what = format!("{name}, {subscribers} subscribers");
                progress.step_starts(step(rung), &what);
                let row = self.row(server, subscribers, stop)?;
                progress.trial_ended(&format!("{what}: {}", row.summary()));
                self.record.rows.push(row);
                self.results.write("live.json", &self.record)?;
            }
        }
        progress.finish();
        Ok(())
    }

    fn row(&mut self, server: &Server, subscribers: usize, stop: &AtomicBool) -> Result<Row> {
        let unmeasured = |reason: String| Unmeasured {
            server: server.name.clone(),
            profile: self.args.profile,
            subscribers,
            reason,
        };
        let skips = server.skips(self.workload).map(str::to_owned);
        if let Some(reason) = skips.or_else(|| trial::too_few_threads(server, subscribers)) {
            return Ok(Row::NotSupported(unmeasured(reason)));
        }
        let aim = Aim {
            workload: &self.workload.name,
            channel: self.channel,
            subscribers,
            events: self.args.events,
            per_second: self.args.rate,
        };
        let url = &self.provisioned.database.url;
        let settings = Settings {
            threads: trial::threads(server, self.args.pool, subscribers),
            cpus: self.record.cpus.server.clone(),
            ..Settings::of(
                server,
                self.args.profile,
                &self.folders,
                (url, self.args.pool),
            )
        };
        self.provisioned.monitor.wait_until_alone(stop)?;
        match trial::run(server, &settings, aim, &self.provisioned.run_folder, stop) {
            Ok(measured) => Ok(Row::Measured(measured)),
            Err(error) if error.is::<Interrupted>() => Err(error),
            Err(error) => Ok(Row::Failed(unmeasured(format!("{error:#}")))),
        }
    }

    /// Prints what there is, also of a run that was interrupted.
    fn close(self, ended: Result<()>) -> Result<Verdict> {
        let rows = &self.record.rows;
        if !rows.is_empty() {
            say(&text(rows));
            notice::say(&format!("results: {}", self.results.path().display()));
        }
        ended?;
        Ok(match rows.iter().any(Row::is_failed) {
            true => Verdict::Failed,
            false => Verdict::Valid,
        })
    }
}

/// A few events to a few subscribers, for `lanebench verify`. Gives how many deliveries there were.
///
/// # Errors
/// The server cannot be started, an event did not come as it should, or it does not drain.
pub fn verify(
    (server, settings): (&Server, &Settings),
    (workload, channel): (&Workload, &str),
    provisioned: &mut Provisioned,
    stop: &AtomicBool,
) -> Result<usize> {
    let aim = Aim {
        workload: &workload.name,
        channel,
        subscribers: VERIFY_SUBSCRIBERS,
        events: VERIFY_EVENTS,
        per_second: VERIFY_PER_SECOND,
    };
    let settings = Settings {
        threads: trial::threads(server, settings.pool, aim.subscribers),
        ..settings.clone()
    };
    provisioned.monitor.wait_until_alone(stop)?;
    let measured = trial::run(server, &settings, aim, &provisioned.run_folder, stop)?;
    match measured.fault {
        None => Ok(measured.delivered),
        Some(fault) => bail!("{fault}"),
    }
}
