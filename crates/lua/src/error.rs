//! Errors of Lua in the words of a script's author.

use brunt_script::ScriptError;
use mlua::Error;

use crate::memory;

/// The error that `what` raised in `file`.
pub(crate) fn from_lua(what: &str, file: &str, error: &Error) -> ScriptError {
    let mut words = with_whole_name(words(error), file);
    if memory::is_full(&words) {
        words = format!("{words}\n{}", memory::full());
    }
    // Lua names the file itself, unless the error was raised without a position.
    let named = words.lines().next().is_some_and(|line| line.contains(file));
    if named { ScriptError::failed(what, &words) } else { ScriptError::failed(&format!("{what} of {file}"), &words) }
}

/// The longest name of a file that `LuaJIT`'s errors and tracebacks have whole, in bytes: `LUA_IDSIZE` in its `luaconf.h`,
/// less the zero byte. Of a longer one they have `...` and the last 56.
const LONGEST_WHOLE: usize = 59;

/// An error's text with this file's name whole wherever `LuaJIT` has cut its beginning off.
pub(crate) fn with_whole_name(text: String, file: &str) -> String {
    let Some(end) = file.len().checked_sub(LONGEST_WHOLE - 3).filter(|_| file.len() > LONGEST_WHOLE) else {
        return text;
    };
    // The cut may be within a character, of which an error has then lost the rest.
    let end = String::from_utf8_lossy(file.as_bytes().get(end..).unwrap_or(&[]));
    text.replace(&format!("...{end}:"), &format!("{file}:"))
}

/// The error, with the name of the value that the script lacks.
pub(crate) fn lacking(error: ScriptError, name: Option<String>) -> ScriptError {
    // A script that caught that error failed for another reason.
    let name = name.filter(|name| error.to_string().contains(&missing(name)));
    error.with_missing_value(name)
}

/// The error of `brunt.env` for a missing value.
pub(crate) fn missing(name: &str) -> String {
    format!("the script was given no value '{name}', and brunt.env has no default for it")
}

/// Lua's own words, without the names of Rust's error types.
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
        from_lua("request()", "a.lua", &error).to_string()
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
    fn a_long_path_is_whole_in_errors_and_tracebacks() {
        for folder in ["a/folder-with-a-name/", "ä/ordner-übung/", "äö/ordner-übung/"] {
            let file = format!("/home/me/projects/{}s.lua", folder.repeat(4));
            let lua = Lua::new();
            let code = "local function f() error('own') end\nlocal ok, problem = pcall(f)\nlocal x = nil + 1";
            let error = lua.load(code).set_name(format!("@{file}")).exec().unwrap_err();
            let error = from_lua("request()", &file, &error).to_string();
            assert!(error.starts_with(&format!("request() failed: {file}:3: attempt to ")), "{error}");
            assert!(error.contains(&format!("\n {file}:3: in main chunk")), "{error}");
            assert!(!error.contains("..."), "{error}");
        }
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
