//! What the load generator can do on this machine at best, measured before anything is measured with it.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::cpus::CpuPlan;

/// Long enough for a figure that holds within a few percent.
const WINDOW: Duration = Duration::from_millis(500);
const JITTER_PROBE: Duration = Duration::from_millis(200);
const MOST_JITTER_NS: u64 = 1_000_000;

/// Rates near the ceiling say more about the generator than about a server; lateness below the jitter is the machine's.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct GeneratorRecord {
    /// Right answers per second from a null server on the server's CPU: 1 KiB of JSON, every body verified.
    pub null_server_per_second: f64,
    /// CPU time of the generator for one of them.
    pub cpu_ns_per_request: f64,
    /// How late a wait for an instant ends on the generator's CPU.
    pub jitter_p50_ns: u64,
    pub jitter_p99_ns: u64,
}

impl GeneratorRecord {
    /// # Errors
    /// The CPUs of the plan may not be used, or no port is free.
    pub fn measure(plan: &CpuPlan, connections: usize) -> Result<GeneratorRecord> {
        let server_cpu = plan.server.first().copied();
        let outcome = load::ceiling(&plan.generator, server_cpu, connections, WINDOW)?;
        let jitter = load::jitter(plan.generator.first().copied(), JITTER_PROBE)?;
        Ok(GeneratorRecord {
            null_server_per_second: outcome.achieved_rate(),
            cpu_ns_per_request: outcome.cpu.as_nanos() as f64
                / outcome.counts.correct.max(1) as f64,
            jitter_p50_ns: jitter.value_at_quantile(0.50),
            jitter_p99_ns: jitter.value_at_quantile(0.99),
        })
    }

    /// What to say before a campaign that has little chance of valid rows: GEN_SAT allows no more lateness than this.
    pub fn warning(&self) -> Option<String> {
        (self.jitter_p99_ns > MOST_JITTER_NS).then(|| {
            format!(
                "this machine is busy: a wait on the generator's CPU ends up to {:.1} ms late (p99), so trials may be INVALID; \
                 close other programs and start again, or see `lanebench doctor`",
                self.jitter_p99_ns as f64 / 1e6
            )
        })
    }

    /// The record in a line.
    pub fn describe(&self) -> String {
        format!(
            "{:.0} req/s from a null server at {:.1} µs of CPU each, every body verified; jitter p50 {:.1} µs, p99 {:.1} µs",
            self.null_server_per_second,
            self.cpu_ns_per_request / 1e3,
            self.jitter_p50_ns as f64 / 1e3,
            self.jitter_p99_ns as f64 / 1e3,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_before_the_first_trial() {
        let record = |jitter_p99_ns| GeneratorRecord {
            null_server_per_second: 1e5,
            cpu_ns_per_request: 7e3,
            jitter_p50_ns: 100,
            jitter_p99_ns,
        };
        assert_eq!(record(13_200).warning(), None);
        let warning = record(3_817_500).warning().unwrap_or_default();
        assert!(warning.contains("up to 3.8 ms late"), "{warning}");
    }
}
