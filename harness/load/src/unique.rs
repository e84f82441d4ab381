//! Numbers in requests: no two sends of a run carry the same one.

use crate::LoadError;
use crate::request::Request;

/// Makes every send of a request differ: the text `{n}`, once in its path or its body, is replaced by
/// a number in decimal with leading zeros, so that all sends have the same length.
///
/// The number is [`Plan::first_unique`](crate::Plan::first_unique) plus the request's place in the
/// run, over all workers: none comes twice, and not every number comes. The answer is checked as
/// always, so that what is expected must not depend on the number. A plan that could send more
/// requests than the digits can tell apart is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unique {
    /// 1 to 18.
    pub digits: u8,
}

/// What a number takes the place of.
pub(crate) const MARKER: &str = "{n}";
/// As many as a `u64`, and PostgreSQL's `bigint`, hold whatever the digits are.
const MOST_DIGITS: u8 = 18;

impl Unique {
    /// The text a request is encoded with, to be overwritten.
    pub(crate) fn placeholder(self) -> String {
        "0".repeat(usize::from(self.digits))
    }
}

/// Overwrites `field` with the number, right-aligned and with leading zeros.
pub(crate) fn write_number(field: &mut [u8], mut number: u64) {
    for digit in field.iter_mut().rev() {
        // Below 10.
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

pub(crate) fn validate(request: &Request) -> Result<(), LoadError> {
    let Some(Unique { digits }) = request.unique else {
        return Ok(());
    };
    if !(1..=MOST_DIGITS).contains(&digits) {
        return Err(LoadError::Invalid(format!(
            "a unique number of {digits} digits in {}; allowed are 1 to {MOST_DIGITS}",
            request.path
        )));
    }
    let in_body = request
        .body
        .windows(MARKER.len())
        .filter(|window| *window == MARKER.as_bytes())
        .count();
    let markers = request.path.matches(MARKER).count() + in_body;
    if markers != 1 {
        return Err(LoadError::Invalid(format!(
            "a unique number needs {MARKER} exactly once in path or body; {} {} has it {markers} times",
            request.method, request.path
        )));
    }
    Ok(())
}

/// Refuses numbers that could run out of digits: `sends` requests are numbered from `first` on.
pub(crate) fn validate_range(
    requests: &[Request],
    first: u64,
    sends: u64,
) -> Result<(), LoadError> {
    let unique = requests.iter().filter_map(|request| request.unique);
    let Some(Unique { digits }) = unique.min_by_key(|unique| unique.digits) else {
        return Ok(());
    };
    let last = u128::from(first) + u128::from(sends.saturating_sub(1));
    let needed = last.checked_ilog10().unwrap_or(0) + 1;
    if needed > u32::from(digits) {
        return Err(LoadError::Invalid(format!(
            "up to {sends} requests, numbered from {first} on, need {needed} digits, and there is a {MARKER} with {digits}; \
             give it more digits, or shorten the run"
        )));
    }
    Ok(())
}
