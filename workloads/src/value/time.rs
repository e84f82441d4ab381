//! Dates, times and intervals from text: the ISO forms, of which every setting of a session reads the same.

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// PostgreSQL's limits: the first is day 0 of the Julian calendar, 4714-11-24 BC.
const FIRST_DAY: i64 = -2_451_545;
const LAST_DAY: i64 = 2_145_031_948;
const LAST_DAY_OF_TIMESTAMPS: i64 = 106_751_982;
/// Digits after the seconds' point; PostgreSQL rounds what is finer than its six.
const MAX_FRACTION_DIGITS: usize = 9;
const MAX_OFFSET_HOURS: i64 = 15;

/// Days since 2000-01-01.
pub(super) fn date(text: &str) -> Option<i32> {
    match text {
        "infinity" => return Some(i32::MAX),
        "-infinity" => return Some(i32::MIN),
        _ => {}
    }
    let (text, era) = era(text);
    i32::try_from(calendar_day(text, era)?).ok()
}

/// Microseconds since midnight, of which a day may have all.
pub(super) fn time(text: &str) -> Option<i64> {
    let micros = clock(text)?;
    (micros <= MICROS_PER_DAY).then_some(micros)
}

/// Microseconds since 2000-01-01 00:00.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    if let Some(infinity) = infinity(text) {
        return Some(infinity);
    }
    let (text, era) = era(text);
    let (day, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00"));
    moment(calendar_day(day, era)?, time_of_day(time)?)
}

/// Microseconds since 2000-01-01 00:00 UTC. An offset is needed: without it, the session's TimeZone would decide.
pub(super) fn timestamptz(text: &str) -> Option<i64> {
    if let Some(infinity) = infinity(text) {
        return Some(infinity);
    }
    let (text, era) = era(text);
    let (day, time) = text.split_once(['T', 't', ' '])?;
    let at = time.find(['Z', 'z', '+', '-'])?;
    let offset_seconds = offset(&time[at..])?;
    let local = time_of_day(time[..at].trim_ascii_end())?;
    moment(
        calendar_day(day, era)?,
        local - offset_seconds * MICROS_PER_SECOND,
    )
}

fn infinity(text: &str) -> Option<i64> {
    match text {
        "infinity" => Some(i64::MAX),
        "-infinity" => Some(i64::MIN),
        _ => None,
    }
}

fn moment(day: i64, micros: i64) -> Option<i64> {
    let moment = day.checked_mul(MICROS_PER_DAY)?.checked_add(micros)?;
    (FIRST_DAY..=LAST_DAY_OF_TIMESTAMPS)
        .contains(&moment.div_euclid(MICROS_PER_DAY))
        .then_some(moment)
}

#[derive(Clone, Copy, PartialEq)]
enum Era {
    Before,
    Common,
}

fn era(text: &str) -> (&str, Era) {
    match text.strip_suffix(" BC") {
        Some(rest) => (rest, Era::Before),
        None => (text, Era::Common),
    }
}

/// Days since 2000-01-01 of a year of at least four digits, a month and a day.
fn calendar_day(text: &str, era: Era) -> Option<i64> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4..=7).filter(|year| *year > 0)?;
    let month = number(parts.next()?, 2..=2)?;
    let day = number(parts.next()?, 2..=2)?;
    if parts.next().is_some() {
        return None;
    }
    let year = match era {
        Era::Before => 1 - year,
        Era::Common => year,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    let days =
        days_before_year(year) + days_before_month(month, leap) + day - 1 - days_before_year(2000);
    ((1..=length).contains(&day) && (FIRST_DAY..=LAST_DAY).contains(&days)).then_some(days)
}

/// Days from 0001-01-01 to the first of January.
fn days_before_year(year: i64) -> i64 {
    let before = year - 1;
    365 * before + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)
}

fn days_before_month(month: i64, leap: bool) -> i64 {
    // From March on, months of 31 and 30 days take turns but for July and August: 30.6 days each, rounded.
    match month {
        1 => 0,
        2 => 31,
        month => (306 * (month - 3) + 5) / 10 + 59 + i64::from(leap),
    }
}

/// A time of day, which ends before midnight.
fn time_of_day(text: &str) -> Option<i64> {
    clock(text).filter(|micros| *micros < MICROS_PER_DAY)
}

/// HH:MM, HH:MM:SS or with a fraction, in microseconds; the hours can be any of up to seven digits.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours = number(parts.next()?, 2..=7)?;
    let minutes = number(parts.next()?, 2..=2).filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => seconds_with_fraction(seconds, 2)?,
        None => 0,
    };
    (parts.next().is_none() && seconds < 60 * MICROS_PER_SECOND)
        .then_some((hours * 60 + minutes) * 60 * MICROS_PER_SECOND + seconds)
}

/// In microseconds, of whole seconds of at most `digits` digits.
fn seconds_with_fraction(text: &str, digits: usize) -> Option<i64> {
    let Some((whole, fraction)) = text.split_once('.') else {
        return Some(number(text, 1..=digits)? * MICROS_PER_SECOND);
    };
    number(fraction, 1..=MAX_FRACTION_DIGITS)?;
    // As PostgreSQL rounds it: in binary, ties to even.
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let micros = (fraction * MICROS_PER_SECOND as f64).round_ties_even() as i64;
    Some(number(whole, 1..=digits)? * MICROS_PER_SECOND + micros)
}

/// Z, +HH, +HHMM, +HH:MM or +HH:MM:SS, or with -, in seconds east of Greenwich.
fn offset(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes, seconds) = match rest.len() {
        2 => (rest, "00", "00"),
        4 => (rest.get(..2)?, rest.get(2..)?, "00"),
        5 => {
            let (hours, minutes) = rest.split_once(':')?;
            (hours, minutes, "00")
        }
        _ => {
            let (hours, rest) = rest.split_once(':')?;
            let (minutes, seconds) = rest.split_once(':')?;
            (hours, minutes, seconds)
        }
    };
    let hours = number(hours, 2..=2).filter(|hours| *hours <= MAX_OFFSET_HOURS)?;
    let sixtieth = |text| number(text, 2..=2).filter(|number| *number < 60);
    Some(sign * ((hours * 60 + sixtieth(minutes)?) * 60 + sixtieth(seconds)?))
}

/// The binary form: microseconds, days, months. Given as numbers with units, and at the end a time with a sign of its
/// own: `1 year 2 mons -3 days 04:05:06`.
pub(super) fn interval(text: &str) -> Option<Vec<u8>> {
    let (mut micros, mut days, mut months) = (0_i64, 0_i64, 0_i64);
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        let (negative, amount) = match word.as_bytes() {
            [b'-', ..] => (true, &word[1..]),
            [b'+', ..] => (false, &word[1..]),
            _ => (false, word),
        };
        let signed = |amount: i64| if negative { -amount } else { amount };
        if amount.contains(':') {
            micros = micros.checked_add(signed(clock(amount)?))?;
            if words.next().is_some() {
                return None;
            }
            break;
        }
        let unit = words.next()?.to_ascii_lowercase();
        if matches!(unit.as_str(), "second" | "seconds" | "sec" | "secs") {
            micros = micros.checked_add(signed(seconds_with_fraction(amount, 9)?))?;
            continue;
        }
        let amount = signed(number(amount, 1..=10)?);
        let (sum, factor) = match unit.as_str() {
            "year" | "years" => (&mut months, 12),
            "month" | "months" | "mon" | "mons" => (&mut months, 1),
            "week" | "weeks" => (&mut days, 7),
            "day" | "days" => (&mut days, 1),
            "hour" | "hours" => (&mut micros, 3600 * MICROS_PER_SECOND),
            "minute" | "minutes" | "min" | "mins" => (&mut micros, 60 * MICROS_PER_SECOND),
            _ => return None,
        };
        *sum = sum.checked_add(amount.checked_mul(factor)?)?;
    }
    let mut binary = micros.to_be_bytes().to_vec();
    for part in [days, months] {
        binary.extend_from_slice(&i32::try_from(part).ok()?.to_be_bytes());
    }
    Some(binary)
}

/// Of that many digits and nothing else; `digits` end at 18 at most.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    (digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}
