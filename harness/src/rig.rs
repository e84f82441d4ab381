//! What every measuring command sets up: servers that are built, a database that is open, CPUs that are shared out.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use workloads::Workload;

use crate::campaign::{Plan, Trial};
use crate::cpus::{self, CpuPlan};
use crate::environment::Environment;
use crate::expected::Answers;
use crate::folders::Folders;
use crate::generator::GeneratorRecord;
use crate::notice;
use crate::provision::{DatabaseArgs, Provisioned};
use crate::server::Server;
use crate::signals;
use crate::subject::Subject;
use crate::trial::{self, Bench, Place, Witness};

/// Dropping it ends what was started for it.
#[derive(Debug)]
pub struct Rig {
    pub folders: Folders,
    pub servers: Vec<Server>,
    pub provisioned: Provisioned,
}

impl Rig {
    /// Builds the servers and opens the database; a private one goes to its CPUs. `says` hears what is being done.
    ///
    /// # Errors
    /// A build fails, there is no database or it has no room for the pool, or an interruption.
    pub fn open(
        plan: &Plan,
        servers: Vec<Server>,
        folders: Folders,
        database: &DatabaseArgs,
        says: &mut dyn FnMut(&str),
        stop: &AtomicBool,
    ) -> Result<Rig> {
        says("building the servers");
        build(&servers, &folders, stop)?;
        says("starting and seeding the database");
        Ok(Rig {
            provisioned: provision(&plan.cpus, database, plan.pool, stop)?,
            folders,
            servers,
        })
    }

    /// What the generator can do at best with as many connections.
    ///
    /// # Errors
    /// The CPUs of the plan may not be used, or no port is free.
    pub fn generator(&self, plan: &Plan, connections: usize) -> Result<GeneratorRecord> {
        let generator = GeneratorRecord::measure(&plan.cpus, connections)?;
        notice::say(&format!("generator: {}", generator.describe()));
        if let Some(warning) = generator.warning() {
            notice::say(&warning);
        }
        Ok(generator)
    }

    pub fn environment(&self) -> Environment {
        Environment::read(&self.folders.root)
    }

    /// Every server in every profile, each started once without a request.
    ///
    /// # Errors
    /// A server does not keep its contract, or the database is lost.
    pub fn subjects(
        &mut self,
        plan: &Plan,
        ready_limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<Subject>> {
        let mut subjects = Vec::new();
        for server in &self.servers {
            for &profile in &plan.profiles {
                let how = (plan, &self.folders, ready_limit);
                let provisioned = &mut self.provisioned;
                subjects.push(Subject::prepare(server, profile, how, provisioned, stop)?);
            }
        }
        Ok(subjects)
    }

    /// One trial on a database that has been brought back to its seeded state.
    ///
    /// # Errors
    /// As [`trial::run`].
    pub fn trial(
        &mut self,
        plan: &Plan,
        subject: &Subject,
        of: (&Workload, &Answers),
        place: Place,
        witness: Witness<'_>,
        stop: &AtomicBool,
    ) -> Result<Trial> {
        self.provisioned.settle(stop)?;
        let mut bench = Bench {
            plan,
            provisioned: &mut self.provisioned,
            stop,
        };
        trial::run(&mut bench, subject, of, place, witness)
    }
}

/// Opens the database, with room for so many connections; a private one goes to its CPUs.
///
/// # Errors
/// There is no database or it has no room, its CPUs may not be used, or an interruption.
pub fn provision(
    cpus: &CpuPlan,
    database: &DatabaseArgs,
    connections: usize,
    stop: &AtomicBool,
) -> Result<Provisioned> {
    notice::say(&format!("CPUs: {}", cpus.describe()));
    let provisioned = Provisioned::open(database, connections, stop)?;
    let database = &provisioned.database;
    if let Some(postmaster) = database.postmaster_pid.filter(|_| database.is_private()) {
        cpus::move_family(postmaster, &cpus.database)
            .context("cannot pin PostgreSQL to its CPUs")?;
    }
    Ok(provisioned)
}

/// Builds each server by itself: one build of the whole workspace would give every server the features that any of
/// them asks for.
///
/// # Errors
/// A build fails, or is interrupted.
pub fn build(servers: &[Server], folders: &Folders, stop: &AtomicBool) -> Result<()> {
    let mut built: Vec<&[String]> = Vec::new();
    for server in servers {
        if server.build.is_empty() || built.contains(&server.build.as_slice()) {
            continue;
        }
        signals::check(stop)?;
        notice::say(&format!("building {}", server.name));
        server.build(&folders.root)?;
        built.push(&server.build);
    }
    Ok(())
}
