//! Per-request records as a Parquet file (<https://parquet.apache.org/docs/file-format/>).
//!
//! One fixed, flat schema of required columns, PLAIN encoded and gzip compressed, one page per column
//! chunk: small enough to write here, where the general crate would cost every user a minute of
//! compiling.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};

use crate::LoadError;
use crate::clock::Nanos;
use crate::record::Record;
use crate::schedule::{Phase, Phases};
use crate::thrift::Compact;

const MAGIC: &[u8] = b"PAR1";
/// The format's numbers (parquet.thrift).
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const GZIP: i64 = 2;
const DATA_PAGE: i64 = 0;
const REQUIRED: i64 = 0;
const UTF8: i64 = 0;

/// A column's physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int32 = 1,
    Int64 = 2,
    Text = 6,
}

/// The columns in their order. Times are ns since the start of the run's schedule.
const COLUMNS: [(&str, Kind); 10] = [
    ("intended_ns", Kind::Int64),
    ("free_ns", Kind::Int64),
    ("sent_ns", Kind::Int64),
    ("first_byte_ns", Kind::Int64),
    ("done_ns", Kind::Int64),
    ("request", Kind::Int32),
    ("connection", Kind::Int32),
    ("status", Kind::Int32),
    ("phase", Kind::Text),
    ("outcome", Kind::Text),
];

/// What the footer must say about a column chunk.
#[derive(Debug)]
struct Chunk {
    offset: u64,
    plain_bytes: u64,
    stored_bytes: u64,
}

#[derive(Debug)]
struct RowGroup {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// A file being written. Readable only after `finish`.
#[derive(Debug)]
pub(crate) struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    groups: Vec<RowGroup>,
}

impl RecordFile {
    pub(crate) fn create(path: &Path) -> Result<RecordFile, LoadError> {
        let file = File::create(path).map_err(LoadError::write(path))?;
        let mut file = RecordFile {
            path: path.to_owned(),
            file: BufWriter::new(file),
            written: 0,
            groups: Vec::new(),
        };
        file.write(MAGIC)?;
        Ok(file)
    }

    /// Writes `records` as one row group.
    pub(crate) fn append(&mut self, records: &[Record], start: Nanos) -> Result<(), LoadError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(COLUMNS.len());
        for column in 0..COLUMNS.len() {
            let mut plain = Vec::with_capacity(8 * records.len());
            for record in records {
                encode(column, record, start, &mut plain);
            }
            let stored = gzip(&plain).map_err(LoadError::write(&self.path))?;
            let header = page_header(records.len(), plain.len(), stored.len());
            let offset = self.written;
            self.write(&header)?;
            self.write(&stored)?;
            chunks.push(Chunk {
                offset,
                plain_bytes: (header.len() + plain.len()) as u64,
                stored_bytes: (header.len() + stored.len()) as u64,
            });
        }
        self.groups.push(RowGroup {
            rows: records.len() as u64,
            chunks,
        });
        Ok(())
    }

    /// Writes the footer, with the window's edges as metadata.
    pub(crate) fn finish(mut self, phases: &Phases) -> Result<(), LoadError> {
        let footer = footer(&self.groups, phases);
        self.write(&footer)?;
        // A footer of 4 GiB would take 10^11 records.
        self.write(
            &u32::try_from(footer.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes(),
        )?;
        self.write(MAGIC)?;
        self.file.flush().map_err(LoadError::write(&self.path))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        self.written += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(LoadError::write(&self.path))
    }
}

fn encode(column: usize, record: &Record, start: Nanos, into: &mut Vec<u8>) {
    let exchange = &record.exchange;
    let mut instant =
        |instant: Nanos| into.extend_from_slice(&instant.saturating_sub(start).to_le_bytes());
    match column {
        0 => instant(exchange.intended),
        1 => instant(exchange.free),
        2 => instant(exchange.sent),
        3 => instant(exchange.first_byte),
        4 => instant(record.done),
        5 => into.extend_from_slice(&exchange.request.to_le_bytes()),
        6 => into.extend_from_slice(&record.connection.to_le_bytes()),
        7 => into.extend_from_slice(&u32::from(record.status).to_le_bytes()),
        8 => text(
            into,
            if record.phase == Phase::Window {
                "window"
            } else {
                "warmup"
            },
        ),
        _ => text(into, record.ending.name()),
    }
}

fn text(into: &mut Vec<u8>, text: &str) {
    // Names of a few bytes.
    into.extend_from_slice(&(text.len() as u32).to_le_bytes());
    into.extend_from_slice(text.as_bytes());
}

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn page_header(values: usize, plain_bytes: usize, stored_bytes: usize) -> Vec<u8> {
    let mut header = Compact::new();
    header.int32(1, DATA_PAGE);
    header.int32(2, plain_bytes as i64);
    header.int32(3, stored_bytes as i64);
    header.begin_struct(5);
    header.int32(1, values as i64);
    header.int32(2, PLAIN);
    header.int32(3, RLE);
    header.int32(4, RLE);
    header.end_struct();
    header.finish()
}

fn footer(groups: &[RowGroup], phases: &Phases) -> Vec<u8> {
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    let mut footer = Compact::new();
    footer.int32(1, 1);
    footer.begin_list(2, COLUMNS.len() + 1);
    schema(&mut footer);
    footer.int64(3, rows.cast_signed());
    footer.begin_list(4, groups.len());
    for group in groups {
        row_group(&mut footer, group);
    }
    let edges = [
        ("window_start_ns", phases.window_start),
        ("window_end_ns", phases.window_end),
    ];
    footer.begin_list(5, edges.len());
    for (key, instant) in edges {
        footer.begin_element();
        footer.text(1, key);
        footer.text(2, &instant.saturating_sub(phases.start).to_string());
        footer.end_struct();
    }
    footer.text(6, concat!("lanebench ", env!("CARGO_PKG_VERSION")));
    footer.finish()
}

fn schema(footer: &mut Compact) {
    footer.begin_element();
    footer.text(4, "request");
    footer.int32(5, COLUMNS.len() as i64);
    footer.end_struct();
    for (name, kind) in COLUMNS {
        footer.begin_element();
        footer.int32(1, kind as i64);
        footer.int32(3, REQUIRED);
        footer.text(4, name);
        if kind == Kind::Text {
            footer.int32(6, UTF8);
        }
        footer.end_struct();
    }
}

fn row_group(footer: &mut Compact, group: &RowGroup) {
    footer.begin_element();
    footer.begin_list(1, group.chunks.len());
    for ((name, kind), chunk) in COLUMNS.into_iter().zip(&group.chunks) {
        footer.begin_element();
        footer.int64(2, chunk.offset.cast_signed());
        footer.begin_struct(3);
        footer.int32(1, kind as i64);
        footer.int32_list(2, &[PLAIN, RLE]);
        footer.text_list(3, &[name]);
        footer.int32(4, GZIP);
        footer.int64(5, group.rows.cast_signed());
        footer.int64(6, chunk.plain_bytes.cast_signed());
        footer.int64(7, chunk.stored_bytes.cast_signed());
        footer.int64(9, chunk.offset.cast_signed());
        footer.end_struct();
        footer.end_struct();
    }
    footer.int64(
        2,
        group
            .chunks
            .iter()
            .map(|chunk| chunk.plain_bytes.cast_signed())
            .sum(),
    );
    footer.int64(3, group.rows.cast_signed());
    footer.end_struct();
}
