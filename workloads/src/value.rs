//! Typed parameters: text from a query string or JSON from a body, read once into PostgreSQL's binary form, which
//! every driver can bind without knowing the type.
//!
//! What is accepted is part of what PostgreSQL's own input functions accept, and means the same there.

mod array;
mod bytes;
mod json;
mod numeric;
mod time;

use std::net::IpAddr;

use thiserror::Error;

use crate::cell;
use crate::types::{PgType, Scalar};

/// The names of longer values are cut off in errors.
const SHOWN_CHARACTERS: usize = 40;
/// One byte less than the `name` of PostgreSQL, which ends in a zero.
const MAX_NAME_BYTES: usize = 63;

/// A value that PostgreSQL can take for a parameter of its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Value {
    ty: PgType,
    binary: Option<Vec<u8>>,
}

/// Something that is no value of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{given} is no {name}: give {accepted}", name = ty.name(), accepted = accepted(*ty))]
pub struct ValueError {
    /// Of an element in the array, the element's.
    pub ty: PgType,
    /// What was given, as one line of limited length.
    pub given: String,
}

fn accepted(ty: PgType) -> String {
    let scalar = ty.scalar();
    if ty.is_array() {
        let name = scalar.name();
        format!(
            "a JSON array, [a,b], or {{a,b}} without quotes, in which each {name} is {}",
            scalar.accepts()
        )
    } else {
        scalar.accepts().to_owned()
    }
}

impl ValueError {
    fn new(ty: impl Into<PgType>, given: &str) -> Self {
        let mut shown: String = given.chars().take(SHOWN_CHARACTERS).collect();
        if shown.len() < given.len() {
            shown.push('…');
        }
        Self {
            ty: ty.into(),
            given: format!("{shown:?}"),
        }
    }
}

impl Value {
    pub fn null(ty: PgType) -> Self {
        Self { ty, binary: None }
    }

    /// From the text of a query string. Arrays have one dimension and are given as JSON, `["a","b"]`, or as `{a,b}`,
    /// in which NULL is a null and no element holds quotes, braces, commas or backslashes.
    pub fn from_text(ty: PgType, text: &str) -> Result<Self, ValueError> {
        let binary = if ty.is_array() {
            array::from_text(ty, text)?
        } else {
            scalar(ty.scalar(), text)?
        };
        Ok(Self {
            ty,
            binary: Some(binary),
        })
    }

    /// From JSON. `null` is NULL; numbers, booleans and arrays are taken for types of their kind, any JSON for `json` and
    /// `jsonb`, and strings for every other type as [`Value::from_text`] takes them. An object of `json` gets its keys
    /// in `serde_json`'s order; `jsonb` has an order of its own.
    pub fn from_json(ty: PgType, json: &serde_json::Value) -> Result<Self, ValueError> {
        let binary = match json {
            serde_json::Value::Null => None,
            json if ty.is_array() => Some(array::from_json(ty, json)?),
            json => Some(json::scalar(ty.scalar(), json)?),
        };
        Ok(Self { ty, binary })
    }

    pub fn ty(&self) -> PgType {
        self.ty
    }

    pub fn oid(&self) -> u32 {
        self.ty.oid()
    }

    /// What a Bind message carries in the binary format; None is NULL.
    pub fn binary(&self) -> Option<&[u8]> {
        self.binary.as_deref()
    }

    /// A text from which PostgreSQL reads the same value; None is NULL.
    pub fn to_text(&self) -> Option<String> {
        let bytes = self.binary()?;
        let mut out = Vec::with_capacity(bytes.len());
        if self.ty.is_array() {
            array::write_text(self.ty.scalar(), bytes, &mut out)?;
        } else {
            cell::write_text(self.ty.scalar(), bytes, &mut out)?;
        }
        String::from_utf8(out).ok()
    }
}

/// The binary form of a scalar that is given as text.
fn scalar(scalar: Scalar, text: &str) -> Result<Vec<u8>, ValueError> {
    let read = match scalar {
        Scalar::Bool => boolean(text).map(|value| vec![u8::from(value)]),
        Scalar::Int2 => text.parse().ok().map(|n: i16| n.to_be_bytes().to_vec()),
        Scalar::Int4 => text.parse().ok().map(|n: i32| n.to_be_bytes().to_vec()),
        Scalar::Int8 => text.parse().ok().map(|n: i64| n.to_be_bytes().to_vec()),
        // From PostgreSQL 16 on, a number with a leading zero is octal here, and before it is decimal.
        Scalar::Oid if text.len() > 1 && text.trim_start_matches('+').starts_with('0') => None,
        Scalar::Oid => text.parse().ok().map(|n: u32| n.to_be_bytes().to_vec()),
        Scalar::Float4 => text
            .parse()
            .ok()
            .filter(|n: &f32| in_range(text, n.is_infinite(), *n == 0.0))
            .map(|n| n.to_be_bytes().to_vec()),
        Scalar::Float8 => text
            .parse()
            .ok()
            .filter(|n: &f64| in_range(text, n.is_infinite(), *n == 0.0))
            .map(|n| n.to_be_bytes().to_vec()),
        Scalar::Numeric => numeric::read(text),
        Scalar::Text | Scalar::Varchar | Scalar::Bpchar => plain(text, usize::MAX),
        Scalar::Name => plain(text, MAX_NAME_BYTES),
        Scalar::Uuid => bytes::uuid(text),
        Scalar::Bytea => bytes::bytea(text),
        Scalar::Date => time::date(text).map(|days| days.to_be_bytes().to_vec()),
        Scalar::Time => time::time(text).map(|micros| micros.to_be_bytes().to_vec()),
        Scalar::Timestamp => time::timestamp(text).map(|micros| micros.to_be_bytes().to_vec()),
        Scalar::Timestamptz => time::timestamptz(text).map(|micros| micros.to_be_bytes().to_vec()),
        Scalar::Interval => time::interval(text),
        Scalar::Json => json::text(text),
        Scalar::Jsonb => json::binary(text),
        Scalar::Inet => network(text, false),
        Scalar::Cidr => network(text, true),
    };
    read.ok_or_else(|| ValueError::new(scalar, text))
}

fn boolean(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 5]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["true", "t", "yes", "on", "1"]) {
        return Some(true);
    }
    is_one_of(["false", "f", "no", "off", "0"]).then_some(false)
}

/// The standard library rounds numbers that are too large to infinity and those too small to zero; PostgreSQL refuses
/// them.
fn in_range(text: &str, infinite: bool, zero: bool) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let has = |wanted: fn(&char) -> bool| mantissa.chars().any(|character| wanted(&character));
    !(infinite && has(char::is_ascii_digit) || zero && has(|digit| matches!(digit, '1'..='9')))
}

fn plain(text: &str, max_bytes: usize) -> Option<Vec<u8>> {
    (text.len() <= max_bytes && !text.contains('\0')).then(|| text.as_bytes().to_vec())
}

fn network(text: &str, cidr: bool) -> Option<Vec<u8>> {
    /// PostgreSQL's own numbers of the families, the same on all systems.
    const FAMILIES: [u8; 2] = [2, 3];
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let (family, octets) = match address.parse().ok()? {
        IpAddr::V4(address) => (FAMILIES[0], address.octets().to_vec()),
        IpAddr::V6(address) => (FAMILIES[1], address.octets().to_vec()),
    };
    let all_bits = 8 * octets.len() as u32;
    let bits = match mask {
        // PostgreSQL takes neither a sign nor leading zeros.
        Some(mask) => mask
            .parse()
            .ok()
            .filter(|bits: &u32| *bits <= all_bits && bits.to_string() == mask)?,
        None => all_bits,
    };
    let host_bits = octets
        .iter()
        .fold(0_u128, |number, octet| number << 8 | u128::from(*octet))
        .checked_shl(128 - (all_bits - bits))
        .unwrap_or(0);
    if cidr && host_bits != 0 {
        return None;
    }
    let mut binary = vec![family, bits as u8, u8::from(cidr), octets.len() as u8];
    binary.extend_from_slice(&octets);
    Some(binary)
}

#[cfg(test)]
mod tests;
