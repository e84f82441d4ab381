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
    pub(crate) params: Params<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Params<'a> {
    Given(&'a [Param<'a>]),
    /// NULL for each of them.
    Nulls(&'a [ParamType]),
}

/// The types of parameters that are bound here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamType {
    Int4,
    Int4s,
}

impl QueryFragment<Pg> for Statement<'_> {
    /// Diesel numbers places itself, and binds nothing without writing its place. The SQL has its places already, in any
    /// order and number; so diesel's go into a comment behind it.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(self.sql);
        // On a line of its own: the SQL may end in a comment.
        out.push_sql("\n/*");
        match self.params {
            Params::Given(params) => params.iter().try_for_each(|param| given(param, &mut out)),
            Params::Nulls(types) => types.iter().try_for_each(|ty| null(*ty, &mut out)),
        }?;
        out.push_sql("*/");
        Ok(())
    }
}

fn given<'b>(param: &'b Param<'_>, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    match param {
        Param::Int4(number) => out.push_bind_param::<Integer, _>(number),
        Param::Int4s(numbers) => out.push_bind_param::<Array<Integer>, [i32]>(numbers),
        Param::Value(value) => Err(Error::QueryBuilderError(
            format!("this lane binds no {}", value.ty().name()).into(),
        )),
    }
}

fn null(ty: ParamType, out: &mut AstPass<'_, '_, Pg>) -> QueryResult<()> {
    match ty {
        ParamType::Int4 => out.push_bind_param::<Nullable<Integer>, _>(&None::<i32>),
        ParamType::Int4s => out.push_bind_param::<Nullable<Array<Integer>>, _>(&None::<Vec<i32>>),
    }
}

/// Diesel then knows a statement by its text and the types of its parameters.
impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Statement<'_> {
    type SqlType = Untyped;
}

#[cfg(test)]
mod tests {
    use diesel::debug_query;

    use super::*;

    fn sent(params: Params<'_>) -> String {
        let sql = "SELECT $2, $1, $2 -- twice";
        debug_query::<Pg, _>(&Statement { sql, params }).to_string()
    }

    #[test]
    fn the_sql_is_sent_as_it_is_with_its_parameters_in_order() {
        let text = sent(Params::Given(&[Param::Int4(7), Param::Int4s(&[1, 2])]));
        assert_eq!(
            text,
            "SELECT $2, $1, $2 -- twice\n/*$1$2*/ -- binds: [7, [1, 2]]"
        );
    }

    #[test]
    fn with_nulls_it_is_the_same_text() {
        let text = sent(Params::Nulls(&[ParamType::Int4, ParamType::Int4s]));
        assert_eq!(
            text,
            "SELECT $2, $1, $2 -- twice\n/*$1$2*/ -- binds: [None, None]"
        );
    }
}
