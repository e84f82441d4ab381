//! The jitter probe: how exactly this machine lets a thread meet an instant, without any load.

use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::event::epoll;

use crate::LoadError;
use crate::clock::{self, Nanos, nanos};
use crate::limits;
use crate::measure::histogram;
use crate::usage::{Meter, usage};

/// Distance of the probe's instants: a schedule of 10,000/s.
const PERIOD: Nanos = 100_000;
/// Before a due instant a generator thread is awake this early, and spins: what a wake-up can cost.
const SPIN: Nanos = 60_000;
/// A shorter sleep is not worth it: going to sleep and waking up takes about 20 us of CPU time on a
/// virtual machine, and what else comes in meanwhile is found late.
const SHORTEST_NAP: Nanos = 100_000;

/// After a long sleep the CPU itself is slow to wake: the thread is up this early, and naps once more.
const LONG_SLEEP_MARGIN: Nanos = 300_000;
const LONG_SLEEP: Nanos = 2_000_000;

/// How long to sleep when the next instant is `distance` away; 0 means to spin.
pub(crate) fn nap(distance: Nanos) -> Nanos {
    if distance >= LONG_SLEEP {
        return distance - LONG_SLEEP_MARGIN;
    }
    let nap = distance.saturating_sub(SPIN);
    if nap < SHORTEST_NAP { 0 } else { nap }
}

/// Waits for instants 100 us apart for `duration`, in the way the open loop waits, on a thread of its
/// own pinned to `cpu`. Returns the lateness in ns: what a generator's lag can be at best.
///
/// # Errors
/// If the CPU is not allowed.
pub fn jitter(cpu: Option<usize>, duration: Duration) -> Result<Histogram<u64>, LoadError> {
    let probe = std::thread::spawn(move || {
        limits::prepare_thread(cpu)?;
        Ok(jitter_here(duration)?.lateness)
    });
    probe
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What the probe found.
#[derive(Debug)]
pub(crate) struct Jitter {
    pub(crate) lateness: Histogram<u64>,
    /// Share of the probe's time in which something else had the CPU. The probe never lets go of it, so a neighbour
    /// shows here that a thread which sleeps between sends would hardly notice.
    pub(crate) run_queue: Option<f64>,
}

/// How often the probe is made at most before it is believed that something else shares the CPU.
pub(crate) const PROBES: u32 = 3;
/// Something else had the CPU for a larger share than this: it was squeezed.
pub(crate) const SQUEEZED: f64 = 0.10;

/// The probe on the calling thread, made again where something else had the CPU meanwhile: what is over by then will
/// not disturb the run, and a neighbour that stays is there every time. Gives the last.
pub(crate) fn jitter_before_a_run(duration: Duration) -> Result<Jitter, LoadError> {
    let squeezed = |jitter: &Jitter| jitter.run_queue.is_some_and(|share| share > SQUEEZED);
    let mut jitter = jitter_here(duration)?;
    for _ in 1..PROBES {
        if squeezed(&jitter) {
            jitter = jitter_here(duration)?;
        }
    }
    Ok(jitter)
}

/// The probe on the calling thread.
fn jitter_here(duration: Duration) -> Result<Jitter, LoadError> {
    let mut meter = Meter::of_this_thread();
    let epoll =
        epoll::create(epoll::CreateFlags::CLOEXEC).map_err(LoadError::os("epoll_create1"))?;
    let mut lateness = histogram()?;
    let mut events = Vec::with_capacity(1);
    let start = clock::now();
    let before = meter.read(start);
    let end = start + nanos(duration);
    let mut due = start + PERIOD;
    while due < end {
        loop {
            let now = clock::now();
            if now >= due {
                lateness.saturating_record(now - due);
                break;
            }
            let timeout = clock::to_timespec(nap(due - now));
            // An interrupted wait is a short one; the loop looks at the clock anyway.
            let _ = epoll::wait(
                &epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout),
            );
        }
        due += PERIOD;
    }
    let after = meter.read(clock::now());
    let run_queue = (!duration.is_zero())
        .then(|| usage(None, before, after).run_queue)
        .flatten();
    Ok(Jitter {
        lateness,
        run_queue,
    })
}
