//! Text in terminal columns. A character takes none (combining marks), one or two (East Asian wide ones, emoji): Unicode
//! Standard Annex #11.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::numbers::clean;

/// The number of columns that `text` takes. ANSI sequences of colour take none.
pub fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().width();
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.width())).sum::<usize>()
}

/// The longest beginning of `text` that takes at most `columns`.
pub fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        used += c.width().unwrap_or(0);
        (used > columns).then_some(at)
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// `text` and the spaces that fill it up to `columns`.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// `text` behind the spaces that fill it up to `columns`.
pub fn padded_left(text: &str, columns: usize) -> String {
    format!("{:1$}{text}", "", columns.saturating_sub(width(text)))
}

/// `name` in a column of this width, indented, or cut to it.
pub fn named(name: &str, column: usize) -> String {
    let name = clean(name);
    let room = column.saturating_sub(3);
    let text =
        if width(&name) > room { format!("{}…", cut(&name, room.saturating_sub(1))) } else { name.into_owned() };
    format!("  {} ", padded(&text, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_combining_ones_none() {
        assert_eq!((width("abc"), width("検索"), width("e\u{301}")), (3, 4, 1));
        assert_eq!((cut("検索する", 5), cut("abc", 5), cut("e\u{301}x", 1)), ("検索", "abc", "e\u{301}"));
        assert_eq!((padded("検", 4).as_str(), padded_left("検", 4).as_str()), ("検  ", "  検"));
        assert_eq!(padded("longer", 2), "longer");
    }
}
