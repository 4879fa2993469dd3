//! HTTP header fields, for protocols that are HTTP or begin as HTTP: the flags `-H` and `--basic`, and tables of
//! scenarios.

use std::borrow::Cow;

use brunt_plan::secret::{REDACTED, Template, is_secret_header};
use serde::{Deserialize, Deserializer, Serialize};

use crate::OptionsError;
use crate::flags::{Flag, FlagValues, ValueKind};
use crate::scenario::{Value, is_rounded, number_text, rounded};

/// The flag `-H`: a header field.
pub const HEADER: Flag = Flag::new(
    "header",
    ValueKind::Texts("K: V"),
    "A header field, repeatable; @NAME at the beginning of a word of V is taken from the environment, never shown \
     (@@ for a plain @)",
)
.short('H')
.shown_by(shown_header);

/// The flag `--basic`: user and password in a header field (RFC 7617).
pub const BASIC: Flag = Flag::new(
    "basic",
    ValueKind::Text("U:P"),
    "User and password; @NAME is taken from the environment (U:@NAME, or @NAME for both)",
)
.shown_by(shown_basic);

/// `Name: value` as it may be shown; nothing of what is no header field.
fn shown_header(text: &str) -> String {
    match text.split_once(':') {
        Some((name, value)) if name.chars().all(is_token) => {
            format!("{name}: {}", Header::new(name, value.trim()).value.shown())
        }
        _ => REDACTED.to_owned(),
    }
}

fn shown_basic(text: &str) -> String {
    Template::credentials(text).shown().into_owned()
}

/// Reads `user:password` from a plan, for serde.
///
/// # Errors
/// Those of a text.
pub fn credentials<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Template>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Template::credentials))
}

/// A header field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, String)", into = "(String, String)")]
pub struct Header {
    name: String,
    value: Template,
}

impl Header {
    /// A field with this name and value. Names that carry secrets are known, and their values are not shown.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        let value = if is_secret_header(&name) { Template::secret(value) } else { Template::open(value) };
        Self { name, value }
    }

    /// The name as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value, with references to the environment.
    pub fn value(&self) -> &Template {
        &self.value
    }
}

impl From<(String, String)> for Header {
    fn from((name, value): (String, String)) -> Self {
        Self::new(name, value)
    }
}

impl From<Header> for (String, String) {
    fn from(header: Header) -> Self {
        (header.name, header.value.shown().into_owned())
    }
}

/// Whether `c` may stand in a token (RFC 9110, section 5.6.2): a method, or the name of a header field.
pub fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// The header fields from the flag [`HEADER`].
///
/// # Errors
/// Names the one that is wrong, never with its value.
pub fn headers(given: &FlagValues) -> Result<Vec<Header>, OptionsError> {
    given.texts("header").zip(1..).map(|(text, number)| header(text, number)).collect()
}

/// `Name: value` (RFC 9112, section 5). Errors never show the value, which may be a secret.
fn header(text: &str, number: usize) -> Result<Header, OptionsError> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(wrong(format!("-H number {number}: expected 'Name: value', found no ':' in it")));
    };
    if name.is_empty() {
        return Err(wrong(format!(
            "-H number {number}, column 1: expected 'Name: value', found no name before the ':'"
        )));
    }
    if let Some((at, c)) = name.chars().enumerate().find(|(_, c)| !is_token(*c)) {
        return Err(wrong(format!(
            "-H number {number}, column {}: {c:?} cannot stand in the name of a header field",
            at + 1
        )));
    }
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| c.is_ascii_control() && *c != '\t') {
        return Err(wrong(format!(
            "-H '{name}', column {}: {c:?} cannot stand in the value of a header field",
            at + 1
        )));
    }
    Ok(Header::new(name, value.trim()))
}

/// `user:password` from the flag [`BASIC`] or from the URL.
///
/// # Errors
/// When both name a user, or there is no `:`.
pub fn basic(given: &FlagValues) -> Result<Option<Template>, OptionsError> {
    match (given.text("basic"), given.user()) {
        (Some(_), Some(_)) => Err(wrong("--basic and the URL both name a user: leave one of them out")),
        (Some(text), None) if !text.contains(':') && !text.starts_with('@') => {
            Err(wrong("--basic: expected USER:PASSWORD (an empty password is USER:), found no ':' in it"))
        }
        (Some(text), None) => Ok(Some(Template::credentials(text))),
        (None, Some(user)) => {
            let pair = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            Ok(Some(Template::literal(&pair)))
        }
        (None, None) => Ok(None),
    }
}

/// Checks that `text` is a token (RFC 9110, section 5.6.2); `what` names it in errors.
///
/// # Errors
/// Names the first column that does not fit.
pub fn check_token(what: &str, text: &str) -> Result<(), OptionsError> {
    if text.is_empty() {
        return Err(OptionsError(format!("{what} is empty")));
    }
    match text.chars().position(|c| !is_token(c)) {
        None => Ok(()),
        Some(at) => Err(OptionsError(format!(
            "{what} '{text}', column {}: expected letters, digits and - (an HTTP token)",
            at + 1
        ))),
    }
}

/// The value of an Authorization field (RFC 7617), with references to the environment resolved by `env`.
///
/// # Errors
/// When a variable is not set.
pub fn authorization(basic: &Template, env: impl Fn(&str) -> Option<String>) -> Result<String, OptionsError> {
    basic.basic(env).map_err(|e| OptionsError(format!("--basic: {e}")))
}

/// The value of `header`, with references to the environment resolved by `env`.
///
/// # Errors
/// When a variable is not set, or the field would break its line.
pub fn header_value(header: &Header, env: impl Fn(&str) -> Option<String>) -> Result<String, OptionsError> {
    check_token("the header name", header.name())?;
    let value = header.value().reveal(env).map_err(|e| OptionsError(format!("header {}: {e}", header.name())))?;
    // A line end in a value would begin another field, or another request.
    if value.contains(|c: char| c.is_control() && c != '\t') {
        let name = header.name();
        return Err(OptionsError(format!("header {name}: its value has a control character in it")));
    }
    Ok(value)
}

/// A header field's name and value.
pub type HeaderField<'v> = (String, Cow<'v, [u8]>);

/// The header fields in a table of `whose`: names with a value, or with a list of values.
///
/// # Errors
/// Says which name or value is wrong.
pub fn header_fields<'v>(whose: &str, table: &'v Value<'_>) -> Result<Vec<HeaderField<'v>>, OptionsError> {
    if !matches!(table, Value::Nil | Value::Table(_)) {
        return Err(OptionsError(format!(
            "{whose}: headers must be a table of names and values, not {}",
            table.kind()
        )));
    }
    let mut fields = Vec::new();
    for (name, value) in table.entries() {
        let Some(name) = name.as_str() else {
            return Err(OptionsError(format!("{whose}: the name of a header is a string, not {}", name.kind())));
        };
        check_token("the header name", name).map_err(|e| OptionsError(format!("{whose}: {e}")))?;
        if value.entries().iter().any(|(place, _)| place.as_number().is_none()) {
            return Err(OptionsError(format!(
                "{whose}: the header {name} is a text, or a list of texts for several of its name, not a table of names"
            )));
        }
        let several = value.entries().iter().map(|(_, value)| value);
        let one = (!matches!(value, Value::Table(_))).then_some(value);
        for value in one.into_iter().chain(several) {
            let value = match value {
                Value::Text(text) => Cow::Borrowed(text.as_ref()),
                Value::Number(number) if is_rounded(*number) => {
                    return Err(OptionsError(format!("{whose}: the header {name}: {}", rounded(*number))));
                }
                Value::Number(number) => Cow::Owned(number_text(*number).into_bytes()),
                other => {
                    let kind = other.kind();
                    return Err(OptionsError(format!(
                        "{whose}: the value of the header {name} must be a string, not {kind}"
                    )));
                }
            };
            // A line end in a value would begin another field, or another request.
            if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                return Err(OptionsError(format!(
                    "{whose}: the value of the header {name} has a control character in it"
                )));
            }
            fields.push((name.to_owned(), value));
        }
    }
    Ok(fields)
}

fn wrong(problem: impl Into<String>) -> OptionsError {
    OptionsError(problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::FlagValue;

    fn given(name: &str, text: &str) -> FlagValues {
        let mut given = FlagValues::default();
        given.push(name, FlagValue::Text(text.to_owned()));
        given
    }

    fn revealed(template: &Template) -> String {
        template.reveal(|_| Some("from the environment".to_owned())).unwrap()
    }

    #[test]
    fn the_user_of_a_url_is_taken_as_it_is() {
        for user in ["me:@HOME", "@HOME:x", "a:@@b @C", "@@@", "me:s@crt"] {
            let basic = basic(&FlagValues::default().with_user(Some(user.to_owned()))).unwrap().unwrap();
            let expected = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            assert_eq!(revealed(&basic), expected);
        }
        assert_eq!(revealed(&basic(&given("basic", "me:@HOME")).unwrap().unwrap()), "me:from the environment");
    }

    #[test]
    fn a_header_that_is_wrong_keeps_its_value_to_itself() {
        for (text, expected) in [
            ("Authorization hunter2", "found no ':'"),
            ("X Y: hunter2", "column 2: ' '"),
            (": hunter2", "column 1"),
            ("X: hunter2\r\nY: z", "'X', column 11: '\\r'"),
            ("Ü: hunter2", "column 1: 'Ü'"),
        ] {
            let error = header(text, 1).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{text}: {error}");
        }
        let header = header("X-Ok:\t  v: w  ", 1).unwrap();
        assert_eq!((header.name(), revealed(header.value()).as_str()), ("X-Ok", "v: w"));
    }
}
