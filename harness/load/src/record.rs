//! Per-request records: kept in bounded memory, dropped and counted when the writer cannot follow.

use std::path::PathBuf;
use std::sync::mpsc::Receiver;

use crate::clock::Nanos;
use crate::expect::Judgement;
use crate::measure::Exchange;
use crate::schedule::Phase;

/// Where to write one row per request, as Parquet, and how much memory that may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The file; replaced if it is there.
    pub path: PathBuf,
    /// For all workers together. At least two chunks of 8,192 requests a worker are kept anyway.
    pub memory_bytes: usize,
}

/// Requests in one chunk, which becomes one row group of the file.
const CHUNK: usize = 8 * 1024;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Judged(Judgement),
    Timeout,
    Transport,
    Unfinished,
}

impl Ending {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ending::Judged(Judgement::Correct) => "correct",
            Ending::Judged(
                Judgement::WrongMediaType | Judgement::WrongLength | Judgement::WrongBody,
            ) => "wrong",
            Ending::Judged(Judgement::Shed) => "shed",
            Ending::Judged(Judgement::HttpError(_)) => "http_error",
            Ending::Timeout => "timeout",
            Ending::Transport => "transport",
            Ending::Unfinished => "unfinished",
        }
    }
}

/// One request. Instants on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) exchange: Exchange,
    /// When it ended, however it did.
    pub(crate) done: Nanos,
    pub(crate) connection: u32,
    /// 0 without an answer.
    pub(crate) status: u16,
    pub(crate) phase: Phase,
    pub(crate) ending: Ending,
}

/// One worker's end of the way to the file.
#[derive(Debug)]
pub(crate) struct RecordKeeper {
    chunk: Vec<Record>,
    /// Emptied chunks on their way back.
    spares: Receiver<Vec<Record>>,
    pub(crate) dropped: u64,
}

impl RecordKeeper {
    pub(crate) fn new(spares: Receiver<Vec<Record>>) -> RecordKeeper {
        RecordKeeper {
            chunk: new_chunk(),
            spares,
            dropped: 0,
        }
    }

    /// Keeps a record. Returns a full chunk now and then, to be passed on.
    pub(crate) fn keep(&mut self, record: Record) -> Option<Vec<Record>> {
        let mut full = None;
        if self.chunk.len() == CHUNK {
            let Ok(spare) = self.spares.try_recv() else {
                self.dropped += 1;
                return None;
            };
            full = Some(std::mem::replace(&mut self.chunk, spare));
        }
        self.chunk.push(record);
        full
    }

    pub(crate) fn into_rest(self) -> (Vec<Record>, u64) {
        (self.chunk, self.dropped)
    }
}

pub(crate) fn new_chunk() -> Vec<Record> {
    Vec::with_capacity(CHUNK)
}

/// How many chunks each of `workers` gets, beside the one it fills.
pub(crate) fn spare_chunks(records: &Records, workers: usize) -> usize {
    let chunks = records.memory_bytes / (CHUNK * size_of::<Record>()) / workers;
    chunks.saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_writer_costs_records_but_no_memory() {
        let (give, spares) = std::sync::mpsc::channel();
        give.send(new_chunk()).unwrap();
        let mut keeper = RecordKeeper::new(spares);
        let record = Record {
            exchange: Exchange::default(),
            done: 1,
            connection: 0,
            status: 200,
            phase: Phase::Window,
            ending: Ending::Judged(Judgement::Correct),
        };
        let full: Vec<_> = (0..3 * CHUNK).filter_map(|_| keeper.keep(record)).collect();
        assert_eq!(full.len(), 1);
        let (rest, dropped) = keeper.into_rest();
        assert_eq!(
            (rest.len(), rest.capacity(), dropped),
            (CHUNK, CHUNK, CHUNK as u64)
        );
    }
}
