//! `numeric`: digits to the base 10,000, its weight, sign and scale.

use super::{Reader, decimal};

/// The digits to the base 10,000 have four decimal ones.
const GROUP: usize = 4;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const NEGATIVE_INFINITE: u16 = 0xF000;

/// Whether a value is one of those that JSON quotes. Bytes too few to say are refused by [`write`].
pub(super) fn is_finite(bytes: &[u8]) -> bool {
    !matches!(bytes.get(4..6), Some([high, _]) if *high >= 0xC0)
}

/// Of malformed bytes None, with part of it written.
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader(bytes);
    let count = usize::from(reader.u16()?);
    let weight = isize::from(reader.i16()?);
    let sign = reader.u16()?;
    let scale = usize::from(reader.u16()?);
    let digits = reader.0;
    if digits.len() != 2 * count {
        return None;
    }
    match sign {
        0 => {}
        NEGATIVE => out.push(b'-'),
        NAN => out.extend_from_slice(b"NaN"),
        INFINITE => out.extend_from_slice(b"Infinity"),
        NEGATIVE_INFINITE => out.extend_from_slice(b"-Infinity"),
        _ => return None,
    }
    if sign >= NAN {
        return Some(());
    }
    // The digit worth 10,000^power. Zeros at either end are not sent.
    let digit = |power: isize| {
        let index = usize::try_from(weight - power).unwrap_or(usize::MAX);
        let pair = digits.chunks_exact(2).nth(index).unwrap_or(&[0, 0]);
        u64::from(pair[0]) << 8 | u64::from(pair[1])
    };
    decimal::unsigned(digit(weight.max(0)), out);
    for power in (0..weight).rev() {
        decimal::padded(digit(power), GROUP, out);
    }
    if scale == 0 {
        return Some(());
    }
    out.push(b'.');
    let end = out.len() + scale;
    let mut power = -1;
    while out.len() < end {
        decimal::padded(digit(power), GROUP, out);
        power -= 1;
    }
    out.truncate(end);
    Some(())
}
