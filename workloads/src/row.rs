//! What a lane has to tell of a row, whatever its driver, and what is made of it.

use std::error::Error;

use crate::{Cell, Value};

/// A parameter of a statement. The shapes' own have a Rust type, which a driver binds as it always does.
#[derive(Debug, Clone, Copy)]
pub enum Param<'a> {
    Int4(i32),
    Int4s(&'a [i32]),
    Value(&'a Value),
}

/// A row of any driver, read with that driver's own accessors. Columns count from 0.
pub trait Columns {
    fn int4(&self, column: usize) -> Result<i32, ColumnError>;
    fn text(&self, column: usize) -> Result<String, ColumnError>;
    fn text_or_null(&self, column: usize) -> Result<Option<String>, ColumnError>;
    /// The type and the bytes as they came, for what has no Rust type here.
    fn cell(&self, column: usize) -> Result<Cell<'_>, ColumnError>;
    fn count(&self) -> usize;
    fn name(&self, column: usize) -> &str;
}

/// A column that is not there, or not of the type the shape has. The text is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("the statement's answer does not fit its shape")]
pub struct ColumnError(#[source] pub Box<dyn Error + Send + Sync>);

impl ColumnError {
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> ColumnError {
        ColumnError(source.into())
    }
}

/// A row with a Rust type.
pub trait FromRow: Sized + Send + 'static {
    /// # Errors
    /// A column is missing, or of another type.
    fn from_row(row: &impl Columns) -> Result<Self, ColumnError>;
}

/// All rows of an answer.
pub trait FromRows: Default + Send + 'static {
    /// Takes the next row.
    ///
    /// # Errors
    /// A column is missing, or of another type.
    fn push(&mut self, row: &impl Columns) -> Result<(), ColumnError>;
}

impl<T: FromRow> FromRows for Vec<T> {
    fn push(&mut self, row: &impl Columns) -> Result<(), ColumnError> {
        Vec::push(self, T::from_row(row)?);
        Ok(())
    }
}
