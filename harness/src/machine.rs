//! What the kernel says of this machine and of processes: CPU time stolen, process starts, memory, waits for a CPU. Text in,
//! figures out; readers of `/proc` beside them. Formats: proc(5) and the kernel's Documentation/scheduler/sched-stats.

mod cgroup;
mod series;
mod sockets;

use std::fs;

use crate::checks::Seen;
use crate::cpus::CpuPlan;

pub use cgroup::{Pressure, Throttling};
pub use series::{RoleUse, Second, Series};
pub use sockets::local_ports;

/// CPU time of some CPUs since boot, in ticks of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    pub total: u64,
    /// Taken by the hypervisor for somebody else.
    pub stolen: u64,
}

impl CpuTicks {
    /// Of the CPUs given; of all if there are none.
    pub fn now(cpus: &[usize]) -> Seen<CpuTicks> {
        let text =
            fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        cpu_ticks(&text, cpus).ok_or_else(|| "/proc/stat does not tell stolen time".to_owned())
    }

    /// Stolen time of all time since `earlier`.
    pub fn stolen_since(self, earlier: CpuTicks) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        self.stolen.saturating_sub(earlier.stolen) as f64 / total.max(1) as f64
    }
}

/// All CPUs of a plan, each once.
pub fn cpus_of(plan: &CpuPlan) -> Vec<usize> {
    let mut cpus = [&plan.generator[..], &plan.server, &plan.database].concat();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// user, nice, system, idle, iowait, irq, softirq, steal. What follows is in user and nice already.
const TICK_FIELDS: usize = 8;
const STOLEN_FIELD: usize = 7;

fn cpu_ticks(stat: &str, cpus: &[usize]) -> Option<CpuTicks> {
    let wanted = |label: &str| match label.strip_prefix("cpu") {
        Some("") => cpus.is_empty(),
        Some(number) => number.parse().is_ok_and(|cpu| cpus.contains(&cpu)),
        None => false,
    };
    let mut sum = None;
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        if !words.next().is_some_and(wanted) {
            continue;
        }
        let ticks: Vec<u64> = words
            .take(TICK_FIELDS)
            .map_while(|word| word.parse().ok())
            .collect();
        let stolen = *ticks.get(STOLEN_FIELD)?;
        let CpuTicks {
            total,
            stolen: before,
        } = sum.unwrap_or(CpuTicks {
            total: 0,
            stolen: 0,
        });
        sum = Some(CpuTicks {
            total: total + ticks.iter().sum::<u64>(),
            stolen: before + stolen,
        });
    }
    sum
}

/// When a process started, in ticks since boot: the same pid with another start is another process. `None` when it is gone,
/// or has ended and waits for its parent.
pub fn started(pid: u32) -> Option<u64> {
    start_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets, which may hold spaces and brackets itself.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    // That was field 3; the start is field 22.
    fields.nth(18)?.parse().ok()
}

/// A process and its children: PostgreSQL's backends are children of the postmaster.
pub fn family(parent: u32) -> Vec<u32> {
    let mut pids = vec![parent];
    // Each thread has its own list.
    let tasks = fs::read_dir(format!("/proc/{parent}/task"));
    for task in tasks.into_iter().flatten().map_while(Result::ok) {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        pids.extend(
            children
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    pids
}

/// Microseconds for which some task waited, from a file of pressure stall information.
fn pressure_us(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 800 10 0 5 35 0 0\n\
        cpu0 60 0 30 390 5 0 5 10 7 0\n\
        cpu1 40 0 20 410 5 0 0 25 0 0\n\
        intr 5 0\n";

    #[test]
    fn stolen_time_is_that_of_the_cpus_in_use() {
        let ticks = |cpus: &[usize]| cpu_ticks(STAT, cpus).unwrap();
        assert_eq!(
            ticks(&[1]),
            CpuTicks {
                total: 500,
                stolen: 25
            }
        );
        assert_eq!(ticks(&[0, 1]), ticks(&[]));
        assert_eq!(cpu_ticks(STAT, &[7]), None);
        assert_eq!(cpu_ticks("cpu  100 0 50 800\n", &[]), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time_since() {
        let before = CpuTicks {
            total: 1_000,
            stolen: 30,
        };
        let after = CpuTicks {
            total: 1_600,
            stolen: 33,
        };
        assert_eq!(after.stolen_since(before), 0.005);
        assert_eq!(before.stolen_since(before), 0.0);
    }

    #[test]
    fn a_process_is_told_by_its_start_whatever_it_is_called() {
        let stat =
            "4711 (a) b (c) S 1 4711 4711 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 3 0 987654 1 2";
        assert_eq!(start_ticks(stat), Some(987_654));
        assert_eq!(start_ticks(&stat.replace(") S 1", ") Z 1")), None);
        assert_eq!(start_ticks("4711 (a"), None);
    }

    #[test]
    fn a_process_keeps_its_start_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let start = started(child.id());
        assert!(start.is_some() && start == started(child.id()));
        assert!(family(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        // Ended, and not waited for yet.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while started(child.id()).is_some() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(started(child.id()), None);
        child.wait().unwrap();
        assert_eq!(started(child.id()), None);
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text = "some avg10=1.49 avg60=0.70 avg300=5.87 total=5825043165\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(pressure_us(text), Some(5_825_043_165));
        assert_eq!(pressure_us(""), None);
    }
}
