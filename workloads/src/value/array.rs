//! Arrays of one dimension, from JSON and from and to PostgreSQL's literals.

use serde_json::Value as Json;

use super::{ValueError, json, scalar};
use crate::cell;
use crate::types::{PgType, Scalar};

pub(super) fn from_text(ty: PgType, text: &str) -> Result<Vec<u8>, ValueError> {
    if text.starts_with('[') {
        let json = serde_json::from_str(text).map_err(|_| ValueError::new(ty, text))?;
        return from_json(ty, &json);
    }
    let elements = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .filter(|inner| !inner.contains(['{', '}', '"', '\\']))
        .ok_or_else(|| ValueError::new(ty, text))?;
    let mut array = Array::of(ty.scalar());
    if elements.trim_ascii().is_empty() {
        return array.finish(ty, text);
    }
    for element in elements.split(',').map(str::trim_ascii) {
        match element {
            "" => return Err(ValueError::new(ty, text)),
            null if null.eq_ignore_ascii_case("null") => array.push(None),
            element => array.push(Some(scalar(ty.scalar(), element)?)),
        }
    }
    array.finish(ty, text)
}

pub(super) fn from_json(ty: PgType, json: &Json) -> Result<Vec<u8>, ValueError> {
    let elements = match json {
        Json::Array(elements) => elements,
        Json::String(text) => return from_text(ty, text),
        other => return Err(json::refused(ty, other)),
    };
    let mut array = Array::of(ty.scalar());
    for element in elements {
        match element {
            Json::Null => array.push(None),
            element => array.push(Some(json::scalar(ty.scalar(), element)?)),
        }
    }
    array.finish(ty, "the array")
}

/// PostgreSQL's literal, with every element in quotes.
pub(super) fn write_text(element: Scalar, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (lengths, mut elements) = cell::array_header(bytes)?;
    out.push(b'{');
    let mut text = Vec::new();
    for index in 0..lengths.first().copied().unwrap_or(0) {
        if index > 0 {
            out.push(b',');
        }
        let Some(bytes) = elements.element()? else {
            out.extend_from_slice(b"NULL");
            continue;
        };
        text.clear();
        cell::write_text(element, bytes, &mut text)?;
        out.push(b'"');
        for byte in &text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.push(b'}');
    Some(())
}

/// The elements in binary form, each after its length.
struct Array {
    element: Scalar,
    count: usize,
    has_null: bool,
    elements: Vec<u8>,
}

impl Array {
    fn of(element: Scalar) -> Self {
        Self {
            element,
            count: 0,
            has_null: false,
            elements: Vec::new(),
        }
    }

    fn push(&mut self, element: Option<Vec<u8>>) {
        self.count += 1;
        match element {
            // A request is far from the 2 GiB at which this would wrap; the array's own length is checked in the end.
            Some(bytes) => {
                self.elements
                    .extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                self.elements.extend_from_slice(&bytes);
            }
            None => {
                self.has_null = true;
                self.elements.extend_from_slice(&(-1_i32).to_be_bytes());
            }
        }
    }

    /// The whole: its dimensions, whether it has a NULL, the type, the dimension's length and first index, elements.
    fn finish(self, ty: PgType, given: &str) -> Result<Vec<u8>, ValueError> {
        let count = i32::try_from(self.count).ok();
        let fits = i32::try_from(self.elements.len()).is_ok();
        let count = count
            .filter(|_| fits)
            .ok_or_else(|| ValueError::new(ty, given))?;
        let mut binary = Vec::with_capacity(20 + self.elements.len());
        binary.extend_from_slice(&i32::from(count > 0).to_be_bytes());
        binary.extend_from_slice(&i32::from(self.has_null).to_be_bytes());
        binary.extend_from_slice(&self.element.oid().to_be_bytes());
        if count > 0 {
            binary.extend_from_slice(&count.to_be_bytes());
            binary.extend_from_slice(&1_i32.to_be_bytes());
        }
        binary.extend(self.elements);
        Ok(binary)
    }
}
