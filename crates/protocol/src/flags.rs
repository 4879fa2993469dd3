//! Flags: how a protocol's options are given, on the command line and in scenarios.
//!
//! A protocol declares its flags. The command line's parser reads them together with its own, and hands their values to
//! the protocol ([`FlagValues`]). The protocol makes its part of the plan from them
//! ([`Protocol::options`](crate::Protocol::options)): plain data, which another machine can carry out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use brunt_plan::content::Content;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::secret::{REDACTED, Template, shown_json};
use serde_json::Value;

use crate::OptionsError;
use crate::discovery::{DiscoveryReply, Inquiry};

/// The kind of value that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// No value.
    Nothing,
    /// A text, called this in the help.
    Text(&'static str),
    /// A text each time; the flag may be repeated.
    Texts(&'static str),
    /// One of these texts; the help calls it by the first field.
    OneOf(&'static str, &'static [&'static str]),
    /// A file's name; the protocol gets the file's content.
    File(&'static str),
    /// A text, or `@` and the name of a file whose content is given; `@@` stands for an `@` at the beginning.
    TextOrFile(&'static str),
}

/// Checks a text. The error says what was expected.
pub type TextCheck = fn(&str) -> Result<(), String>;

/// How much of a flag's value may be shown.
#[derive(Debug, Clone, Copy)]
pub enum Visibility {
    /// All of it.
    Whole,
    /// Its references to the environment (`@NAME`) only, since it is a secret; see [`Template::secret`].
    References,
    /// What this function leaves of it.
    By(fn(&str) -> String),
}

/// One flag of a protocol: `--NAME` on the command line, `NAME` (with `_` for `-`) in scenarios.
///
/// # Example
///
/// ```
/// use brunt_protocol::flags::{Flag, ValueKind};
///
/// fn is_key(text: &str) -> Result<(), String> {
///     let is_right = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
///     is_right.then_some(()).ok_or("expected a key without spaces".to_owned())
/// }
///
/// const FLAGS: [Flag; 2] = [
///     Flag::new("item", ValueKind::Text("KEY"), "The key of the item").short('i').checked(is_key),
///     Flag::new("all", ValueKind::Nothing, "Every item").conflicts_with(&["item"]),
/// ];
/// assert!(FLAGS[0].check.is_some_and(|check| check("a b").is_err()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name: `body-file` for `--body-file`. Protocols that share a flag declare it alike.
    pub name: &'static str,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// The kind of value that it takes.
    pub value: ValueKind,
    /// What it means, for the help: one sentence, without a full stop.
    pub help: &'static str,
    /// Checks its value as it is read; `None` where any text is right.
    pub check: Option<TextCheck>,
    /// Flags that cannot be given together with it.
    pub conflicts: &'static [&'static str],
    /// How much of its value may be shown.
    pub shown: Visibility,
}

impl Flag {
    /// A flag with the required parts only.
    pub const fn new(name: &'static str, takes: ValueKind, help: &'static str) -> Self {
        Self { name, short: None, value: takes, help, check: None, conflicts: &[], shown: Visibility::Whole }
    }

    /// Sets its letter.
    #[must_use]
    pub const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    /// Sets the check of each value.
    #[must_use]
    pub const fn checked(self, check: TextCheck) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Sets the flags that cannot be given together with it.
    #[must_use]
    pub const fn conflicts_with(self, conflicts: &'static [&'static str]) -> Self {
        Self { conflicts, ..self }
    }

    /// Declares its value a secret, which is shown and stored nowhere. References `@NAME` are kept; the protocol looks
    /// them up when it prepares ([`revealed`]).
    #[must_use]
    pub const fn secret(self) -> Self {
        Self { shown: Visibility::References, ..self }
    }

    /// Sets the function that leaves secrets out of its value.
    #[must_use]
    pub const fn shown_by(self, show: fn(&str) -> String) -> Self {
        Self { shown: Visibility::By(show), ..self }
    }

    /// Whether a part of its value may be a secret.
    pub const fn may_be_secret(&self) -> bool {
        !matches!(self.shown, Visibility::Whole)
    }

    /// The form of a value that may be shown.
    pub fn shown_text(&self, text: &str) -> String {
        match self.shown {
            Visibility::Whole => text.to_owned(),
            Visibility::References => Template::secret(text).shown().into_owned(),
            Visibility::By(show) => show(text),
        }
    }
}

/// The value of a secret option of `plan`, as [`Flag::secret`] declares it, with its references to the environment
/// resolved.
///
/// # Errors
/// When a variable is not set, or the value was left out when its plan was stored.
pub fn revealed(what: &str, text: &str, plan: &Plan) -> Result<String, OptionsError> {
    let value = Template::secret(text).reveal(|name| plan.environment.value(name));
    value.map_err(|error| OptionsError(format!("{what}: {error}")))
}

/// A plan's `protocol` part for display: without the values of fields that share their names with secret flags, or
/// whose names suggest a secret.
pub fn shown_options(options: &Value, flags: &[Flag]) -> Value {
    let plain = |name: &str| name.replace('_', "-");
    shown_json(options, &|field| {
        let flag = flags.iter().find(|flag| flag.name == plain(field))?;
        Some(matches!(flag.shown, Visibility::References))
    })
}

/// One value of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagValue {
    /// The flag was given, and takes no value.
    Set,
    /// A text.
    Text(String),
    /// The content of the file that was named.
    File {
        /// The file's name, for errors.
        name: String,
        /// The file's content.
        content: Content,
    },
}

/// Reads a file by its path. `Ok(None)` if there is no such file; the error says what is wrong with it.
pub type ReadFile = dyn Fn(&str) -> Result<Option<Vec<u8>>, String>;

/// The values of a protocol's flags.
///
/// # Example
///
/// ```
/// use brunt_protocol::flags::{FlagValue, FlagValues};
///
/// let mut given = FlagValues::default();
/// given.push("header", FlagValue::Text("a: 1".to_owned()));
/// given.push("header", FlagValue::Text("b: 2".to_owned()));
/// assert_eq!(given.text("header"), Some("b: 2"));
/// assert_eq!(given.texts("header").count(), 2);
/// assert!(!given.has("body"));
/// assert!(given.refuse_user("echo").is_ok());
/// ```
#[derive(Clone, Default)]
pub struct FlagValues {
    values: BTreeMap<String, Vec<FlagValue>>,
    user: Option<String>,
    read: Option<Arc<ReadFile>>,
    ask: Option<Arc<Inquiry<'static>>>,
}

impl fmt::Debug for FlagValues {
    /// Shows names only: values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlagValues").field("flags", &self.values.keys()).finish_non_exhaustive()
    }
}

impl FlagValues {
    /// Adds a value of the flag `name`.
    pub fn push(&mut self, name: impl Into<String>, value: FlagValue) {
        self.values.entry(name.into()).or_default().push(value);
    }

    /// Sets the user, which stood before the `@` of the URL.
    #[must_use]
    pub fn with_user(self, user: Option<String>) -> Self {
        Self { user, ..self }
    }

    /// Sets a reader of files besides those that flags name.
    #[must_use]
    pub fn with_files(self, read: Arc<ReadFile>) -> Self {
        Self { read: Some(read), ..self }
    }

    /// Sets a target that can be asked before the load.
    #[must_use]
    pub fn with_target(self, ask: Arc<Inquiry<'static>>) -> Self {
        Self { ask: Some(ask), ..self }
    }

    /// Makes the first call that these options describe to the target of the run, before the load.
    ///
    /// # Errors
    /// Says why there is no answer.
    pub fn ask(&self, call: &ProtocolOptions) -> Result<DiscoveryReply, String> {
        match &self.ask {
            Some(ask) => ask(call),
            None => Err("there is no target to ask here".to_owned()),
        }
    }

    /// The values of secret flags among `flags`, each with its form that may be shown.
    pub fn secrets(&self, flags: &[Flag]) -> Vec<(String, String)> {
        let secret = flags.iter().filter(|flag| matches!(flag.shown, Visibility::References));
        let values = secret.flat_map(|flag| self.values.get(flag.name).into_iter().flatten());
        let texts = values.filter_map(|value| match value {
            FlagValue::Set => None,
            FlagValue::Text(text) => Some((text.clone(), Template::secret(text.as_str()).shown().into_owned())),
            FlagValue::File { content, .. } => {
                // As the content is written in a plan.
                let written = serde_json::to_value(content).ok()?;
                let text = written.as_str().or_else(|| written.get("base64")?.as_str()).map(str::to_owned)?;
                Some((text, REDACTED.to_owned()))
            }
        });
        texts.filter(|(text, shown)| !text.is_empty() && text != shown).collect()
    }

    /// Reads a file that another file names; `None` if it does not exist.
    ///
    /// # Errors
    /// Says what is wrong with a file that is there.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        self.read.as_ref().map_or(Ok(None), |read| read(path))
    }

    /// `user` or `user:password`, as it stood before the `@` of the URL.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Whether the flag was given at all.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The flag's last value.
    pub fn last(&self, name: &str) -> Option<&FlagValue> {
        self.values.get(name)?.last()
    }

    /// The flag's last value, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).last()
    }

    /// The flag's texts, in their order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().filter_map(|value| match value {
            FlagValue::Text(text) => Some(text.as_str()),
            FlagValue::Set | FlagValue::File { .. } => None,
        })
    }

    /// Name and content of the flag's file.
    pub fn file(&self, name: &str) -> Option<(&str, &Content)> {
        self.values.get(name).into_iter().flatten().rev().find_map(|value| match value {
            FlagValue::File { name, content } => Some((name.as_str(), content)),
            FlagValue::Set | FlagValue::Text(_) => None,
        })
    }

    /// The flag's value as bytes, from a text or from a file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.last(name).and_then(|value| match value {
            FlagValue::Set => None,
            FlagValue::Text(text) => Some(text.clone().into_bytes()),
            FlagValue::File { content, .. } => Some(content.0.clone()),
        })
    }

    /// Refuses a user in the URL, for protocols that have no use for one.
    ///
    /// # Errors
    /// When there is one.
    pub fn refuse_user(&self, scheme: &str) -> Result<(), OptionsError> {
        match self.user {
            None => Ok(()),
            Some(_) => Err(OptionsError(format!("{scheme}:// takes no user name: leave what stands before the @ out"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_says_how_its_text_is_shown() {
        let token = Flag::new("token", ValueKind::Text("TOKEN"), "The token").secret();
        assert_eq!(token.shown_text("hunter2"), "[redacted]");
        assert_eq!(token.shown_text("@TOKEN"), "@TOKEN");
        assert!(token.may_be_secret());
        let item = Flag::new("item", ValueKind::Text("KEY"), "The key");
        assert_eq!(item.shown_text("hunter2"), "hunter2");
        let loud = item.shown_by(str::to_uppercase);
        assert_eq!(loud.shown_text("a"), "A");
    }

    #[test]
    fn options_are_shown_without_what_secret_flags_gave() {
        let flags = [
            Flag::new("login-code", ValueKind::Text("CODE"), "The code").secret(),
            Flag::new("item", ValueKind::Text("KEY"), "The key"),
        ];
        let options = serde_json::json!({"login_code": "hunter2", "item": "a", "password": "hunter2", "n": [1, null]});
        let shown = shown_options(&options, &flags);
        let expected =
            serde_json::json!({"login_code": "[redacted]", "item": "a", "password": "[redacted]", "n": [1, null]});
        assert_eq!(shown, expected);
        let mut given = FlagValues::default();
        given.push("login-code", FlagValue::Text("hunter2".to_owned()));
        given.push("item", FlagValue::Text("a".to_owned()));
        assert_eq!(given.secrets(&flags), [("hunter2".to_owned(), "[redacted]".to_owned())]);
        assert!(!format!("{given:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_given_is_found_by_its_name() {
        let mut given = FlagValues::default().with_user(Some("me".to_owned()));
        given.push("header", FlagValue::Text("a: b".to_owned()));
        given.push("header", FlagValue::Text("c: d".to_owned()));
        given.push("binary", FlagValue::Set);
        given.push("message", FlagValue::File { name: "m".to_owned(), content: Content(vec![1, 255]) });
        assert_eq!(given.texts("header").collect::<Vec<_>>(), ["a: b", "c: d"]);
        assert_eq!(given.text("header"), Some("c: d"));
        assert!(given.has("binary") && given.text("binary").is_none() && !given.has("text"));
        assert_eq!(given.bytes("message"), Some(vec![1, 255]));
        assert_eq!(given.file("message").map(|(name, _)| name), Some("m"));
        assert!(given.refuse_user("tcp").unwrap_err().0.contains("takes no user name"));
    }
}
