//! The contract that the servers and the harness share: which workloads exist, what a request of each looks
//! like, and the exact bytes of its answer.
//!
//! A workload is data: one TOML file beside one SQL file. Code knows shapes only, so a new workload of a known
//! shape needs no Rust. A shape owns its row type and its encoder; bytes are equal across lanes by construction.

mod answer;
mod definition;
mod params;

pub use answer::{Delay, Item};
pub use definition::{Catalog, DefinitionError};
pub use params::{Distribution, Sampler};

use bytes::Bytes;

/// One workload, validated: nothing in it can be refused later.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The file's stem; also the first segment of its path.
    pub name: String,
    pub about: String,
    pub shape: Shape,
    pub expect: Expectation,
}

/// The fixed form of a request and its answer.
#[derive(Debug, Clone)]
pub enum Shape {
    /// `GET /<workload>`; `text/plain`, the body as defined. No database.
    Text { body: Bytes },
    /// `GET /<workload>/<id>`; one [`Item`] as JSON, or 404. The statement takes the id as `int4`.
    Item { sql: String, id: Distribution },
    /// `GET /<workload>`; one [`Delay`] as JSON. The statement takes nothing and waits inside the database.
    Delay { sql: String },
}

/// What PostgreSQL sees for one successful request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    pub statements: u32,
    pub transactions: u32,
}

/// The media type of every JSON answer.
pub const JSON: &str = "application/json";
/// The media type of every text answer.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// One distinct request of a workload. Requests are always GET: no shape so far writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    pub path: String,
    /// The shape's parameter, where it has one; bound as `$1`.
    pub id: Option<i32>,
}

impl Shape {
    /// The names a definition may give as `shape`, with what each is for.
    pub const NAMES: [(&'static str, &'static str); 3] = [
        ("text", "a fixed body, no database"),
        ("item", "one row by primary key, as JSON"),
        ("delay", "one statement that waits inside the database"),
    ];

    pub fn name(&self) -> &'static str {
        match self {
            Shape::Text { .. } => "text",
            Shape::Item { .. } => "item",
            Shape::Delay { .. } => "delay",
        }
    }

    /// The statement a lane prepares for this shape, if it has one.
    pub fn sql(&self) -> Option<&str> {
        match self {
            Shape::Text { .. } => None,
            Shape::Item { sql, .. } | Shape::Delay { sql } => Some(sql),
        }
    }

    pub fn media_type(&self) -> &'static str {
        match self {
            Shape::Text { .. } => TEXT,
            Shape::Item { .. } | Shape::Delay { .. } => JSON,
        }
    }
}

impl Workload {
    /// `count` requests drawn from the workload's distributions. The same seed gives the same requests.
    pub fn draw(&self, count: usize, seed: u64) -> Vec<Request> {
        match &self.shape {
            Shape::Text { .. } | Shape::Delay { .. } => vec![self.request(None); count],
            Shape::Item { id, .. } => {
                let mut ids = id.sampler(seed);
                (0..count).map(|_| self.request(Some(ids.draw()))).collect()
            }
        }
    }

    /// How many distinct requests the workload can make.
    pub fn population(&self) -> usize {
        match &self.shape {
            Shape::Text { .. } | Shape::Delay { .. } => 1,
            Shape::Item { id, .. } => id.population(),
        }
    }

    fn request(&self, id: Option<i32>) -> Request {
        let path = match id {
            Some(id) => format!("/{}/{id}", self.name),
            None => format!("/{}", self.name),
        };
        Request { path, id }
    }
}
