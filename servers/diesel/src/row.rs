//! The columns of a row of diesel's.

use std::cell::OnceCell;

use diesel::pg::Pg;
use diesel::row::{Field, Row};
use diesel::sql_types::{Integer, Nullable, Text};
use workloads::{Cell, ColumnError, Columns};

/// A row, and its fields once one of them is to be borrowed from.
pub(crate) struct PgColumns<'r, R: Row<'r, Pg>> {
    row: &'r R,
    fields: OnceCell<Vec<R::Field<'r>>>,
}

impl<'r, R: Row<'r, Pg>> PgColumns<'r, R> {
    pub(crate) fn of(row: &'r R) -> Self {
        PgColumns {
            row,
            fields: OnceCell::new(),
        }
    }

    fn field(&self, column: usize) -> Option<&R::Field<'r>> {
        let all = || (0..self.count()).map_while(|column| self.row.get(column));
        self.fields.get_or_init(|| all().collect()).get(column)
    }
}

impl<'r, R: Row<'r, Pg>> Columns for PgColumns<'r, R> {
    fn int4(&self, column: usize) -> Result<i32, ColumnError> {
        let value = self.row.get_value::<Integer, _, _>(column);
        value.map_err(ColumnError::new)
    }

    fn text(&self, column: usize) -> Result<String, ColumnError> {
        let value = self.row.get_value::<Text, _, _>(column);
        value.map_err(ColumnError::new)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<String>, ColumnError> {
        let value = self.row.get_value::<Nullable<Text>, _, _>(column);
        value.map_err(ColumnError::new)
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, ColumnError> {
        let field = self.field(column);
        let field = field.ok_or_else(|| ColumnError::new("there is no such column"))?;
        let value = field.value();
        Ok(Cell {
            // Diesel tells the type of a value alone, and NULL is none; it is `null` whatever its type.
            oid: value.map_or(0, |value| value.get_oid().get()),
            value: value.map(|value| value.as_bytes()),
        })
    }

    fn count(&self) -> usize {
        self.row.field_count()
    }

    fn name(&self, column: usize) -> &str {
        let name = self.field(column).and_then(Field::field_name);
        name.unwrap_or_default()
    }
}
