//! Row types and their encoders. The order of the fields is the order of the columns in the SQL and of the keys
//! in the JSON, which lets the harness derive the same bytes from PostgreSQL's own `row_to_json`.

use askama::Template;
use bytes::Bytes;
use serde::{Serialize, Serializer};

use crate::cell::encode_timestamptz;
use crate::row::{ColumnError, Columns, FromRow};

/// The answer of the shape `greeting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Greeting<'a> {
    pub greeting: &'a str,
}

/// The row of the shapes `item`, `items` and `items-at-once`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: i32,
    pub owner_id: i32,
    pub title: String,
    pub description: Option<String>,
    pub price_cents: i32,
    pub stock: i32,
}

/// The row of the shapes `delay` and `held`: how long the wait is, by the statement's own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delay {
    pub waited_ms: i32,
}

/// The row of the shape `feed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedEntry {
    pub id: i32,
    pub title: String,
    pub price_cents: i32,
    pub created_at: Timestamp,
    pub seller: String,
}

/// The row of the shape `fortunes`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fortune {
    // First, since fortunes are sorted by it: by its bytes, as the collation "C" does.
    pub message: String,
    pub id: i32,
}

/// The answer of the shape `order`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Order {
    #[serde(flatten)]
    pub item: Item,
    pub owner: Owner,
    pub comments: Vec<Comment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub id: i32,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    pub id: i32,
    pub user_id: i32,
    pub body: String,
}

/// The row of the shape `transfer`: what the ledger has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transferred {
    pub from_account: i32,
    pub to_account: i32,
    pub amount_cents: i32,
}

/// An instant, in microseconds since the year 2000, as PostgreSQL counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(i64);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(32);
        encode_timestamptz(self.0, &mut text);
        // It is written for a JSON body, with its quotes.
        let text = std::str::from_utf8(&text).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(text.trim_matches('"'))
    }
}

impl FromRow for Item {
    fn from_row(row: &impl Columns) -> Result<Item, ColumnError> {
        Ok(Item {
            id: row.int4(0)?,
            owner_id: row.int4(1)?,
            title: row.text(2)?,
            description: row.text_or_null(3)?,
            price_cents: row.int4(4)?,
            stock: row.int4(5)?,
        })
    }
}

impl FromRow for Delay {
    fn from_row(row: &impl Columns) -> Result<Delay, ColumnError> {
        Ok(Delay {
            waited_ms: row.int4(0)?,
        })
    }
}

impl FromRow for FeedEntry {
    fn from_row(row: &impl Columns) -> Result<FeedEntry, ColumnError> {
        Ok(FeedEntry {
            id: row.int4(0)?,
            title: row.text(1)?,
            price_cents: row.int4(2)?,
            created_at: Timestamp::from_column(row, 3)?,
            seller: row.text(4)?,
        })
    }
}

impl FromRow for Fortune {
    fn from_row(row: &impl Columns) -> Result<Fortune, ColumnError> {
        Ok(Fortune {
            id: row.int4(0)?,
            message: row.text(1)?,
        })
    }
}

impl FromRow for Owner {
    fn from_row(row: &impl Columns) -> Result<Owner, ColumnError> {
        Ok(Owner {
            id: row.int4(0)?,
            name: row.text(1)?,
        })
    }
}

impl FromRow for Comment {
    fn from_row(row: &impl Columns) -> Result<Comment, ColumnError> {
        Ok(Comment {
            id: row.int4(0)?,
            user_id: row.int4(1)?,
            body: row.text(2)?,
        })
    }
}

impl FromRow for Transferred {
    fn from_row(row: &impl Columns) -> Result<Transferred, ColumnError> {
        Ok(Transferred {
            from_account: row.int4(0)?,
            to_account: row.int4(1)?,
            amount_cents: row.int4(2)?,
        })
    }
}

impl Timestamp {
    /// The drivers' own types for an instant are three different crates'; the eight bytes are the same.
    fn from_column(row: &impl Columns, column: usize) -> Result<Timestamp, ColumnError> {
        let cell = row.cell(column)?;
        let bytes = cell.value.and_then(|bytes| bytes.try_into().ok());
        let bytes =
            bytes.ok_or_else(|| ColumnError::new("a timestamptz is expected, and no null"))?;
        Ok(Timestamp(i64::from_be_bytes(bytes)))
    }
}

impl Greeting<'_> {
    pub fn encode(&self) -> Bytes {
        json(self, 16 + self.greeting.len())
    }
}

impl Item {
    pub fn encode(&self) -> Bytes {
        json(self, self.capacity())
    }

    pub fn encode_all(items: &[Item]) -> Bytes {
        json(
            &items,
            2 + items.iter().map(|item| 1 + item.capacity()).sum::<usize>(),
        )
    }

    /// Keys, punctuation and the longest numbers come to about 130 bytes.
    fn capacity(&self) -> usize {
        130 + self.title.len() + self.description.as_ref().map_or(0, String::len)
    }
}

impl Delay {
    pub fn encode(&self) -> Bytes {
        json(self, 32)
    }
}

impl FeedEntry {
    pub fn encode_all(entries: &[FeedEntry]) -> Bytes {
        json(&entries, 2 + entries.len() * 160)
    }
}

impl Order {
    pub fn encode(&self) -> Bytes {
        json(self, self.item.capacity() + 96 + self.comments.len() * 128)
    }
}

impl Transferred {
    pub fn encode(&self) -> Bytes {
        json(self, 80)
    }
}

/// The row that the server adds to those of the database.
pub const ADDED_FORTUNE: &str = "The queue you join is the one that stops.";

#[derive(Template)]
#[template(path = "fortunes.html")]
struct FortunesPage<'a> {
    fortunes: &'a [Fortune],
}

impl Fortune {
    /// The page of all fortunes and the added one, ordered by their messages.
    ///
    /// # Errors
    /// None in practice: the template writes to memory.
    pub fn page(mut fortunes: Vec<Fortune>) -> Result<Bytes, ColumnError> {
        fortunes.push(Fortune {
            id: 0,
            message: ADDED_FORTUNE.to_owned(),
        });
        fortunes.sort_unstable();
        let page = FortunesPage {
            fortunes: &fortunes,
        };
        page.render().map(Bytes::from).map_err(ColumnError::new)
    }
}

/// Compact JSON. `capacity` spares the reallocations; it need not be exact.
fn json(row: &impl Serialize, capacity: usize) -> Bytes {
    let mut body = Vec::with_capacity(capacity);
    // Only a failing writer, a failing `Serialize` or a non-string key can make this fail: none is possible here.
    match serde_json::to_writer(&mut body, row) {
        Ok(()) => Bytes::from(body),
        Err(_) => Bytes::new(),
    }
}

#[cfg(test)]
mod tests;
