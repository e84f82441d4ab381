//! The one clock of a run: `CLOCK_MONOTONIC` as integer nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds on the monotonic clock, or a distance between two such instants.
pub(crate) type Nanos = u64;

pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// Now, through the vDSO: about 25 ns, no system call.
#[inline]
pub(crate) fn now() -> Nanos {
    to_nanos(clock_gettime(ClockId::Monotonic))
}

/// CPU time the calling thread has used since it started. A system call: not for the hot path.
pub(crate) fn thread_cpu() -> Nanos {
    to_nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// The kernel's form of a distance, for `epoll_pwait2`.
pub(crate) fn to_timespec(nanos: Nanos) -> Timespec {
    Timespec {
        tv_sec: (nanos / SECOND).cast_signed(),
        tv_nsec: (nanos % SECOND).cast_signed(),
    }
}

/// A `Duration` in nanoseconds; saturates after 584 years.
pub(crate) fn nanos(duration: std::time::Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[inline]
fn to_nanos(time: Timespec) -> Nanos {
    // Neither clock is ever negative.
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}
