//! `lanebench list`: what there is to run.

use anyhow::Result;
use clap::{Args, ValueEnum};
use workloads::{Catalog, Shape};

use crate::folders::{FolderArgs, Folders};
use crate::preset::Preset;
use crate::server::Server;

/// Flags of `lanebench list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub folders: FolderArgs,
}

/// Prints workloads, shapes, servers and presets on stdout.
///
/// # Errors
/// A definition that is refused.
pub fn run(args: &ListArgs) -> Result<()> {
    let folders = Folders::find(&args.folders)?;
    let catalog = Catalog::read(&folders.definitions, &folders.queries)?;
    let workloads = catalog.workloads.iter().map(|workload| {
        (
            workload.name.clone(),
            format!("{} [{}]", workload.about, workload.shape.name()),
        )
    });
    print("Workloads", workloads);
    print(
        "Shapes",
        Shape::NAMES
            .iter()
            .map(|(name, about)| ((*name).to_owned(), (*about).to_owned())),
    );
    let servers = Server::read_all(&folders)?;
    print(
        "Servers",
        servers.iter().map(|server| {
            let extra = if server.extra { ", extra" } else { "" };
            (
                server.name.clone(),
                format!("{} [{}{extra}]", server.about, server.lane.name()),
            )
        }),
    );
    let presets = Preset::value_variants()
        .iter()
        .filter_map(Preset::to_possible_value);
    print(
        "Presets",
        presets.map(|preset| {
            let about = preset
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            (preset.get_name().to_owned(), about)
        }),
    );
    Ok(())
}

fn print(title: &str, rows: impl Iterator<Item = (String, String)>) {
    println!("{title}");
    for (name, about) in rows {
        println!("  {name:<20} {about}");
    }
    println!();
}
