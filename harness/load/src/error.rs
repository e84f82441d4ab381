//! Why a run could not take place at all. What happens to single requests is data, see `Outcome`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A run that could not start, or could not go on. One line each: what is wrong and what to do, with
/// the operating system's words in it, so that there is no further source to print.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The request, the table or the plan makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No connection at all could be opened.
    #[error("cannot connect to {target}: {cause}; is the server running and listening there?")]
    Connect {
        /// Where the connections were to go.
        target: SocketAddr,
        /// The operating system's words, or that the time was up.
        cause: String,
    },
    /// The process may not open enough sockets.
    #[error(
        "{connections} connections need {needed} file descriptors, but the hard limit is {limit}; \
         ask for fewer connections, or raise the limit (ulimit -Hn)"
    )]
    FileLimit {
        /// Connections asked for.
        connections: usize,
        /// Descriptors needed in total.
        needed: u64,
        /// The hard limit of this process.
        limit: u64,
    },
    /// A worker thread could not be bound to its CPU.
    #[error("cannot pin a generator thread to CPU {cpu}: {cause}; allowed CPUs: {allowed}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// What this process may use.
        allowed: String,
        /// The operating system's answer.
        cause: std::io::Error,
    },
    /// `stop` was set before the first request was due.
    #[error("interrupted before the first request")]
    Stopped,
    /// A file with observations could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// The operating system's answer.
        cause: std::io::Error,
    },
    /// A system call failed that never should.
    #[error("{call} failed: {cause}")]
    Os {
        /// Which call.
        call: &'static str,
        /// The operating system's answer.
        cause: std::io::Error,
    },
}

impl LoadError {
    pub(crate) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> LoadError {
        move |cause| LoadError::Write {
            path: path.to_owned(),
            cause,
        }
    }

    pub(crate) fn os(call: &'static str) -> impl FnOnce(rustix::io::Errno) -> LoadError {
        move |errno| LoadError::Os {
            call,
            cause: errno.into(),
        }
    }
}
