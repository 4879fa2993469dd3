//! Durations, counts and sizes as people write them.

use std::fmt;

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got '{got}'")]
pub struct UnitError {
    /// The expected form.
    pub expected: &'static str,
    /// The text in its place.
    pub got: String,
}

const DURATION: &str = "a duration such as 500µs, 20ms, 10s, 1m30s or 1h";
const COUNT: &str = "a whole number such as 64, 10k, 2M or 1G";
const NUMBER: &str = "a number such as 200, 1.5k or 2M";
const SIZE: &str = "a size in bytes such as 512, 64k, 1M or 2G";
const RATIO: &str = "a share such as 0.1% or 0.001";
const FACTOR: &str = "a factor such as 2x or 0.5x";

/// The longest duration of a plan: 30 days. A histogram measures up to 2^44 ns, a little under five hours.
pub const LONGEST_NS: u64 = 30 * 24 * 3600 * brunt_record::SECOND_NS;

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

fn error(expected: &'static str, got: &str) -> UnitError {
    UnitError { expected, got: got.to_owned() }
}

/// Parses a duration into nanoseconds: `500ms`, or `1m30s` from the largest unit to the smallest. A number without a
/// unit is seconds, as in wrk, ab and hey.
///
/// # Errors
/// When the text is not a duration, or the duration is longer than [`LONGEST_NS`].
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    let wrong = || error(DURATION, text);
    let (mut rest, mut ns, mut before) = (text.trim(), 0.0, f64::INFINITY);
    loop {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let unit_at = rest.find(|c: char| !is_number(c)).unwrap_or(rest.len());
        let end = rest.get(unit_at..).and_then(|unit| unit.find(is_number)).map_or(rest.len(), |at| unit_at + at);
        let (part, behind) = rest.split_at(end);
        let (number, unit) = split(part).ok_or_else(wrong)?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "" if ns == 0.0 && behind.is_empty() && before.is_infinite() => 1e9,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(wrong()),
        };
        if scale >= before {
            return Err(wrong());
        }
        (ns, before, rest) = (ns + number * scale, scale, behind);
        if rest.is_empty() {
            break;
        }
    }
    if ns > LONGEST_NS as f64 {
        return Err(error("a duration of at most 720h", text));
    }
    Ok(ns.round() as u64)
}

fn decimal_scale(unit: &str) -> Option<f64> {
    match unit {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        _ => None,
    }
}

/// Reads a non-negative number with an optional k, M or G (powers of 1000).
pub fn parse_number(text: &str) -> Result<f64, UnitError> {
    split(text)
        .and_then(|(number, unit)| Some(number * decimal_scale(unit)?))
        .filter(|number| number.is_finite())
        .ok_or_else(|| error(NUMBER, text))
}

/// Reads a whole number with an optional k, M or G (powers of 1000).
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let value = parse_number(text).map_err(|_| error(COUNT, text))?;
    if value.fract() != 0.0 || value > 9e15 {
        return Err(error(COUNT, text));
    }
    Ok(value as u64)
}

/// Reads a size in bytes: k, M and G, or KiB, MiB and GiB, are powers of 1024, as sizes of bodies are meant; kB, MB and GB
/// powers of 1000, as [`Size`] writes them.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text).ok_or_else(|| error(SIZE, text))?;
    let scale = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "k" | "K" | "ki" | "Ki" | "kiB" | "KiB" => 1024.0,
        "M" | "Mi" | "MiB" => 1024.0 * 1024.0,
        "G" | "Gi" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(error(SIZE, text)),
    };
    let bytes = number * scale;
    if bytes.fract() != 0.0 || bytes > 9e15 {
        return Err(error(SIZE, text));
    }
    Ok(bytes as u64)
}

/// Reads a share: `0.1%` or `0.001`.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    match split(text) {
        Some((number, "%")) => Ok(number / 100.0),
        Some((number, "")) => Ok(number),
        _ => Err(error(RATIO, text)),
    }
}

/// Reads a factor from a millionth to a million: `2x`, `0.5`.
pub fn parse_factor(text: &str) -> Result<f64, UnitError> {
    match split(text) {
        Some((number, "x" | "")) if (1e-6..=1e6).contains(&number) => Ok(number),
        _ => Err(error(FACTOR, text)),
    }
}

/// Writes `value` with about four significant digits and no trailing zeros beyond two decimals.
fn scaled(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let decimals = if value >= 100.0 { 1 } else { 2 };
    write!(f, "{value:.decimals$}{unit}")
}

/// A duration for people: `812ns`, `36.20µs`, `4.71ms`, `2.04s`, `3.50m`, `1.20h`.
#[derive(Debug, Clone, Copy)]
pub struct Duration(pub u64);

impl Duration {
    /// Its display unit, as nanoseconds, name, and number of decimals.
    fn scale(self) -> (f64, &'static str, usize) {
        let (scale, unit) = match self.0 {
            0..1_000 => return (1.0, "ns", 0),
            1_000..999_950 => (1e3, "µs"),
            999_950..999_950_000 => (1e6, "ms"),
            999_950_000..90_000_000_000 => (1e9, "s"),
            90_000_000_000..5_400_000_000_000 => (60e9, "m"),
            _ => (3600e9, "h"),
        };
        (scale, unit, if self.0 as f64 / scale >= 100.0 { 1 } else { 2 })
    }

    /// Whether a value between these ends may be wrong by so much that it shows in the displayed digits; `None` is an
    /// unknown upper end.
    pub fn is_off(self, low_ns: u64, high_ns: Option<u64>) -> bool {
        let (scale, _, decimals) = self.scale();
        let Some(high_ns) = high_ns else { return true };
        let off = self.0.saturating_sub(low_ns).max(high_ns.saturating_sub(self.0)) as f64;
        format!("{:.decimals$}", off / scale).chars().any(|c| !matches!(c, '0' | '.'))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit, decimals) = self.scale();
        write!(f, "{:.decimals$}{unit}", self.0 as f64 / scale)
    }
}

/// A place in a run, in nanoseconds since it began: `0:05`, or `0:02.5` between two seconds.
#[derive(Debug, Clone, Copy)]
pub struct Clock(pub u64);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.saturating_add(50_000_000) / 100_000_000;
        write!(f, "{}:{:02}", tenths / 600, tenths / 10 % 60)?;
        match tenths % 10 {
            0 => Ok(()),
            rest => write!(f, ".{rest}"),
        }
    }
}

/// An exact duration, in the form that flags take: `10s`, `1500ms`, `250µs`.
#[derive(Debug, Clone, Copy)]
pub struct ExactDuration(pub u64);

impl fmt::Display for ExactDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let (scale, unit) = match ns {
            0 => (1, "s"),
            _ if ns.is_multiple_of(3_600_000_000_000) => (3_600_000_000_000, "h"),
            _ if ns.is_multiple_of(60_000_000_000) => (60_000_000_000, "m"),
            _ if ns.is_multiple_of(1_000_000_000) => (1_000_000_000, "s"),
            _ if ns.is_multiple_of(1_000_000) => (1_000_000, "ms"),
            _ if ns.is_multiple_of(1_000) => (1_000, "µs"),
            _ => (1, "ns"),
        };
        write!(f, "{}{unit}", ns / scale)
    }
}

/// A size for people, in powers of 1000 (SI): `412B`, `1.54kB`, `31.42MB`.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub f64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        match bytes {
            b if b < 1e3 => write!(f, "{b:.0}B"),
            b if b < 1e6 => scaled(f, b / 1e3, "kB"),
            b if b < 1e9 => scaled(f, b / 1e6, "MB"),
            b => scaled(f, b / 1e9, "GB"),
        }
    }
}

/// A count or rate for people: `812`, `1,962`, `36.20k`, `4.71M`.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10.0 && n.fract() != 0.0 => write!(f, "{n:.2}"),
            n if n < 1_000.0 && n.fract() != 0.0 => write!(f, "{n:.1}"),
            n if n.round() < 1_000.0 => write!(f, "{n:.0}"),
            n if n < 10_000.0 => {
                let whole = n.round() as u64;
                write!(f, "{},{:03}", whole / 1_000, whole % 1_000)
            }
            n if n < 1e6 => scaled(f, n / 1e3, "k"),
            n if n < 1e9 => scaled(f, n / 1e6, "M"),
            n => scaled(f, n / 1e9, "G"),
        }
    }
}

/// A count with thousands separators: `1,284,332`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 call`, `2,000 calls`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A share from 0 to 1 in percent, with three significant digits: `0.0125%`. A small share does not show as nothing,
/// nor a large one as everything.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0%".to_owned();
    }
    if (99.95..100.0).contains(&percent) {
        return ">99.9%".to_owned();
    }
    let decimals = (2 - percent.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{percent:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "0" { "<0.000001%".to_owned() } else { format!("{text}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, ns) in [
            ("250us", 250_000),
            ("1.5ms", 1_500_000),
            ("2", 2_000_000_000),
            ("10s", 10_000_000_000),
            ("5m", 300_000_000_000),
            ("1h", 3_600_000_000_000),
            (" 7 ns ", 7),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn garbage_is_refused_with_what_was_expected() {
        for text in
            ["", "s", "10x", "-1s", "1e3s", "..s", "999999h", "1.2.3s", "1m30", "30s1m", "1m1m", "1m s", "1 30s"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_count("1.5").unwrap_err().to_string(),
            "expected a whole number such as 64, 10k, 2M or 1G, got '1.5'"
        );
        assert!(parse_number(&format!("{}G", "9".repeat(302))).is_err(), "no number is infinite");
        assert!(parse_ratio("5ms").is_err());
        assert_eq!((parse_factor("2x"), parse_factor("0.5"), parse_factor(" 1.5 x")), (Ok(2.0), Ok(0.5), Ok(1.5)));
        for text in ["", "x", "0x", "-2x", "2xx", "5%", "2000000x"] {
            assert!(parse_factor(text).is_err(), "{text}");
        }
        assert!(parse_size("1.3").is_err());
    }

    #[test]
    fn counts_are_decimal_and_sizes_are_binary() {
        assert_eq!(parse_count("10k"), Ok(10_000));
        assert_eq!(parse_size("64k"), Ok(65_536));
        assert_eq!(parse_size("1MiB"), Ok(1 << 20));
        assert_eq!(parse_size("1.5MB"), Ok(1_500_000));
        assert_eq!(parse_ratio("0.1%"), Ok(0.001));
        assert_eq!(parse_number("1.5k"), Ok(1500.0));
    }

    #[test]
    fn written_for_people() {
        assert_eq!(Duration(812).to_string(), "812ns");
        assert_eq!(Duration(36_204).to_string(), "36.20µs");
        assert_eq!(Duration(636_200).to_string(), "636.2µs");
        assert_eq!(Duration(4_710_000).to_string(), "4.71ms");
        assert_eq!(Duration(10_000_000_000).to_string(), "10.00s");
        assert!(Duration(2_310_000).is_off(2_270_000, Some(2_340_000)) && Duration(812).is_off(800, Some(820)));
        assert!(
            Duration(2_310_000).is_off(1_900_000, Some(2_600_000))
                && Duration(10_610_000).is_off(20_400, Some(1_500_000_000))
        );
        assert!(Duration(2_310_000).is_off(1_900_000, None) && Duration(500).is_off(0, Some(900)));
        assert!(!Duration(2_310_000).is_off(2_309_000, Some(2_310_000)) && !Duration(0).is_off(0, Some(0)));
        assert_eq!(ExactDuration(10_000_000_000).to_string(), "10s");
        assert_eq!(ExactDuration(1_500_000_000).to_string(), "1500ms");
        assert_eq!(ExactDuration(250_000).to_string(), "250µs");
        assert_eq!([999.6, 1_962.0, 9_999.4].map(|n| Number(n).to_string()), ["999.6", "1,962", "9,999"]);
        assert_eq!(Size(412.0).to_string(), "412B");
        assert_eq!(Size(1536.0).to_string(), "1.54kB");
        assert_eq!(Number(36_204.0).to_string(), "36.20k");
        assert_eq!(Number(812.0).to_string(), "812");
        assert_eq!(Number(812.25).to_string(), "812.2");
    }

    #[test]
    fn a_place_in_a_run_has_tenths_where_it_needs_them() {
        for (ns, text) in [(0, "0:00"), (5_000_000_000, "0:05"), (62_540_000_000, "1:02.5"), (59_960_000_000, "1:00")] {
            assert_eq!(Clock(ns).to_string(), text);
        }
        assert!(!Clock(u64::MAX).to_string().is_empty());
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_284_332, "1,284,332"), (12_345, "12,345")] {
            assert_eq!(count(n), text);
        }
        assert_eq!(counted(1, "call"), "1 call");
    }

    #[test]
    fn shares_never_round_to_nothing_or_everything() {
        for (share, text) in [
            (0.0, "0%"),
            (1.0, "100%"),
            (0.1, "10%"),
            (0.0016, "0.16%"),
            (0.123_456, "12.3%"),
            (1.0 / 3.0, "33.3%"),
            (0.999_99, ">99.9%"),
            (1e-7, "0.00001%"),
            (1e-12, "<0.000001%"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }
}
