//! What a run found: counts that add up, histograms, errors by kind, and the engine's own figures.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::expect::Judgement;
use crate::ledger::RequestCounts;
use crate::schedule::Phase;
use crate::usage::ThreadUsage;
use crate::verdict::{Check, Verdict};

/// The nine terms. `scheduled` equals the sum of the others, always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Requests that were due in the phase.
    pub scheduled: u64,
    /// Answered exactly as expected: goodput.
    pub correct: u64,
    /// The status was right, the media type, length or body was not.
    pub wrong: u64,
    /// An unexpected status other than 503.
    pub http_error: u64,
    /// 503 where it was not expected.
    pub shed: u64,
    /// No complete answer within the time allowed.
    pub timeout: u64,
    /// The connection failed, or what came was not HTTP.
    pub transport: u64,
    /// Due, but never sent: no connection was free until the end.
    pub unsent: u64,
    /// Sent, and not answered at the end.
    pub unfinished: u64,
}

impl Counts {
    /// Requests the server answered completely.
    pub fn answered(&self) -> u64 {
        self.correct + self.wrong + self.http_error + self.shed
    }

    /// Requests whose bytes went to a connection.
    pub fn sent(&self) -> u64 {
        self.scheduled - self.unsent
    }

    /// Requests that ended in anything but a correct answer.
    pub fn failed(&self) -> u64 {
        self.scheduled - self.correct
    }

    /// Whether `scheduled = correct + wrong + http error + shed + timeout + transport + unsent + unfinished`.
    pub fn is_exact(&self) -> bool {
        let ended = self.answered() + self.timeout + self.transport;
        self.scheduled == ended + self.unsent + self.unfinished
    }

    pub(crate) fn judged(&mut self, judgement: Judgement) {
        match judgement {
            Judgement::Correct => self.correct += 1,
            Judgement::WrongMediaType | Judgement::WrongLength | Judgement::WrongBody => {
                self.wrong += 1
            }
            Judgement::Shed => self.shed += 1,
            Judgement::HttpError(_) => self.http_error += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.scheduled += other.scheduled;
        self.correct += other.correct;
        self.wrong += other.wrong;
        self.http_error += other.http_error;
        self.shed += other.shed;
        self.timeout += other.timeout;
        self.transport += other.transport;
        self.unsent += other.unsent;
        self.unfinished += other.unfinished;
    }
}

/// What went wrong, down to the operating system's error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A connection could not be opened (errno).
    Connect(i32),
    /// A connection was not there in time.
    ConnectTimeout,
    /// Sending failed (errno).
    Send(i32),
    /// Receiving failed (errno).
    Receive(i32),
    /// The server closed the connection instead of answering.
    ClosedBeforeAnswer,
    /// The server closed the connection within an answer.
    ClosedWithinAnswer,
    /// What came is not HTTP/1.1, for this reason.
    Malformed(&'static str),
    /// The server sent bytes without having been asked.
    Unasked,
    /// No complete answer within the time allowed.
    Timeout,
    /// An answer that is not as expected.
    Answer(Judgement),
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let os = |errno: i32| std::io::Error::from_raw_os_error(errno);
        match *self {
            ErrorKind::Connect(errno) => write!(formatter, "connect: {}", os(errno)),
            ErrorKind::ConnectTimeout => {
                write!(formatter, "connect: no answer within the time allowed")
            }
            ErrorKind::Send(errno) => write!(formatter, "send: {}", os(errno)),
            ErrorKind::Receive(errno) => write!(formatter, "receive: {}", os(errno)),
            ErrorKind::ClosedBeforeAnswer => write!(
                formatter,
                "the server closed the connection without an answer"
            ),
            ErrorKind::ClosedWithinAnswer => write!(
                formatter,
                "the server closed the connection within an answer"
            ),
            ErrorKind::Malformed(reason) => write!(formatter, "not a valid answer: {reason}"),
            ErrorKind::Unasked => write!(formatter, "the server sent bytes without a request"),
            ErrorKind::Timeout => write!(formatter, "timeout"),
            ErrorKind::Answer(Judgement::Correct) => write!(formatter, "correct"),
            ErrorKind::Answer(Judgement::WrongMediaType) => write!(formatter, "wrong media type"),
            ErrorKind::Answer(Judgement::WrongLength) => write!(formatter, "wrong body length"),
            ErrorKind::Answer(Judgement::WrongBody) => write!(formatter, "wrong body"),
            ErrorKind::Answer(Judgement::Shed) => write!(formatter, "status 503"),
            ErrorKind::Answer(Judgement::HttpError(status)) => write!(formatter, "status {status}"),
        }
    }
}

/// One request that did not go well, kept for the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Index into the table's requests.
    pub request: u32,
    /// Where in the run it was due.
    pub phase: Phase,
    /// What went wrong.
    pub kind: ErrorKind,
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// What would have been right, in words.
    pub expected: String,
    /// The first bytes of the body, or of what came instead of an answer; at most 256.
    pub got: Vec<u8>,
}

/// Connections over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    /// Asked for in the plan.
    pub asked: usize,
    /// Open when the run started.
    pub established: usize,
    /// Slots that got at least one answer.
    pub served: usize,
    /// Opened again after the server or an error closed one.
    pub reopened: u64,
}

/// Everything a run found. Histograms hold 1 ns to 60 s with three digits; longer times count as 60 s.
#[derive(Debug)]
pub struct Outcome {
    /// Requests due in the window.
    pub counts: Counts,
    /// Requests due in the warm-up. Together with `counts`: all requests of the run.
    pub warmup: Counts,
    /// For each request of the table, by its index: what was sent and what was acknowledged over the
    /// whole run, warm-up included.
    pub by_request: Vec<RequestCounts>,
    /// Above every unique number of this run: the `Plan::first_unique` of one that shall repeat none.
    pub next_unique: u64,
    /// Correct answers that arrived within the window, whenever they were due.
    pub correct_in_window: u64,
    /// The window as it really was: shorter than planned only if the run was interrupted.
    pub window: Duration,
    /// Whether `stop` ended the run.
    pub interrupted: bool,
    /// Intended instant to last byte, ns; correct answers of the window.
    pub response: Histogram<u64>,
    /// Send to last byte, ns; correct answers of the window.
    pub service: Histogram<u64>,
    /// Send to first byte, ns; correct answers of the window.
    pub first_byte: Histogram<u64>,
    /// Intended instant until a connection was free, ns; every request of the window that was sent.
    pub wait: Histogram<u64>,
    /// How late the generator itself was: send - max(intended, free), ns; as `wait`.
    pub lag: Histogram<u64>,
    /// Time to open a connection, ns, over the whole run.
    pub connect: Histogram<u64>,
    /// Connections asked for, established and served.
    pub connections: Connections,
    /// Failures of requests of the window, and of connections at any time, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The first failures of the run, warm-up included; at most `Plan::keep_failures`.
    pub failures: Vec<Failure>,
    /// Lower bounds of the response times of the window's timeouts, unfinished and unsent requests, ns.
    pub censored: Histogram<u64>,
    /// CPU time of the generator's threads in the window, including what they spent spinning.
    pub cpu: Duration,
    /// Each generator thread within the window.
    pub threads: Vec<ThreadUsage>,
    /// How late a thread on these CPUs wakes without any load, ns, right before the run; empty if the
    /// plan asked for no probe.
    pub jitter: Histogram<u64>,
    /// Share of the (last) probe's time in which something else had its CPU, for the worst thread. `None` without a probe or
    /// where the kernel does not tell.
    pub jitter_run_queue: Option<f64>,
    /// |L - lambda W| / L over the window, with L from counting sends and ends, and lambda W from the
    /// requests' own instants. Not zero: requests were lost or booked twice. `None` without requests.
    pub little_residual: Option<f64>,
    /// Per-request records that did not fit the memory for them.
    pub records_dropped: u64,
    /// The figures the verdict rests on.
    pub checks: Vec<Check>,
    /// Whether the figures describe the server.
    pub verdict: Verdict,
}

impl Outcome {
    /// Response times in ns with the lower bounds of what got no answer among them, so that percentiles
    /// are lower bounds too and nothing vanishes.
    pub fn response_with_bounds(&self) -> Histogram<u64> {
        let mut all = self.response.clone();
        // Both have the same range and precision, which is all that could differ.
        let _ = all.add(&self.censored);
        all
    }

    /// Correct answers per second of the window.
    pub fn achieved_rate(&self) -> f64 {
        let seconds = self.window.as_secs_f64();
        if seconds > 0.0 {
            self.correct_in_window as f64 / seconds
        } else {
            0.0
        }
    }
}
