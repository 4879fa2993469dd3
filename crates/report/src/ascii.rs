//! Text in ASCII only, for terminals and logs without other characters.
//!
//! One table has every character that views draw. It is applied where text leaves the program, so that no view needs to
//! know about it. Each character keeps its width, so that tables and charts stay in place. A character that is not in
//! the table, as in names from elsewhere, becomes a question mark for each of its columns.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

/// The ASCII replacement of a character.
const fn stand_in(c: char) -> Option<char> {
    // Bars go from `_` over `,-=+*%` to `#`, from the lowest to the highest.
    Some(match c {
        '▁' => '_',
        '▂' => ',',
        '–' | '—' | '─' | '┄' | '−' | '‐' | '‑' | '▃' | '▏' | '▎' | '▍' => '-',
        '━' | '▄' | '▌' | '▋' | '▊' | '▉' => '=',
        '±' | '✓' | '▅' => '+',
        '▆' => '*',
        '▇' | '▒' | '▓' => '%',
        '█' => '#',
        '░' => ':',
        '×' | '✗' => 'x',
        'µ' | 'μ' => 'u',
        '…' | '≈' => '~',
        '≥' | '→' | '▶' => '>',
        '≤' | '←' | '◀' => '<',
        '↑' | '▲' => '^',
        '↓' => 'v',
        '·' | '•' => '.',
        '├' | '┤' | '│' => '|',
        '①' => '1',
        '②' => '2',
        '③' => '3',
        '④' => '4',
        '⑤' => '5',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '§' => 'S',
        '\u{a0}' => ' ',
        _ => return None,
    })
}

/// `text` in ASCII, with the same width.
pub fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match stand_in(c) {
            _ if c.is_ascii() => folded.push(c),
            Some(instead) => folded.push(instead),
            None => folded.extend(std::iter::repeat_n('?', c.width().unwrap_or(0))),
        }
    }
    Cow::Owned(folded)
}

/// Text in bytes, in ASCII.
pub fn folded_bytes(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes;
    }
    folded(&String::from_utf8_lossy(&bytes)).into_owned().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns;

    #[test]
    fn text_becomes_ascii_and_keeps_its_width() {
        for (text, expected) in [
            ("p99 ≥1.74s, 3 × 503 – 36.20µs…", "p99 >1.74s, 3 x 503 - 36.20us~"),
            ("├──①──┤ ▁▂▃▄▅▆▇█", "|--1--| _,-=+*%#"),
            ("GET /検索?q=é", "GET /?????q=?"),
            ("plain", "plain"),
        ] {
            let folded = folded(text);
            assert_eq!(folded, expected);
            assert!(folded.is_ascii() && columns::width(&folded) == columns::width(text), "{text}");
        }
        assert_eq!(folded("e\u{301}"), "e", "what takes no column leaves none");
        assert_eq!(folded_bytes("µ".into()), b"u");
    }
}
