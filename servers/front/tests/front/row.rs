//! Rows and parameters in memory: what a driver would have read, and what it would have sent.

use workloads::{Cell, ColumnError, Columns, Param, PgType, Value};

/// A row whose columns have the types that PostgreSQL would say.
#[derive(Debug, Clone)]
pub(crate) struct Row(Vec<(&'static str, Value)>);

pub(crate) fn row<const N: usize>(columns: [(&'static str, Value); N]) -> Row {
    Row(columns.into())
}

pub(crate) fn value(pg_type: &str, text: &str) -> Value {
    Value::from_text(PgType::from_name(pg_type).unwrap(), text).unwrap()
}

pub(crate) fn null(pg_type: &str) -> Value {
    Value::null(PgType::from_name(pg_type).unwrap())
}

pub(crate) fn int4(number: i32) -> Value {
    value("int4", &number.to_string())
}

pub(crate) fn text(text: &str) -> Value {
    value("text", text)
}

/// The number that a parameter is.
pub(crate) fn number(param: &Value) -> i32 {
    i32::from_be_bytes(param.binary().unwrap().try_into().unwrap())
}

/// A parameter as a driver would have bound it.
pub(crate) fn bound(param: &Param<'_>) -> Value {
    match param {
        Param::Int4(number) => int4(*number),
        Param::Int4s(numbers) => {
            let listed: Vec<String> = numbers.iter().map(i32::to_string).collect();
            value("int4[]", &format!("{{{}}}", listed.join(",")))
        }
        Param::Value(value) => (*value).clone(),
    }
}

impl Row {
    fn of_type(&self, column: usize, pg_type: &str) -> Result<Option<&[u8]>, ColumnError> {
        let found = self.0.get(column).map(|(_, value)| value);
        let value = found.ok_or_else(|| ColumnError::new(format!("no column {column}")))?;
        match value.ty().name() == pg_type {
            true => Ok(value.binary()),
            false => Err(ColumnError::new(format!("column {column} is no {pg_type}"))),
        }
    }
}

impl Columns for Row {
    fn int4(&self, column: usize) -> Result<i32, ColumnError> {
        let bytes = self.of_type(column, "int4")?;
        let bytes = bytes.ok_or_else(|| ColumnError::new("a null"))?;
        Ok(i32::from_be_bytes(
            bytes.try_into().map_err(ColumnError::new)?,
        ))
    }

    fn text(&self, column: usize) -> Result<String, ColumnError> {
        self.text_or_null(column)?
            .ok_or_else(|| ColumnError::new("a null"))
    }

    fn text_or_null(&self, column: usize) -> Result<Option<String>, ColumnError> {
        let bytes = self.of_type(column, "text")?;
        let text = bytes.map(|bytes| String::from_utf8(bytes.to_vec()));
        text.transpose().map_err(ColumnError::new)
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, ColumnError> {
        let (_, value) = &self.0[column];
        Ok(Cell::new(value.oid(), value.binary()))
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, column: usize) -> &str {
        self.0[column].0
    }
}
