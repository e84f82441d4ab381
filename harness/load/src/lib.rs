//! An HTTP/1.1 load engine that measures what it says it measures.
//!
//! The engine knows no database and no server: it sends the requests of a [`RequestTable`] to one
//! address, as a [`Plan`] says, and returns an [`Outcome`].
//!
//! - One OS thread per generator CPU, edge-triggered epoll, no async runtime, no allocation per
//!   request in the steady state.
//! - Closed loop (N connections, optional think time) or open loop (instants fixed beforehand; response
//!   time counts from the *intended* instant, so that a stalled server cannot hide its queue).
//! - Every answer is checked: status, media type, length, body. Only correct answers are goodput.
//! - Every request is accounted for, see [`Counts`], and for each distinct one [`RequestCounts`].
//!
//! ```no_run
//! use std::sync::{Arc, atomic::AtomicBool};
//! use load::{Plan, Request, RequestTable, run};
//!
//! let table = RequestTable::in_turn(vec![Request::get("/hello")])?;
//! let target = std::net::SocketAddr::from(([127, 0, 0, 1], 8080));
//! let plan = Plan { connections: 32, ..Plan::new(target, "localhost:8080", Arc::new(table)) };
//! let outcome = run(&plan, &mut |_event| {}, &AtomicBool::new(false))?;
//! println!("{:.0}/s, p99 {} ns", outcome.achieved_rate(), outcome.response.value_at_quantile(0.99));
//! # Ok::<(), load::LoadError>(())
//! ```

mod answer;
mod chunked;
mod clock;
mod collect;
mod connection;
mod error;
mod exchange;
mod expect;
mod head;
mod interval_log;
mod ledger;
mod limits;
mod measure;
#[doc(hidden)]
pub mod microbench;
mod null_server;
mod outcome;
mod parquet;
mod plan;
mod probe;
mod record;
mod report;
mod request;
mod run;
mod schedule;
mod slots;
mod thrift;
mod timetable;
mod unique;
mod usage;
mod verdict;
mod worker;

pub use chunked::Chunked;
pub use error::LoadError;
pub use expect::{Expect, ExpectBody, Judgement, body_hash};
pub use hdrhistogram::Histogram;
pub use head::Malformed;
pub use ledger::RequestCounts;
pub use limits::allow_connections;
pub use null_server::{NullServer, ceiling};
pub use outcome::{Connections, Counts, ErrorKind, Failure, Outcome};
pub use plan::{Event, Live, Plan};
pub use probe::jitter;
pub use record::Records;
pub use request::{Request, RequestTable};
pub use run::run;
pub use schedule::{Arrivals, End, Pacing, Phase};
pub use unique::Unique;
pub use usage::ThreadUsage;
pub use verdict::{Bound, Check, Verdict};
