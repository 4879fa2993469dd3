//! Figures as people read them, in addition to those of the plan's units.

use std::borrow::Cow;

use brunt_plan::units::Duration;
pub use brunt_plan::units::{count, counted, percent};
use brunt_record::histogram::AtLeast;

/// The longest text that [`brief`] leaves whole, in characters.
const LONGEST_TEXT: usize = 160;

/// Nanoseconds that may only be known from below: `≥4.71ms`.
pub fn duration(ns: AtLeast<u64>) -> String {
    format!("{}{}", bound(ns.at_least), Duration(ns.value))
}

/// The mark of a lower bound.
pub const fn bound(at_least: bool) -> &'static str {
    if at_least { "≥" } else { "" }
}

/// Text from elsewhere, with control characters (and those that change the direction of writing) escaped.
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

/// Text from elsewhere by [`clean`], cut if it is long.
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
    fn text_from_elsewhere_cannot_move_the_cursor() {
        assert_eq!(clean("bad status line 'GET'"), "bad status line 'GET'");
        assert_eq!(clean("\u{1b}[2Jhi\r\n"), "\\u{1b}[2Jhi\\r\\n");
        assert_eq!(brief(&"x".repeat(500)).chars().count(), LONGEST_TEXT + 1);
    }
}
