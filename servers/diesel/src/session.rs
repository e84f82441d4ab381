//! What the front asks of a connection, as diesel does it. Every call blocks until its answer is there.

use std::thread;
use std::time::Duration;

use diesel::PgConnection;
use diesel::connection::{
    AnsiTransactionManager, DefaultLoadingMode, LoadConnection, TransactionManager,
};
use diesel::result::Error;
use front::{Failure, RowSink, Session, StatementId, Work};
use workloads::{FromRow, FromRows, Param};

use crate::failure::failure;
use crate::row::PgColumns;
use crate::statement::{Params, Statement};

/// A connection of the pool, for one request.
pub(crate) struct Lent<'a> {
    pub(crate) connection: &'a mut PgConnection,
    /// By their places.
    pub(crate) statements: &'a [String],
}

type Rows<'conn, 'query> =
    <PgConnection as LoadConnection<DefaultLoadingMode>>::Cursor<'conn, 'query>;

impl Lent<'_> {
    /// All rows have arrived when this returns.
    fn load(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Rows<'static, 'static>, Failure> {
        let statement = Statement {
            sql: &self.statements[statement.index()],
            params: Params::Given(params),
        };
        let rows = LoadConnection::<DefaultLoadingMode>::load(self.connection, statement);
        rows.map_err(|error| self.failed(error))
    }

    /// Diesel takes a connection that was lost while a statement was prepared for a good one; the pool asks diesel.
    fn failed(&mut self, error: Error) -> Failure {
        let failure = failure(error);
        if matches!(failure, Failure::ConnectionLost(_)) {
            AnsiTransactionManager::transaction_manager_status_mut(self.connection).set_in_error();
        }
        failure
    }
}

impl Session for Lent<'_> {
    async fn optional<T: FromRow>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<Option<T>, Failure> {
        let mut rows = self.load(statement, params)?;
        let Some(row) = rows.next() else {
            return Ok(None);
        };
        let row = row.map_err(|error| self.failed(error))?;
        Ok(Some(T::from_row(&PgColumns::of(&row))?))
    }

    async fn all<T: FromRows>(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
    ) -> Result<T, Failure> {
        let mut all = T::default();
        for row in self.load(statement, params)? {
            let row = row.map_err(|error| self.failed(error))?;
            all.push(&PgColumns::of(&row))?;
        }
        Ok(all)
    }

    /// Only statements of any parameters and columns are streamed, which `server.toml` skips.
    async fn stream(
        &mut self,
        _statement: StatementId,
        _params: &[Param<'_>],
        _sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        Err(Failure::Database(
            "this lane does not stream: see `skip` in its server.toml".into(),
        ))
    }

    /// As `Connection::transaction` does it, which takes nothing that can be awaited.
    async fn transaction<W: Work>(&mut self, work: W) -> Result<W::Answer, Failure> {
        type Manager = AnsiTransactionManager;
        Manager::begin_transaction(self.connection).map_err(|error| self.failed(error))?;
        let done = work.run(self).await;
        // A connection whose transaction could not be ended is not lent again: diesel remembers it.
        let ended = match done {
            Ok(_) => Manager::commit_transaction(self.connection),
            Err(_) => Manager::rollback_transaction(self.connection),
        };
        match (done, ended.map_err(|error| self.failed(error))) {
            (Ok(_), Err(failure)) => Err(failure),
            (done, _) => done,
        }
    }

    async fn wait(&mut self, duration: Duration) {
        thread::sleep(duration);
    }
}
