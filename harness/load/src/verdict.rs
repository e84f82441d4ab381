//! Can the figures be trusted, and if not, whose fault is it?

use std::fmt;

use crate::outcome::Outcome;
use crate::probe::SQUEEZED;

/// Who set the limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The figures describe the server at the load that was asked for.
    Valid,
    /// The server did not keep up with the rate that was asked for. The figures describe that.
    ServerLimited,
    /// The generator was the bottleneck or was disturbed: the figures do not describe the server.
    GeneratorLimited,
}

impl Verdict {
    /// The verdict as in reports: `valid`, `server-limited`, `generator-limited`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::ServerLimited => "server-limited",
            Verdict::GeneratorLimited => "generator-limited",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One figure that the verdict rests on. Also there when it passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// A short fixed name.
    pub name: &'static str,
    /// What was measured, in the unit of `limit`; `None` if it could not be observed.
    pub value: Option<f64>,
    /// The bound.
    pub limit: f64,
    /// Whether `value` must stay at or below `limit`, or at or above.
    pub bound: Bound,
    /// The verdict if the bound is broken.
    pub blames: Verdict,
}

/// Which side of a limit is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// At or below the limit.
    AtMost,
    /// At or above the limit.
    AtLeast,
}

impl Check {
    /// `None` if it could not be observed: never a pass.
    pub fn passed(&self) -> Option<bool> {
        self.value.map(|value| match self.bound {
            Bound::AtMost => value <= self.limit,
            Bound::AtLeast => value >= self.limit,
        })
    }

    fn at_most(name: &'static str, value: Option<f64>, limit: f64) -> Check {
        Check {
            name,
            value,
            limit,
            bound: Bound::AtMost,
            blames: Verdict::GeneratorLimited,
        }
    }

    fn at_least(name: &'static str, value: Option<f64>, limit: f64) -> Check {
        Check {
            name,
            value,
            limit,
            bound: Bound::AtLeast,
            blames: Verdict::ServerLimited,
        }
    }
}

/// The checks of a run. `is_open` adds those of the open loop.
pub(crate) fn checks(outcome: &Outcome, is_open: bool) -> Vec<Check> {
    let worst = |shares: Vec<Option<f64>>| shares.into_iter().flatten().reduce(f64::max);
    let threads = &outcome.threads;
    let busy = worst(threads.iter().map(|thread| Some(thread.busy)).collect());
    let run_queue = worst(threads.iter().map(|thread| thread.run_queue).collect());
    let lag = (!outcome.lag.is_empty()).then(|| outcome.lag.value_at_quantile(0.99) as f64 / 1e6);
    let mut checks = vec![
        Check::at_most("generator busy share", busy, 0.70),
        Check::at_most("generator run-queue share", run_queue, 0.01),
        Check::at_most("probe run-queue share", outcome.jitter_run_queue, SQUEEZED),
        Check::at_most("generator lag p99 ms", lag, 1.0),
        Check::at_most("Little's law residual", outcome.little_residual, 0.02),
    ];
    let connections = &outcome.connections;
    let established = connections.established as f64 / connections.asked as f64;
    checks.push(Check::at_least(
        "connections established of asked",
        Some(established),
        1.0,
    ));
    if is_open {
        let scheduled = outcome.counts.scheduled;
        let share = |count: u64| (scheduled > 0).then(|| count as f64 / scheduled as f64);
        checks.push(Check::at_least(
            "sent of scheduled",
            share(outcome.counts.sent()),
            1.0,
        ));
        // A 503 is the server's own word that it cannot keep up.
        let served = outcome.counts.answered() - outcome.counts.shed;
        checks.push(Check::at_least("served of scheduled", share(served), 0.999));
    }
    checks
}

/// The generator's faults come first: they leave nothing to say about the server.
pub(crate) fn verdict(checks: &[Check]) -> Verdict {
    let broken = |blames: Verdict| {
        checks
            .iter()
            .any(|check| check.passed() == Some(false) && check.blames == blames)
    };
    if broken(Verdict::GeneratorLimited) {
        Verdict::GeneratorLimited
    } else if broken(Verdict::ServerLimited) {
        Verdict::ServerLimited
    } else {
        Verdict::Valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_fault_outweighs_the_servers() {
        let generator = |value| Check::at_most("a", value, 1.0);
        let server = |value| Check::at_least("b", Some(value), 0.999);
        assert_eq!(
            verdict(&[generator(Some(1.0)), server(0.999)]),
            Verdict::Valid
        );
        assert_eq!(
            verdict(&[generator(Some(1.0)), server(0.9)]),
            Verdict::ServerLimited
        );
        assert_eq!(
            verdict(&[generator(Some(1.1)), server(0.9)]),
            Verdict::GeneratorLimited
        );
        assert_eq!(generator(None).passed(), None);
    }
}
