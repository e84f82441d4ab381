//! What a campaign records of its servers, and that nothing has changed when it is gone on with.

use anyhow::{Result, bail};
use workloads::Workload;

use crate::attach::Attachment;
use crate::campaign::{Campaign, ServerRecord};
use crate::comparable::changes;
use crate::cpus::CpuPlan;
use crate::environment;
use crate::rig::Rig;
use crate::run::definition;
use crate::server::Server;

pub(crate) fn server_records(servers: &[Server], workloads: &[Workload]) -> Vec<ServerRecord> {
    // One program with another number of threads is another server.
    let what = |server: &Server| (server.run.clone(), server.threads);
    let same = |index: usize| {
        servers[..index]
            .iter()
            .find(|earlier| what(earlier) == what(&servers[index]))
    };
    let record = |(index, server): (usize, &Server)| ServerRecord {
        name: server.name.clone(),
        lane: server.lane,
        about: server.about.clone(),
        same_as: same(index).map(|earlier| earlier.name.clone()),
        binary_sha256: server.programs().find_map(environment::sha256_of),
        skips: workloads
            .iter()
            .filter_map(|workload| skipped(server, workload))
            .collect(),
        attached: server.attached.as_ref().map(Attachment::to_string),
        says: Vec::new(),
    };
    servers.iter().enumerate().map(record).collect()
}

/// The workload's name and why the server does not serve it, if it does not.
fn skipped(server: &Server, workload: &Workload) -> Option<(String, String)> {
    let why = server.skips(workload)?;
    Some((workload.name.clone(), why.to_owned()))
}

/// One campaign, one machine, one set of programs, statements, rows and settings.
pub(super) fn refuse_changes(campaign: &Campaign, workloads: &[Workload], rig: &Rig) -> Result<()> {
    let mut now = campaign.clone();
    for (ladder, workload) in now.plan.ladders.iter_mut().zip(workloads) {
        ladder.definition = definition(workload);
    }
    now.plan.cpus = CpuPlan::for_this_machine()?;
    now.environment = rig.environment();
    now.database = rig.provisioned.record();
    now.servers = server_records(&rig.servers, workloads);
    let changes = changes(campaign, &now);
    if !changes.is_empty() {
        bail!("{}", changes.join("; "));
    }
    Ok(())
}
