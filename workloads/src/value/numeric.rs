//! `numeric` from text: the scale is as written, as PostgreSQL keeps it.

/// Decimal digits in one of PostgreSQL's, which are to the base 10,000.
const GROUP: i64 = 4;
/// PostgreSQL's limits of a numeric without a declared precision.
const MAX_WHOLE_DIGITS: i64 = 131_072;
const MAX_SCALE: i64 = 16_383;
/// Of exponents, beyond which every number is out of the limits; keeps the sums below from overflow.
const MAX_EXPONENT: i64 = 1_000_000_000;

/// The binary form: count of digits, weight of the first, sign, scale, digits.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if let Some(sign) = special(text, unsigned, negative) {
        return Some(binary(0, sign, 0, &[]));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
        None => (unsigned, 0_i64),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) || exponent.abs() > MAX_EXPONENT
    {
        return None;
    }
    let scale = (fraction.len() as i64 - exponent).max(0);
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let point = whole.len() as i64 + exponent - zeros as i64;
    let digits = &digits[zeros..];
    if scale > MAX_SCALE || !digits.is_empty() && point > MAX_WHOLE_DIGITS {
        return None;
    }
    let (weight, groups) = groups(digits, point);
    let sign = if negative && !groups.is_empty() {
        0x4000
    } else {
        0
    };
    Some(binary(
        i16::try_from(weight).ok()?,
        sign,
        u16::try_from(scale).ok()?,
        &groups,
    ))
}

fn special(text: &str, unsigned: &str, negative: bool) -> Option<u16> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(0xC000);
    }
    ["inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
        .then_some(if negative { 0xF000 } else { 0xD000 })
}

/// The digits to the base 10,000 and the power of the first, of decimal digits that have the decimal point after the
/// first `point`, and of which the first is not zero.
fn groups(digits: &[u8], point: i64) -> (i64, Vec<u16>) {
    if digits.is_empty() {
        return (0, Vec::new());
    }
    let weight = (point - 1).div_euclid(GROUP);
    let in_first = (point - 1).rem_euclid(GROUP) as usize + 1;
    let (first, rest) = digits.split_at(in_first.min(digits.len()));
    let number = |group: &[u8], width: usize| {
        let padding = 10_u16.pow((width - group.len()) as u32);
        let written = group
            .iter()
            .fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
        written * padding
    };
    let mut groups = vec![number(first, in_first)];
    groups.extend(rest.chunks(4).map(|group| number(group, 4)));
    while groups.last() == Some(&0) {
        groups.pop();
    }
    (weight, groups)
}

fn binary(weight: i16, sign: u16, scale: u16, groups: &[u16]) -> Vec<u8> {
    let mut binary = Vec::with_capacity(8 + 2 * groups.len());
    // The limits allow for 36,864 groups.
    binary.extend_from_slice(&(groups.len() as u16).to_be_bytes());
    binary.extend_from_slice(&weight.to_be_bytes());
    for word in [sign, scale].iter().chain(groups) {
        binary.extend_from_slice(&word.to_be_bytes());
    }
    binary
}
