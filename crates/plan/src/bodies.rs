//! Bodies of requests and answers as they may be shown.

use std::borrow::Cow;

use serde_json::Value;

use crate::secret::{REDACTED, is_secret_field, is_secret_json_field, shown_json};

/// A body, or a message, as it may be shown: in JSON (a document or one a line), in forms and in their parts (multipart), the values of
/// fields that carry secrets by their names are [`REDACTED`].
pub fn shown_body(body: &[u8]) -> Cow<'_, [u8]> {
    if body.starts_with(b"--") {
        return shown_parts(body);
    }
    if !may_have_fields(body) {
        return Cow::Borrowed(body);
    }
    // What is no text, or was cut within a character, has fields all the same.
    let text = String::from_utf8_lossy(body);
    let shown = if text.trim_start().starts_with(['{', '[']) { shown_documents(&text) } else { shown_form(&text) };
    shown.map_or(Cow::Borrowed(body), |shown| Cow::Owned(shown.into_bytes()))
}

/// Whether a body begins like JSON or a form: another one, which may be large, is not read on.
fn may_have_fields(body: &[u8]) -> bool {
    // The last five begin white space outside ASCII or its usual kinds.
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
    // A large document is not read where no name in it can be that of a secret.
    if !text.contains("\\u") && shown_fields(text).is_none() {
        return None;
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let shown = shown_json(&value, &|_| None);
        return (shown != value).then(|| shown.to_string());
    }
    let mut is_changed = false;
    let lines: String = text
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
        if !is_secret_json_field(name) {
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

/// How many bytes of what stands behind a `"` belong to the text that it begins.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// How many bytes an array or an object takes; all of a text that was cut within it.
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

/// A form with its secrets hidden; `None` if it has no secrets, or the text is no form.
fn shown_form(text: &str) -> Option<String> {
    let form = text.trim_end_matches(['\r', '\n']);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_in_name);
    let is_form = form.contains('=') && form.split('&').all(|field| is_name(field.split('=').next().unwrap_or(field)));
    if !is_form {
        return None;
    }
    let mut fields = Vec::new();
    let mut is_changed = false;
    for field in form.split('&') {
        match field.split_once('=') {
            Some((name, value)) if is_secret_field(name) && !value.is_empty() => {
                is_changed = true;
                fields.push(format!("{name}={REDACTED}"));
            }
            _ => fields.push(field.to_owned()),
        }
    }
    is_changed.then(|| fields.join("&") + text.get(form.len()..).unwrap_or_default())
}

/// A body of parts (RFC 7578) in which those of secret fields are hidden. A body that only begins like one stays as it is.
fn shown_parts(body: &[u8]) -> Cow<'_, [u8]> {
    let first = body.split(|byte| *byte == b'\n').next().unwrap_or(body);
    let boundary = first.strip_suffix(b"\r").unwrap_or(first);
    let delimiter = [b"\r\n", boundary].concat();
    let mut shown = Vec::new();
    let mut is_changed = false;
    // The first delimiter has no line before it.
    let mut rest = body;
    loop {
        let end = places(rest, &delimiter).next().unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        match places(part, b"\r\n\r\n").next().map(|at| part.split_at(at + 4)) {
            Some((head, value)) if is_secret_part(head) && !value.is_empty() => {
                is_changed = true;
                shown.extend_from_slice(head);
                shown.extend_from_slice(REDACTED.as_bytes());
            }
            _ => shown.extend_from_slice(part),
        }
        let Some(next) = behind.get(delimiter.len()..).filter(|_| !behind.is_empty()) else { break };
        shown.extend_from_slice(&delimiter);
        rest = next;
    }
    if is_changed { Cow::Owned(shown) } else { Cow::Borrowed(body) }
}

/// Where these bytes stand in others.
fn places<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(wanted.len().max(1)).enumerate().filter(move |(_, window)| *window == wanted).map(|(at, _)| at)
}

/// Whether a part with this head is of a field that carries a secret.
fn is_secret_part(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let names = head.match_indices(" name=").filter_map(|(at, found)| head.get(at + found.len()..));
    let mut names = names.map(|name| match name.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or(quoted),
        None => name.split([';', '\r', '\n']).next().unwrap_or(name),
    });
    names.any(is_secret_field)
}

/// The beginning of a body as [`shown_body`] shows it, at most so many bytes of it, with whether there is more. A value that the
/// beginning of a very long body cuts is hidden like others.
pub fn shown_beginning(body: &[u8], most: usize) -> (Vec<u8>, bool) {
    let read = body.get(..LONGEST_READ).unwrap_or(body);
    let shown = shown_body(read);
    let beginning = shown.get(..most).unwrap_or(&shown);
    (beginning.to_vec(), shown.len() > most || read.len() < body.len())
}

/// The most of a body that is read for showing its beginning, in bytes.
const LONGEST_READ: usize = 64 * 1024;

#[cfg(test)]
mod tests {
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
    fn parts_are_shown_without_secrets() {
        let part = |name: &str, value: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let whole = [part("user", "me"), part("password", "hunter2"), part("c", "d"), "--x--\r\n".to_owned()].concat();
        let shown = String::from_utf8(shown_body(whole.as_bytes()).into_owned()).unwrap();
        assert_eq!(shown, whole.replace("hunter2", REDACTED));
        let unquoted = b"--x\r\nContent-Disposition: form-data; name=token; filename=a\r\n\r\n\xffhunter2";
        assert!(String::from_utf8_lossy(&shown_body(unquoted)).ends_with("\r\n\r\n[redacted]"));
        for other in ["--", "-- a comment", "--x\r\n--x\r\n", "--\r\n\r\n"] {
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
