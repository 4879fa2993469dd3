//! What is wrong with a script, in words for its author.

use mlua::Error;

use crate::memory;

/// The most that is shown of an error, in characters.
const MOST_CHARS: usize = 8000;

/// A script that cannot be used, or failed: with file, line and traceback where Lua gives them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ScriptError {
    text: String,
    missing_value: Option<String>,
}

impl ScriptError {
    /// The value that the script asks for by `brunt.env`, has no default for, and was not given, if that is what is wrong.
    pub fn missing_value(&self) -> Option<&str> {
        self.missing_value.as_deref()
    }

    /// The same, where the script lacks the value of this name.
    pub(super) fn lacking(self, name: Option<String>) -> Self {
        // A script that caught that error failed of another one.
        let missing_value = name.filter(|name| self.text.contains(&missing(name)));
        Self { missing_value, ..self }
    }

    /// A problem that is not Lua's.
    pub(super) fn new(file: &str, problem: impl AsRef<str>) -> Self {
        Self::shown(&format!("{file}: {}", problem.as_ref()))
    }

    /// Something never came back, and is waited for no longer.
    pub fn stuck(what: &str) -> Self {
        Self::shown(&format!("{what} has not come back, and was left behind"))
    }

    /// `what` has failed, in Lua's own words.
    pub fn failed(what: &str, problem: &str) -> Self {
        Self::shown(&format!("{what} failed: {problem}"))
    }

    /// An error that `what` raised.
    pub(super) fn from_lua(what: &str, file: &str, error: &Error) -> Self {
        let mut words = words(error);
        if memory::is_full(&words) {
            words = format!("{words}\n{}", memory::full());
        }
        // Lua names the file itself, unless the error was raised without a position.
        let named = words.lines().next().is_some_and(|line| line.contains(file));
        Self::shown(&if named {
            format!("{what} failed: {words}")
        } else {
            format!("{what} of {file} failed: {words}")
        })
    }

    /// What a server sent may stand in it: so nothing that moves a terminal's cursor, and not without end.
    fn shown(text: &str) -> Self {
        let clean = text.chars().take(MOST_CHARS).map(|c| match c {
            '\t' => ' ',
            c if c.is_control() && c != '\n' => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        Self { text: clean.collect::<String>().trim_end().to_owned(), missing_value: None }
    }
}

/// What `brunt.env` raises for a value that is not there.
pub(crate) fn missing(name: &str) -> String {
    format!("the script was given no value '{name}', and brunt.env has no default for it")
}

/// Lua's own words, without the names of Rust's types for them.
fn words(error: &Error) -> String {
    match error {
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) | Error::MemoryError(message) => {
            message.clone()
        }
        Error::CallbackError { traceback, cause } => {
            let cause = words(innermost(cause));
            format!("{}{cause}\n{traceback}", position(traceback))
        }
        other => other.to_string(),
    }
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::CallbackError { cause, .. } | Error::BadArgument { cause, .. } => innermost(cause),
        other => other,
    }
}

/// `file:line: ` of the innermost function of Lua in a traceback, as Lua's own errors begin.
fn position(traceback: &str) -> String {
    let mut frames = traceback.lines().map(str::trim_start).filter(|line| !line.starts_with('['));
    let frame = frames.find_map(|line| {
        let (position, _) = line.split_once(": in ")?;
        position.contains(':').then_some(position)
    });
    frame.map_or(String::new(), |position| format!("{position}: "))
}

#[cfg(test)]
mod tests {
    use mlua::Lua;

    use super::*;

    fn error_of(lua: &Lua, code: &str) -> String {
        let error = lua.load(code).set_name("@a.lua").exec().unwrap_err();
        ScriptError::from_lua("request()", "a.lua", &error).to_string()
    }

    #[test]
    fn errors_have_file_line_and_traceback() {
        let lua = Lua::new();
        let error = error_of(&lua, "\nlocal function f() local x = nil + 1 end\nf()");
        assert!(
            error.starts_with("request() failed: a.lua:2: attempt to perform arithmetic on a nil value"),
            "{error}"
        );
        assert!(error.contains("\nstack traceback:\n") && error.contains("a.lua:3: in main chunk"), "{error}");
        assert_eq!(error_of(&lua, "\nx = = 1"), "request() failed: a.lua:2: unexpected symbol near '='");
        assert!(
            error_of(&lua, "error({})").starts_with("request() of a.lua failed: "),
            "{}",
            error_of(&lua, "error({})")
        );
    }

    #[test]
    fn errors_of_our_own_functions_have_the_same_form() {
        let lua = Lua::new();
        let refuse = lua.create_function(|_, ()| Err::<(), _>(Error::runtime("expected an address"))).unwrap();
        lua.globals().set("refuse", refuse).unwrap();
        let error = error_of(&lua, "\n\nrefuse()");
        assert!(error.starts_with("request() failed: a.lua:3: expected an address\nstack traceback:\n"), "{error}");
        assert!(!error.contains("CallbackError"), "{error}");
    }
}
