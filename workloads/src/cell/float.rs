//! `float4` and `float8` as PostgreSQL 12 and later print them: the shortest digits that read back as the same
//! number, in `printf`'s choice between fixed and exponent form.
//!
//! The shortest digits are the standard library's, but for two cases. A decimal exactly half way between two floats
//! still reads back as the one with the even mantissa, so the standard library may print it; PostgreSQL never does
//! (`STRICTLY_SHORTEST` in its `d2s.c` is off), and prints 1e23 as 9.999999999999999e+22. And of two decimals equally
//! near, PostgreSQL takes the one with the even digit.

use std::fmt::{self, LowerExp, Write};
use std::str::{self, FromStr};

use super::decimal;

/// The two types, which differ in size only.
pub(super) trait Float: LowerExp + FromStr + PartialEq + Copy {
    /// Decimal exponents from this on are printed in exponent form.
    const EXPONENT_FORM_FROM: i32;
    /// Digits that tell any two of the type apart.
    const DIGITS: usize;
    fn exact(self) -> Exact;
    fn is_nan(self) -> bool;
    fn is_finite(self) -> bool;
    fn is_negative(self) -> bool;
    fn abs(self) -> Self;
}

/// A float without its sign, and half way to its neighbours, as multiples of one power of two.
pub(super) struct Exact {
    value: u128,
    /// None, if a decimal there would not read back as the float.
    bounds: Option<[u128; 2]>,
    exponent: i32,
}

impl Exact {
    /// Of `mantissa * 2^exponent`. `narrow` says that the neighbour towards zero is at half the distance.
    fn new(mantissa: u64, exponent: i32, narrow: bool) -> Self {
        let value = 4 * u128::from(mantissa);
        let below = if narrow { 1 } else { 2 };
        Self {
            value,
            bounds: mantissa
                .is_multiple_of(2)
                .then_some([value.saturating_sub(below), value + 2]),
            exponent: exponent - 2,
        }
    }

    /// Whether `digits * 10^exponent` is exactly half way to a neighbour.
    fn is_bound(&self, digits: u64, exponent: i32) -> bool {
        let is = |bound| self.is(bound, u128::from(digits), exponent);
        self.bounds.is_some_and(|bounds| bounds.into_iter().any(is))
    }

    /// Whether the float is exactly half way from the decimal before `digits * 10^exponent` to this one.
    fn is_tie_below(&self, digits: u64, exponent: i32) -> bool {
        let tie = (u128::from(digits) * 10).saturating_sub(5);
        self.is(self.value, tie, exponent - 1)
    }

    /// Whether `multiple` of the power of two is `decimal * 10^exponent`, exactly.
    fn is(&self, multiple: u128, decimal: u128, exponent: i32) -> bool {
        // A power of five beyond 128 bits, or a product, is more than the other side's odd part can be.
        let Some(power) = 5_u128.checked_pow(exponent.unsigned_abs()) else {
            return false;
        };
        let (decimal, multiple) = if exponent < 0 {
            (Some(decimal), multiple.checked_mul(power))
        } else {
            (decimal.checked_mul(power), Some(multiple))
        };
        let (Some(decimal), Some(multiple)) = (decimal, multiple) else {
            return false;
        };
        odd(decimal, exponent) == odd(multiple, self.exponent)
    }
}

/// The same number `value * 2^exponent`, in the one form in which the first part is odd.
fn odd(value: u128, exponent: i32) -> Option<(u128, i32)> {
    let shift = value.trailing_zeros();
    Some((
        value.checked_shr(shift)?,
        exponent + i32::try_from(shift).ok()?,
    ))
}

impl Float for f64 {
    const EXPONENT_FORM_FROM: i32 = 15;
    const DIGITS: usize = 17;

    fn exact(self) -> Exact {
        let fraction = self.to_bits() & ((1 << 52) - 1);
        match (self.to_bits() >> 52) & 0x7ff {
            0 => Exact::new(fraction, -1074, false),
            biased => Exact::new(
                fraction | 1 << 52,
                biased as i32 - 1075,
                fraction == 0 && biased > 1,
            ),
        }
    }

    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }

    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    fn abs(self) -> Self {
        f64::abs(self)
    }

    fn is_negative(self) -> bool {
        self.is_sign_negative()
    }
}

impl Float for f32 {
    const EXPONENT_FORM_FROM: i32 = 6;
    const DIGITS: usize = 9;

    fn exact(self) -> Exact {
        let fraction = u64::from(self.to_bits() & ((1 << 23) - 1));
        match (self.to_bits() >> 23) & 0xff {
            0 => Exact::new(fraction, -149, false),
            biased => Exact::new(
                fraction | 1 << 23,
                biased as i32 - 150,
                fraction == 0 && biased > 1,
            ),
        }
    }

    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }

    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }

    fn abs(self) -> Self {
        f32::abs(self)
    }

    fn is_negative(self) -> bool {
        self.is_sign_negative()
    }
}

/// `NaN`, `Infinity` and `-Infinity`, which JSON quotes, or a number.
pub(super) fn write<F: Float>(value: F, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_negative() {
        out.push(b'-');
    }
    if !value.is_finite() {
        return out.extend_from_slice(b"Infinity");
    }
    let decimal = shortest(value.abs());
    if (-4..F::EXPONENT_FORM_FROM).contains(&decimal.exponent) {
        fixed(&decimal, out);
    } else {
        scientific(&decimal, out);
    }
}

/// The digits d.ddd * 10^exponent, without trailing zeros but for zero itself.
#[derive(Clone, Copy)]
struct Decimal {
    digits: [u8; 20],
    len: usize,
    exponent: i32,
}

impl Decimal {
    fn digits(&self) -> &[u8] {
        &self.digits[..self.len]
    }

    /// From what the standard library prints for `{:e}`: -d.ddde-dd.
    fn read(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut decimal = Self {
            digits: [b'0'; 20],
            len: 0,
            exponent: exponent.parse().unwrap_or(0),
        };
        let digits = mantissa.bytes().filter(u8::is_ascii_digit);
        for (place, digit) in decimal.digits.iter_mut().zip(digits) {
            *place = digit;
            decimal.len += 1;
        }
        while decimal.len > 1 && decimal.digits[decimal.len - 1] == b'0' {
            decimal.len -= 1;
        }
        decimal
    }

    /// As a whole number and the power of ten it is a multiple of.
    fn scaled(&self) -> (u64, i32) {
        let digits = self
            .digits()
            .iter()
            .fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        (digits, self.exponent - (self.len as i32 - 1))
    }
}

fn shortest<F: Float>(value: F) -> Decimal {
    let exact = value.exact();
    let is_bound = |decimal: &Decimal| {
        let (digits, exponent) = decimal.scaled();
        exact.is_bound(digits, exponent)
    };
    let mut scratch = Scratch::default();
    let mut decimal = Decimal::read(scratch.print(format_args!("{value:e}")));
    if is_bound(&decimal) {
        decimal = between_bounds(value, decimal.len, is_bound);
    }
    let (digits, exponent) = decimal.scaled();
    if !digits.is_multiple_of(2) && exact.is_tie_below(digits, exponent) {
        let even = digits - 1;
        let mut scratch = Scratch::default();
        let read = scratch.print(format_args!("{even}e{exponent}")).parse();
        // Below a power of two, the next float is nearer than above it.
        if read.is_ok_and(|read: F| read == value) && !exact.is_bound(even, exponent) {
            decimal.digits[decimal.len - 1] -= 1;
        }
    }
    decimal
}

/// The nearest decimal of as few digits as can be, but at least `digits`, that is none of the float's bounds.
fn between_bounds<F: Float>(
    value: F,
    digits: usize,
    is_bound: impl Fn(&Decimal) -> bool,
) -> Decimal {
    for digits in digits..F::DIGITS {
        let mut scratch = Scratch::default();
        let text = scratch.print(format_args!("{value:.*e}", digits - 1));
        let nearest = Decimal::read(text);
        if text.parse().is_ok_and(|read: F| read == value) && !is_bound(&nearest) {
            return nearest;
        }
    }
    let mut scratch = Scratch::default();
    Decimal::read(scratch.print(format_args!("{value:.*e}", F::DIGITS - 1)))
}

fn fixed(decimal: &Decimal, out: &mut Vec<u8>) {
    let digits = decimal.digits();
    let Ok(exponent) = usize::try_from(decimal.exponent) else {
        out.extend_from_slice(b"0.");
        let zeros = decimal.exponent.unsigned_abs() as usize - 1;
        out.resize(out.len() + zeros, b'0');
        return out.extend_from_slice(digits);
    };
    let (whole, fraction) = digits.split_at(digits.len().min(exponent + 1));
    out.extend_from_slice(whole);
    out.resize(out.len() + (exponent + 1 - whole.len()), b'0');
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

fn scientific(decimal: &Decimal, out: &mut Vec<u8>) {
    let (first, rest) = decimal.digits().split_at(1);
    out.extend_from_slice(first);
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest);
    }
    out.extend_from_slice(if decimal.exponent < 0 { b"e-" } else { b"e+" });
    decimal::padded(u64::from(decimal.exponent.unsigned_abs()), 2, out);
}

/// Room for the longest float in exponent form, such as -2.2250738585072014e-308.
#[derive(Default)]
struct Scratch {
    bytes: [u8; 32],
    len: usize,
}

impl Scratch {
    fn print(&mut self, arguments: fmt::Arguments<'_>) -> &str {
        // The room is enough for every float, and text is written in whole pieces.
        let _ = self.write_fmt(arguments);
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Write for Scratch {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes
            .get_mut(self.len..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written<F: Float>(value: F) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_form_changes_where_printf_changes_it() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-1234.5, "-1234.5"),
            (123456789012345.0, "123456789012345"),
            (100000000000000.0, "100000000000000"),
            (1e15, "1e+15"),
            (1234567890123456.0, "1.234567890123456e+15"),
            (0.0001, "0.0001"),
            (0.00012, "0.00012"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(value), text);
        }
        for (value, text) in [
            (100000_f32, "100000"),
            (1e6, "1e+06"),
            (0.1, "0.1"),
            (1e20, "1e+20"),
        ] {
            assert_eq!(written(value), text);
        }
    }

    #[test]
    fn a_decimal_half_way_between_two_floats_is_not_printed() {
        assert_eq!(written(1e23), "9.999999999999999e+22");
    }

    #[test]
    fn of_two_decimals_equally_near_the_even_one_is_printed() {
        let value = 6_632_827_120_354_249.0 / 4.0;
        assert_eq!(written(value), "1.6582067800885622e+15");
    }

    proptest! {
        #[test]
        fn any_float8_reads_back(bits: u64) {
            let value = f64::from_bits(bits);
            let read: f64 = written(value).parse().unwrap();
            prop_assert!(read == value || value.is_nan() && read.is_nan());
        }

        #[test]
        fn any_float4_reads_back(bits: u32) {
            let value = f32::from_bits(bits);
            let read: f32 = written(value).parse().unwrap();
            prop_assert!(read == value || value.is_nan() && read.is_nan());
        }
    }
}
