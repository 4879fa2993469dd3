//! Values that must not be seen: what they are made of, and how they are shown.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use brunt_record::redaction::REDACTED;

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
/// Shown and stored are the references, never what they stand for. Of a secret text, everything else is [`REDACTED`], but
/// for spaces and for the name of an authentication scheme before the first reference (`Bearer @TOKEN`).
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
    /// Its references.
    Secret,
    /// Its references, and the user before a password that is one.
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

    /// `user:password`, of which the user is shown if the password is a reference.
    pub fn credentials(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Credentials }
    }

    /// A text that must not be shown, in which nothing stands for the environment.
    pub fn literal(text: &str) -> Self {
        Self::secret(escaped(text))
    }

    /// As written, for reading it once more under another rule; not for showing.
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

    /// What may be shown of it.
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
                        // What a reference needs before it.
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

    /// The texts that must not be seen once it is revealed: its value, and what stands in it by itself.
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

/// A stored text is read as secret: who knows better marks it with [`Template::open`].
impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::secret)
    }
}

/// The shortest part of a secret that is looked for by itself, in bytes: shorter ones stand in any text.
const SHORTEST_WORD: usize = 6;

/// Whether a text is the name of an authentication scheme, which is no secret: those registered with IANA for HTTP, and
/// what is used beside them.
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

/// A text written so that nothing in it stands for the environment.
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

/// Whether a header, or a variable, of this name carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    matches!(lower.as_str(), "authorization" | "proxy-authorization" | "cookie" | "set-cookie")
        || is_secret_field(name)
        || lower
            .split(['-', '_', '.'])
            .any(|word| matches!(word, "auth" | "jwt" | "pass" | "pwd" | "pw" | "pin" | "sid"))
}

/// Whether a field of a query (or a form) of this name carries a secret.
pub fn is_secret_field(name: &str) -> bool {
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

/// Whether a field of a JSON document of this name carries a secret. A mere `key` does in a query, where services take theirs; in a
/// document it is most often what something is called.
pub(crate) fn is_secret_json_field(name: &str) -> bool {
    name != "key" && is_secret_field(name)
}

/// The value of a JSON document in which the values of secret fields are [`REDACTED`]. `is_secret` says of a field whether
/// it is one; where it does not know, the field's name decides.
pub fn shown_json(value: &Value, is_secret: &impl Fn(&str) -> Option<bool>) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let hides = !value.is_null() && is_secret(name).unwrap_or_else(|| is_secret_json_field(name));
                (name.clone(), if hides { hidden_json(value) } else { shown_json(value, is_secret) })
            })
            .collect(),
        Value::Array(all) => all.iter().map(|one| shown_json(one, is_secret)).collect(),
        other => other.clone(),
    }
}

/// The names of the variables that a template with this text refers to.
pub(crate) fn references(text: &str) -> Vec<String> {
    let names = pieces(text).filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name.to_owned()),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// A value of which only references may be shown.
fn hidden_json(value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(text) => Template::secret(text.as_str()).shown().into(),
        Value::Bool(_) | Value::Null => value.clone(),
        Value::Array(all) => all.iter().map(hidden_json).collect(),
        Value::Object(_) | Value::Number(_) => REDACTED.into(),
    }
}

/// The longest argument of a script that is taken for no secret, in characters.
const SHORT_ARGUMENT: usize = 3;

/// An argument of a script as it may be shown. Only the script knows what it means, so that only references, numbers and
/// arguments of up to three characters are shown.
pub fn shown_argument(argument: &Template) -> Cow<'_, str> {
    let text = argument.as_written();
    let is_number = text.len() < 10 && text.parse::<f64>().is_ok();
    if is_number || text.chars().count() <= SHORT_ARGUMENT { Cow::Borrowed(text) } else { argument.shown() }
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
        for name in [
            "Authorization",
            "cookie",
            "X-Api-Key",
            "X-Auth-Token",
            "X-Auth",
            "API_KEY",
            "DB_PASS",
            "X-Amz-Credential",
            "CSRF-Token",
            "X-Hub-Signature-256",
            "Session-Id",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["Accept", "Idempotency-Key", "Author", "WWW-Authenticate", "Content-Encoding", "Host", "Passenger"]
        {
            assert!(!is_secret_header(name), "{name}");
        }
    }

    #[test]
    fn a_reference_shows_nothing_of_what_stands_beside_it() {
        for (text, shown) in [
            ("sid=hunter2; x @TOKEN", "[redacted] @TOKEN"),
            ("@TOKEN hunter2", "@TOKEN[redacted]"),
            ("Bearer @TOKEN", "Bearer @TOKEN"),
            ("hunter2 @TOKEN Bearer", "[redacted] @TOKEN[redacted]"),
            ("me:@TOKEN", "[redacted]:@TOKEN"),
            ("@TOKEN:@OTHER", "@TOKEN:@OTHER"),
            ("@@TOKEN", "[redacted]"),
        ] {
            let template = Template::secret(text);
            assert_eq!(template.shown(), shown, "{text}");
            let stored: Template = serde_json::from_str(&serde_json::to_string(&template).unwrap()).unwrap();
            assert_eq!(stored.is_redacted(), shown.contains(REDACTED), "{text}");
            assert_eq!(stored.reveal(|_| Some(String::new())).is_err(), shown.contains(REDACTED), "{text}");
            assert_eq!(stored.shown(), shown, "stored again: {text}");
        }
        for (text, shown) in [("me:@PW", "me:@PW"), ("me:hunter2", "[redacted]"), ("a:b:@PW", "[redacted]:@PW")] {
            assert_eq!(Template::credentials(text).shown(), shown);
        }
    }

    #[test]
    fn what_is_hidden_is_known_by_its_parts() {
        let hidden = |template: Template| template.hidden(|_| Some("t0p".to_owned())).unwrap();
        assert_eq!(hidden(Template::secret("Bearer hunter2")), ["hunter2", "Bearer hunter2"]);
        assert_eq!(hidden(Template::open("plain @TOKEN")), ["t0p"]);
        assert_eq!(hidden(Template::secret("sid=hunter2")), ["hunter2", "sid=hunter2"]);
    }

    #[test]
    fn literals_stand_for_themselves() {
        for text in ["@HOME", "a @HOME", "a:@HOME", "@@", "me@here", ""] {
            assert_eq!(Template::literal(text).reveal(|_| None).as_deref(), Ok(text));
        }
    }

    #[test]
    fn arguments_of_scripts_are_shown_where_they_can_be_no_secrets() {
        for (argument, shown) in
            [("100", "100"), ("2.5", "2.5"), ("-y", "-y"), ("hunter2", REDACTED), ("@TOKEN", "@TOKEN"), ("", "")]
        {
            assert_eq!(shown_argument(&Template::secret(argument)), shown);
        }
    }
}
