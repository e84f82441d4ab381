//! HdrHistogram V2 interval logs: one file, one line per second and histogram.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::LoadError;
use crate::measure::Interval;

/// An open log. Values are in ns, times in seconds since the run's start.
pub(crate) struct IntervalLog {
    path: PathBuf,
    file: BufWriter<File>,
    serializer: V2DeflateSerializer,
}

impl std::fmt::Debug for IntervalLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let IntervalLog {
            path,
            file: _,
            serializer: _,
        } = self;
        formatter
            .debug_struct("IntervalLog")
            .field("path", path)
            .finish_non_exhaustive()
    }
}

impl IntervalLog {
    pub(crate) fn create(path: &Path, start: SystemTime) -> Result<IntervalLog, LoadError> {
        let file = File::create(path).map_err(LoadError::write(path))?;
        let mut log = IntervalLog {
            path: path.to_owned(),
            file: BufWriter::new(file),
            serializer: V2DeflateSerializer::new(),
        };
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment(
                "Values in ns. response: from the intended instant; service: from the send;",
            )
            .add_comment("wait: for a free connection; lag: lateness of the generator itself.")
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut log.file, &mut log.serializer)
            .map_err(LoadError::write(path))?;
        let legend = b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
        log.file.write_all(legend).map_err(LoadError::write(path))?;
        Ok(log)
    }

    /// Appends the histograms of `from..to`, as offsets from the run's start.
    pub(crate) fn append(
        &mut self,
        interval: &Interval,
        from: Duration,
        to: Duration,
    ) -> Result<(), LoadError> {
        let IntervalLog {
            path,
            file,
            serializer,
        } = self;
        let failed = |message: String| LoadError::write(path)(std::io::Error::other(message));
        // Without comments and times this writes no header of its own.
        let mut writer = IntervalLogWriterBuilder::new()
            .begin_log_with(file, serializer)
            .map_err(LoadError::write(path))?;
        let tagged = [
            ("response", &interval.response),
            ("service", &interval.service),
            ("first_byte", &interval.first_byte),
            ("wait", &interval.wait),
            ("lag", &interval.lag),
        ];
        for (tag, histogram) in tagged
            .into_iter()
            .filter(|(_, histogram)| !histogram.is_empty())
        {
            writer
                .write_histogram(histogram, from, to.saturating_sub(from), Tag::new(tag))
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), LoadError> {
        self.file.flush().map_err(LoadError::write(&self.path))
    }
}
