//! `lanebench capacity`: the highest rate at which each lane meets a service level objective.

mod record;
mod search;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use clap::Args;
use workloads::{Catalog, Workload};

use record::SCHEMA;
pub use record::{CapacityRecord, RateRecord, SearchRecord};
use search::Search;

use crate::campaign::{Ladder, Plan};
use crate::checks::Verdict;
use crate::cpus::CpuPlan;
use crate::folders::{FolderArgs, Folders};
use crate::process::Profile;
use crate::provision::DatabaseArgs;
use crate::rig::Rig;
use crate::run::{self, Arrivals};
use crate::selection::by_name;
use crate::server::Server;
use crate::session::server_records;
use crate::slo::Slo;
use crate::stdout::OutputArgs;

/// Flags of `lanebench capacity`.
#[derive(Debug, Clone, Args)]
pub struct CapacityArgs {
    /// The workload, by name (`lanebench list` shows all)
    #[arg(value_name = "WORKLOAD")]
    pub name: String,

    /// What has to be met: a percentile of the response times, counted from the intended instant, and its limit
    #[arg(long, value_name = "SLO", default_value = "p99<25ms")]
    pub slo: Slo,

    /// Servers, by name [default: all]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// Connections in each server's pool
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub pool: usize,

    /// Threads of the blocking lanes [default: as many as the pool has connections]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Connections to send on [default: eight times the pool]
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,

    /// How the instants of the requests are spread
    #[arg(long, value_enum, default_value = "poisson")]
    pub arrivals: Arrivals,

    /// Settings of the pools
    #[arg(long, value_enum, default_value = "parity")]
    pub profile: Profile,

    /// Seconds of warm-up of every trial
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    pub warmup: f64,

    /// Seconds of every window; more where the percentile would rest on fewer than ten requests beyond it
    #[arg(long, default_value_t = 3.0, value_name = "S")]
    pub window: f64,

    /// Reruns of the highest rate that passes and of the lowest that fails
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub confirmations: usize,

    /// Seed of the requests' parameters and instants
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    /// Folder for the results [default: results/<time>-capacity-<workload>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// Searches every server's capacity and prints it.
///
/// # Errors
/// Bad usage, an interruption (what was measured is saved), or a failure of the harness, the database or a server.
pub fn run(args: &CapacityArgs, stop: &AtomicBool) -> Result<Verdict> {
    args.output.begin();
    let folders = Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    refuse_impossible(args)?;
    let workload = by_name("workload", &args.name, &catalog.workloads, |workload| {
        &workload.name
    })?;
    args.database.refuse_writes([workload])?;
    let workload = workload.clone();
    let servers = run::chosen_servers(&args.servers, &folders)?;
    let results = run::results_folder(
        args.out.clone(),
        &folders,
        &format!("capacity-{}", args.name),
    )?;
    let plan = plan(args, &workload, &servers)?;
    let mut rig = Rig::open(&plan, servers, folders, &args.database, &mut |_| {}, stop)?;
    let generator = rig.generator(&plan, plan.open_connections)?;
    let mut search = Search {
        record: CapacityRecord {
            schema: SCHEMA,
            lanebench: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            command: std::env::args().collect(),
            slo: args.slo,
            confirmations: args.confirmations,
            environment: rig.environment(),
            database: rig.provisioned.record(),
            servers: server_records(&rig.servers, std::slice::from_ref(&workload)),
            searches: Vec::new(),
            trials: Vec::new(),
            plan,
        },
        results,
        greatest: 0.6 * generator.null_server_per_second,
        workload,
    };
    let ended = search.all(&mut rig, stop);
    search.close(ended, args.output)
}

fn refuse_impossible(args: &CapacityArgs) -> Result<()> {
    for (flag, count) in [
        ("--pool", Some(args.pool)),
        ("--threads", args.threads),
        ("--connections", args.connections),
    ] {
        run::refuse_count(flag, count)?;
    }
    run::refuse_seconds("--warmup", Some(args.warmup), 0.0)?;
    run::refuse_seconds("--window", Some(args.window), 0.1)?;
    if !(2..=100).contains(&args.confirmations) {
        bail!(
            "--confirmations {}: it may be 2 to 100; one trial has no spread to judge by",
            args.confirmations
        );
    }
    Ok(())
}

fn plan(args: &CapacityArgs, workload: &Workload, servers: &[Server]) -> Result<Plan> {
    Ok(Plan {
        ladders: vec![Ladder {
            workload: workload.name.clone(),
            definition: run::definition(workload),
            rungs: Vec::new(),
            alone: None,
        }],
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        profiles: vec![args.profile],
        preset: "capacity".to_owned(),
        pool: args.pool,
        threads: args.threads,
        blocks: 1,
        most_blocks: 1,
        warmup_seconds: args.warmup,
        window_seconds: args.window,
        poisson: args.arrivals == Arrivals::Poisson,
        seed: args.seed,
        cpus: CpuPlan::for_this_machine()?,
        shares: Vec::new(),
        open_connections: args.connections.unwrap_or(8 * args.pool),
        records: false,
    })
}
