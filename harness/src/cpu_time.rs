//! CPU time of other processes, to the nanosecond, as the kernel counts it: `/proc/<pid>/stat` would round it to
//! ticks of 10 ms.

use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::machine::family;

/// User and system time of a process and of all its threads, ended ones too. `None` when it is gone.
pub fn of_process(pid: u32) -> Option<Duration> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let clock = clock_getcpuclockid(pid).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?))
}

/// The same, summed over a process and its direct children: for PostgreSQL, whose backends are children of the
/// postmaster. Time of children that have ended is not in it, so take both readings while the pool is open.
pub fn of_family(parent: u32) -> Option<Duration> {
    of_process(parent)?;
    let times = family(parent).into_iter().filter_map(of_process);
    Some(times.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_some_time_and_uses_more() {
        let before = of_process(std::process::id()).unwrap();
        let mut work = 0u64;
        while of_process(std::process::id()).unwrap() == before {
            work = work.wrapping_add(1);
        }
        assert!(of_process(std::process::id()).unwrap() > before);
    }

    #[test]
    fn a_process_that_has_ended_has_none() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(of_process(child.id()), None);
    }
}
