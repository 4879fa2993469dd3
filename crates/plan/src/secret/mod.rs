//! Values that must not be shown: templates with references to the environment, and their forms for display.

mod redaction;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use brunt_record::redaction::REDACTED;

pub(crate) use redaction::is_secret_json_field;
pub use redaction::{is_secret_field, is_secret_header, shown_argument, shown_json, shown_path, shown_url};

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
/// References are shown and stored, never their values. In a secret text, everything else is [`REDACTED`], except
/// spaces and the name of an authentication scheme before the first reference (`Bearer @TOKEN`).
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    kind: Kind,
}

/// How much of a template may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All of it.
    Open,
    /// References only.
    Secret,
    /// References, and the user before a secret password.
    Credentials,
}

impl Template {
    /// A text that may be shown.
    pub fn open(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Open }
    }

    /// A text that must not be shown.
    pub fn secret(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Secret }
    }

    /// `user:password`; the user is shown where the password is a reference.
    pub fn credentials(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Credentials }
    }

    /// A secret text without references.
    pub fn literal(text: &str) -> Self {
        Self::secret(escaped(text))
    }

    /// The text as written, for parsing it again under another rule; never for display.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// Whether it must not be shown.
    pub(crate) fn is_secret(&self) -> bool {
        self.kind != Kind::Open
    }

    /// Whether some of it was left out when its plan was stored.
    pub fn is_redacted(&self) -> bool {
        self.is_secret() && self.text.contains(REDACTED)
    }

    /// Its form for display.
    pub fn shown(&self) -> Cow<'_, str> {
        if self.kind == Kind::Open {
            return Cow::Borrowed(&self.text);
        }
        let references = pieces(&self.text).filter(|piece| matches!(piece, Piece::Variable(_))).count();
        if references == 0 {
            return Cow::Borrowed(REDACTED);
        }
        let mut shown = String::with_capacity(self.text.len());
        for (place, piece) in pieces(&self.text).enumerate() {
            match piece {
                Piece::Variable(name) => shown.extend(["@", name]),
                Piece::Text(text) => {
                    let is_user = self.kind == Kind::Credentials && is_user(text) && references == 1;
                    if place == 0 && (is_user || is_scheme(text)) || text.chars().all(|c| c == ' ' || c == ':') {
                        shown.push_str(text);
                    } else {
                        shown.push_str(REDACTED);
                        // The character before a reference, which it needs.
                        shown.extend(text.chars().next_back().filter(|c| matches!(c, ' ' | ':')));
                    }
                }
            }
        }
        Cow::Owned(shown)
    }

    /// The names of the variables that it refers to.
    pub fn references(&self) -> Vec<String> {
        references(&self.text)
    }

    /// The texts to hide once it is revealed: its value, and secret words within that.
    ///
    /// # Errors
    /// As [`Template::reveal`].
    pub fn hidden(&self, env: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, SecretError> {
        let mut hidden = Vec::new();
        let value = self.reveal(&env)?;
        for piece in pieces(&self.text) {
            if let Piece::Variable(name) = piece {
                hidden.extend(env(name));
            }
        }
        if self.is_secret() {
            let words = value.split([' ', ';', ',', '=', ':']);
            hidden.extend(words.filter(|word| word.len() >= SHORTEST_WORD && !is_scheme(word)).map(str::to_owned));
            hidden.push(value);
        }
        hidden.retain(|text| !text.is_empty());
        Ok(hidden)
    }

    /// The value of an Authorization field (RFC 7617) for the user and password that it is.
    ///
    /// # Errors
    /// As [`Template::reveal`].
    pub fn basic(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, SecretError> {
        Ok(format!("Basic {}", STANDARD.encode(self.reveal(env)?)))
    }

    /// The value itself, with variables looked up by `env`.
    ///
    /// # Errors
    /// When a variable is not set, or the value was redacted when its plan was stored.
    pub fn reveal(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, SecretError> {
        if self.is_redacted() || self.text == REDACTED {
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
        fmt::Debug::fmt(&self.shown(), f)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// A stored text is read as secret; [`Template::open`] makes it a public one.
impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::secret)
    }
}

/// The shortest part of a secret that is searched for by itself, in bytes: shorter ones occur in any text.
const SHORTEST_WORD: usize = 6;

/// Whether a text is the name of an authentication scheme, which is not secret: the schemes that IANA registers for
/// HTTP, and common others.
fn is_scheme(text: &str) -> bool {
    const SCHEMES: [&str; 14] = [
        "apikey",
        "basic",
        "bearer",
        "digest",
        "dpop",
        "gnap",
        "hawk",
        "hoba",
        "jwt",
        "mutual",
        "negotiate",
        "ntlm",
        "token",
        "vapid",
    ];
    SCHEMES.iter().any(|scheme| text.trim().eq_ignore_ascii_case(scheme))
}

/// Whether a text is a user with the colon before a password.
fn is_user(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(|user| !user.contains(':'))
}

/// A text escaped so that it has no references.
pub fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        if c == '@' && matches!(before, None | Some(' ' | ':')) {
            written.push('@');
        }
        written.push(c);
        before = Some(c);
    }
    written
}

/// The names of the variables that a template with this text refers to.
pub(crate) fn references(text: &str) -> Vec<String> {
    let names = pieces(text).filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name.to_owned()),
        Piece::Text(_) => None,
    });
    names.collect()
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Splits a text into plain text and `@NAME`s. An `@` counts at the beginning and after a boundary; `@@` there is a plain `@`.
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

/// The position at or after `from` of the next `@` that may begin a reference: after a space or a colon.
fn boundary(text: &str, from: usize) -> usize {
    text.match_indices('@')
        .map(|(at, _)| at)
        .find(|&at| at >= from && text.get(..at).is_some_and(|before| before.ends_with([' ', ':'])))
        .unwrap_or(text.len())
}
