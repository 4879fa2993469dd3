//! Figures as people read them, beyond what the model writes.

use std::borrow::Cow;

use brunt_plan::units::Duration;
use brunt_record::histogram::AtLeast;

/// The longest text that [`brief`] leaves whole, in characters.
const LONGEST_TEXT: usize = 160;

/// A count with its thousands set apart: `1,284,332`.
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

/// A count and what is counted: `1 call`, `2,000 calls`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A share from 0 to 1 in percent, with three significant digits: `0.0125%`. Neither does a small share read as
/// nothing, nor a large one as everything.
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

/// Nanoseconds that may only be known from below: `≥4.71ms`.
pub fn duration(ns: AtLeast<u64>) -> String {
    format!("{}{}", bound(ns.at_least), Duration(ns.value))
}

/// The mark of a lower bound.
pub const fn bound(at_least: bool) -> &'static str {
    if at_least { "≥" } else { "" }
}

/// Text from elsewhere, with control characters (and those that turn the direction of writing) escaped.
pub fn clean(text: &str) -> Cow<'_, str> {
    let wild = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(wild) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        if wild(c) {
            cleaned.extend(c.escape_default());
        } else {
            cleaned.push(c);
        }
    }
    Cow::Owned(cleaned)
}

/// Text from elsewhere as [`clean`] has it, cut where it gets long.
pub fn brief(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn text_from_elsewhere_cannot_move_the_cursor() {
        assert_eq!(clean("bad status line 'GET'"), "bad status line 'GET'");
        assert_eq!(clean("\u{1b}[2Jhi\r\n"), "\\u{1b}[2Jhi\\r\\n");
        assert_eq!(brief(&"x".repeat(500)).chars().count(), LONGEST_TEXT + 1);
    }
}
