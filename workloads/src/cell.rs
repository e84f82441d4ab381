//! One column of one row, from PostgreSQL's binary form to the JSON that its own `row_to_json` gives: what a lane
//! answers is compared byte by byte with what the database says.
//!
//! As in a session whose TimeZone is UTC and whose other settings are PostgreSQL's defaults.

mod decimal;
mod float;
mod network;
mod numeric;
mod time;

use thiserror::Error;

use crate::types::{PgType, Scalar};

/// The highest number of an array's dimensions, PostgreSQL's own.
const MAX_DIMENSIONS: i32 = 6;

/// A column's type and its value in the binary format; None is NULL.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    pub oid: u32,
    pub value: Option<&'a [u8]>,
}

/// A column that cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CellError {
    #[error(
        "no JSON for a column of the type with OID {0}: cast it to text in the SQL, as in \"column::text\""
    )]
    UnknownType(u32),
    #[error("{bytes} bytes that are no {name} in PostgreSQL's binary format")]
    Malformed { name: &'static str, bytes: usize },
}

impl<'a> Cell<'a> {
    pub fn new(oid: u32, value: Option<&'a [u8]>) -> Self {
        Self { oid, value }
    }

    /// Appends the JSON of it; after an error, `out` is as before.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), CellError> {
        let Some(bytes) = self.value else {
            out.extend_from_slice(b"null");
            return Ok(());
        };
        let ty = PgType::from_oid(self.oid).ok_or(CellError::UnknownType(self.oid))?;
        let start = out.len();
        let encoded = if ty.is_array() {
            array(ty.scalar(), bytes, out)
        } else {
            scalar(ty.scalar(), bytes, out)
        };
        encoded.ok_or_else(|| {
            out.truncate(start);
            CellError::Malformed {
                name: ty.name(),
                bytes: bytes.len(),
            }
        })
    }
}

/// Appends `text` as a JSON string, as PostgreSQL's `escape_json` does: control characters are escaped, neither / nor
/// anything beyond ASCII is.
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    escape(text.as_bytes(), out);
}

/// Appends a `timestamptz`, given in microseconds since 2000-01-01 00:00 UTC, as a JSON string.
pub fn encode_timestamptz(micros_since_2000: i64, out: &mut Vec<u8>) {
    out.push(b'"');
    time::timestamp(micros_since_2000, b"+00:00", out);
    out.push(b'"');
}

/// The JSON of a value. None of malformed bytes, with part of it written.
fn scalar(scalar: Scalar, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match scalar {
        Scalar::Text | Scalar::Varchar | Scalar::Bpchar | Scalar::Name => {
            escape(bytes, out);
            Some(())
        }
        Scalar::Bool
        | Scalar::Int2
        | Scalar::Int4
        | Scalar::Int8
        | Scalar::Json
        | Scalar::Jsonb => write_text(scalar, bytes, out),
        Scalar::Float4 if f32::from_be_bytes(exact(bytes)?).is_finite() => {
            write_text(scalar, bytes, out)
        }
        Scalar::Float8 if f64::from_be_bytes(exact(bytes)?).is_finite() => {
            write_text(scalar, bytes, out)
        }
        Scalar::Numeric if numeric::is_finite(bytes) => write_text(scalar, bytes, out),
        Scalar::Bytea => {
            // The first of two backslashes: the second is the text's own.
            out.extend_from_slice(b"\"\\");
            write_text(scalar, bytes, out)?;
            out.push(b'"');
            Some(())
        }
        // Nothing in these needs an escape. An oid is no number to row_to_json.
        Scalar::Float4
        | Scalar::Float8
        | Scalar::Numeric
        | Scalar::Uuid
        | Scalar::Date
        | Scalar::Time
        | Scalar::Timestamp
        | Scalar::Timestamptz
        | Scalar::Interval
        | Scalar::Oid
        | Scalar::Inet
        | Scalar::Cidr => {
            out.push(b'"');
            write_text(scalar, bytes, out)?;
            out.push(b'"');
            Some(())
        }
    }
}

/// A text that PostgreSQL reads as the value. None of malformed bytes, with part of it written.
pub(crate) fn write_text(scalar: Scalar, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader(bytes);
    match scalar {
        Scalar::Bool => out.extend_from_slice(match bytes {
            [0] => b"false",
            [_] => b"true",
            _ => return None,
        }),
        Scalar::Int2 => decimal::signed(i16::from_be_bytes(exact(bytes)?).into(), out),
        Scalar::Int4 => decimal::signed(i32::from_be_bytes(exact(bytes)?).into(), out),
        Scalar::Int8 => decimal::signed(i64::from_be_bytes(exact(bytes)?), out),
        Scalar::Oid => decimal::unsigned(u32::from_be_bytes(exact(bytes)?).into(), out),
        Scalar::Float4 => float::write(f32::from_be_bytes(exact(bytes)?), out),
        Scalar::Float8 => float::write(f64::from_be_bytes(exact(bytes)?), out),
        Scalar::Numeric => numeric::write(bytes, out)?,
        Scalar::Text | Scalar::Varchar | Scalar::Bpchar | Scalar::Name | Scalar::Json => {
            out.extend_from_slice(bytes);
        }
        // A version, then the text.
        Scalar::Jsonb => out.extend_from_slice(bytes.strip_prefix(&[1])?),
        Scalar::Uuid => uuid(exact(bytes)?, out),
        Scalar::Bytea => {
            out.extend_from_slice(b"\\x");
            hex(bytes, out);
        }
        Scalar::Date => time::date(i32::from_be_bytes(exact(bytes)?), out),
        Scalar::Time => time::time(u64::from_be_bytes(exact(bytes)?), out),
        Scalar::Timestamp => time::timestamp(i64::from_be_bytes(exact(bytes)?), b"", out),
        Scalar::Timestamptz => time::timestamp(i64::from_be_bytes(exact(bytes)?), b"+00:00", out),
        Scalar::Interval => {
            let (micros, days) = (i64::from_be_bytes(reader.array()?), reader.i32()?);
            time::interval(micros, days, i32::from_be_bytes(exact(reader.0)?), out);
        }
        Scalar::Inet => network::write(bytes, false, out)?,
        Scalar::Cidr => network::write(bytes, true, out)?,
    }
    Some(())
}

/// An array as JSON arrays in each other, one level a dimension.
fn array(element: Scalar, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (lengths, mut elements) = array_header(bytes)?;
    match lengths.as_slice() {
        [] => out.extend_from_slice(b"[]"),
        lengths => dimension(element, lengths, &mut elements, out)?,
    }
    elements.0.is_empty().then_some(())
}

fn dimension(
    element: Scalar,
    lengths: &[u32],
    elements: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let Some((&length, inner)) = lengths.split_first() else {
        return match elements.element()? {
            Some(bytes) => scalar(element, bytes, out),
            None => {
                out.extend_from_slice(b"null");
                Some(())
            }
        };
    };
    for index in 0..length {
        out.push(if index == 0 { b'[' } else { b',' });
        dimension(element, inner, elements, out)?;
    }
    out.push(b']');
    Some(())
}

/// The lengths of an array's dimensions, each at least 1, and what follows them. Of an empty array there are none.
pub(crate) fn array_header(bytes: &[u8]) -> Option<(Vec<u32>, Reader<'_>)> {
    let mut reader = Reader(bytes);
    let dimensions = reader.i32()?;
    // Whether there is a NULL in it, and the type of the elements, which the array's own type says already.
    reader.array::<8>()?;
    if !(0..=MAX_DIMENSIONS).contains(&dimensions) {
        return None;
    }
    let mut lengths = Vec::with_capacity(dimensions.unsigned_abs() as usize);
    for _ in 0..dimensions {
        // An empty dimension would let a few bytes make loops of any length; PostgreSQL has none.
        let length = u32::try_from(reader.i32()?)
            .ok()
            .filter(|length| *length > 0)?;
        // JSON has no place for the index of the first element.
        reader.i32()?;
        lengths.push(length);
    }
    Some((lengths, reader))
}

/// What is left to read of a value.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// An element of an array: its length, or -1 for NULL, and its bytes.
    pub(crate) fn element(&mut self) -> Option<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Some(None),
            length => {
                let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
                self.0 = rest;
                Some(Some(bytes))
            }
        }
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest
        .iter()
        .position(|byte| *byte < b' ' || *byte == b'"' || *byte == b'\\')
    {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            control => {
                out.extend_from_slice(b"\\u00");
                hex(&[control], out);
            }
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    }));
}

fn uuid(bytes: [u8; 16], out: &mut Vec<u8>) {
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(&[byte], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(ty: &str, bytes: &[u8]) -> Result<String, CellError> {
        let mut out = Vec::new();
        let cell = Cell {
            oid: PgType::from_name(ty).unwrap().oid(),
            value: Some(bytes),
        };
        cell.encode(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn text_is_escaped_as_postgresql_escapes_it() {
        let text = "a\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}ö";
        let expected = "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}ö\"";
        assert_eq!(json("text", text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn numbers_are_bare_and_what_json_has_no_number_for_is_quoted() {
        assert_eq!(json("int4", &(-7_i32).to_be_bytes()).unwrap(), "-7");
        assert_eq!(json("float8", &1.5_f64.to_be_bytes()).unwrap(), "1.5");
        assert_eq!(json("float8", &f64::NAN.to_be_bytes()).unwrap(), "\"NaN\"");
        assert_eq!(json("oid", &7_u32.to_be_bytes()).unwrap(), "\"7\"");
        let nan = [0, 0, 0, 0, 0xC0, 0, 0, 0];
        assert_eq!(json("numeric", &nan).unwrap(), "\"NaN\"");
    }

    #[test]
    fn a_type_without_an_encoding_is_named_with_the_remedy() {
        let mut out = b"[".to_vec();
        let point = Cell {
            oid: 600,
            value: Some(&[0; 16]),
        };
        let error = point.encode(&mut out).unwrap_err().to_string();
        assert!(
            error.contains("OID 600") && error.contains("::text"),
            "{error}"
        );
        assert_eq!(out, b"[");
        let null = Cell {
            oid: 600,
            value: None,
        };
        null.encode(&mut out).unwrap();
        assert_eq!(out, b"[null");
    }

    #[test]
    fn an_array_that_claims_more_than_it_holds_is_malformed() {
        let mut bytes = Vec::new();
        for number in [2, 0, 23, i32::MAX, 1, i32::MAX, 1] {
            bytes.extend_from_slice(&i32::to_be_bytes(number));
        }
        assert!(matches!(
            json("int4[]", &bytes),
            Err(CellError::Malformed { name: "int4[]", .. })
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, index in 0..PgType::NAMES.len(), array: bool) {
            let scalar = PgType::NAMES[index];
            let ty = if array { format!("{scalar}[]") } else { scalar.to_owned() };
            let mut out = b"before".to_vec();
            let cell = Cell { oid: PgType::from_name(&ty).unwrap().oid(), value: Some(&bytes) };
            if cell.encode(&mut out).is_err() {
                prop_assert_eq!(out, b"before");
            }
        }
    }
}
