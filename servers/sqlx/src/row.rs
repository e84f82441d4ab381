//! sqlx's rows and arguments as the shapes see them.

use front::Failure;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo};
use sqlx::{Arguments, Column, Postgres, Row, Type, ValueRef};
use workloads::{Cell, ColumnError, Columns, Param, Value};

/// The parameters of a statement, to be bound.
///
/// # Errors
/// One of them cannot be encoded.
pub(crate) fn arguments(params: &[Param<'_>]) -> Result<PgArguments, Failure> {
    let mut arguments = PgArguments::default();
    for param in params {
        let added = match *param {
            Param::Int4(number) => arguments.add(number),
            Param::Int4s(numbers) => arguments.add(numbers),
            Param::Value(value) => arguments.add(Bound(value)),
        };
        added.map_err(Failure::Database)?;
    }
    Ok(arguments)
}

/// A value of the type that its definition says.
#[derive(Debug, Clone, Copy)]
struct Bound<'a>(&'a Value);

impl Type<Postgres> for Bound<'_> {
    /// Each value has its own: see [`Encode::produces`].
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Bound<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Some(bytes) = self.0.binary() else {
            return Ok(IsNull::Yes);
        };
        buffer.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.0.oid())))
    }
}

#[derive(Debug)]
pub(crate) struct SqlxRow<'a>(pub(crate) &'a PgRow);

impl Columns for SqlxRow<'_> {
    fn int4(&self, column: usize) -> Result<i32, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn text(&self, column: usize) -> Result<String, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<String>, ColumnError> {
        self.0.try_get(column).map_err(ColumnError::new)
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, ColumnError> {
        let raw = self.0.try_get_raw(column).map_err(ColumnError::new)?;
        let oid = self.0.column(column).type_info().oid();
        let value = match raw.is_null() {
            true => None,
            false => Some(raw.as_bytes().map_err(ColumnError)?),
        };
        Ok(Cell {
            oid: oid.map_or(0, |oid| oid.0),
            value,
        })
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, column: usize) -> &str {
        self.0.column(column).name()
    }
}
