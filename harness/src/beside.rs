//! A closed loop on another workload of the same server, beside the one that is measured.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use load::{End, Pacing};

use crate::campaign::BesideUse;
use crate::expected::{Answers, Cost};
use crate::inspection::Verified;
use crate::signals;
use crate::trial::{DRAIN, REQUEST_TIMEOUT};

/// Until the loop is under way, before what is measured begins; and how much longer it goes on.
pub const MARGIN: Duration = Duration::from_millis(500);

/// How much the loop yields to others, of 19.
const YIELDS: i32 = 10;

/// What a workload is measured beside.
#[derive(Debug)]
pub struct Loop {
    pub workload: String,
    pub connections: usize,
    pub answers: Answers,
}

/// What went on beside a window, and what it should have cost.
#[derive(Debug)]
pub struct Beside {
    pub used: BesideUse,
    pub cost: Cost,
}

impl Loop {
    /// Runs for this long, on these CPUs.
    ///
    /// # Errors
    /// The server refuses connections, or an interruption.
    pub fn run(
        &self,
        (address, cpus): (SocketAddr, &[usize]),
        verified: &Verified,
        window: Duration,
        stop: &AtomicBool,
    ) -> Result<Beside> {
        let plan = load::Plan {
            connections: self.connections,
            pacing: Pacing::Closed {
                think: Duration::ZERO,
            },
            end: End::Timed {
                warmup: Duration::ZERO,
                window,
                drain: DRAIN,
            },
            request_timeout: REQUEST_TIMEOUT,
            cpus: cpus.to_vec(),
            first_unique: verified.next_unique,
            ..load::Plan::new(address, address.to_string(), self.answers.hashed()?)
        };
        // Both generators may share a CPU: what is measured goes first there. Threads inherit it.
        let _ = rustix::process::nice(YIELDS);
        let outcome = load::run(&plan, &mut |_| {}, stop).map_err(signals::of_the_load)?;
        let verified = self.answers.cost(&verified.by_request);
        Ok(Beside {
            used: BesideUse {
                workload: self.workload.clone(),
                connections: self.connections,
                requests_per_second: outcome.achieved_rate(),
                counts: outcome.counts,
            },
            cost: self.answers.cost(&outcome.by_request).plus(verified),
        })
    }
}
