//! The place of a problem in a script's text, to the column: errors of Lua have only a line, and quote the wrong text.

use mlua::{Error, Lua};

/// The most occurrences of quoted text on a line that are examined.
const MOST_CANDIDATES: usize = 100;

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The place of a problem on this line of `source`, from Lua's or the library's message: where the quoted text is, if
/// that is certain. Text that is only on another line (an option of a call that spans several lines) is found there.
pub fn place(source: &[u8], line: usize, problem: &str) -> Option<TextPosition> {
    let problem = problem.lines().next().unwrap_or("");
    if let Some((_, near)) = problem.rsplit_once(" near ") {
        let token = near.strip_prefix('\'').and_then(|token| token.strip_suffix('\'')).unwrap_or(near);
        return of_syntax(source, line, token, near);
    }
    quoted(problem).find_map(|word| {
        let on_line: Vec<_> = occurrences(source, word).filter(|at| line_of(source, *at) == line).take(2).collect();
        let anywhere: Vec<_> = occurrences(source, word).take(2).collect();
        match (on_line.as_slice(), anywhere.as_slice()) {
            ([at], _) | ([], [at]) => Some(place_of(source, *at)),
            _ => None,
        }
    })
}

/// The place of a syntax error: the first such token on the line that has the same error when the text ends with it.
fn of_syntax(source: &[u8], line: usize, token: &str, near: &str) -> Option<TextPosition> {
    if token == "<eof>" {
        return Some(place_of(source, source.len()));
    }
    let mut candidates: Vec<_> =
        occurrences(source, token).filter(|at| line_of(source, *at) == line).take(MOST_CANDIDATES).collect();
    if candidates.len() > 1 {
        let lua = Lua::new();
        let has_it = |at: &usize| {
            let until = source.get(..at + token.len()).unwrap_or(source);
            let chunk = lua.load(without_first_line(until)).set_name("=place").into_function();
            matches!(chunk, Err(Error::SyntaxError { message, .. }) if message.ends_with(&format!(" near {near}")))
        };
        candidates.retain(has_it);
    }
    candidates.first().map(|at| place_of(source, *at))
}

/// The text without a first line for the shell, which Lua skips.
fn without_first_line(source: &[u8]) -> &[u8] {
    let end = if source.starts_with(b"#") { source.iter().position(|byte| *byte == b'\n') } else { Some(0) };
    end.and_then(|at| source.get(at..)).unwrap_or(&[])
}

/// The parts of a text in single quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('\'').skip(1).step_by(2).filter(|word| !word.is_empty())
}

/// The offsets of a word in the text, except as a part of a longer word.
fn occurrences<'a>(source: &'a [u8], word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let word = word.as_bytes();
    let windows = source.windows(word.len().max(1)).enumerate();
    windows.filter_map(move |(at, window)| {
        let before = at.checked_sub(1).and_then(|at| source.get(at));
        let cut_before = is_word(word.first()) && is_word(before);
        let cut_behind = is_word(word.last()) && is_word(source.get(at + word.len()));
        (window == word && !cut_before && !cut_behind).then_some(at)
    })
}

fn line_of(source: &[u8], at: usize) -> usize {
    source.get(..at).unwrap_or(source).split(|byte| *byte == b'\n').count()
}

fn place_of(source: &[u8], at: usize) -> TextPosition {
    let before = source.get(..at).unwrap_or(source);
    let begins = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let on_line = String::from_utf8_lossy(before.get(begins..).unwrap_or(&[])).chars().count();
    TextPosition { line: line_of(source, at), column: on_line + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of Lua's error in a text.
    fn syntax(source: &str) -> Option<TextPosition> {
        let Err(Error::SyntaxError { message, .. }) = Lua::new().load(source).set_name("@a.lua").into_function() else {
            panic!("{source} is right");
        };
        let (line, problem) = message.strip_prefix("a.lua:").unwrap().split_once(": ").unwrap();
        place(source.as_bytes(), line.parse().unwrap(), problem)
    }

    #[test]
    fn syntax_errors_have_a_column() {
        for (source, line, column) in [
            ("local x = = 1", 1, 11),
            ("local t = { a = 1, b = = 2 }", 1, 24),
            ("if a = 1 then end", 1, 6),
            ("\nlocal a = 'ü' = 1", 2, 15),
            ("f(1, 'a) b\n", 1, 6),
            ("f(1, 'a) b", 1, 11),
            ("function f()\n  g(\nend", 3, 1),
            ("function f()\n  g()\n", 3, 1),
            ("x = end -- end", 1, 5),
            ("a.b.c = d.e. = 1", 1, 14),
        ] {
            assert_eq!(syntax(source), Some(TextPosition { line, column }), "{source}");
        }
    }

    #[test]
    fn what_a_problem_quotes_is_found_on_its_line_or_alone_elsewhere() {
        let source = b"http:get('/', {\n  tiemout = 1,\n  name = 'timeout' })\nx(y.y)\nx(tiem)";
        let at = |line, problem: &str| place(source, line, problem).map(|place| (place.line, place.column));
        assert_eq!(at(1, "get: unknown option 'tiemout'; did you mean 'timeout'?"), Some((2, 3)));
        assert_eq!(at(4, "attempt to index field 'y' (a nil value)\nstack traceback: 'x'"), None);
        assert_eq!(at(4, "attempt to call global 'x' (a nil value)"), Some((4, 1)));
        assert_eq!(at(5, "attempt to call global 'x' (a nil value)"), Some((5, 1)));
        assert_eq!(at(1, "something else"), None);
        assert_eq!(at(9, "no 'such' 'words'"), None);
    }
}
