//! Values that must not be seen: what they are made of, and how they are shown.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// A secret that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The environment variable that a value names is not set.
    #[error(
        "@{name} stands for the environment variable {name}, which is not set: set it, or write @@{name} for the text itself"
    )]
    Unset {
        /// The variable's name.
        name: String,
    },
    /// The plan was stored, and secrets are not stored.
    #[error(
        "the plan holds no secrets: this value was left out when it was written; edit it to @NAME and set NAME in the environment"
    )]
    Redacted,
}

/// A text in which `@NAME`, at the beginning or after a space or colon, stands for the environment variable `NAME`
/// (letters, digits, underscores; not beginning with a digit), and `@@` for `@`.
///
/// Shown and stored are the references, never what they stand for. A text marked secret that has no reference is
/// shown and stored as [`REDACTED`].
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    secret: bool,
}

impl Template {
    /// A text that may be shown.
    pub fn open(text: impl Into<String>) -> Self {
        Self { text: text.into(), secret: false }
    }

    /// A text that must not be shown.
    pub fn secret(text: impl Into<String>) -> Self {
        Self { text: text.into(), secret: true }
    }

    /// As written, for reading it once more under another rule; not for showing.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// What may be shown of it.
    pub fn shown(&self) -> &str {
        if self.secret && !pieces(&self.text).any(|piece| matches!(piece, Piece::Variable(_))) {
            REDACTED
        } else {
            &self.text
        }
    }

    /// The value itself, with variables looked up by `env`.
    ///
    /// # Errors
    /// When a variable is not set, or the value was redacted when its plan was stored.
    pub fn reveal(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, SecretError> {
        if self.text == REDACTED {
            return Err(SecretError::Redacted);
        }
        let mut value = String::with_capacity(self.text.len());
        for piece in pieces(&self.text) {
            match piece {
                Piece::Text(text) => value.push_str(text),
                Piece::Variable(name) => {
                    value.push_str(&env(name).ok_or_else(|| SecretError::Unset { name: name.to_owned() })?);
                }
            }
        }
        Ok(value)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

/// A stored text is read as secret: who knows better marks it with [`Template::open`].
impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::secret)
    }
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    let mut at_start = true;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if at_start && let Some(after) = rest.strip_prefix('@') {
            at_start = false;
            if after.starts_with('@') {
                // The second @ begins the text that follows.
                rest = after;
                let end = boundary(after, 1);
                let (piece, next) = rest.split_at(end);
                at_start = end < rest.len();
                rest = next;
                return Some(Piece::Text(piece));
            }
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let (name, next) = after.split_at(end);
            if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
                rest = next;
                return Some(Piece::Variable(name));
            }
        }
        let end = boundary(rest, usize::from(rest.starts_with('@')));
        let (piece, next) = rest.split_at(end);
        at_start = true;
        rest = next;
        Some(Piece::Text(piece))
    })
}

/// Where the text from `from` on next has an `@` that may begin a reference: after a space or a colon.
fn boundary(text: &str, from: usize) -> usize {
    text.match_indices('@')
        .map(|(at, _)| at)
        .find(|&at| at >= from && text.get(..at).is_some_and(|before| before.ends_with([' ', ':'])))
        .unwrap_or(text.len())
}

/// Whether a header of this name carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "authorization" | "proxy-authorization" | "cookie")
        || ["token", "secret", "password", "api-key", "apikey", "session"].iter().any(|part| name.contains(part))
}

/// Whether a field of a query (or a form) of this name carries a secret.
pub fn is_secret_field(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(name.as_str(), "key" | "pwd" | "pass" | "sig" | "auth" | "jwt" | "sid")
        || [
            "token",
            "secret",
            "passw",
            "signature",
            "apikey",
            "accesskey",
            "privatekey",
            "credential",
            "authoriz",
            "session",
        ]
        .iter()
        .any(|part| name.contains(part))
}

/// A path with its query as it may be shown: the values of fields that carry secrets are [`REDACTED`].
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

/// A URL as it may be shown: its user and password, and the values of fields of its query that carry secrets, are
/// [`REDACTED`]. What stands before it on its line stays.
pub fn shown_url(url: &str) -> Cow<'_, str> {
    let url = shown_path(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rfind('@').filter(|_| !scheme.contains(['/', '?'])) {
        Some(at) => Cow::Owned(format!("{scheme}://{REDACTED}{}", rest.get(at..).unwrap_or_default())),
        None => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "t0p".to_owned())
    }

    #[test]
    fn urls_are_shown_without_passwords_and_tokens() {
        for (url, expected) in [
            ("http://a/b?c=d", "http://a/b?c=d"),
            ("http://me:pw@a:1/b@c", "http://[redacted]@a:1/b@c"),
            ("GET https://me@a?token=t#@", "GET https://[redacted]@a?token=[redacted]"),
            ("POST /a?key=x&b=@", "POST /a?key=[redacted]&b=@"),
            ("/a://b@c", "/a://b@c"),
            ("", ""),
        ] {
            assert_eq!(shown_url(url), expected, "{url}");
        }
    }

    #[test]
    fn references_stand_at_the_beginning_of_words() {
        for (text, expected) in [
            ("Bearer @TOKEN", "Bearer t0p"),
            ("@TOKEN", "t0p"),
            ("user:@TOKEN", "user:t0p"),
            ("@TOKEN.x @TOKEN", "t0p.x t0p"),
            ("me@TOKEN", "me@TOKEN"),
            ("@@TOKEN and @TOKEN", "@TOKEN and t0p"),
            ("@ 5", "@ 5"),
            ("@", "@"),
            ("@@", "@"),
            ("@1", "@1"),
            ("", ""),
        ] {
            assert_eq!(Template::open(text).reveal(env).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(Template::open("Bearer @NOPE").reveal(env), Err(SecretError::Unset { name: "NOPE".to_owned() }));
    }

    #[test]
    fn a_secret_is_neither_printed_nor_stored() {
        let literal = Template::secret("hunter2");
        assert_eq!(format!("{literal:?}"), "\"[redacted]\"");
        assert_eq!(serde_json::to_string(&literal).unwrap(), "\"[redacted]\"");
        let reference = Template::secret("Bearer @TOKEN");
        assert_eq!(serde_json::to_string(&reference).unwrap(), "\"Bearer @TOKEN\"");
        let stored: Template = serde_json::from_str("\"[redacted]\"").unwrap();
        assert_eq!(stored.reveal(env), Err(SecretError::Redacted));
    }

    #[test]
    fn secrets_in_queries_are_not_shown() {
        for (path, shown) in [
            ("/a?b=c&d", "/a?b=c&d"),
            ("/a", "/a"),
            ("/?token=t0p", "/?token=[redacted]"),
            ("/x?a=1&access_token=t0p&b=2", "/x?a=1&access_token=[redacted]&b=2"),
            ("/x?X-Amz-Signature=t0p;api_key=t1p", "/x?X-Amz-Signature=[redacted];api_key=[redacted]"),
            ("/x?Password=a=b&&key=", "/x?Password=[redacted]&&key="),
            ("/x?keyword=shoe&sig=t0p", "/x?keyword=shoe&sig=[redacted]"),
        ] {
            assert_eq!(shown_path(path), shown);
        }
    }

    #[test]
    fn secret_headers_are_known_by_name() {
        for name in ["Authorization", "cookie", "X-Api-Key", "X-Auth-Token"] {
            assert!(is_secret_header(name), "{name}");
        }
        assert!(!is_secret_header("Accept"));
    }
}
