//! Dates, times and intervals as `row_to_json` prints them: ISO 8601 with a T, UTC, intervals in the style `postgres`.

use super::decimal;

const MICROS_PER_SECOND: u64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND as i64;
/// Days from the first of March of the year 0, where the calendar's cycle of 400 years is begun, to 2000-01-01.
const CYCLE_TO_2000: i64 = 730_425;
const DAYS_PER_CYCLE: i64 = 146_097;

/// `days` since 2000-01-01.
pub(super) fn date(days: i32, out: &mut Vec<u8>) {
    match days {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let (year, month, day) = civil(i64::from(days));
            calendar_day(year, month, day, out);
            era(year, out);
        }
    }
}

/// `micros` since 2000-01-01 00:00, followed by `offset`.
pub(super) fn timestamp(micros: i64, offset: &[u8], out: &mut Vec<u8>) {
    match micros {
        i64::MAX => out.extend_from_slice(b"infinity"),
        i64::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let (year, month, day) = civil(micros.div_euclid(MICROS_PER_DAY));
            calendar_day(year, month, day, out);
            out.push(b'T');
            time(micros.rem_euclid(MICROS_PER_DAY).unsigned_abs(), out);
            out.extend_from_slice(offset);
            era(year, out);
        }
    }
}

/// `micros` since midnight; more than a day's only in an interval.
pub(super) fn time(micros: u64, out: &mut Vec<u8>) {
    let seconds = micros / MICROS_PER_SECOND;
    decimal::padded(seconds / 3600, 2, out);
    out.push(b':');
    decimal::padded(seconds / 60 % 60, 2, out);
    out.push(b':');
    decimal::padded(seconds % 60, 2, out);
    let fraction = micros % MICROS_PER_SECOND;
    if fraction > 0 {
        out.push(b'.');
        decimal::padded(fraction, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

pub(super) fn interval(micros: i64, days: i32, months: i32, out: &mut Vec<u8>) {
    // From PostgreSQL 17 on; versions before it print the parts of an interval that nobody has.
    match (micros, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => return out.extend_from_slice(b"infinity"),
        (i64::MIN, i32::MIN, i32::MIN) => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let start = out.len();
    let mut after_negative = false;
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count == 0 {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        if after_negative && count > 0 {
            out.push(b'+');
        }
        decimal::signed(i64::from(count), out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if count != 1 {
            out.push(b's');
        }
        after_negative = count < 0;
    }
    if out.len() > start && micros == 0 {
        return;
    }
    if out.len() > start {
        out.push(b' ');
    }
    if micros < 0 {
        out.push(b'-');
    } else if after_negative {
        out.push(b'+');
    }
    time(micros.unsigned_abs(), out);
}

fn calendar_day(year: i64, month: u64, day: u64, out: &mut Vec<u8>) {
    // There is no year 0: the one before 1 is 1 BC.
    let shown = if year > 0 { year } else { 1 - year };
    decimal::padded(shown.unsigned_abs(), 4, out);
    out.push(b'-');
    decimal::padded(month, 2, out);
    out.push(b'-');
    decimal::padded(day, 2, out);
}

fn era(year: i64, out: &mut Vec<u8>) {
    if year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Year, month and day of the Gregorian calendar, extended to all times. Years begin in March here, so that the leap
/// day is a year's last, and the months' lengths follow one line.
fn civil(days_since_2000: i64) -> (i64, u64, u64) {
    let days = days_since_2000 + CYCLE_TO_2000;
    let cycle = days.div_euclid(DAYS_PER_CYCLE);
    let day_of_cycle = days.rem_euclid(DAYS_PER_CYCLE).unsigned_abs();
    // Without the leap days that come every 4 years, but not every 100, but every 400, it is years of 365 days.
    let leap_days = day_of_cycle / 1_460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
    let year_of_cycle = (day_of_cycle - leap_days) / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    (
        cycle * 400 + year_of_cycle.cast_signed() + next_year,
        month,
        day,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_day_is_the_one_after_the_day_before() {
        // From 1200 BC to 3200 AD, which holds every kind of leap year and both eras.
        let mut before = civil(-1_170_000);
        for days in -1_169_999..440_000 {
            let (year, month, day) = civil(days);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match before.1 {
                4 | 6 | 9 | 11 => 30,
                2 if leap => 29,
                2 => 28,
                _ => 31,
            };
            let next = match before {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, day) if day == length => (year, month + 1, 1),
                (year, month, day) => (year, month, day + 1),
            };
            assert_eq!((year, month, day), next);
            before = next;
        }
    }

    #[test]
    fn times_show_the_digits_they_need() {
        let midnight = |micros| text(|out| timestamp(micros, b"+00:00", out));
        assert_eq!(midnight(0), "2000-01-01T00:00:00+00:00");
        assert_eq!(midnight(-1), "1999-12-31T23:59:59.999999+00:00");
        assert_eq!(midnight(1_500_000), "2000-01-01T00:00:01.5+00:00");
        assert_eq!(midnight(i64::MAX), "infinity");
        assert_eq!(text(|out| time(86_400_000_000, out)), "24:00:00");
    }

    #[test]
    fn years_before_the_first_are_bc() {
        assert_eq!(text(|out| date(-730_119, out)), "0001-01-01");
        assert_eq!(text(|out| date(-730_120, out)), "0001-12-31 BC");
    }

    #[test]
    fn an_interval_shows_its_parts_and_their_signs() {
        for (micros, days, months, shown) in [
            (0, 0, 0, "00:00:00"),
            (0, 1, 14, "1 year 2 mons 1 day"),
            (-500_000, -1, 0, "-1 days -00:00:00.5"),
            (3_600_000_000, 2, -13, "-1 years -1 mons +2 days 01:00:00"),
            (1, -2, 0, "-2 days +00:00:00.000001"),
            (i64::MIN, 0, 0, "-2562047788:00:54.775808"),
        ] {
            assert_eq!(text(|out| interval(micros, days, months, out)), shown);
        }
    }

    #[test]
    fn no_number_makes_it_panic() {
        for micros in [i64::MIN + 1, i64::MAX - 1] {
            text(|out| timestamp(micros, b"", out));
        }
        for days in [i32::MIN + 1, i32::MAX - 1] {
            text(|out| date(days, out));
        }
    }
}
