//! Whole numbers in decimal, without an allocation.

pub(super) fn unsigned(value: u64, out: &mut Vec<u8>) {
    padded(value, 1, out);
}

pub(super) fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(value.unsigned_abs(), out);
}

/// With leading zeros up to `width` digits, of which 20 at most are given.
pub(super) fn padded(value: u64, width: usize, out: &mut Vec<u8>) {
    // u64::MAX has 20 digits.
    let mut digits = [b'0'; 20];
    let mut rest = value;
    let mut start = digits.len();
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let start = start.min(digits.len().saturating_sub(width));
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_does(value: i64, width in 1_usize..=20) {
            let mut out = Vec::new();
            signed(value, &mut out);
            prop_assert_eq!(out, value.to_string().into_bytes());
            let mut out = Vec::new();
            padded(value as u64, width, &mut out);
            prop_assert_eq!(out, format!("{:0width$}", value as u64).into_bytes());
        }
    }

    #[test]
    fn zero_has_one_digit() {
        let mut out = Vec::new();
        unsigned(0, &mut out);
        assert_eq!(out, b"0");
    }
}
