//! A definition's SQL as a query of diesel's that stays prepared.
//!
//! `diesel::sql_query` would be parsed by PostgreSQL at each request: diesel keeps it out of its cache of prepared
//! statements, since texts put together at run time could fill it. Those of the definitions are a handful, and fixed.

use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::Error;
use diesel::sql_types::{Array, Integer, Nullable, Untyped};
use workloads::Param;

/// A statement with its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'a str,
    pub(crate) params: &'a [Param<'a>],
}

impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        verbatim(self.sql, &mut out, |out| {
            self.params.iter().try_for_each(|param| match param {
                Param::Int4(number) => out.push_bind_param::<Integer, _>(number),
                Param::Int4s(numbers) => out.push_bind_param::<Array<Integer>, [i32]>(numbers),
                Param::Value(value) => Err(Error::QueryBuilderError(
                    format!("no {} is bound here", value.ty().name()).into(),
                )),
            })
        })
    }
}

/// A statement, every parameter of which is NULL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WithNulls<'a> {
    pub(crate) sql: &'a str,
    pub(crate) types: &'a [ParamType],
}

/// The types of parameters that are bound here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamType {
    Int4,
    Int4s,
}

impl QueryFragment<Pg> for WithNulls<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        verbatim(self.sql, &mut out, |out| {
            self.types.iter().try_for_each(|ty| match ty {
                ParamType::Int4 => out.push_bind_param::<Nullable<Integer>, _>(&None::<i32>),
                ParamType::Int4s => {
                    out.push_bind_param::<Nullable<Array<Integer>>, _>(&None::<Vec<i32>>)
                }
            })
        })
    }
}

/// Diesel numbers places itself, and binds nothing without writing its place. The SQL has its places already, in any
/// order and number; so diesel's go into a comment behind it.
fn verbatim<'b>(
    sql: &str,
    out: &mut AstPass<'_, 'b, Pg>,
    push_params: impl FnOnce(&mut AstPass<'_, 'b, Pg>) -> QueryResult<()>,
) -> QueryResult<()> {
    out.push_sql(sql);
    // The SQL may end in a comment of one line.
    out.push_sql("\n/*");
    push_params(out)?;
    out.push_sql("*/");
    Ok(())
}

/// Diesel then knows a statement by its text and the types of its parameters.
macro_rules! known_by_text {
    ($query:ident) => {
        impl QueryId for $query<'_> {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }

        impl Query for $query<'_> {
            type SqlType = Untyped;
        }
    };
}

known_by_text!(Statement);
known_by_text!(WithNulls);

#[cfg(test)]
mod tests {
    use diesel::debug_query;

    use super::*;

    const SQL: &str = "SELECT $2, $1, $2 -- twice";

    #[test]
    fn the_sql_is_sent_as_it_is_with_its_parameters_in_order() {
        let statement = Statement {
            sql: SQL,
            params: &[Param::Int4(7), Param::Int4s(&[1, 2])],
        };
        assert_eq!(
            debug_query::<Pg, _>(&statement).to_string(),
            "SELECT $2, $1, $2 -- twice\n/*$1$2*/ -- binds: [7, [1, 2]]"
        );
    }

    #[test]
    fn with_nulls_it_is_the_same_text() {
        let nulls = WithNulls {
            sql: SQL,
            types: &[ParamType::Int4, ParamType::Int4s],
        };
        let text = debug_query::<Pg, _>(&nulls).to_string();
        assert!(
            text.starts_with("SELECT $2, $1, $2 -- twice\n/*$1$2*/ --"),
            "{text}"
        );
    }
}
