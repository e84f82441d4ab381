//! `lanebench verify`: every server against every workload in both profiles, without load.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;
use workloads::{Catalog, Shape, Workload};

use crate::attach::{self, AttachArgs};
use crate::checks::Verdict;
use crate::expected::Answers;
use crate::folders::{FolderArgs, Folders};
use crate::inspection::{self, Inspection, StartupCost};
use crate::live;
use crate::notice;
use crate::process::{Profile, RunningServer, Settings};
use crate::provision::{DatabaseArgs, Provisioned};
use crate::rig::build;
use crate::run::{ALL, chosen_or_attached};
use crate::selection::by_name;
use crate::server::Server;
use crate::signals::Interrupted;
use crate::stdout::{OutputArgs, say_json};
use crate::table::{each, label};

/// Flags of `lanebench verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// Workloads to verify, by name [default: all]
    #[arg(
        short = 'w',
        long = "workload",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub names: Vec<String>,

    /// Servers to verify, by name [default: all]
    #[arg(short, long = "server", value_delimiter = ',', value_name = "NAME")]
    pub servers: Vec<String>,

    /// Connections in each server's pool
    #[arg(long, env = "LANEBENCH_POOL", default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub pool: u16,

    /// Seed of the requests' parameters
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    #[command(flatten)]
    pub attach: AttachArgs,

    #[command(flatten)]
    pub database: DatabaseArgs,

    #[command(flatten)]
    pub folders: FolderArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a workload's requests have to be answered with.
enum Awaited<'a> {
    Answers(Answers),
    /// Whatever is sent to this channel.
    Events(&'a str),
}

impl Awaited<'_> {
    fn of<'a>(workload: &'a Workload, url: &str, seed: u64) -> Result<Awaited<'a>> {
        match &workload.shape {
            Shape::Live { channel } => Ok(Awaited::Events(channel)),
            _ => Answers::derive(workload, url, seed).map(Awaited::Answers),
        }
    }
}

/// What one cell of the table says.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verified {
    Counted(Inspection),
    /// So many events came to subscribers.
    Delivered(usize),
    NotSupported(String),
    Failed(String),
}

/// Prints a row for each workload, server and profile.
///
/// # Errors
/// Bad usage, an interruption, or a failure of the database. A server's failure is a row.
pub fn run(args: &VerifyArgs, stop: &AtomicBool) -> Result<Verdict> {
    args.output.begin();
    let folders = &Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    let workloads = chosen(&args.names, catalog)?;
    args.database.refuse_writes(&workloads)?;
    let named = match args.servers.as_slice() {
        [] => &[ALL.to_owned()][..],
        named => named,
    };
    let attached = attach::servers(&args.attach.attach, folders)?;
    let servers = chosen_or_attached(named, &attached, folders)?;
    build(&servers, folders, stop)?;
    let sessions = attach::session_names(&attached)?;
    let mut provisioned = Provisioned::open(&args.database, usize::from(args.pool), stop)?;
    provisioned.monitor.allow_idle(sessions);
    let answers = workloads
        .iter()
        .map(|workload| Awaited::of(workload, &provisioned.database.url, args.seed))
        .collect::<Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for server in &servers {
        for profile in profiles(server)? {
            let database = (provisioned.database.url.as_str(), usize::from(args.pool));
            let settings = Settings::of(server, profile, folders, database);
            let subject = Subject {
                server,
                settings,
                provisioned: &mut provisioned,
                stop,
                written: true,
            };
            rows.extend(subject.verify(&workloads, &answers)?);
        }
    }
    if args.output.json {
        say_json(&rows)?;
    } else {
        print(&rows);
    }
    let failed = rows
        .iter()
        .any(|row| matches!(row.verified, Verified::Failed(_)));
    Ok(if failed {
        Verdict::Failed
    } else {
        Verdict::Valid
    })
}

/// Both; of a server that is attached to the one it runs in.
fn profiles(server: &Server) -> Result<Vec<Profile>> {
    let Some(attachment) = &server.attached else {
        return Ok(vec![Profile::Parity, Profile::Defaults]);
    };
    let own = RunningServer::attach(server, attachment)?.profile();
    let own =
        own.with_context(|| format!("server `{}`: /about does not tell its profile", server.name))?;
    Ok(vec![own])
}

fn chosen(names: &[String], catalog: Catalog) -> Result<Vec<Workload>> {
    if names.is_empty() {
        return Ok(catalog.workloads);
    }
    names
        .iter()
        .map(|name| {
            by_name("workload", name, &catalog.workloads, |workload| {
                &workload.name
            })
            .cloned()
        })
        .collect()
}

#[derive(Serialize)]
struct Row {
    workload: String,
    server: String,
    /// What was seen of it.
    #[serde(rename = "result")]
    verified: Verified,
}

/// One server in one profile.
struct Subject<'a> {
    server: &'a Server,
    settings: Settings,
    provisioned: &'a mut Provisioned,
    stop: &'a AtomicBool,
    /// Whether the workload inspected before may have changed rows.
    written: bool,
}

impl Subject<'_> {
    fn verify(mut self, workloads: &[Workload], awaited: &[Awaited<'_>]) -> Result<Vec<Row>> {
        notice::say(&format!(
            "verifying {}",
            label(&self.server.name, self.settings.profile)
        ));
        let startup =
            inspection::startup_cost(self.server, &self.settings, self.provisioned, self.stop);
        let startup = startup.map(|(startup, _)| startup);
        let mut rows = Vec::new();
        for (workload, awaited) in workloads.iter().zip(awaited) {
            let verified = match (self.server.skips(workload), &startup) {
                (Some(reason), _) => Verified::NotSupported(reason.to_owned()),
                (None, Err(error)) => failed(error)?,
                (None, Ok(startup)) => match awaited {
                    Awaited::Answers(answers) => self.inspect(workload, answers, *startup)?,
                    Awaited::Events(channel) => self.listen(workload, channel)?,
                },
            };
            let server = label(&self.server.name, self.settings.profile);
            rows.push(Row {
                workload: workload.name.clone(),
                server,
                verified,
            });
        }
        Ok(rows)
    }

    fn inspect(
        &mut self,
        workload: &Workload,
        answers: &Answers,
        startup: StartupCost,
    ) -> Result<Verified> {
        if workload.writes() || self.written {
            self.provisioned.settle(self.stop)?;
        }
        self.written = workload.writes();
        let subject = (workload, answers);
        match inspection::inspect(
            self.server,
            &self.settings,
            subject,
            startup,
            self.provisioned,
            self.stop,
        ) {
            Ok(inspection) => Ok(Verified::Counted(inspection)),
            Err(error) => failed(&error),
        }
    }

    fn listen(&mut self, workload: &Workload, channel: &str) -> Result<Verified> {
        if self.server.attached.is_some() {
            let why = "subscribers want a server that is started with threads for them";
            return Ok(Verified::NotSupported(why.to_owned()));
        }
        let subject = (self.server, &self.settings);
        match live::verify(subject, (workload, channel), self.provisioned, self.stop) {
            Ok(deliveries) => Ok(Verified::Delivered(deliveries)),
            Err(error) => failed(&error),
        }
    }
}

/// A server's failure, as a row; an interruption is passed on.
fn failed(error: &anyhow::Error) -> Result<Verified> {
    if error.is::<Interrupted>() {
        return Err(Interrupted.into());
    }
    Ok(Verified::Failed(format!("{error:#}")))
}

fn print(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "workload",
        "server",
        "answers",
        "statements/req",
        "transactions/req",
        "round trips/req",
        "result",
    ]);
    for Row {
        workload,
        server,
        verified,
    } in rows
    {
        let dash = String::from("-");
        let cells = match verified {
            Verified::Counted(inspection) => [
                inspection.distinct_requests.to_string(),
                each(inspection.statements_per_request),
                each(inspection.transactions_per_request),
                each(inspection.round_trips_per_request),
                "ok".to_owned(),
            ],
            Verified::Delivered(events) => [
                events.to_string(),
                dash.clone(),
                dash.clone(),
                dash,
                "ok".to_owned(),
            ],
            Verified::NotSupported(why) => [
                dash.clone(),
                dash.clone(),
                dash.clone(),
                dash,
                format!("not supported: {why}"),
            ],
            Verified::Failed(why) => [
                dash.clone(),
                dash.clone(),
                dash.clone(),
                dash,
                format!("FAILED: {why}"),
            ],
        };
        table.add_row([workload, server].into_iter().chain(&cells));
    }
    println!("{}", table.trim_fmt());
}
