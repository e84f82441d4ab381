//! What was sent and what was acknowledged, for each distinct request.

use crate::request::{Request, RequestTable};

/// One distinct request over the whole run, warm-up included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests that were given to a connection, whatever became of them.
    pub sent: u64,
    /// Correct answers, for each accepted answer: that of `Request::expect`, then those of
    /// `Request::or` in their order. Never empty.
    pub correct: Vec<u64>,
}

impl RequestCounts {
    /// Requests without a correct answer. The server may have done what they asked for, or not.
    pub fn uncertain(&self) -> u64 {
        self.sent - self.correct.iter().sum::<u64>()
    }
}

/// The counts of all requests in a row: for each how often it was sent, then its correct answers, so
/// that a request and its answer touch the same cache line.
#[derive(Debug)]
pub(crate) struct Ledger {
    cells: Vec<u64>,
}

/// How many cells a request takes.
pub(crate) fn width(request: &Request) -> usize {
    1 + request.accepted().count()
}

impl Ledger {
    pub(crate) fn new(table: &RequestTable) -> Ledger {
        Ledger {
            cells: vec![0; table.requests.iter().map(width).sum()],
        }
    }

    /// `row` is `Encoded::row`.
    pub(crate) fn sent(&mut self, row: u32) {
        self.cells[row as usize] += 1;
    }

    /// `answer` counts the request's accepted answers from 0.
    pub(crate) fn correct(&mut self, row: u32, answer: usize) {
        self.cells[row as usize + 1 + answer] += 1;
    }

    /// Both of the same table.
    pub(crate) fn add(&mut self, other: &Ledger) {
        for (sum, part) in self.cells.iter_mut().zip(&other.cells) {
            *sum += part;
        }
    }

    pub(crate) fn counts(&self, table: &RequestTable) -> Vec<RequestCounts> {
        let mut rest = self.cells.iter().copied();
        let counts = table.requests.iter().map(|request| RequestCounts {
            sent: rest.next().unwrap_or(0),
            correct: rest.by_ref().take(width(request) - 1).collect(),
        });
        counts.collect()
    }
}
