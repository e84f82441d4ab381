//! What the requests of each shape do on a connection.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use workloads::{
    ColumnError, Columns, Comment, Delay, FeedEntry, Fortune, FromRow, Item, Order, Param, Table,
    TransferBody, Transferred, Value, encode_row,
};

use crate::session::{RowSink, Session, Work};
use crate::{Failure, StatementId};

/// How often a transaction is begun again at most.
const RETRIES: u32 = 10;
/// A streamed body goes out in parts of about this size.
const PART_BYTES: usize = 16 << 10;

/// The row that a statement gives for an id, if there is one.
#[derive(Debug)]
pub(crate) struct FindItem {
    pub(crate) statement: StatementId,
    pub(crate) id: i32,
}

impl Work for FindItem {
    type Answer = Option<Item>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Option<Item>, Failure> {
        session
            .optional(self.statement, &[Param::Int4(self.id)])
            .await
    }
}

/// A statement for each id, one after another. Nothing if one of them has no row.
#[derive(Debug)]
pub(crate) struct FindItems {
    pub(crate) statement: StatementId,
    pub(crate) ids: Vec<i32>,
}

impl Work for FindItems {
    type Answer = Option<Vec<Item>>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Option<Vec<Item>>, Failure> {
        let mut items = Vec::with_capacity(self.ids.len());
        for &id in &self.ids {
            match session.optional(self.statement, &[Param::Int4(id)]).await? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(items))
    }
}

/// One statement for all ids.
#[derive(Debug)]
pub(crate) struct FindItemsAtOnce {
    pub(crate) statement: StatementId,
    pub(crate) ids: Vec<i32>,
}

impl Work for FindItemsAtOnce {
    type Answer = Vec<Item>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Vec<Item>, Failure> {
        session
            .all(self.statement, &[Param::Int4s(&self.ids)])
            .await
    }
}

/// The one row of a statement that says how long the wait is.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) statement: StatementId,
    /// Who waits: the server, after the statement, or the statement itself.
    pub(crate) in_server: bool,
}

impl Work for Wait {
    type Answer = Delay;

    async fn run<S: Session>(self, session: &mut S) -> Result<Delay, Failure> {
        let delay: Delay = only(session.optional(self.statement, &[]).await?)?;
        if self.in_server {
            session.wait(milliseconds(&delay)).await;
        }
        Ok(delay)
    }
}

fn milliseconds(delay: &Delay) -> Duration {
    Duration::from_millis(u64::try_from(delay.waited_ms).unwrap_or(0))
}

#[derive(Debug)]
pub(crate) struct ListFortunes(pub(crate) StatementId);

impl Work for ListFortunes {
    type Answer = Vec<Fortune>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Vec<Fortune>, Failure> {
        session.all(self.0, &[]).await
    }
}

/// A page of the feed below an id.
#[derive(Debug)]
pub(crate) struct ReadFeed {
    pub(crate) statement: StatementId,
    pub(crate) before: i32,
}

impl Work for ReadFeed {
    type Answer = Vec<FeedEntry>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Vec<FeedEntry>, Failure> {
        session
            .all(self.statement, &[Param::Int4(self.before)])
            .await
    }
}

/// The statements of the shape `order`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderStatements {
    pub(crate) item: StatementId,
    pub(crate) owner: StatementId,
    pub(crate) comments: StatementId,
}

/// An item with what belongs to it, if there is one.
#[derive(Debug)]
pub(crate) struct ReadOrder {
    pub(crate) statements: OrderStatements,
    pub(crate) id: i32,
}

impl Work for ReadOrder {
    type Answer = Option<Order>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Option<Order>, Failure> {
        let OrderStatements {
            item,
            owner,
            comments,
        } = self.statements;
        let item: Option<Item> = session.optional(item, &[Param::Int4(self.id)]).await?;
        let Some(item) = item else { return Ok(None) };
        let owner = session
            .optional(owner, &[Param::Int4(item.owner_id)])
            .await?;
        let comments: Vec<Comment> = session.all(comments, &[Param::Int4(self.id)]).await?;
        Ok(Some(Order {
            item,
            owner: only(owner)?,
            comments,
        }))
    }
}

/// The statements of the shape `transfer`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferStatements {
    pub(crate) lock: StatementId,
    pub(crate) update: StatementId,
    pub(crate) record: StatementId,
}

/// Money from one account to another, in one transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) statements: TransferStatements,
    pub(crate) body: TransferBody,
}

/// A transaction that is begun again while PostgreSQL ends it for the sake of another one.
#[derive(Debug)]
pub(crate) struct Retry<W> {
    pub(crate) work: W,
    /// Counts each time, whatever becomes of the request.
    pub(crate) retries: Arc<AtomicU64>,
}

impl<W: Work + Clone> Work for Retry<W> {
    type Answer = W::Answer;

    async fn run<S: Session>(self, session: &mut S) -> Result<W::Answer, Failure> {
        for _ in 0..RETRIES {
            match session.transaction(self.work.clone()).await {
                Err(Failure::Conflict(_)) => self.retries.fetch_add(1, Ordering::Relaxed),
                done => return done,
            };
        }
        session.transaction(self.work).await
    }
}

/// A row that only has to be there.
#[derive(Debug)]
struct Any;

impl FromRow for Any {
    fn from_row(_row: &impl Columns) -> Result<Any, ColumnError> {
        Ok(Any)
    }
}

impl Work for Transfer {
    type Answer = Transferred;

    async fn run<S: Session>(self, session: &mut S) -> Result<Transferred, Failure> {
        let TransferStatements {
            lock,
            update,
            record,
        } = self.statements;
        let TransferBody {
            from,
            to,
            amount_cents,
        } = self.body;
        let both = [Param::Int4(from), Param::Int4(to)];
        let given = [both[0], both[1], Param::Int4(amount_cents)];
        let locked: Vec<Any> = session.all(lock, &both).await?;
        if locked.len() != both.len() {
            return Err(Failure::Absent);
        }
        let _: Vec<Any> = session.all(update, &given).await?;
        only(session.optional(record, &given).await?)
    }
}

/// The rows of any statement.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) statement: StatementId,
    pub(crate) values: Vec<Value>,
}

impl Work for Select {
    type Answer = Table;

    async fn run<S: Session>(self, session: &mut S) -> Result<Table, Failure> {
        session.all(self.statement, &params_of(&self.values)).await
    }
}

/// The row of a statement that inserts one, as JSON; nothing if there was a conflict.
#[derive(Debug)]
pub(crate) struct Create {
    pub(crate) statement: StatementId,
    pub(crate) values: Vec<Value>,
}

/// A row of any statement, as a JSON object.
#[derive(Debug)]
pub(crate) struct Object(pub(crate) Vec<u8>);

impl FromRow for Object {
    fn from_row(row: &impl Columns) -> Result<Object, ColumnError> {
        let mut object = Vec::with_capacity(128);
        encode_row(row, &mut object)?;
        Ok(Object(object))
    }
}

impl Work for Create {
    type Answer = Option<Object>;

    async fn run<S: Session>(self, session: &mut S) -> Result<Option<Object>, Failure> {
        session
            .optional(self.statement, &params_of(&self.values))
            .await
    }
}

/// The rows of any statement, sent on as they arrive.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) statement: StatementId,
    pub(crate) values: Vec<Value>,
    pub(crate) lines: Lines,
}

impl Work for Export {
    type Answer = ();

    async fn run<S: Session>(mut self, session: &mut S) -> Result<(), Failure> {
        let params = params_of(&self.values);
        session
            .stream(self.statement, &params, &mut self.lines)
            .await?;
        self.lines.send().await
    }
}

/// Rows as lines of JSON, on their way to a client.
#[derive(Debug)]
pub(crate) struct Lines {
    part: Vec<u8>,
    parts: mpsc::Sender<Bytes>,
}

impl Lines {
    pub(crate) fn to(parts: mpsc::Sender<Bytes>) -> Lines {
        Lines {
            part: Lines::empty_part(),
            parts,
        }
    }

    /// With room for the row that makes it full.
    fn empty_part() -> Vec<u8> {
        Vec::with_capacity(PART_BYTES + PART_BYTES / 4)
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let part = mem::replace(&mut self.part, Lines::empty_part());
        let sent = self.parts.send(part.into()).await;
        sent.map_err(|_| Failure::ClientGone)
    }
}

impl RowSink for Lines {
    fn push(&mut self, row: &impl Columns) -> Result<(), ColumnError> {
        encode_row(row, &mut self.part)?;
        self.part.push(b'\n');
        Ok(())
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        match self.part.len() >= PART_BYTES {
            true => self.send().await,
            false => Ok(()),
        }
    }
}

fn params_of(values: &[Value]) -> Vec<Param<'_>> {
    values.iter().map(Param::Value).collect()
}

/// The row of a statement that always gives one.
fn only<T>(row: Option<T>) -> Result<T, Failure> {
    row.ok_or_else(|| Failure::Database("the statement gave no row".into()))
}
