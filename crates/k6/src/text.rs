//! Texts: what JavaScript's literals say, and how Lua writes it.

pub(crate) use brunt_imports::lua::{KEYWORDS, is_name, key, part, quoted};

use crate::syntax::Node;

/// What a text in quotes says, or a template without expressions in it.
pub(crate) fn literal(node: Node<'_>) -> Option<String> {
    if !matches!(node.kind(), "string" | "template_string") {
        return None;
    }
    let mut text = String::new();
    for part in node.parts() {
        match part.kind() {
            "string_fragment" | "html_character_reference" => text.push_str(part.text()),
            "escape_sequence" => text.push_str(&escaped(part.text())),
            _ => return None,
        }
    }
    Some(text)
}

/// What an escape of JavaScript stands for.
pub(crate) fn escaped(escape: &str) -> String {
    let code = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).map(String::from);
    let rest = escape.get(1..).unwrap_or_default();
    match rest.chars().next() {
        Some('n') => "\n".to_owned(),
        Some('r') => "\r".to_owned(),
        Some('t') => "\t".to_owned(),
        Some('b') => "\u{8}".to_owned(),
        Some('f') => "\u{c}".to_owned(),
        Some('v') => "\u{b}".to_owned(),
        Some('0') => "\0".to_owned(),
        Some('\n' | '\r') | None => String::new(),
        Some('x') => code(rest.get(1..).unwrap_or_default()).unwrap_or_default(),
        Some('u') => code(rest.get(1..).unwrap_or_default().trim_matches(['{', '}'])).unwrap_or_default(),
        Some(other) => other.to_string(),
    }
}

/// A number as Lua reads it.
pub(crate) fn number(text: &str) -> Option<String> {
    let text = text.replace('_', "");
    let radix = |digits: &str, radix: u32| u64::from_str_radix(digits, radix).ok().map(|number| number.to_string());
    match text.get(..2) {
        Some("0x" | "0X") => Some(text),
        Some("0b" | "0B") => radix(text.get(2..)?, 2),
        Some("0o" | "0O") => radix(text.get(2..)?, 8),
        _ => text.parse::<f64>().ok().map(|_| text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_lua_reads_them() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\001é\"");
        assert_eq!(escaped("\\u{1F600}"), "😀");
        assert_eq!(escaped("\\x41"), "A");
        assert_eq!(escaped("\\'"), "'");
        assert_eq!(number("1_000").as_deref(), Some("1000"));
        assert_eq!(number("0b101").as_deref(), Some("5"));
        assert_eq!(key("end"), "[\"end\"]");
        assert_eq!(key("status is 200"), "[\"status is 200\"]");
        assert_eq!(part("a1"), ".a1");
    }
}
