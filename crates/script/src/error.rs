//! Errors of scripts, in words for their authors.

use brunt_protocol::record::redaction::Secrets;

/// The longest error that is shown, in characters.
const MOST_CHARS: usize = 8000;

/// A script that cannot be used, or failed: with file, line and traceback where its language gives them.
///
/// What failed and why are at most 8,000 characters each and have no control characters but line feeds: a server's words may stand in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failed}{text}")]
pub struct ScriptError {
    /// What failed, as it stands before the text: nothing where the script as a whole did.
    failed: String,
    text: String,
    missing_value: Option<String>,
}

impl ScriptError {
    /// A problem in this file.
    pub fn new(file: &str, problem: impl AsRef<str>) -> Self {
        Self::from_text(&format!("{file}: {}", problem.as_ref()))
    }

    /// The error that `what` never returned, and is waited for no longer.
    pub fn stuck(what: &str) -> Self {
        Self::from_text(&format!("{what} has not come back, and was left behind"))
    }

    /// The error that `what` had not returned when the run was to end.
    pub fn cut_off(what: &str) -> Self {
        Self::from_text(&format!("{what} had not returned, and was cut off"))
    }

    /// The error that `what` has failed, in the script's own words.
    pub fn failed(what: &str, problem: &str) -> Self {
        Self { failed: cleaned(&format!("{what} failed: ")), ..Self::from_text(problem) }
    }

    /// A problem whose text already says where it is.
    pub fn from_text(text: &str) -> Self {
        Self { failed: String::new(), text: cleaned(text).trim_end().to_owned(), missing_value: None }
    }

    /// The problem in the script's own words, without what failed by it.
    pub fn problem(&self) -> &str {
        &self.text
    }

    /// Adds the name of the value that the script lacks.
    #[must_use]
    pub fn with_missing_value(self, name: Option<String>) -> Self {
        Self { missing_value: name, ..self }
    }

    /// The error without secrets.
    #[must_use]
    pub fn without(mut self, secrets: &Secrets) -> Self {
        secrets.hide_in(&mut self.failed);
        secrets.hide_in(&mut self.text);
        self
    }

    /// The name of the value that the script asks for, has no default for, and was not given, if that is the error.
    pub fn missing_value(&self) -> Option<&str> {
        self.missing_value.as_deref()
    }
}

/// A text that moves no terminal's cursor, and does not go on without end.
fn cleaned(text: &str) -> String {
    let clean = text.chars().take(MOST_CHARS).map(|c| match c {
        '\t' => ' ',
        c if c.is_control() && c != '\n' => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    clean.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_a_terminals_cursor_or_goes_on_without_end() {
        let error = ScriptError::failed("request()", &format!("a\tb\u{1b}[2J\nc{}", "x".repeat(2 * MOST_CHARS)));
        let text = error.to_string();
        assert!(text.starts_with("request() failed: a b\u{fffd}[2J\nc"), "{text}");
        assert_eq!((text.chars().count(), error.problem().chars().count()), (MOST_CHARS + 18, MOST_CHARS));
    }

    #[test]
    fn secrets_are_left_out() {
        let secrets = Secrets::new(["hunter2".to_owned()]);
        let error = ScriptError::failed("setup", "s.lua:1: hunter2 is wrong").without(&secrets);
        assert_eq!(error.to_string(), "setup failed: s.lua:1: [redacted] is wrong");
    }

    #[test]
    fn a_missing_value_is_named() {
        let error = ScriptError::new("s.lua", "no value").with_missing_value(Some("user".to_owned()));
        assert_eq!((error.to_string().as_str(), error.missing_value()), ("s.lua: no value", Some("user")));
    }
}
