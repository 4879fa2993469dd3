//! Writes Lua: texts, keys, tables, comments.

use std::fmt::Write as _;

use serde_json::Number;

use crate::value::Value;

/// The widest table that stays on one line.
const WIDTH: usize = 90;

/// A text as a Lua string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if is_hidden(letter) => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(quoted, "\\{byte:03}");
                }
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Bytes as a Lua string, UTF-8 or not.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return quoted(text);
    }
    let mut quoted = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03}");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character is invisible, or reverses the direction of others.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text for a comment: on one line, without invisible characters, and at most `most` characters long.
pub(crate) fn comment(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (place, letter) in text.trim().chars().enumerate() {
        if place == most {
            shown.push('…');
            break;
        }
        shown.push(if is_hidden(letter) { ' ' } else { letter });
    }
    // `--[[` would begin a comment of several lines.
    if shown.starts_with('[') { format!(" {shown}") } else { shown }
}

/// A key in a table constructor: `name`, or `["a name"]`.
pub fn key(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { format!("[{}]", quoted(name)) }
}

/// Access to a field of a table: `.name`, or `["a name"]`.
pub fn part(name: &str) -> String {
    if is_name(name) { format!(".{name}") } else { format!("[{}]", quoted(name)) }
}

/// Lua's reserved words.
pub const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Whether a text is a valid name in Lua.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') && !KEYWORDS.contains(&text)
}

/// A valid name made from a text: its letters and digits, with `_` between words.
pub(crate) fn name_of(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    let mut was_lower = false;
    for letter in text.chars().take(60) {
        if letter.is_ascii_alphanumeric() {
            if letter.is_ascii_uppercase() && was_lower {
                name.push('_');
            }
            was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
            name.push(letter.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
            was_lower = false;
        }
    }
    let name = name.trim_end_matches('_');
    if name.is_empty() {
        return otherwise.to_owned();
    }
    if is_name(name) { name.to_owned() } else { format!("{otherwise}_{name}") }
}

/// A table with these entries, `key = value` or values: on one line where it fits, otherwise one line for each entry.
pub(crate) fn table(entries: &[String]) -> String {
    table_behind(0, entries)
}

/// Such a table behind `before` bytes of its line.
pub(crate) fn table_behind(before: usize, entries: &[String]) -> String {
    if entries.is_empty() {
        return "{}".to_owned();
    }
    let length: usize = entries.iter().map(|entry| entry.len() + 2).sum();
    if before + length <= WIDTH && !entries.iter().any(|entry| entry.contains('\n')) {
        return format!("{{ {} }}", entries.join(", "));
    }
    let mut text = String::from("{\n");
    for entry in entries {
        let _ = writeln!(text, "{},", indented(entry));
    }
    text.push('}');
    text
}

/// The greatest weight of a request, and of the code in one function, which may have 65,536 constants.
pub(crate) const MOST_OF_REQUEST: usize = 10_000;
pub(crate) const MOST_OF_FUNCTION: usize = 20_000;

/// An upper bound of the number of constants in some code.
pub(crate) fn weight(code: &str) -> usize {
    code.bytes().filter(|byte| matches!(byte, b'"' | b'=' | b',')).count()
}

/// Code in its own block.
pub(crate) fn block(code: &str) -> String {
    format!("do\n{}\nend\n", indented(code.trim_end()))
}

/// Code in its own function, which is called at once.
pub(crate) fn part_of_its_own(code: &str) -> String {
    block(&format!("local function part()\n{}\nend\npart()", indented(code.trim_end())))
}

/// Indents every line by two spaces.
pub(crate) fn indented(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() + 16);
    for (place, line) in text.lines().enumerate() {
        if place > 0 {
            indented.push('\n');
        }
        if !line.is_empty() {
            indented.push_str("  ");
            indented.push_str(line);
        }
    }
    indented
}

/// A value as Lua code. `leaf` may replace texts and numbers; it gets the steps that lead to them.
pub(crate) fn value(value: &Value, leaf: &mut dyn FnMut(&[Step<'_>], &Value) -> Option<String>) -> String {
    written(value, &mut Vec::new(), leaf)
}

/// A value as Lua code, without replacements.
pub(crate) fn plain_value(one: &Value) -> String {
    value(one, &mut |_, _| None)
}

/// A step into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'v> {
    /// The field of an object.
    Field(&'v str),
    /// The element of a list, from 0.
    Element(usize),
}

fn written<'v>(
    value: &'v Value,
    path: &mut Vec<Step<'v>>,
    leaf: &mut dyn FnMut(&[Step<'_>], &Value) -> Option<String>,
) -> String {
    match value {
        Value::Null => "brunt.null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => leaf(path, value).unwrap_or_else(|| written_number(number)),
        Value::Text(text) => leaf(path, value).unwrap_or_else(|| quoted(text)),
        Value::List(all) if all.is_empty() => "brunt.array {}".to_owned(),
        Value::List(all) => {
            let mut entries = Vec::with_capacity(all.len());
            for (place, one) in all.iter().enumerate() {
                path.push(Step::Element(place));
                entries.push(written(one, path, leaf));
                path.pop();
            }
            table(&entries)
        }
        Value::Object(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for (name, one) in fields {
                path.push(Step::Field(name));
                entries.push(format!("{} = {}", key(name), written(one, path, leaf)));
                path.pop();
            }
            table(&entries)
        }
    }
}

/// A number as Lua reads it: Lua has doubles, so an integer beyond 2⁵³ becomes the nearest one.
pub(crate) fn written_number(number: &Number) -> String {
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_lua_reads_them() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é\u{202e}"), "\"a\\\"b\\\\c\\nd\\001é\\226\\128\\174\"");
        assert_eq!(quoted_bytes(b"a\xff\""), "\"a\\255\\\"\"");
        assert_eq!(key("end"), "[\"end\"]");
        assert_eq!(part("a1"), ".a1");
        assert_eq!(comment("a\nb\r[[", 10), "a b [[");
        assert_eq!(comment("[[a", 10), " [[a");
        assert_eq!(comment("abcdef", 3), "abc…");
    }

    #[test]
    fn names_are_made_of_any_text() {
        for (text, expected) in [
            ("getPetById", "get_pet_by_id"),
            ("end", "value_end"),
            ("x-csrf-token", "x_csrf_token"),
            ("1st", "value_1st"),
            ("日本", "value"),
            ("", "value"),
            ("__", "value"),
        ] {
            assert_eq!(name_of(text, "value"), expected);
            assert!(is_name(&name_of(text, "value")));
        }
    }

    #[test]
    fn a_table_is_on_one_line_where_it_fits() {
        assert_eq!(table(&["a = 1".to_owned(), "b = 2".to_owned()]), "{ a = 1, b = 2 }");
        let long = "x".repeat(WIDTH);
        assert_eq!(table(std::slice::from_ref(&long)), format!("{{\n  {long},\n}}"));
    }
}
