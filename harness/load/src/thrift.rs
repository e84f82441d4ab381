//! As much of Thrift's compact protocol as Parquet's headers need
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).

const INT32: u8 = 5;
const INT64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct being written: fields by ascending number, ended by `finish`.
#[derive(Debug)]
pub(crate) struct Compact {
    bytes: Vec<u8>,
    /// The number of the last field, for each struct that is open.
    last_field: Vec<i16>,
}

impl Compact {
    pub(crate) fn new() -> Compact {
        Compact {
            bytes: Vec::new(),
            last_field: vec![0],
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(crate) fn int32(&mut self, field: i16, value: i64) {
        self.field(field, INT32);
        self.zigzag(value);
    }

    pub(crate) fn int64(&mut self, field: i16, value: i64) {
        self.field(field, INT64);
        self.zigzag(value);
    }

    pub(crate) fn text(&mut self, field: i16, text: &str) {
        self.field(field, BINARY);
        self.raw_text(text);
    }

    pub(crate) fn int32_list(&mut self, field: i16, values: &[i64]) {
        self.list(field, values.len(), INT32);
        for &value in values {
            self.zigzag(value);
        }
    }

    pub(crate) fn text_list(&mut self, field: i16, values: &[&str]) {
        self.list(field, values.len(), BINARY);
        for value in values {
            self.raw_text(value);
        }
    }

    /// A list of structs: each starts with `begin_element` and ends with `end_struct`.
    pub(crate) fn begin_list(&mut self, field: i16, length: usize) {
        self.list(field, length, STRUCT);
    }

    pub(crate) fn begin_element(&mut self) {
        self.last_field.push(0);
    }

    pub(crate) fn begin_struct(&mut self, field: i16) {
        self.field(field, STRUCT);
        self.last_field.push(0);
    }

    pub(crate) fn end_struct(&mut self) {
        self.bytes.push(0);
        self.last_field.pop();
    }

    /// Fields are numbered with small steps upwards, which the short form holds.
    fn field(&mut self, field: i16, kind: u8) {
        if let Some(last) = self.last_field.last_mut() {
            let step = (field - *last).clamp(1, 15);
            *last = field;
            self.bytes.push((step as u8) << 4 | kind);
        }
    }

    fn list(&mut self, field: i16, length: usize, kind: u8) {
        self.field(field, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(length as u64);
        }
    }

    fn raw_text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag_varints_behind_a_step_and_a_type() {
        let mut compact = Compact::new();
        compact.int32(1, -1);
        compact.int64(3, 300);
        compact.text(4, "ab");
        compact.int32_list(5, &[0, 1]);
        compact.begin_struct(7);
        compact.int32(1, 1);
        compact.end_struct();
        let expected = [
            0x15, 0x01, 0x26, 0xd8, 0x04, 0x18, 0x02, b'a', b'b', 0x19, 0x25, 0, 2, 0x2c, 0x15, 2,
            0, 0,
        ];
        assert_eq!(compact.finish(), expected);
    }
}
