//! Times as logs write them: of the common log format, RFC 3339, and numbers since 1970.

use crate::entry::Stamp;

const SECOND_NS: i64 = 1_000_000_000;

/// Reads a time in any of the known forms. Text without a zone is at `zone_s` seconds from UTC.
pub fn read(text: &str, zone_s: i32) -> Option<Stamp> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    let first = *text.as_bytes().first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    if text.as_bytes().get(2) == Some(&b'/') {
        return common(text, zone_s);
    }
    if text.as_bytes().get(4) == Some(&b'-') {
        return rfc3339(text, zone_s);
    }
    number(text)
}

/// `27/Oct/2026:13:55:36 +0000`, as `%t` of Apache and `$time_local` of nginx; or no zone.
fn common(text: &str, zone_s: i32) -> Option<Stamp> {
    let (date, rest) = text.split_once(':')?;
    let mut date = date.split('/');
    let (day, month, year) = (digits(date.next()?, 2)?, month(date.next()?)?, digits(date.next()?, 4)?);
    let (clock, zone) = rest.split_once(' ').unwrap_or((rest, ""));
    let (seconds, fraction) = clock_time(clock)?;
    let zone_s = if zone.is_empty() { zone_s } else { offset(zone)? };
    at(year, month, day, seconds, fraction, zone_s)
}

/// `2026-10-27T13:55:36.123456789+00:00` (RFC 3339 §5.6), with a space for the T, or no zone.
fn rfc3339(text: &str, zone_s: i32) -> Option<Stamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut date = date.split('-');
    let (year, month, day) = (digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?);
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ','))).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(end)?;
    let (seconds, fraction) = clock_time(clock)?;
    let zone = zone.trim();
    let zone_s = if zone.is_empty() { zone_s } else { offset(zone)? };
    at(year, month, day, seconds, fraction, zone_s)
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their magnitude.
fn number(text: &str) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() > 19 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i64 = whole.parse().ok()?;
    let units = [(100_000_000_000, SECOND_NS), (100_000_000_000_000, 1_000_000), (100_000_000_000_000_000, 1000)];
    let unit = units.into_iter().find(|(below, _)| value < *below).map_or(1, |(_, unit)| unit);
    let part = nanoseconds(fraction)? * unit / SECOND_NS;
    let ns = value.checked_mul(unit)?.checked_add(part)?;
    Some(Stamp { ns, is_whole: unit == SECOND_NS && fraction.is_empty(), offset_s: 0 })
}

/// `13:55:36.25` as seconds of the day and, if given, nanoseconds. A leap second is the beginning of the next second.
fn clock_time(text: &str) -> Option<(i64, Option<i64>)> {
    let (clock, fraction) = match text.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(nanoseconds(fraction)?)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let (hour, minute, second) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let is_time = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    is_time.then_some((hour * 3600 + minute * 60 + second, fraction))
}

/// A fraction of a second in nanoseconds; digits beyond the ninth are ignored.
fn nanoseconds(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine: String = digits.chars().chain(std::iter::repeat('0')).take(9).collect();
    nine.parse().ok()
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn month(name: &str) -> Option<i64> {
    const NAMES: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|place| place as i64 + 1)
}

/// `Z`, `+02:00` or `+0200`, in seconds.
pub fn offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None => rest.split_at_checked(2)?,
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60) as i32)
}

/// The stamp of a time of a day, at this offset from UTC.
fn at(year: i64, month: i64, day: i64, seconds: i64, fraction: Option<i64>, offset_s: i32) -> Option<Stamp> {
    let days = days(year, month, day)?;
    let utc = days * 86_400 + seconds - i64::from(offset_s);
    let ns = utc.checked_mul(SECOND_NS)?.checked_add(fraction.unwrap_or(0))?;
    Some(Stamp { ns, is_whole: fraction.is_none(), offset_s })
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by Howard Hinnant's `days_from_civil`
/// (<https://howardhinnant.github.io/date_algorithms.html>). `None` before 1970, after 2261, and for a day that does
/// not exist.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1970..2262).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted / 400, shifted % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<(i64, bool)> {
        read(text, 0).map(|stamp| (stamp.ns / SECOND_NS, stamp.is_whole))
    }

    #[test]
    fn every_form_is_the_same_moment() {
        let moment = 1_767_225_600;
        for text in [
            "01/Jan/2026:00:00:00 +0000",
            "[01/Jan/2026:02:00:00 +0200]",
            "2026-01-01T00:00:00Z",
            "1767225600",
            "2025-12-31 19:00:00-0500",
        ] {
            assert_eq!(seconds(text), Some((moment, true)), "{text}");
        }
        for text in [
            "1767225600.250",
            "1767225600250",
            "1767225600250000",
            "1767225600250000000",
            "2026-01-01T00:00:00.25Z",
            "2026-01-01 01:00:00,250+01:00",
        ] {
            let stamp = read(text, 0).unwrap();
            assert_eq!((stamp.ns, stamp.is_whole), (moment * SECOND_NS + SECOND_NS / 4, false), "{text}");
        }
        assert_eq!(read("2026-01-01T02:00:00", 7200).map(|stamp| stamp.ns / SECOND_NS), Some(moment));
    }

    #[test]
    fn summer_time_ends_without_a_step_back() {
        let before = seconds("25/Oct/2026:02:59:59 +0200").unwrap().0;
        assert_eq!(seconds("25/Oct/2026:02:00:00 +0100").unwrap().0, before + 1);
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "-",
            "30/Feb/2026:00:00:00 +0000",
            "29/Feb/2027:00:00:00 +0000",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "01/Jan/1969:00:00:00 +0000",
            "2026-01-01T00:00:00+99:00",
            "99999999999999999999",
            "1.x",
            "01/Jan/2026:00:00 +0000",
            "é/é/2026",
        ] {
            assert_eq!(read(text, 0), None, "{text}");
        }
        assert!(read("29/Feb/2028:23:59:60 +0000", 0).is_some(), "a leap day, and a leap second");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_alone(text in "\\PC{0,40}") {
            let _ = read(&text, 0);
        }

        #[test]
        fn days_follow_each_other(day in 0_i64..106_000) {
            let ns = day * 86_400 * SECOND_NS;
            let date = time(day);
            prop_assert_eq!(read(&date, 0).map(|stamp| stamp.ns), Some(ns));
        }
    }

    /// The day of this number in RFC 3339, by counting.
    fn time(mut left: i64) -> String {
        let mut year = 1970;
        loop {
            let length = if days(year, 2, 29).is_some() { 366 } else { 365 };
            if left < length {
                break;
            }
            left -= length;
            year += 1;
        }
        let mut month = 1;
        while let Some(length) = (28..=31).rev().find(|day| days(year, month, *day).is_some()).filter(|l| left >= *l) {
            left -= length;
            month += 1;
        }
        format!("{year:04}-{month:02}-{:02}T00:00:00Z", left + 1)
    }
}
