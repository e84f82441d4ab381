//! Where the time of the requests went: one histogram a stage, cheap enough to be on while measuring.
//!
//! A request takes a lap at the end of each stage. Each lap is the time since the one before, so that the stages of a
//! request add up to its whole time, to the nanosecond, whatever a lane tells or leaves out. Recording is two relaxed
//! additions a stage, on cache lines that no other core writes: no lock, no allocation. Six readings of the clock a
//! request are the rest of the cost.

use std::array;
use std::iter;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The stages of a request to the database, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Admission,
    Connection,
    Database,
    Handover,
    Encoding,
}

const STAGES: usize = 5;

/// Tells a request's two instants that only its lane can see. See [`Lane`](crate::Lane) for when.
///
/// It is a plain value: a lane that works on another thread takes a copy there and brings it back. With
/// `--timings off` it reads no clock.
#[derive(Debug, Clone, Copy)]
pub struct Laps {
    /// When the stage before ended; nothing with `--timings off`.
    last: Option<Instant>,
    took_ns: [u64; STAGES],
}

impl Laps {
    /// The request holds its connection and, in a blocking lane, its thread.
    pub fn connected(&mut self) {
        self.lap(Stage::Connection, Instant::now);
    }

    /// The answer of the statement has been read and decoded.
    pub fn decoded(&mut self) {
        self.lap(Stage::Database, Instant::now);
    }

    pub(crate) fn admitted(&mut self) {
        self.lap(Stage::Admission, Instant::now);
    }

    /// The handler goes on, on its own thread.
    pub(crate) fn handed_over(&mut self) {
        self.lap(Stage::Handover, Instant::now);
    }

    fn lap(&mut self, stage: Stage, clock: impl FnOnce() -> Instant) {
        let Some(last) = &mut self.last else { return };
        let now = clock();
        self.took_ns[stage as usize] += nanoseconds(now.saturating_duration_since(*last));
        *last = now;
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The histograms of one server, since its start.
#[derive(Debug)]
pub(crate) struct Timings {
    /// One a worker thread, as far as there is one worker a core; nothing with `--timings off`.
    shards: Option<Vec<Shard>>,
}

/// The stages of the requests that some threads ended. Aligned to the pairs of cache lines that CPUs fetch together.
#[derive(Debug)]
#[repr(align(128))]
struct Shard([Histogram; STAGES]);

impl Shard {
    /// The one of this thread.
    fn own(shards: &[Shard]) -> Option<&Shard> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        shards.get(THREAD.with(|thread| thread % shards.len()))
    }
}

impl Timings {
    pub(crate) fn new(on: bool) -> Timings {
        let shard = || Shard(array::from_fn(|_| Histogram::default()));
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Timings {
            shards: on.then(|| iter::repeat_with(shard).take(cores).collect()),
        }
    }

    /// A request begins.
    pub(crate) fn start(&self) -> Laps {
        Laps {
            last: self.shards.as_ref().map(|_| Instant::now()),
            took_ns: [0; STAGES],
        }
    }

    /// A request has its body. Only a successful one is recorded: a failure says little about where time goes.
    pub(crate) fn record(&self, mut laps: Laps) {
        let shards = self.shards.as_deref();
        let Some(shard) = shards.and_then(Shard::own) else {
            return;
        };
        laps.lap(Stage::Encoding, Instant::now);
        for (stage, took_ns) in shard.0.iter().zip(laps.took_ns) {
            stage.record(took_ns);
        }
    }

    /// What was recorded so far. A request that is being recorded meanwhile may be in some stages only.
    pub(crate) fn read(&self) -> Option<Report> {
        let shards = self.shards.as_ref()?;
        let read = |stage| StageReport::of(shards, stage);
        Some(Report {
            admission: read(Stage::Admission),
            connection: read(Stage::Connection),
            database: read(Stage::Database),
            handover: read(Stage::Handover),
            encoding: read(Stage::Encoding),
        })
    }
}

/// `timings` of `/usage`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    admission: StageReport,
    connection: StageReport,
    database: StageReport,
    handover: StageReport,
    encoding: StageReport,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct StageReport {
    count: u64,
    sum_ns: u64,
    /// Bound and count of each bucket that is not empty, ascending. See the crate's documentation.
    buckets: Vec<(u64, u64)>,
}

impl StageReport {
    fn of(shards: &[Shard], stage: Stage) -> StageReport {
        let (mut sum_ns, mut counts) = (0, [0; BUCKETS]);
        for Shard(stages) in shards {
            let histogram = &stages[stage as usize];
            sum_ns += histogram.sum_ns.load(Ordering::Relaxed);
            for (count, bucket) in counts.iter_mut().zip(&histogram.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
        }
        let bounds_ns = (1..).map(lower_bound_ns);
        let buckets: Vec<_> = bounds_ns
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .collect();
        StageReport {
            count: counts.iter().sum(),
            sum_ns,
            buckets,
        }
    }
}

/// Buckets of an octave, which makes a bucket at most 1/8 wider than its lower bound.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 3;
/// Durations below 2^43 ns have buckets of their own. That is 2.4 hours, and no request may take longer: its two
/// waits are 3,600 s at most each.
const LONGEST_BITS: u32 = 43;
const BUCKETS: usize = ((LONGEST_BITS - STEP_BITS + 1) as usize) << STEP_BITS;

/// Counts of durations in log-linear buckets, and their exact sum.
#[derive(Debug)]
struct Histogram {
    sum_ns: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            sum_ns: AtomicU64::new(0),
            buckets: array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Histogram {
    fn record(&self, duration_ns: u64) {
        self.sum_ns.fetch_add(duration_ns, Ordering::Relaxed);
        self.buckets[bucket(duration_ns)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a duration is counted: one bucket a nanosecond below two [`STEPS`], then [`STEPS`] an octave.
fn bucket(duration_ns: u64) -> usize {
    let duration_ns = duration_ns.min((1 << LONGEST_BITS) - 1);
    let shift = (duration_ns | (2 * STEPS - 1)).ilog2() - STEP_BITS;
    ((u64::from(shift) << STEP_BITS) + (duration_ns >> shift)) as usize
}

/// The least duration of a bucket; of the one after the last, the bound of the last.
fn lower_bound_ns(bucket: u64) -> u64 {
    let shift = (bucket >> STEP_BITS).saturating_sub(1);
    (bucket - (shift << STEP_BITS)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_clock() -> Instant {
        panic!("read the clock")
    }

    #[test]
    fn a_bucket_is_at_most_an_eighth_wide_and_the_next_begins_where_it_ends() {
        assert_eq!(lower_bound_ns(0), 0);
        for index in 0..BUCKETS {
            let (lower, upper) = (
                lower_bound_ns(index as u64),
                lower_bound_ns(index as u64 + 1),
            );
            assert!(
                upper - lower <= (lower / STEPS).max(1),
                "{lower} to {upper}"
            );
            assert_eq!((bucket(lower), bucket(upper - 1)), (index, index));
        }
        assert_eq!(lower_bound_ns(BUCKETS as u64), 1 << LONGEST_BITS);
    }

    #[test]
    fn a_duration_beyond_all_bounds_is_in_the_last_bucket() {
        assert_eq!(bucket(1 << LONGEST_BITS), BUCKETS - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_sum_over_all_threads_is_exact_and_buckets_that_are_not_empty_are_told_in_order() {
        let shards = [(); 2].map(|()| Shard(array::from_fn(|_| Histogram::default())));
        for (duration_ns, shard) in [(10_000_001, 0), (3, 0), (10_000_000, 1), (0, 1)] {
            shards[shard].0[Stage::Database as usize].record(duration_ns);
        }
        assert_eq!(
            StageReport::of(&shards, Stage::Database),
            StageReport {
                count: 4,
                sum_ns: 20_000_004,
                buckets: vec![(1, 1), (4, 1), (10_485_760, 2)],
            }
        );
    }

    #[test]
    fn the_stages_of_a_request_add_up_to_its_time() {
        let begun = Instant::now();
        let after = |microseconds| move || begun + Duration::from_micros(microseconds);
        let mut laps = Laps {
            last: Some(begun),
            took_ns: [0; STAGES],
        };
        laps.lap(Stage::Admission, after(1));
        laps.lap(Stage::Connection, after(21));
        // What a lane does not tell counts for the stage after.
        laps.lap(Stage::Handover, after(321));
        laps.lap(Stage::Encoding, after(322));
        assert_eq!(laps.took_ns, [1_000, 20_000, 0, 300_000, 1_000]);
    }

    #[test]
    fn a_request_is_counted_once_in_each_stage() {
        let timings = Timings::new(true);
        timings.record(timings.start());
        let report = timings.read().unwrap();
        let stages = [
            report.admission,
            report.connection,
            report.database,
            report.handover,
            report.encoding,
        ];
        assert_eq!(stages.map(|stage| stage.count), [1; STAGES]);
    }

    #[test]
    fn no_clock_is_read_when_they_are_off() {
        let timings = Timings::new(false);
        let mut laps = timings.start();
        laps.lap(Stage::Admission, no_clock);
        assert_eq!(laps.last, None);
        timings.record(laps);
        assert!(timings.read().is_none());
    }
}
