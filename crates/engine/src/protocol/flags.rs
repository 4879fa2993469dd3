//! Flags: how a protocol's options are given, on the command line and in scenarios.
//!
//! A protocol declares its flags; whoever reads the command line takes them together with its own, and gives the
//! protocol what stood there ([`Given`]). The protocol makes its part of the plan of that
//! ([`Protocol::options`](super::Protocol::options)): plain data, which another machine can carry out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use brunt_model::content::Content;

use super::OptionsError;

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

/// One flag of a protocol.
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
}

impl Flag {
    /// A flag with nothing but what every flag has.
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, short: None, takes, help, check: None, conflicts: &[] }
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
}

/// What was given by one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
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
#[derive(Clone, Default)]
pub struct Given {
    values: BTreeMap<String, Vec<Value>>,
    user: Option<String>,
    read: Option<Arc<ReadFile>>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("values", &self.values).finish_non_exhaustive()
    }
}

impl Given {
    /// Adds what was given by the flag `name`.
    pub fn push(&mut self, name: impl Into<String>, value: Value) {
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

    /// Reads a file that another file names; nothing if there is none.
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
    pub fn last(&self, name: &str) -> Option<&Value> {
        self.values.get(name)?.last()
    }

    /// The text behind the flag.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).last()
    }

    /// The texts behind the flag, in their order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            Value::Set | Value::File { .. } => None,
        })
    }

    /// The name and the content of the file named behind the flag.
    pub fn file(&self, name: &str) -> Option<(&str, &Content)> {
        self.values.get(name).into_iter().flatten().rev().find_map(|value| match value {
            Value::File { name, content } => Some((name.as_str(), content)),
            Value::Set | Value::Text(_) => None,
        })
    }

    /// What was given as text or in a file, whichever it was.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.last(name).and_then(|value| match value {
            Value::Set => None,
            Value::Text(text) => Some(text.clone().into_bytes()),
            Value::File { content, .. } => Some(content.0.clone()),
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
    fn what_is_given_is_found_by_its_name() {
        let mut given = Given::default().with_user(Some("me".to_owned()));
        given.push("header", Value::Text("a: b".to_owned()));
        given.push("header", Value::Text("c: d".to_owned()));
        given.push("binary", Value::Set);
        given.push("message", Value::File { name: "m".to_owned(), content: Content(vec![1, 255]) });
        assert_eq!(given.texts("header").collect::<Vec<_>>(), ["a: b", "c: d"]);
        assert_eq!(given.text("header"), Some("c: d"));
        assert!(given.has("binary") && given.text("binary").is_none() && !given.has("text"));
        assert_eq!(given.bytes("message"), Some(vec![1, 255]));
        assert_eq!(given.file("message").map(|(name, _)| name), Some("m"));
        assert!(given.refuse_user("tcp").unwrap_err().0.contains("takes no user name"));
    }
}
