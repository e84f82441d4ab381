//! JSON as a value of `json` and `jsonb`, and JSON's own types as values of the others.

use serde::de::IgnoredAny;
use serde_json::{Number, Value as Json};

use super::ValueError;
use crate::types::{PgType, Scalar};

/// From here on a number that is no whole one of 64 bits may have lost digits when the JSON was read.
const EXACT_BELOW: f64 = 1e15;

pub(super) fn scalar(scalar: Scalar, json: &Json) -> Result<Vec<u8>, ValueError> {
    match (scalar, json) {
        (Scalar::Json, json) => Ok(json.to_string().into_bytes()),
        (Scalar::Jsonb, json) => {
            binary(&json.to_string()).ok_or_else(|| refused(scalar.into(), json))
        }
        (_, Json::String(text)) => super::scalar(scalar, text),
        (Scalar::Bool, Json::Bool(value)) => Ok(vec![u8::from(*value)]),
        (Scalar::Numeric, Json::Number(number)) if !is_exact(number) => {
            Err(refused(scalar.into(), json))
        }
        (
            Scalar::Int2
            | Scalar::Int4
            | Scalar::Int8
            | Scalar::Oid
            | Scalar::Float4
            | Scalar::Float8
            | Scalar::Numeric,
            Json::Number(number),
        ) => super::scalar(scalar, &number.to_string()),
        (_, json) => Err(refused(scalar.into(), json)),
    }
}

pub(super) fn refused(ty: PgType, json: &Json) -> ValueError {
    ValueError::new(ty, &json.to_string())
}

/// `json` in its binary form, which is the text itself.
pub(super) fn text(text: &str) -> Option<Vec<u8>> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text.as_bytes().to_vec())
}

/// `jsonb` in its binary form: a version, and the text.
pub(super) fn binary(json: &str) -> Option<Vec<u8>> {
    let text = text(json)?;
    if !escapes_are_characters(json) {
        return None;
    }
    let mut binary = Vec::with_capacity(1 + text.len());
    binary.push(1);
    binary.extend(text);
    Some(binary)
}

fn is_exact(number: &Number) -> bool {
    !number.is_f64()
        || number
            .as_f64()
            .is_some_and(|value| value.abs() < EXACT_BELOW)
}

/// Whether valid JSON holds neither \u0000 nor half a surrogate pair, which `jsonb` refuses and `json` keeps.
fn escapes_are_characters(json: &str) -> bool {
    let mut rest = json.as_bytes();
    let mut high_before = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        if high_before && at > 0 {
            return false;
        }
        let escape = &rest[at..];
        let length = if escape.get(1) == Some(&b'u') { 6 } else { 2 };
        let unit = escape
            .get(2..6)
            .filter(|_| length == 6)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let low = matches!(unit, Some(0xDC00..=0xDFFF));
        if unit == Some(0) || low != high_before {
            return false;
        }
        high_before = matches!(unit, Some(0xD800..=0xDBFF));
        rest = escape.get(length..).unwrap_or_default();
    }
    !high_before
}
