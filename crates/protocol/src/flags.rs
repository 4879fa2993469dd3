//! Flags: how a protocol's options are given, on the command line and in scenarios.
//!
//! A protocol declares its flags; whoever reads the command line takes them together with its own, and gives the
//! protocol what stood there ([`FlagValues`]). The protocol makes its part of the plan of that
//! ([`Protocol::options`](crate::Protocol::options)): plain data, which another machine can carry out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use brunt_plan::content::Content;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::secret::{REDACTED, Template, shown_json};
use serde_json::Value;

use crate::OptionsError;
use crate::discovery::{Inquiry, Reply};

/// What stands behind a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A text, called this in the help.
    Text(&'static str),
    /// A text, each time that it is given.
    Texts(&'static str),
    /// One of these texts, called this in the help.
    OneOf(&'static str, &'static [&'static str]),
    /// A file's name; its content is given.
    File(&'static str),
    /// A text, or `@` and the name of a file whose content is given; `@@` stands for an `@` at the beginning.
    TextOrFile(&'static str),
}

/// Whether a text can be right; if not, what was expected.
pub type Check = fn(&str) -> Result<(), String>;

/// How the text behind a flag may be shown.
#[derive(Debug, Clone, Copy)]
pub enum Visibility {
    /// As it is.
    Whole,
    /// Its references to the environment (`@NAME`) alone: it is a secret, see [`Template::secret`].
    References,
    /// As this function shows it.
    By(fn(&str) -> String),
}

/// One flag of a protocol: `--NAME` on the command line, `NAME` (with `_` for `-`) in scenarios.
///
/// # Example
///
/// ```
/// use brunt_protocol::flags::{Flag, Takes};
///
/// fn is_key(text: &str) -> Result<(), String> {
///     let is_right = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
///     is_right.then_some(()).ok_or("expected a key without spaces".to_owned())
/// }
///
/// const FLAGS: [Flag; 2] = [
///     Flag::new("item", Takes::Text("KEY"), "The key of the item").short('i').checked(is_key),
///     Flag::new("all", Takes::Nothing, "Every item").conflicts_with(&["item"]),
/// ];
/// assert!(FLAGS[0].check.is_some_and(|check| check("a b").is_err()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name: `body-file` for `--body-file`. Protocols that share a flag declare it alike.
    pub name: &'static str,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// What stands behind it.
    pub takes: Takes,
    /// What it means, for the help: one sentence, without a full stop.
    pub help: &'static str,
    /// Checks the text behind it as it is read; none where every text may be right.
    pub check: Option<Check>,
    /// The flags with which it cannot be given.
    pub conflicts: &'static [&'static str],
    /// How the text behind it may be shown.
    pub shown: Visibility,
}

impl Flag {
    /// A flag with nothing but what every flag has.
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, short: None, takes, help, check: None, conflicts: &[], shown: Visibility::Whole }
    }

    /// The same with a letter.
    #[must_use]
    pub const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    /// The same with a check of each text.
    #[must_use]
    pub const fn checked(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// The same, never beside these.
    #[must_use]
    pub const fn conflicts_with(self, conflicts: &'static [&'static str]) -> Self {
        Self { conflicts, ..self }
    }

    /// The same for a secret: what stands behind it is shown and stored nowhere. Only `@NAME` references are; the
    /// protocol looks them up when it prepares ([`revealed`]).
    #[must_use]
    pub const fn secret(self) -> Self {
        Self { shown: Visibility::References, ..self }
    }

    /// The same, with a function that leaves out what is secret in its text.
    #[must_use]
    pub const fn shown_by(self, show: fn(&str) -> String) -> Self {
        Self { shown: Visibility::By(show), ..self }
    }

    /// Whether some of its text may be a secret.
    pub const fn may_be_secret(&self) -> bool {
        !matches!(self.shown, Visibility::Whole)
    }

    /// A text behind it, as it may be shown.
    pub fn shown_text(&self, text: &str) -> String {
        match self.shown {
            Visibility::Whole => text.to_owned(),
            Visibility::References => Template::secret(text).shown().into_owned(),
            Visibility::By(show) => show(text),
        }
    }
}

/// The value of a secret option of `plan`, as [`Flag::secret`] declares it: with what stands in the environment for its references.
///
/// # Errors
/// When a variable is not set, or the value was left out when its plan was stored.
pub fn revealed(what: &str, text: &str, plan: &Plan) -> Result<String, OptionsError> {
    let value = Template::secret(text).reveal(|name| plan.environment.value(name));
    value.map_err(|error| OptionsError(format!("{what}: {error}")))
}

/// A plan's `protocol` part as it may be shown: without the values of fields that are named as secret flags are, or whose
/// names tell that they are secret.
pub fn shown_options(options: &Value, flags: &[Flag]) -> Value {
    let plain = |name: &str| name.replace('_', "-");
    shown_json(options, &|field| {
        let flag = flags.iter().find(|flag| flag.name == plain(field))?;
        Some(matches!(flag.shown, Visibility::References))
    })
}

/// What was given by one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagValue {
    /// It was there, and takes nothing.
    Set,
    /// Text behind it.
    Text(String),
    /// The content of a file that was named behind it.
    File {
        /// The file's name, for errors.
        name: String,
        /// What is in it.
        content: Content,
    },
}

/// Reads a file by its path: what is in it, or nothing if there is no such file; or what is wrong with it.
pub type ReadFile = dyn Fn(&str) -> Result<Option<Vec<u8>>, String>;

/// What was given by a protocol's flags.
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
    /// Names alone: what stands behind them may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlagValues").field("flags", &self.values.keys()).finish_non_exhaustive()
    }
}

impl FlagValues {
    /// Adds what was given by the flag `name`.
    pub fn push(&mut self, name: impl Into<String>, value: FlagValue) {
        self.values.entry(name.into()).or_default().push(value);
    }

    /// The same with what stood before the `@` of the URL.
    #[must_use]
    pub fn with_user(self, user: Option<String>) -> Self {
        Self { user, ..self }
    }

    /// The same, with files that can be read besides those that flags name.
    #[must_use]
    pub fn with_files(self, read: Arc<ReadFile>) -> Self {
        Self { read: Some(read), ..self }
    }

    /// The same, with a target that can be asked before the load.
    #[must_use]
    pub fn with_target(self, ask: Arc<Inquiry<'static>>) -> Self {
        Self { ask: Some(ask), ..self }
    }

    /// Makes the first call that these options describe to the target of the run, before there is any load.
    ///
    /// # Errors
    /// Says why there is no answer.
    pub fn ask(&self, call: &ProtocolOptions) -> Result<Reply, String> {
        match &self.ask {
            Some(ask) => ask(call),
            None => Err("there is no target to ask here".to_owned()),
        }
    }

    /// The texts that secret flags of these gave, each with what may be shown of it.
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

    /// Reads a file that another file names; none if it does not exist.
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

    /// What was given by the flag, the last time.
    pub fn last(&self, name: &str) -> Option<&FlagValue> {
        self.values.get(name)?.last()
    }

    /// The text behind the flag.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).last()
    }

    /// The texts behind the flag, in their order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().filter_map(|value| match value {
            FlagValue::Text(text) => Some(text.as_str()),
            FlagValue::Set | FlagValue::File { .. } => None,
        })
    }

    /// The name and the content of the file named behind the flag.
    pub fn file(&self, name: &str) -> Option<(&str, &Content)> {
        self.values.get(name).into_iter().flatten().rev().find_map(|value| match value {
            FlagValue::File { name, content } => Some((name.as_str(), content)),
            FlagValue::Set | FlagValue::Text(_) => None,
        })
    }

    /// What was given as text or in a file, whichever it was.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.last(name).and_then(|value| match value {
            FlagValue::Set => None,
            FlagValue::Text(text) => Some(text.clone().into_bytes()),
            FlagValue::File { content, .. } => Some(content.0.clone()),
        })
    }

    /// For protocols that have no use for it: there is no user in the URL.
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
        let token = Flag::new("token", Takes::Text("TOKEN"), "The token").secret();
        assert_eq!(token.shown_text("hunter2"), "[redacted]");
        assert_eq!(token.shown_text("@TOKEN"), "@TOKEN");
        assert!(token.may_be_secret());
        let item = Flag::new("item", Takes::Text("KEY"), "The key");
        assert_eq!(item.shown_text("hunter2"), "hunter2");
        let loud = item.shown_by(str::to_uppercase);
        assert_eq!(loud.shown_text("a"), "A");
    }

    #[test]
    fn options_are_shown_without_what_secret_flags_gave() {
        let flags = [
            Flag::new("login-code", Takes::Text("CODE"), "The code").secret(),
            Flag::new("item", Takes::Text("KEY"), "The key"),
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
