//! What generator, server and database used, second by second.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{CpuTicks, cpus_of, family, pressure_us};
use crate::cpu_time;
use crate::cpus::CpuPlan;

/// The pressure of the whole machine: the generator's own is rarely there.
const MACHINE_PRESSURE: &str = "/proc/pressure/cpu";

/// About a second of a window. What cannot be seen is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, from the first reading.
    pub at: f64,
    /// Share of the time of the plan's CPUs that was stolen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Share of the time in which some task of this machine waited for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<RoleUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<RoleUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<RoleUse>,
    /// Checkpoints that PostgreSQL began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<u64>,
}

/// What the processes of one role used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoleUse {
    /// CPUs in use on average.
    pub cpu: f64,
    /// Threads that waited for a CPU, on average.
    pub run_queue: f64,
    /// How often one of its threads was given a CPU, per second: its context switches.
    pub switches: f64,
    /// Resident memory at the end; memory that processes share is counted once.
    pub rss_bytes: u64,
    /// At the end.
    pub threads: u64,
}

/// Takes the readings. The first is taken when it is made.
#[derive(Debug)]
pub struct Series {
    cpus: Vec<usize>,
    server: Option<u32>,
    postmaster: Option<u32>,
    start: Instant,
    last: Reading,
    seconds: Vec<Second>,
}

impl Series {
    pub fn start(plan: &CpuPlan, server: Option<u32>, postmaster: Option<u32>) -> Series {
        let cpus = cpus_of(plan);
        let last = Reading::now(&cpus, server, postmaster);
        Series {
            cpus,
            server,
            postmaster,
            start: last.at,
            last,
            seconds: Vec::new(),
        }
    }

    /// Ends the second that is under way, in which so many checkpoints began.
    pub fn take(&mut self, checkpoints: Option<u64>) {
        let now = Reading::now(&self.cpus, self.server, self.postmaster);
        self.seconds.push(Second {
            checkpoints,
            ..now.since(&self.last, self.start)
        });
        self.last = now;
    }

    /// What was taken.
    pub fn finish(self) -> Vec<Second> {
        self.seconds
    }
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    ticks: Option<CpuTicks>,
    pressure_us: Option<u64>,
    generator: Option<Role>,
    server: Option<Role>,
    database: Option<Role>,
}

impl Reading {
    fn now(cpus: &[usize], server: Option<u32>, postmaster: Option<u32>) -> Reading {
        let pressure = fs::read_to_string(MACHINE_PRESSURE).ok();
        Reading {
            at: Instant::now(),
            ticks: CpuTicks::now(cpus).ok(),
            pressure_us: pressure.and_then(|text| pressure_us(&text)),
            generator: Role::of(&[std::process::id()]),
            server: server.and_then(|server| Role::of(&[server])),
            database: postmaster.and_then(|postmaster| Role::of(&family(postmaster))),
        }
    }

    fn since(&self, earlier: &Reading, start: Instant) -> Second {
        let seconds = (self.at - earlier.at).as_secs_f64();
        let used = |now: Option<Role>, before: Option<Role>| Some(now?.since(before?, seconds));
        let steal = self
            .ticks
            .zip(earlier.ticks)
            .map(|(now, before)| now.stolen_since(before));
        let pressure = self
            .pressure_us
            .zip(earlier.pressure_us)
            .map(|(now, before)| now.saturating_sub(before) as f64 / (seconds * 1e6));
        Second {
            at: rounded((self.at - start).as_secs_f64()),
            steal: steal.map(rounded),
            pressure: pressure.map(rounded),
            generator: used(self.generator, earlier.generator),
            server: used(self.server, earlier.server),
            database: used(self.database, earlier.database),
            checkpoints: None,
        }
    }
}

/// Running totals of some processes, and their present size.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Role {
    cpu: Duration,
    run_queue_ns: u64,
    switches: u64,
    rss_bytes: u64,
    threads: u64,
}

impl Role {
    /// `None` where the first of the processes cannot be seen.
    fn of(pids: &[u32]) -> Option<Role> {
        let mut role = Role::default();
        let mut most_shared = 0;
        for (place, &pid) in pids.iter().enumerate() {
            let Some((process, shared)) = one_process(pid) else {
                if place == 0 {
                    return None;
                }
                continue; // It ended just now.
            };
            role.cpu += process.cpu;
            role.run_queue_ns += process.run_queue_ns;
            role.switches += process.switches;
            role.rss_bytes += process.rss_bytes - shared;
            role.threads += process.threads;
            most_shared = most_shared.max(shared);
        }
        role.rss_bytes += most_shared;
        Some(role)
    }

    fn since(self, earlier: Role, seconds: f64) -> RoleUse {
        let cpu = self.cpu.saturating_sub(earlier.cpu);
        let waited_ns = self.run_queue_ns.saturating_sub(earlier.run_queue_ns);
        let switches = self.switches.saturating_sub(earlier.switches);
        RoleUse {
            cpu: rounded(cpu.as_secs_f64() / seconds),
            run_queue: rounded(waited_ns as f64 / (seconds * 1e9)),
            switches: (switches as f64 / seconds).round(),
            rss_bytes: self.rss_bytes,
            threads: self.threads,
        }
    }
}

/// With how much of its resident memory can be shared.
fn one_process(pid: u32) -> Option<(Role, u64)> {
    let cpu = cpu_time::of_process(pid)?;
    let memory = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let (rss_bytes, shared) = resident_and_shared(&memory)?;
    let mut role = Role {
        cpu,
        rss_bytes,
        ..Role::default()
    };
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // A thread that has just ended has no file any more.
        let Ok(task) = task else { break };
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let (run_queue_ns, switches) = waits_and_turns(&text).unwrap_or((0, 0));
        role.run_queue_ns += run_queue_ns;
        role.switches += switches;
        role.threads += 1;
    }
    Some((role, shared))
}

/// schedstat: nanoseconds on a CPU, nanoseconds waiting for one, turns on a CPU.
fn waits_and_turns(schedstat: &str) -> Option<(u64, u64)> {
    let mut words = schedstat.split_ascii_whitespace().skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// statm: size, resident, shared, ... in pages; here in bytes.
fn resident_and_shared(statm: &str) -> Option<(u64, u64)> {
    let page_bytes = rustix::param::page_size() as u64;
    let mut words = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = words.next()?.parse().ok()?;
    let shared: u64 = words.next()?.parse().ok()?;
    Some((resident * page_bytes, shared.min(resident) * page_bytes))
}

/// To four decimals: records hold thousands of these.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_tells_what_was_used_since_the_one_before() {
        let before = Role {
            cpu: Duration::from_millis(500),
            run_queue_ns: 1_000_000,
            switches: 100,
            rss_bytes: 5,
            threads: 3,
        };
        let now = Role {
            cpu: Duration::from_millis(1_500),
            run_queue_ns: 201_000_000,
            switches: 2_100,
            rss_bytes: 7,
            threads: 4,
        };
        assert_eq!(
            now.since(before, 2.0),
            RoleUse {
                cpu: 0.5,
                run_queue: 0.1,
                switches: 1_000.0,
                rss_bytes: 7,
                threads: 4
            }
        );
    }

    #[test]
    fn files_of_the_kernel_are_read_by_their_fields() {
        assert_eq!(waits_and_turns("80820 123198 2\n"), Some((123_198, 2)));
        assert_eq!(waits_and_turns(""), None);
        let page = rustix::param::page_size() as u64;
        assert_eq!(
            resident_and_shared("900 300 100 1 0 20 0\n"),
            Some((300 * page, 100 * page))
        );
    }

    #[test]
    fn memory_that_two_processes_share_is_counted_once() {
        let own = std::process::id();
        let once = Role::of(&[own]).unwrap();
        let twice = Role::of(&[own, own]).unwrap();
        assert!(twice.rss_bytes < 2 * once.rss_bytes);
        assert!(twice.threads >= 2);
    }

    #[test]
    fn a_process_that_works_for_a_while_shows_in_a_second_of_its_own() {
        let plan = CpuPlan::of(&[0]);
        let mut series = Series::start(&plan, Some(std::process::id()), None);
        let end = Instant::now() + Duration::from_millis(150);
        let mut work = 0_u64;
        while Instant::now() < end {
            work = work.wrapping_add(1);
        }
        series.take(Some(1));
        let seconds = series.finish();
        assert_eq!(seconds.len(), 1);
        let server = seconds[0].server.unwrap();
        assert!(server.cpu > 0.0 && server.threads > 0 && server.rss_bytes > 0);
        assert_eq!(
            (seconds[0].database, seconds[0].checkpoints),
            (None, Some(1))
        );
        let text = serde_json::to_string(&seconds).unwrap();
        assert!(!text.contains("database"), "{text}");
        assert_eq!(serde_json::from_str::<Vec<Second>>(&text).unwrap(), seconds);
    }
}
