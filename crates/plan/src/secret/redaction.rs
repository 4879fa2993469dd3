//! Forms for display of headers, paths, URLs, JSON and arguments that hold secrets.

use std::borrow::Cow;

use serde_json::Value;

use super::{REDACTED, Template};
use crate::percent::percent_decoded;

/// Whether a header, or a variable, of this name carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    matches!(lower.as_str(), "authorization" | "proxy-authorization" | "cookie" | "set-cookie")
        || is_secret_field(name)
        || lower
            .split(['-', '_', '.'])
            .any(|word| matches!(word, "auth" | "jwt" | "pass" | "pwd" | "pw" | "pin" | "sid"))
}

/// Whether a field of a query (or a form) of this name, which may have escapes of URLs, carries a secret.
pub fn is_secret_field(name: &str) -> bool {
    let name = if name.contains('%') { Cow::Owned(percent_decoded(name)) } else { Cow::Borrowed(name) };
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(name.as_str(), "key" | "pwd" | "pw" | "pass" | "sig" | "auth" | "jwt" | "sid" | "pin")
        || [
            "token",
            "secret",
            "passw",
            "passphrase",
            "signature",
            "apikey",
            "accesskey",
            "authkey",
            "privatekey",
            "credential",
            "authoriz",
            "session",
        ]
        .iter()
        .any(|part| name.contains(part))
}

/// A path with its query for display: the values of fields that carry secrets are [`REDACTED`].
pub fn shown_path(path: &str) -> Cow<'_, str> {
    let Some((before, query)) = path.split_once('?') else { return Cow::Borrowed(path) };
    let is_secret =
        |field: &str| field.split_once('=').is_some_and(|(name, value)| is_secret_field(name) && !value.is_empty());
    if !query.split(['&', ';']).any(is_secret) {
        return Cow::Borrowed(path);
    }
    let mut shown = format!("{before}?");
    for field in query.split_inclusive(['&', ';']) {
        let (content, end) = match field.strip_suffix(['&', ';']) {
            Some(content) => field.split_at(content.len()),
            None => (field, ""),
        };
        match content.split_once('=') {
            Some((name, _)) if is_secret(content) => shown.extend([name, "=", REDACTED, end]),
            _ => shown.push_str(field),
        }
    }
    Cow::Owned(shown)
}

/// A URL for display: its user and password, and the values of secret fields of its query, are [`REDACTED`]. Text
/// before it on its line stays.
pub fn shown_url(url: &str) -> Cow<'_, str> {
    let url = shown_path(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rfind('@').filter(|_| !scheme.contains(['/', '?'])) {
        Some(at) => Cow::Owned(format!("{scheme}://{REDACTED}{}", rest.get(at..).unwrap_or_default())),
        None => url,
    }
}

/// Whether a field of this name in a JSON document carries a secret. A plain `key` does in a query, where services take
/// their API keys; in a document it most often is a name.
pub(crate) fn is_secret_json_field(name: &str) -> bool {
    name != "key" && is_secret_field(name)
}

/// A JSON document with the values of secret fields [`REDACTED`]. `is_secret` decides whether a field is one; where it
/// returns `None`, the field's name decides.
pub fn shown_json(value: &Value, is_secret: &impl Fn(&str) -> Option<bool>) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let hides = !value.is_null() && is_secret(name).unwrap_or_else(|| is_secret_json_field(name));
                // A number of tokens, as language models count them, is none.
                let hides = hides && !(value.is_number() && name.to_ascii_lowercase().ends_with("tokens"));
                (name.clone(), if hides { hidden_json(value) } else { shown_json(value, is_secret) })
            })
            .collect(),
        Value::Array(all) => all.iter().map(|one| shown_json(one, is_secret)).collect(),
        other => other.clone(),
    }
}

/// A value of which only references are shown.
fn hidden_json(value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(text) => Template::secret(text.as_str()).shown().into(),
        Value::Bool(_) | Value::Null => value.clone(),
        Value::Array(all) => all.iter().map(hidden_json).collect(),
        // Who writes a script has to know where a token is, and not what it is.
        Value::Object(fields) => {
            let shown = |(name, value): (&String, &Value)| {
                let name = if is_a_word(name) { name.as_str() } else { REDACTED };
                (name.to_owned(), hidden_json(value))
            };
            fields.iter().map(shown).collect()
        }
        Value::Number(_) => REDACTED.into(),
    }
}

/// Whether the name of a field was chosen by a person: a token that stands as one has digits, or is long.
fn is_a_word(name: &str) -> bool {
    name.len() <= 24 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-'))
}

/// The longest argument of a script that does not count as a secret, in characters.
const SHORT_ARGUMENT: usize = 3;

/// An argument of a script for display. Only the script knows its meaning, so only references, numbers and arguments of
/// up to three characters are shown.
pub fn shown_argument(argument: &Template) -> Cow<'_, str> {
    let text = argument.as_written();
    let is_number = text.len() < 10 && text.parse::<f64>().is_ok();
    if is_number || text.chars().count() <= SHORT_ARGUMENT { Cow::Borrowed(text) } else { argument.shown() }
}
