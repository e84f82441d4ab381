//! What a run writes is read back by other means than it was written by: interval logs by
//! hdrhistogram's reader, records by a small reader of Parquet's footer and pages.

#![allow(unreachable_pub, clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use load::{Arrivals, End, Histogram, Outcome, Pacing, Plan, Records, Request, RequestTable, run};
use support::{Reply, Stub, ok};

/// A file that is removed when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("load-test-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn two_seconds(change: impl FnOnce(Plan) -> Plan) -> Outcome {
    let stub = Stub::start(|number, _| match number % 100 {
        0 => Reply::now("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        _ => Reply {
            after: Duration::from_millis(1),
            ..Reply::now(ok("hello"))
        },
    });
    let table = RequestTable::in_turn(vec![Request::get("/a"), Request::get("/b")]).unwrap();
    let plan = change(Plan {
        connections: 8,
        pacing: Pacing::Open {
            rate: 4000.0,
            arrivals: Arrivals::Poisson { seed: 3 },
        },
        end: End::Timed {
            warmup: Duration::from_millis(300),
            window: Duration::from_millis(2000),
            drain: Duration::from_secs(1),
        },
        ..Plan::new(stub.address, "localhost", Arc::new(table))
    });
    run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

#[test]
fn the_interval_log_adds_up_to_the_outcome() {
    let file = Scratch::new("intervals.hlog");
    let outcome = two_seconds(|plan| Plan {
        interval_log: Some(file.0.clone()),
        ..plan
    });
    let text = std::fs::read(&file.0).unwrap();
    let mut sums: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(&text) {
        let LogEntry::Interval(entry) = entry.unwrap() else {
            continue;
        };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(entry.encoded_histogram())
            .unwrap();
        let part: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        let sum = sums.entry(entry.tag().unwrap().as_str().to_owned());
        sum.or_insert_with(|| Histogram::new(3).unwrap())
            .add(part)
            .unwrap();
        assert!(entry.start_timestamp() < Duration::from_secs(4));
        intervals += 1;
    }
    assert!(intervals >= 5 * 2, "{intervals}");
    let expected = [
        ("response", &outcome.response),
        ("service", &outcome.service),
        ("first_byte", &outcome.first_byte),
        ("wait", &outcome.wait),
        ("lag", &outcome.lag),
    ];
    for (tag, histogram) in expected {
        assert_eq!(&sums[tag], histogram, "{tag}");
    }
}

#[test]
fn every_request_has_its_record_and_none_was_sent_before_its_time() {
    let file = Scratch::new("records.parquet");
    let records = Records {
        path: file.0.clone(),
        memory_bytes: 16 << 20,
    };
    let outcome = two_seconds(|plan| Plan {
        records: Some(records),
        ..plan
    });
    assert_eq!(outcome.records_dropped, 0);
    let table = parquet::read(&std::fs::read(&file.0).unwrap());
    let count = |phase: &str, ending: &str| {
        let rows = table["phase"].iter().zip(&table["outcome"]);
        rows.filter(|row| *row == (&parquet::Cell::from(phase), &parquet::Cell::from(ending)))
            .count() as u64
    };
    assert_eq!(count("window", "correct"), outcome.counts.correct);
    assert_eq!(count("window", "http_error"), outcome.counts.http_error);
    assert_eq!(
        count("warmup", "correct") + count("warmup", "http_error"),
        outcome.warmup.scheduled
    );
    assert!(outcome.counts.http_error > 20);
    let column = |name: &str| table[name].iter().map(parquet::Cell::number);
    let instants = column("intended_ns")
        .zip(column("free_ns"))
        .zip(column("sent_ns"));
    for (((intended, free), sent), (first_byte, done)) in
        instants.zip(column("first_byte_ns").zip(column("done_ns")))
    {
        assert!(intended <= sent && free <= sent && sent < first_byte && first_byte <= done);
    }
    let mut intended: Vec<i64> = column("intended_ns").collect();
    intended.sort_unstable();
    intended.dedup();
    assert_eq!(
        intended.len() as u64,
        outcome.counts.scheduled + outcome.warmup.scheduled
    );
    let statuses: std::collections::BTreeSet<i64> = column("status").collect();
    assert_eq!(statuses, [200, 500].into());
    assert!(column("connection").all(|connection| (0..8).contains(&connection)));
}

/// Enough of Parquet to read flat, required, PLAIN, gzip columns.
mod parquet {
    use super::{BTreeMap, Read};

    #[derive(Debug, Clone, PartialEq)]
    pub enum Cell {
        Number(i64),
        Text(String),
    }

    impl From<&str> for Cell {
        fn from(text: &str) -> Cell {
            Cell::Text(text.to_owned())
        }
    }

    impl Cell {
        pub fn number(&self) -> i64 {
            match self {
                Cell::Number(number) => *number,
                Cell::Text(text) => panic!("{text} is not a number"),
            }
        }
    }

    /// A value of Thrift's compact protocol.
    #[derive(Debug, Clone)]
    enum Thrift {
        Number(i64),
        Bytes(Vec<u8>),
        List(Vec<Thrift>),
        Struct(BTreeMap<i16, Thrift>),
    }

    impl Thrift {
        fn field(&self, number: i16) -> &Thrift {
            match self {
                Thrift::Struct(fields) => &fields[&number],
                other => panic!("{other:?} has no fields"),
            }
        }

        fn number(&self) -> i64 {
            match self {
                Thrift::Number(number) => *number,
                other => panic!("{other:?} is not a number"),
            }
        }

        fn list(&self) -> &[Thrift] {
            match self {
                Thrift::List(items) => items,
                other => panic!("{other:?} is not a list"),
            }
        }

        fn text(&self) -> String {
            match self {
                Thrift::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
                other => panic!("{other:?} is not text"),
            }
        }
    }

    fn byte(input: &mut &[u8]) -> u8 {
        let (first, rest) = input.split_first().unwrap();
        *input = rest;
        *first
    }

    fn varint(input: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let next = byte(input);
            value |= u64::from(next & 0x7f) << shift;
            if next < 0x80 {
                break;
            }
        }
        value
    }

    fn value(input: &mut &[u8], kind: u8) -> Thrift {
        match kind {
            5 | 6 => {
                let raw = varint(input);
                Thrift::Number((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
            }
            8 => {
                let length = usize::try_from(varint(input)).unwrap();
                let (bytes, rest) = input.split_at(length);
                *input = rest;
                Thrift::Bytes(bytes.to_vec())
            }
            9 => {
                let head = byte(input);
                let length = if head >> 4 == 15 {
                    varint(input)
                } else {
                    u64::from(head >> 4)
                };
                Thrift::List((0..length).map(|_| value(input, head & 15)).collect())
            }
            12 => {
                let mut fields = BTreeMap::new();
                let mut number = 0;
                loop {
                    let head = byte(input);
                    if head == 0 {
                        return Thrift::Struct(fields);
                    }
                    number += i16::from(head >> 4);
                    fields.insert(number, value(input, head & 15));
                }
            }
            other => panic!("type {other} is not used"),
        }
    }

    /// The columns by name.
    pub fn read(file: &[u8]) -> BTreeMap<String, Vec<Cell>> {
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        let length = u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize;
        let mut footer = &file[file.len() - 8 - length..file.len() - 8];
        let footer = value(&mut footer, 12);
        let mut table: BTreeMap<String, Vec<Cell>> = BTreeMap::new();
        for group in footer.field(4).list() {
            for chunk in group.field(1).list() {
                let meta = chunk.field(3);
                let name = meta.field(3).list()[0].text();
                let mut page = &file[usize::try_from(meta.field(9).number()).unwrap()..];
                let header = value(&mut page, 12);
                let stored = usize::try_from(header.field(3).number()).unwrap();
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&page[..stored])
                    .read_to_end(&mut plain)
                    .unwrap();
                assert_eq!(plain.len() as i64, header.field(2).number());
                let cells = cells(&plain, meta.field(1).number());
                assert_eq!(cells.len() as i64, group.field(3).number());
                table.entry(name).or_default().extend(cells);
            }
        }
        assert!(
            table
                .values()
                .all(|column| column.len() as i64 == footer.field(3).number())
        );
        table
    }

    fn cells(mut plain: &[u8], kind: i64) -> Vec<Cell> {
        let mut cells = Vec::new();
        while !plain.is_empty() {
            let width = if kind == 2 { 8 } else { 4 };
            let (head, rest) = plain.split_at(width);
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(head);
            let number = i64::from_le_bytes(wide);
            plain = rest;
            if kind == 6 {
                let (text, rest) = plain.split_at(usize::try_from(number).unwrap());
                cells.push(Cell::Text(String::from_utf8(text.to_vec()).unwrap()));
                plain = rest;
            } else {
                cells.push(Cell::Number(number));
            }
        }
        cells
    }
}
