//! What a request does on a connection: written once, run by every lane.

use std::future::Future;
use std::time::Duration;

use workloads::{ColumnError, Columns, FromRow, FromRows, Param};

use crate::{Failure, StatementId};

/// What one request does on its connection.
///
/// It is a value rather than a closure, so that a blocking lane can carry it to the thread that holds the connection,
/// and so that it can be compiled for each lane's own driver.
pub trait Work: Send + 'static {
    type Answer: Send + 'static;

    /// # Errors
    /// A statement failed, or its answer does not fit.
    fn run<S: Session>(
        self,
        session: &mut S,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// A connection, lent for one request. One statement at a time is on its way.
///
/// A blocking lane blocks within these calls: its futures are ready at once.
pub trait Session: Send {
    /// The row of a statement that gives one at most.
    ///
    /// # Errors
    /// The statement failed, or its answer does not fit.
    fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Option<T>, Failure>> + Send;

    /// Every row of a statement.
    ///
    /// # Errors
    /// The statement failed, or its answer does not fit.
    fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<T, Failure>> + Send;

    /// Gives the rows of a statement to `sink` as they arrive, no faster than it takes them.
    ///
    /// # Errors
    /// The statement failed, its answer does not fit, or the sink is closed.
    fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Does `work` in a transaction, which is committed if it succeeds and rolled back if it does not. If the request is
    /// dropped before, the connection is lent to nobody else until it has been rolled back.
    ///
    /// # Errors
    /// The work failed, or the transaction could not be begun or ended.
    fn transaction<W: Work>(
        &mut self,
        work: W,
    ) -> impl Future<Output = Result<W::Answer, Failure>> + Send;

    /// Waits as this lane's programs do, and holds the connection meanwhile.
    fn wait(&mut self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// Where streamed rows go.
pub trait RowSink: Send {
    /// Takes the next row.
    ///
    /// # Errors
    /// A column has a type that is not known.
    fn push(&mut self, row: &impl Columns) -> Result<(), ColumnError>;

    /// Waits until it has room for more rows.
    ///
    /// # Errors
    /// Nobody wants them any more.
    fn ready(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}
