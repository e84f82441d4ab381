//! What a request does on a connection that it shares with others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use front::{Failure, RowSink, Session, StatementId, Work};
use futures_util::TryStreamExt;
use rust_postgres::{PostgresRow, all, bound, failure, optional};
use tokio::time::sleep;
use tokio_postgres::{Row, RowStream};
use workloads::{FromRow, FromRows, Param};

use crate::flight::{Cost, Flight};
use crate::link::Link;

/// A request's use of a connection. Its statements go one after another; those of other requests go between them.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    link: Arc<Link>,
    costs: &'a [Cost],
}

impl Shared<'_> {
    pub(crate) fn of(link: Arc<Link>, costs: &[Cost]) -> Shared<'_> {
        link.requests.fetch_add(1, Ordering::Relaxed);
        Shared { link, costs }
    }

    fn begin(&self, statement: StatementId) -> Flight<'_> {
        Flight::begin(&self.link, &self.costs[statement.index()])
    }

    async fn rows(
        &self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<RowStream, Failure> {
        let statement = self.link.statement(statement);
        let rows = self.link.client.query_raw(statement, bound(params)).await;
        rows.map_err(failure)
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.link.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session for Shared<'_> {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        let flight = self.begin(statement);
        let row = optional(self.rows(statement, params).await?).await?;
        flight.land();
        Ok(row)
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        let flight = self.begin(statement);
        let rows = all(self.rows(statement, params).await?).await?;
        flight.land();
        Ok(rows)
    }

    /// Takes all rows off the connection at once and keeps them until the sink has them: everybody's answers behind them
    /// would wait for a slow client otherwise.
    async fn stream(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        let flight = self.begin(statement);
        let rows = self.rows(statement, params).await?;
        let rows: Vec<Row> = rows.try_collect().await.map_err(failure)?;
        flight.land();
        for row in rows {
            sink.push(&PostgresRow(&row))?;
            sink.ready().await?;
        }
        Ok(())
    }

    /// Refuses: the statements of other requests would become part of it. `server.toml` skips the shapes that need one.
    async fn transaction<W: Work>(&mut self, _: W) -> Result<W::Answer, Failure> {
        Err(Failure::Database(
            "there are no transactions on a connection that requests share".into(),
        ))
    }

    /// Keeps nobody from the connection. `server.toml` skips the shape that would want that.
    async fn wait(&mut self, duration: Duration) {
        sleep(duration).await;
    }
}
