//! Rows of any statement as JSON, by the types of their columns.

use crate::cell::encode_text;
use crate::row::{ColumnError, Columns, FromRows};

/// Rows that were encoded as they came: `[{"column":value,…},…]`.
#[derive(Debug, Default)]
pub struct Table {
    body: Vec<u8>,
}

impl Table {
    /// The JSON array of all rows.
    pub fn encode(mut self) -> Vec<u8> {
        if self.body.is_empty() {
            self.body.push(b'[');
        }
        self.body.push(b']');
        self.body
    }
}

impl FromRows for Table {
    fn push(&mut self, row: &impl Columns) -> Result<(), ColumnError> {
        let separator = if self.body.is_empty() { b'[' } else { b',' };
        self.body.push(separator);
        encode_row(row, &mut self.body)
    }
}

/// Appends a row as a JSON object, its keys in the order of the columns.
///
/// # Errors
/// A column has a type that is not known here.
pub fn encode_row(row: &impl Columns, out: &mut Vec<u8>) -> Result<(), ColumnError> {
    out.push(b'{');
    for column in 0..row.count() {
        if column > 0 {
            out.push(b',');
        }
        encode_text(row.name(column), out);
        out.push(b':');
        row.cell(column)?.encode(out).map_err(ColumnError::new)?;
    }
    out.push(b'}');
    Ok(())
}
