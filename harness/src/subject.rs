//! What is measured: a server in one of its profiles.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::campaign::Plan;
use crate::folders::Folders;
use crate::inspection::{self, StartupCost};
use crate::process::{Profile, Settings};
use crate::provision::Provisioned;
use crate::server::Server;
use crate::table;

/// A server in one of its profiles, with what its start costs the database.
#[derive(Debug)]
pub struct Subject {
    pub server: Server,
    pub settings: Settings,
    pub startup: StartupCost,
    /// What `/about` says.
    pub says: Value,
}

impl Subject {
    /// Starts the server once without a request, to see that it does and what that costs.
    ///
    /// # Errors
    /// The server does not keep its contract, or the database is lost.
    pub fn prepare(
        server: &Server,
        profile: Profile,
        (plan, folders, ready_limit): (&Plan, &Folders, Duration),
        provisioned: &mut Provisioned,
        stop: &AtomicBool,
    ) -> Result<Subject> {
        let database = (provisioned.database.url.as_str(), plan.pool);
        let settings = Settings {
            threads: server.threads.or(plan.threads),
            cpus: plan.cpus.server.clone(),
            ready_limit,
            ..Settings::of(server, profile, folders, database)
        };
        let (startup, says) = inspection::startup_cost(server, &settings, provisioned, stop)?;
        Ok(Subject {
            server: server.clone(),
            settings,
            startup,
            says,
        })
    }

    /// Its name in tables.
    pub fn label(&self) -> String {
        table::label(&self.server.name, self.settings.profile)
    }
}
