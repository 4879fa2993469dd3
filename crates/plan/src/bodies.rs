//! Bodies of requests and answers for display.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::secret::{REDACTED, is_secret_field, is_secret_json_field, shown_json, shown_path};

/// A body, or a message, for display. In JSON (a document or one a line), in forms and in multipart bodies, the values
/// of fields whose names suggest a secret are [`REDACTED`]. A body in UTF-16 with such fields is shown in UTF-8.
pub fn shown_body(body: &[u8]) -> Cow<'_, [u8]> {
    let text = body.strip_prefix(UTF8_MARK).unwrap_or(body);
    let shown = match utf16(body) {
        Some(text) => shown_text(&text).map(String::into_bytes),
        None if text.trim_ascii_start().starts_with(b"--") => shown_parts(text).or_else(|| shown_bytes(text)),
        None => shown_bytes(text),
    };
    shown.map_or(Cow::Borrowed(body), Cow::Owned)
}

/// The byte order mark in UTF-8 (RFC 3629 §6).
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a body in UTF-16, recognised by its byte order mark or by the zero byte in its first bracket (RFC 4627
/// §3).
fn utf16(body: &[u8]) -> Option<String> {
    let (first, _) = body.split_first_chunk()?;
    let unit = match first {
        b"\xff\xfe" | b"{\0" | b"[\0" => u16::from_le_bytes,
        b"\xfe\xff" | b"\0{" | b"\0[" => u16::from_be_bytes,
        _ => return None,
    };
    let (units, _) = body.as_chunks();
    let text: Vec<_> = units.iter().map(|bytes| unit(*bytes)).collect();
    Some(String::from_utf16_lossy(&text).trim_start_matches('\u{feff}').to_owned())
}

/// The body in UTF-8 with its secrets hidden; `None` if it has none.
fn shown_bytes(body: &[u8]) -> Option<Vec<u8>> {
    // A body that is not text, or was cut within a character, can have fields all the same.
    may_have_fields(body).then(|| shown_text(&String::from_utf8_lossy(body)))?.map(String::into_bytes)
}

fn shown_text(text: &str) -> Option<String> {
    if text.trim_start().starts_with(['{', '[']) { shown_documents(text) } else { shown_form(text) }
}

/// Whether a body begins like JSON or a form: no other body, which may be large, is read further.
fn may_have_fields(body: &[u8]) -> bool {
    // The last five bytes begin white space outside ASCII, or of its unusual kinds.
    let begins_like_json = body.trim_ascii_start().first().is_none_or(|byte| b"{[\x0b\xc2\xe1\xe2\xe3".contains(byte));
    let name = body.split(|byte| b"=&".contains(byte)).next().unwrap_or(body);
    begins_like_json || name.iter().all(|byte| is_in_name(char::from(*byte)))
}

/// Whether the name of a form's field may have this character.
fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.~*+%[]".contains(c)
}

/// JSON (one document, or one a line) with its secrets hidden; `None` if it has no secrets.
fn shown_documents(text: &str) -> Option<String> {
    // A large document is not parsed where no name in it can be that of a secret. A string that a line leaves open
    // hides the names on the next line.
    let may_have_secrets = has_secret_name(text) || text.lines().any(has_secret_name);
    may_have_secrets.then(|| parsed_documents(text))?
}

/// Whether JSON, whole or cut, has the name of a secret field.
fn has_secret_name(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('"') {
        let (name, behind) = after.split_at(end_of_text(after));
        let Some(behind) = behind.strip_prefix('"') else { return false };
        if behind.trim_start().starts_with(':') && is_secret_name(name) {
            return true;
        }
        rest = behind;
    }
    false
}

/// Whether a name, as written in JSON, is that of a secret field.
fn is_secret_name(written: &str) -> bool {
    let unescaped = written.contains('\\').then(|| serde_json::from_str::<String>(&format!("\"{written}\"")).ok());
    is_secret_json_field(unescaped.flatten().as_deref().unwrap_or(written))
}

/// [`shown_documents`] for a text that may have secrets.
fn parsed_documents(text: &str) -> Option<String> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let shown = shown_json(&value, &|_| None);
        return (shown != value).then(|| shown.to_string());
    }
    let are_documents =
        text.lines().all(|line| line.trim().is_empty() || serde_json::from_str::<IgnoredAny>(line).is_ok());
    // A broken document may have a name on one line and its value on the next.
    let hidden = if are_documents { None } else { shown_fields(text) };
    let mut is_changed = hidden.is_some();
    let lines: String = hidden
        .as_deref()
        .unwrap_or(text)
        .split_inclusive('\n')
        .map(|line| {
            let shown = match serde_json::from_str::<Value>(line) {
                Ok(value) => {
                    let end = line.get(line.trim_end().len()..).unwrap_or_default();
                    Some(shown_json(&value, &|_| None))
                        .filter(|shown| *shown != value)
                        .map(|shown| format!("{shown}{end}"))
                }
                Err(_) => shown_fields(line),
            };
            is_changed |= shown.is_some();
            shown.map_or(Cow::Borrowed(line), Cow::Owned)
        })
        .collect();
    is_changed.then_some(lines)
}

/// Broken JSON, such as a document that was cut, with the values of its secret fields hidden; `None` if it has no such field.
fn shown_fields(text: &str) -> Option<String> {
    let (mut shown, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some(open) = rest.find('"') {
        let (before, after) = rest.split_at(open + 1);
        let (name, behind) = after.split_at(end_of_text(after));
        shown.extend([before, name]);
        let Some(value) = behind.strip_prefix('"').map(str::trim_start).and_then(|behind| behind.strip_prefix(':'))
        else {
            shown.extend(behind.chars().next().filter(|c| *c == '"'));
            rest = behind.get(1..).unwrap_or_default();
            continue;
        };
        let value = value.trim_start();
        shown.push_str(behind.get(..behind.len() - value.len()).unwrap_or_default());
        rest = value;
        if !is_secret_name(name) {
            continue;
        }
        is_changed = true;
        if value.starts_with(['{', '[']) {
            rest = value.get(end_of_nested(value)..).unwrap_or_default();
            shown.push_str(REDACTED);
        } else if let Some(text) = value.strip_prefix('"') {
            rest = text.get(end_of_text(text)..).and_then(|rest| rest.strip_prefix('"')).unwrap_or_default();
            shown.extend(["\"", REDACTED, "\""]);
        } else {
            rest = value.get(value.find([',', '}', ']']).unwrap_or(value.len())..).unwrap_or_default();
            shown.push_str(REDACTED);
        }
    }
    shown.push_str(rest);
    is_changed.then_some(shown)
}

/// The length in bytes of the string whose opening `"` comes before `text`.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// The length in bytes of an array or an object; of the whole text where this was cut within it.
fn end_of_nested(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at += 1 + end_of_text(text.get(at + 1..).unwrap_or_default()),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// A form with its secrets hidden; `None` if it has none, or the text is no form.
fn shown_form(text: &str) -> Option<String> {
    let form = text.trim_end_matches(['\r', '\n']);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_in_name);
    let is_form = form.contains('=') && form.split('&').all(|field| is_name(field.split('=').next().unwrap_or(field)));
    if !is_form {
        return None;
    }
    // Some servers take semicolons for separators, as in queries.
    match shown_path(&format!("?{form}")) {
        Cow::Borrowed(_) => None,
        Cow::Owned(shown) => {
            Some(shown.get(1..).unwrap_or_default().to_owned() + text.get(form.len()..).unwrap_or_default())
        }
    }
}

/// A multipart body (RFC 7578) with its secret fields hidden; `None` if it has none. Lines may end without a carriage
/// return.
fn shown_parts(body: &[u8]) -> Option<Vec<u8>> {
    let first = body.trim_ascii_start().split(|byte| *byte == b'\n').next()?;
    let delimiter = [b"\n", first.trim_ascii_end()].concat();
    let mut shown = Vec::new();
    let mut is_changed = false;
    // The first delimiter may lack a line end before it.
    let mut rest = body;
    loop {
        let end = places(rest, &delimiter).next().unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        match part.split_at(end_of_head(part)) {
            (head, value) if is_secret_part(head) && !value.trim_ascii().is_empty() => {
                is_changed = true;
                shown.extend_from_slice(head);
                shown.extend_from_slice(REDACTED.as_bytes());
                shown.extend(value.last().filter(|last| **last == b'\r'));
            }
            _ => shown.extend_from_slice(part),
        }
        let Some(next) = behind.get(delimiter.len()..).filter(|_| !behind.is_empty()) else { break };
        shown.extend_from_slice(&delimiter);
        rest = next;
    }
    is_changed.then_some(shown)
}

/// The length in bytes of a part's head and the empty line behind it; of the whole part if it has no such line.
fn end_of_head(part: &[u8]) -> usize {
    let ends = [b"\r\n\r\n".as_slice(), b"\n\n"].map(|end| places(part, end).next().map(|at| at + end.len()));
    ends.into_iter().flatten().min().unwrap_or(part.len())
}

/// Where these bytes stand in others.
fn places<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(wanted.len().max(1)).enumerate().filter(move |(_, window)| *window == wanted).map(|(at, _)| at)
}

/// Whether a part with this head is of a field that carries a secret.
fn is_secret_part(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    // Neither `filename=` nor text.
    let parameters = head.split([';', ' ', '\t', '\n']).map(|parameter| parameter.split_once('='));
    let mut names =
        parameters.flatten().filter(|(key, _)| ["name", "name*"].iter().any(|name| key.eq_ignore_ascii_case(name)));
    names.any(|(_, name)| is_secret_field(name))
}

/// The beginning of a body as [`shown_body`] shows it, at most `most` bytes of it, and whether there is more. A secret
/// value is hidden even where reading stops within it.
pub fn shown_beginning(body: &[u8], most: usize) -> (Vec<u8>, bool) {
    let read = body.get(..LONGEST_READ).unwrap_or(body);
    let shown = shown_body(read);
    let beginning = shown.get(..most).unwrap_or(&shown);
    (beginning.to_vec(), shown.len() > most || read.len() < body.len())
}

/// The most of a body that is read to show its beginning, in bytes.
const LONGEST_READ: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn bodies_are_shown_without_fields_that_carry_secrets() {
        for (body, shown) in [
            (r#"{"user":"me","password":"hunter2"}"#, r#"{"password":"[redacted]","user":"me"}"#),
            (r#"[{"a":{"api_key":"hunter2","n":1}}]"#, r#"[{"a":{"api_key":"[redacted]","n":1}}]"#),
            (r#"{"token":"@TOKEN"}"#, r#"{"token":"@TOKEN"}"#),
            ("{\"user\": \"me\"}", "{\"user\": \"me\"}"),
            ("user=me&password=hunter2", "user=me&password=[redacted]"),
            ("user=me you&password=hunter 2?\n", "user=me you&password=[redacted]\n"),
            ("a = b, password=hunter2", "a = b, password=hunter2"),
            ("plain text", "plain text"),
            ("{\"a\":1}\n{\"token\":\"hunter2\",\"b\":2}\r\n", "{\"a\":1}\n{\"b\":2,\"token\":\"[redacted]\"}\r\n"),
            (
                "{\"a\": \"b\\\"\", \"token\" : \"hun\\\"ter2\", \"c\": [",
                "{\"a\": \"b\\\"\", \"token\" : \"[redacted]\", \"c\": [",
            ),
            ("{\"pin\": 1234, \"a\": {\"token\": \"hunt", "{\"pin\": [redacted], \"a\": {\"token\": \"[redacted]\""),
            ("{\"a\": \"b", "{\"a\": \"b"),
            ("{\"tokens\": [\"t]0\", {\"a\": 1}], \"b\": 2, \"c", "{\"tokens\": [redacted], \"b\": 2, \"c"),
            ("{\"tokens\": [\"t0", "{\"tokens\": [redacted]"),
            ("", ""),
        ] {
            let read = |text: &[u8]| serde_json::from_slice::<Value>(text).map_err(|_| text.to_vec());
            assert_eq!(read(&shown_body(body.as_bytes())), read(shown.as_bytes()), "{body}");
        }
    }

    #[test]
    fn no_name_and_no_encoding_lets_a_secret_out() {
        let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<_>>();
        let json = r#"{"token": "hunter2"}"#;
        let bodies = [
            "\u{feff}{\"token\": \"hunter2\"}".into(),
            "\u{2003}\u{85}[{\"token\": \"hunter2\"}]".into(),
            "\u{feff}token=hunter2".into(),
            "%74oken=hunter2".into(),
            "a=1;pass%77ord=hunter2".into(),
            "--a=1&token=hunter2".into(),
            "\r\n--x\r\nContent-Disposition: form-data; name*=UTF-8''to%6ben\r\n\r\nhunter2\r\n--x--".into(),
            r#"{"to\u006ben": "hunter2"}"#.into(),
            r#"{"to\u006ben": "hunter2", "cut": ["#.into(),
            r#"{"to\nken": "hunter2"}"#.into(),
            r#"{"to\/ken": ["hunter2"], "cut"#.into(),
            "{\"cut\": \"a\n{\"token\": \"hunter2\"}\n".into(),
            "{\"cut\": [{\"token\":\n\"hunter2\"}, ".into(),
            "{\n\"token\"\n:\n\"hunter2\"\n}".into(),
            utf16(json, u16::to_le_bytes),
            utf16(json, u16::to_be_bytes),
            utf16(&format!("\u{feff}[{json}]"), u16::to_le_bytes),
            utf16("\u{feff}token=hunter2", u16::to_be_bytes),
        ];
        for body in bodies {
            let shown = shown_body(&body);
            let (shown, written) = (String::from_utf8_lossy(&shown), String::from_utf8_lossy(&body));
            assert!(!shown.replace('\0', "").contains("hunter2"), "{written} was shown as {shown}");
            assert!(shown.contains(REDACTED), "{written} was shown as {shown}");
        }
        for body in [utf16("{\"a\": 1}", u16::to_le_bytes), b"{\0".to_vec(), b"\xff\xfe\0".to_vec()] {
            assert_eq!(shown_body(&body), body);
        }
    }

    proptest! {
        #[test]
        fn documents_that_are_not_parsed_have_no_secrets(
            parts in vec(select([
                "{", "}", "[", "]", ":", ",", "\"", "\\", "\n", " ", "\"token\"", "\"a\"", "\"to\\nken\"", "\"pin\": ", "\"hunter2\"", "{\"token\": \"hunter2\"}",
                "\\u006b", "1",
            ].as_slice()), 0..12),
        ) {
            let text = parts.concat();
            prop_assert_eq!(shown_documents(&text), parsed_documents(&text), "{}", text);
        }
    }

    #[test]
    fn parts_are_shown_without_secrets() {
        let part = |name: &str, value: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let whole = [part("user", "me"), part("password", "hunter2"), part("c", "d"), "--x--\r\n".to_owned()].concat();
        let shown = String::from_utf8(shown_body(whole.as_bytes()).into_owned()).unwrap();
        assert_eq!(shown, whole.replace("hunter2", REDACTED));
        let unquoted = b"--x\r\nContent-Disposition: form-data; name=token; filename=a\r\n\r\n\xffhunter2";
        assert!(String::from_utf8_lossy(&shown_body(unquoted)).ends_with("\r\n\r\n[redacted]"));
        let lenient = whole.replace("\r\n", "\n").replace("form-data; name=", "form-data;Name=");
        let shown = String::from_utf8(shown_body(lenient.as_bytes()).into_owned()).unwrap();
        assert_eq!(shown, lenient.replace("hunter2", REDACTED));
        for other in
            ["--", "-- a comment", "--x\r\n--x\r\n", "--\r\n\r\n", "--x\r\nA: b; filename=token\r\n\r\nc\r\n--x--"]
        {
            assert_eq!(shown_body(other.as_bytes()), other.as_bytes(), "{other:?}");
        }
    }

    #[test]
    fn beginnings_are_cut_after_secrets_are_hidden() {
        assert_eq!(shown_beginning(b"password=hunter2&a=b", 12), (b"password=[re".to_vec(), true));
        let long = format!("{{\"a\": \"{}\", \"password\": \"hunter2\"}}", "x".repeat(LONGEST_READ - 30));
        let (beginning, is_cut) = shown_beginning(long.as_bytes(), long.len());
        assert!(is_cut && !String::from_utf8(beginning).unwrap().contains("hunt"));
        // Cut within a character, or no text at all.
        for before in ["", "x"] {
            let long = format!("{{\"token\": \"hunter2\", \"a\": \"{before}{}\"}}", "ü".repeat(LONGEST_READ));
            assert!(!String::from_utf8_lossy(&shown_beginning(long.as_bytes(), 100).0).contains("hunt"));
        }
        assert!(!String::from_utf8_lossy(&shown_body(b"token=hunter2&a=\xfc")).contains("hunt"));
        assert_eq!(shown_body(b"a=\xfc"), &b"a=\xfc"[..]);
        assert_eq!(shown_beginning(b"short", 12), (b"short".to_vec(), false));
    }
}
