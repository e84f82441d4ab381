//! The fixed forms of a request and its answer.

use bytes::Bytes;

use crate::{Bind, Distribution, EVENTS, HTML, JSON, Method, NDJSON, TEXT, Workload};

/// The fixed form of a request and its answer. Statements take ids as `int4`.
#[derive(Debug, Clone)]
pub enum Shape {
    /// `GET /<workload>`; `text/plain`, the body as defined. No database.
    Text { body: Bytes },
    /// `GET /<workload>`; a [`Greeting`](crate::Greeting), serialised for each request. No database.
    Greeting { greeting: String },
    /// `GET /<workload>/<id>`; one [`Item`](crate::Item) as JSON, or 404.
    Item { sql: String, id: Distribution },
    /// `GET /<workload>/<id>,<id>,…`; an array of [`Item`](crate::Item)s, read one after another on one connection.
    Items {
        sql: String,
        id: Distribution,
        count: usize,
    },
    /// `GET /<workload>/<id>,<id>,…`; an array of [`Item`](crate::Item)s by one statement that takes `int4[]`.
    ItemsAtOnce {
        sql: String,
        id: Distribution,
        count: usize,
    },
    /// `GET /<workload>`; one [`Delay`](crate::Delay) as JSON. The statement waits inside the database.
    Delay { sql: String },
    /// `GET /<workload>`; one [`Delay`](crate::Delay) as JSON. The server waits as long as its statement's row says,
    /// and holds the connection meanwhile.
    Held { sql: String },
    /// `GET /<workload>`; one [`Delay`](crate::Delay) as JSON. The server waits, without a connection.
    Free { wait_ms: u32 },
    /// `GET /<workload>`; a page of all [`Fortune`](crate::Fortune)s and one more, sorted and escaped.
    Fortunes { sql: String },
    /// `GET /<workload>/<before>`; an array of [`FeedEntry`](crate::FeedEntry)s below an id.
    Feed { sql: String, before: Distribution },
    /// `GET /<workload>/<id>`; one [`Order`](crate::Order) by three statements, or 404.
    Order {
        item: String,
        owner: String,
        comments: String,
        id: Distribution,
    },
    /// `POST /<workload>` with a [`TransferBody`](crate::TransferBody); one [`Transferred`](crate::Transferred), by a
    /// transaction of three statements.
    Transfer {
        lock: String,
        update: String,
        record: String,
        account: Distribution,
        amount_cents: Distribution,
    },
    /// `POST /<workload>` with the parameters as a JSON object; 201 and the row as a JSON object, or 409 where the
    /// statement gives none.
    Create(Query),
    /// The parameters in the query of the URL, or in a JSON object unless it is a GET; an array of the rows, encoded by
    /// the types of the columns.
    Table(Query),
    /// As `table`, but streamed: one row a line.
    Export(Query),
    /// Requests of other workloads, each as often as its weight says. It has no route.
    Mix { parts: Vec<(Workload, u32)> },
    /// `GET /<workload>`; server-sent events, one for each NOTIFY on the channel.
    Live { channel: String },
}

/// A statement with typed parameters.
#[derive(Debug, Clone)]
pub struct Query {
    pub method: Method,
    pub sql: String,
    /// In the order of `$1`, `$2`, and so on.
    pub binds: Vec<Bind>,
}

impl Shape {
    /// The names a definition may give as `shape`, with what each is for.
    pub const NAMES: [(&'static str, &'static str); 17] = [
        ("text", "a fixed body, no database"),
        ("greeting", "a small JSON object, no database"),
        ("item", "one row by primary key, as JSON"),
        ("items", "several rows, a statement each on one connection"),
        ("items-at-once", "several rows by one statement"),
        ("delay", "one statement that waits inside the database"),
        ("held", "a wait in the server that holds a connection"),
        ("free", "a wait in the server without a connection"),
        ("fortunes", "a list as an escaped HTML page"),
        ("feed", "a keyset page with a join, as JSON"),
        ("order", "one row with what belongs to it, nested"),
        ("transfer", "a transaction that moves money"),
        ("create", "one row inserted, or a conflict"),
        ("table", "any statement, its rows as JSON by column type"),
        ("export", "the same, streamed a row a line"),
        ("mix", "a weighted mix of other workloads"),
        ("live", "server-sent events from LISTEN and NOTIFY"),
    ];

    pub fn name(&self) -> &'static str {
        match self {
            Shape::Text { .. } => "text",
            Shape::Greeting { .. } => "greeting",
            Shape::Item { .. } => "item",
            Shape::Items { .. } => "items",
            Shape::ItemsAtOnce { .. } => "items-at-once",
            Shape::Delay { .. } => "delay",
            Shape::Held { .. } => "held",
            Shape::Free { .. } => "free",
            Shape::Fortunes { .. } => "fortunes",
            Shape::Feed { .. } => "feed",
            Shape::Order { .. } => "order",
            Shape::Transfer { .. } => "transfer",
            Shape::Create(_) => "create",
            Shape::Table(_) => "table",
            Shape::Export(_) => "export",
            Shape::Mix { .. } => "mix",
            Shape::Live { .. } => "live",
        }
    }

    /// Of an answer that is right.
    pub fn media_type(&self) -> &'static str {
        match self {
            Shape::Text { .. } => TEXT,
            Shape::Fortunes { .. } => HTML,
            Shape::Export(_) => NDJSON,
            Shape::Live { .. } => EVENTS,
            Shape::Greeting { .. }
            | Shape::Item { .. }
            | Shape::Items { .. }
            | Shape::ItemsAtOnce { .. }
            | Shape::Delay { .. }
            | Shape::Held { .. }
            | Shape::Free { .. }
            | Shape::Feed { .. }
            | Shape::Order { .. }
            | Shape::Transfer { .. }
            | Shape::Create(_)
            | Shape::Table(_)
            | Shape::Mix { .. } => JSON,
        }
    }
}
