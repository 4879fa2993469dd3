//! Times as archives write them (RFC 3339).

/// Milliseconds since 1970-01-01 UTC.
pub(crate) fn milliseconds(text: &str) -> Option<f64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok().map(f64::from);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1.0..=12.0).contains(&month) || !(1.0..=31.0).contains(&day) || hour > 24.0 || minute > 60.0 || second > 61.0 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(digits) => {
            let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
            let (digits, zone) = digits.split_at(end);
            (format!("0.{digits}").parse::<f64>().ok()?, zone)
        }
        None => (0.0, rest),
    };
    let offset_minutes = match zone.as_bytes() {
        [] | b"Z" | b"z" => 0.0,
        [sign @ (b'+' | b'-'), ..] => {
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let hours = digits.get(..2)?.parse::<u32>().ok()?;
            let minutes = digits.get(2..4).map_or(Ok(0), str::parse::<u32>).ok()?;
            f64::from(hours * 60 + minutes) * if *sign == b'-' { -1.0 } else { 1.0 }
        }
        _ => return None,
    };
    // Days from civil: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let year = if month <= 2.0 { year - 1.0 } else { year };
    let era = (year / 400.0).floor();
    let of_era = year - era * 400.0;
    let of_year = ((153.0 * (month + if month > 2.0 { -3.0 } else { 9.0 }) + 2.0) / 5.0).floor() + day - 1.0;
    let days =
        era * 146_097.0 + of_era * 365.0 + (of_era / 4.0).floor() - (of_era / 100.0).floor() + of_year - 719_468.0;
    Some(((days * 24.0 + hour) * 60.0 + minute - offset_minutes) * 60_000.0 + (second + fraction) * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_their_zones() {
        assert_eq!(milliseconds("1970-01-01T00:00:01.500Z"), Some(1500.0));
        assert_eq!(milliseconds("2026-11-26T17:00:00+02:00"), milliseconds("2026-11-26T15:00:00.000Z"));
        assert_eq!(milliseconds("2000-03-01T00:00:00Z"), Some(951_868_800_000.0));
        for wrong in ["", "2026-11-26", "2026-13-26T00:00:00Z", "2026-11-26T00:00:00 then", "äöüäöüäöüäöü"]
        {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
    }
}
