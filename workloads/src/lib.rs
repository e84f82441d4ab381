//! The contract that the servers and the harness share: which workloads exist, what a request of each looks
//! like, and the exact bytes of its answer.
//!
//! A workload is data: one TOML file beside one SQL file. Code knows shapes only, so a new workload of a known
//! shape needs no Rust. A shape owns its row type and its encoder; bytes are equal across lanes by construction.

mod answer;
mod bind;
mod cell;
mod definition;
mod params;
mod request;
mod row;
mod shape;
mod table;
mod types;
mod value;

pub use answer::{
    ADDED_FORTUNE, Comment, Delay, FeedEntry, Fortune, Greeting, Item, Order, Owner, Timestamp,
    Transferred,
};
pub use bind::{Bind, Draw, UNIQUE, UNIQUE_DIGITS};
pub use cell::{Cell, CellError, encode_text, encode_timestamptz};
pub use definition::{Catalog, DefinitionError};
pub use params::{Distribution, Sampler};
pub use request::{Args, Method, Request, TransferBody};
pub use row::{ColumnError, Columns, FromRow, FromRows, Param};
pub use shape::{Query, Shape};
pub use table::{Table, encode_row};
pub use types::{PgType, Scalar, UnknownType};
pub use value::{Value, ValueError};

/// One workload, validated: nothing in it can be refused later.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The file's stem; also the first segment of its path.
    pub name: String,
    pub about: String,
    pub shape: Shape,
    /// Of a mix: nothing; its parts have theirs.
    pub expect: Expectation,
    pub audit: Audit,
    /// What goes on beside it while it is measured.
    pub background: Option<Background>,
}

impl Workload {
    /// Whether a request may change what the database holds, itself or beside it.
    pub fn writes(&self) -> bool {
        let writes = |part: &&Workload| {
            part.audit != Audit::default()
                || match &part.shape {
                    Shape::Transfer { .. } | Shape::Create(_) => true,
                    Shape::Table(query) => query.method != Method::Get,
                    _ => false,
                }
        };
        let beside = self.background.as_ref();
        self.parts().iter().any(writes)
            || beside.is_some_and(|background| background.workload.writes())
    }
}

/// What PostgreSQL sees for one successful request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expectation {
    pub statements: u32,
    pub transactions: u32,
}

/// Statements that are asked after the server has gone: whether the database holds what was acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Gives `(answer text, times int8)`: how often the effect of each answer is in the database. The answer is the
    /// body, or each element of a body that is an array.
    pub effects: Option<String>,
    /// Gives a text for each rule that is broken.
    pub violations: Option<String>,
}

/// A closed loop on another workload of the same server.
#[derive(Debug, Clone)]
pub struct Background {
    pub workload: Box<Workload>,
    pub connections: usize,
    /// The same workload without it, to be measured as well.
    pub alone: Option<String>,
    /// Requests a second to measure at beside it, unless something else is asked for.
    pub rate: Option<u32>,
}

/// The media type of every JSON answer.
pub const JSON: &str = "application/json";
/// The media type of a refusal, RFC 9457.
pub const PROBLEM: &str = "application/problem+json";
/// The media type of every text answer.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// The media type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The media type of streamed rows, one JSON object a line.
pub const NDJSON: &str = "application/x-ndjson";
/// The media type of server-sent events.
pub const EVENTS: &str = "text/event-stream";
