//! Preparing every statement on a new connection. Diesel prepares a statement only to execute it right away, so it is
//! executed: with NULL for every parameter, in a transaction that may not write and is rolled back. Most then read
//! nothing, and what writes is refused.

use diesel::connection::{
    AnsiTransactionManager, DefaultLoadingMode, LoadConnection, SimpleConnection,
    TransactionManager,
};
use diesel::pg::sql_types::Oid;
use diesel::sql_types::Array;
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl, sql_query};

use crate::statement::{ParamType, Params, Statement};

/// `lc_messages` needs a superuser. `is_superuser` is a setting that everybody may read.
const UNTRANSLATED: &str =
    "SELECT set_config('lc_messages', 'C', false) WHERE current_setting('is_superuser')::bool";
/// The limit is for statements that take long even so; they are prepared by then.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '1s'";
/// The OIDs of PostgreSQL's `pg_type.dat`, fixed for all versions.
const INT4: u32 = 23;
const INT4_ARRAY: u32 = 1007;

/// Errors as PostgreSQL words them in its own language, if the user may ask for that.
pub(crate) fn untranslate(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(UNTRANSLATED)
}

/// Prepares a statement, unless it has a parameter that no shape of this lane has.
///
/// # Errors
/// PostgreSQL does not accept the statement, or the connection was lost.
pub(crate) fn prepare(connection: &mut PgConnection, sql: &str) -> QueryResult<()> {
    let Some(types) = parameter_types(connection, sql)? else {
        return Ok(());
    };
    let params = Params::Nulls(&types);
    AnsiTransactionManager::begin_transaction_sql(connection, BEGIN)?;
    // That it can be prepared is known; what it says to NULL in a read-only transaction does not matter.
    let _ = LoadConnection::<DefaultLoadingMode>::load(connection, Statement { sql, params });
    AnsiTransactionManager::rollback_transaction(connection)
}

#[derive(QueryableByName)]
struct Prepared {
    #[diesel(sql_type = Array<Oid>)]
    parameter_types: Vec<u32>,
}

/// Lets PostgreSQL prepare the statement for a moment, which executes nothing, and asks what its parameters are. None if
/// one of them is bound by no shape of this lane.
fn parameter_types(
    connection: &mut PgConnection,
    sql: &str,
) -> QueryResult<Option<Vec<ParamType>>> {
    sql_query(format!("PREPARE lanebench AS {sql}")).execute(connection)?;
    let prepared: Prepared = sql_query(
        "SELECT parameter_types::oid[] AS parameter_types FROM pg_prepared_statements WHERE name = 'lanebench'",
    )
    .get_result(connection)?;
    sql_query("DEALLOCATE lanebench").execute(connection)?;
    let types = prepared.parameter_types.into_iter();
    let bound = types.map(|oid| match oid {
        INT4 => Some(ParamType::Int4),
        INT4_ARRAY => Some(ParamType::Int4s),
        _ => None,
    });
    Ok(bound.collect())
}
