//! Where the time of a window's requests went by the server's own account: the stages of `timings` in `/usage`.

use serde::{Deserialize, Serialize};

/// What `/usage` gives of each stage since the server's start.
#[derive(Debug, Clone, Deserialize)]
pub struct Timings {
    pub admission: Counted,
    pub connection: Counted,
    pub database: Counted,
    pub handover: Counted,
    pub encoding: Counted,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Counted {
    pub count: u64,
    pub sum_ns: u64,
    /// Upper bound of a bucket in nanoseconds, and how many requests are in it; ascending, empty buckets left out.
    pub buckets: Vec<(u64, u64)>,
}

/// The stages of a window's requests, in the order in which a request passes them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Until the request has a place.
    pub admission: StageTime,
    /// Until it holds a connection and, in a blocking lane, a thread.
    pub connection: StageTime,
    /// Until the answer of its statement is decoded.
    pub database: StageTime,
    /// Until its handler goes on: what a blocking lane pays to come back.
    pub handover: StageTime,
    /// Until its body is ready.
    pub encoding: StageTime,
}

/// Nanoseconds. The mean is exact, percentiles are upper bounds of the server's buckets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    pub mean: f64,
    pub p50: u64,
    pub p99: u64,
}

impl Stages {
    /// Of the requests between two readings. `None` if there were none, or the counts run backwards.
    pub fn between(start: &Timings, end: &Timings) -> Option<Stages> {
        Some(Stages {
            admission: StageTime::between(&start.admission, &end.admission)?,
            connection: StageTime::between(&start.connection, &end.connection)?,
            database: StageTime::between(&start.database, &end.database)?,
            handover: StageTime::between(&start.handover, &end.handover)?,
            encoding: StageTime::between(&start.encoding, &end.encoding)?,
        })
    }

    /// In order, by name.
    pub fn named(&self) -> [(&'static str, StageTime); 5] {
        [
            ("admission", self.admission),
            ("connection", self.connection),
            ("database", self.database),
            ("handover", self.handover),
            ("encoding", self.encoding),
        ]
    }
}

impl StageTime {
    fn between(start: &Counted, end: &Counted) -> Option<StageTime> {
        let count = end
            .count
            .checked_sub(start.count)
            .filter(|count| *count > 0)?;
        let sum = end.sum_ns.checked_sub(start.sum_ns)?;
        let before = |bound: u64| {
            let found = start.buckets.iter().find(|(earlier, _)| *earlier == bound);
            found.map_or(0, |(_, count)| *count)
        };
        let buckets: Vec<(u64, u64)> = end
            .buckets
            .iter()
            .map(|&(bound, count)| (bound, count.saturating_sub(before(bound))))
            .collect();
        Some(StageTime {
            mean: sum as f64 / count as f64,
            p50: percentile(&buckets, 0.50)?,
            p99: percentile(&buckets, 0.99)?,
        })
    }
}

/// Nearest rank.
fn percentile(buckets: &[(u64, u64)], quantile: f64) -> Option<u64> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let rank = ((quantile * all as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let at = buckets.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    at.map(|(bound, _)| *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(count: u64, sum_ns: u64, buckets: &[(u64, u64)]) -> Counted {
        Counted {
            count,
            sum_ns,
            buckets: buckets.to_vec(),
        }
    }

    #[test]
    fn a_stage_is_the_difference_of_two_readings() {
        let start = counted(10, 10_000, &[(1_024, 10)]);
        let end = counted(110, 210_000, &[(1_024, 60), (2_048, 49), (65_536, 1)]);
        let stage = StageTime::between(&start, &end).unwrap();
        assert_eq!((stage.mean, stage.p50, stage.p99), (2_000.0, 1_024, 2_048));
    }

    #[test]
    fn no_request_has_no_stages() {
        let same = counted(10, 10_000, &[(1_024, 10)]);
        assert_eq!(StageTime::between(&same, &same), None);
        let restarted = counted(2, 2_000, &[(1_024, 2)]);
        assert_eq!(StageTime::between(&same, &restarted), None);
    }
}
