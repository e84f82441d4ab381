//! What the operating system must allow first: descriptors for the sockets, a CPU for each thread.

use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::LoadError;

/// Descriptors beside the connections: epoll, logs, whatever the caller has open.
const OTHER_FILES: u64 = 128;

/// Makes sure that `connections` sockets can be open, raising the soft limit if it is too low.
///
/// # Errors
/// The hard limit is lower still.
pub fn allow_connections(connections: usize) -> Result<(), LoadError> {
    let needed = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    match limit.maximum {
        Some(maximum) if maximum < needed => Err(LoadError::FileLimit {
            connections,
            needed,
            limit: maximum,
        }),
        _ => setrlimit(Resource::Nofile, raised).map_err(LoadError::os("setrlimit")),
    }
}

/// Pins the calling thread, and makes its timers exact to the nanosecond instead of 50 us.
pub(crate) fn prepare_thread(cpu: Option<usize>) -> Result<(), LoadError> {
    if let Some(cpu) = cpu {
        pin(cpu)?;
    }
    set_current_timer_slack(NonZeroU64::new(1)).map_err(LoadError::os("prctl(PR_SET_TIMERSLACK)"))
}

fn pin(cpu: usize) -> Result<(), LoadError> {
    let before = sched_getaffinity(None).map_err(LoadError::os("sched_getaffinity"))?;
    let allowed: Vec<String> = (0..CpuSet::MAX_CPU)
        .filter(|&one| before.is_set(one))
        .map(|one| one.to_string())
        .collect();
    let error = |cause| LoadError::Pin {
        cpu,
        allowed: allowed.join(","),
        cause,
    };
    if cpu >= CpuSet::MAX_CPU {
        return Err(error(std::io::ErrorKind::InvalidInput.into()));
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).map_err(|errno| error(errno.into()))
}
