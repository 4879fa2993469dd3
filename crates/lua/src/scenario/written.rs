//! Checks whose names are in a script's text, as in `brunt.check(answer, { name = value })`.
//!
//! Lua keeps no key whose value is nil, so a given table lacks such a check. The text has it.

use mlua::{Lua, Table};

/// A table of checks written in a call of `check`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// The line of the call's parenthesis, from 1.
    line: usize,
    /// The names, each once, in the order of the text.
    names: Vec<String>,
    /// The number of checks whose names are computed: `[name] = value`.
    computed: usize,
    /// Whether it certainly calls the module's `check`: `brunt.check`, or a local of its name.
    is_ours: bool,
}

/// A token of Lua, in the detail needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    /// A text; `None` if it has escapes.
    Text(Option<String>),
    /// A character that is not a part of a longer operator.
    Symbol(u8),
    Other,
}

/// Reads the tokens of a text.
struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Tokens<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips a number of bytes.
    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        for byte in self.text.get(self.at..end).unwrap_or(&[]) {
            self.line += usize::from(*byte == b'\n');
        }
        self.at = end;
    }

    /// Passes bytes as long as `holds` is true for them, and returns them.
    fn take_while(&mut self, holds: impl Fn(u8) -> bool) -> String {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let length = rest.iter().position(|byte| !holds(*byte)).unwrap_or(rest.len());
        let taken = String::from_utf8_lossy(rest.get(..length).unwrap_or(&[])).into_owned();
        self.skip(length);
        taken
    }

    /// The content of a long bracket (`[[ … ]]`, `[=[ … ]=]`), if one begins here.
    fn long_bracket(&mut self) -> Option<String> {
        let level = self.text.get(self.at + 1..)?.iter().take_while(|byte| **byte == b'=').count();
        if self.peek(0) != b'[' || self.peek(level + 1) != b'[' {
            return None;
        }
        self.skip(level + 2);
        let close = [b"]".as_slice(), &b"=".repeat(level), b"]"].concat();
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let length = rest.windows(close.len()).position(|window| window == close).unwrap_or(rest.len());
        let inner = String::from_utf8_lossy(rest.get(..length).unwrap_or(&[])).into_owned();
        self.skip(length + close.len());
        Some(inner.strip_prefix('\n').map(str::to_owned).unwrap_or(inner))
    }

    /// A quoted text that begins here.
    fn quoted(&mut self) -> Token {
        let quote = self.peek(0);
        self.skip(1);
        let mut has_escapes = false;
        let from = self.at;
        while self.at < self.text.len() && self.peek(0) != quote && self.peek(0) != b'\n' {
            let is_escape = self.peek(0) == b'\\';
            has_escapes |= is_escape;
            self.skip(1 + usize::from(is_escape));
        }
        let inner = String::from_utf8_lossy(self.text.get(from..self.at).unwrap_or(&[])).into_owned();
        self.skip(1);
        Token::Text((!has_escapes).then_some(inner))
    }

    /// The next token, and its line.
    fn next(&mut self) -> Option<(usize, Token)> {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace());
            if self.peek(0) != b'-' || self.peek(1) != b'-' {
                break;
            }
            self.skip(2);
            if self.long_bracket().is_none() {
                self.take_while(|byte| byte != b'\n');
            }
        }
        let line = self.line;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        let token = match self.peek(0) {
            _ if self.at >= self.text.len() => return None,
            b'0'..=b'9' => {
                self.take_while(|byte| is_word(byte) || byte == b'.');
                Token::Other
            }
            first if is_word(first) => Token::Name(self.take_while(is_word)),
            b'"' | b'\'' => self.quoted(),
            b'[' => match self.long_bracket() {
                Some(text) => Token::Text(Some(text)),
                None => self.symbol(),
            },
            b'=' | b'~' | b'<' | b'>' if self.peek(1) == b'=' => {
                self.skip(2);
                Token::Other
            }
            _ => self.symbol(),
        };
        Some((line, token))
    }

    fn symbol(&mut self) -> Token {
        let symbol = self.peek(0);
        self.skip(1);
        Token::Symbol(symbol)
    }
}

/// The tables of checks in a script's text, by their lines.
fn checks(source: &[u8]) -> Vec<Written> {
    let mut reader = Tokens { text: source, at: 0, line: 1 };
    if source.starts_with(b"#") {
        reader.take_while(|byte| byte != b'\n');
    }
    let tokens: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
    let is = |place: usize, name: &str| matches!(tokens.get(place), Some((_, Token::Name(known))) if known == name);
    let is_member = |place: usize| {
        place.checked_sub(2).is_some_and(|before| is(before, "brunt") && symbol(&tokens, before + 1) == Some(b'.'))
    };
    let is_alias =
        |place: usize| is(place, "check") && symbol(&tokens, place + 1) == Some(b'=') && is_member(place + 4);
    let has_alias = (0..tokens.len()).any(|place| is_alias(place) && is(place + 4, "check"));
    let calls = (0..tokens.len()).filter(|place| is(*place, "check") && symbol(&tokens, place + 1) == Some(b'('));
    calls
        .filter_map(|place| {
            let (line, _) = tokens.get(place + 1)?;
            let (names, computed) = names_of(&tokens, place + 2)?;
            Some(Written { line: *line, names, computed, is_ours: is_member(place) || has_alias })
        })
        .collect()
}

/// The names of the checks in a script's text, each once, with the first line that has it.
pub(super) fn names(source: &[u8]) -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for written in checks(source).into_iter().filter(|written| written.is_ours) {
        for name in written.names {
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, written.line));
            }
        }
    }
    all
}

fn symbol(tokens: &[(usize, Token)], at: usize) -> Option<u8> {
    match tokens.get(at)? {
        (_, Token::Symbol(symbol)) => Some(*symbol),
        _ => None,
    }
}

/// The names of the checks of a call whose first argument begins at `at`, and the number of other checks, whose names
/// are computed.
fn names_of(tokens: &[(usize, Token)], at: usize) -> Option<(Vec<String>, usize)> {
    let comma = end_of_value(tokens, at).filter(|end| symbol(tokens, *end) == Some(b','))?;
    let mut at = Some(comma + 1).filter(|at| symbol(tokens, *at) == Some(b'{'))? + 1;
    let mut names: Vec<String> = Vec::new();
    let mut computed = 0;
    while symbol(tokens, at) != Some(b'}') {
        let (name, sign) = match tokens.get(at)? {
            (_, Token::Name(name)) => (Some(name), at + 1),
            (_, Token::Symbol(b'[')) => {
                let close = end_of_value(tokens, at + 1).filter(|end| symbol(tokens, *end) == Some(b']'))?;
                match tokens.get(at + 1)? {
                    (_, Token::Text(Some(name))) if close == at + 2 => (Some(name), close + 1),
                    _ => (None, close + 1),
                }
            }
            _ => return None,
        };
        if symbol(tokens, sign) != Some(b'=') {
            return None;
        }
        match name {
            Some(name) if names.contains(name) => {}
            Some(name) => names.push(name.clone()),
            None => computed += 1,
        }
        at = end_of_value(tokens, sign + 1)?;
        if symbol(tokens, at) != Some(b'}') {
            at += 1;
        }
    }
    (symbol(tokens, at + 1) == Some(b')')).then_some((names, computed))
}

/// The end of the expression that begins at `at`: a comma, a semicolon, or the bracket that closes the enclosing one.
fn end_of_value(tokens: &[(usize, Token)], mut at: usize) -> Option<usize> {
    let (mut brackets, mut blocks) = (0_usize, 0_usize);
    loop {
        match &tokens.get(at)?.1 {
            Token::Symbol(b'(' | b'[' | b'{') => brackets += 1,
            Token::Symbol(b')' | b']' | b'}') if brackets == 0 => return (blocks == 0).then_some(at),
            Token::Symbol(b')' | b']' | b'}') => brackets -= 1,
            Token::Symbol(b',' | b';') if brackets == 0 && blocks == 0 => return Some(at),
            Token::Name(name) => match name.as_str() {
                "function" | "if" | "do" | "repeat" => blocks += 1,
                "end" | "until" => blocks = blocks.checked_sub(1)?,
                _ => {}
            },
            Token::Symbol(_) | Token::Text(_) | Token::Other => {}
        }
        at += 1;
    }
}

/// The tables of checks in a script's text for Lua: a list of tables with `line`, `names` and `computed`.
pub(super) fn to_lua(lua: &Lua, source: &[u8]) -> mlua::Result<Table> {
    let written = checks(source);
    let all = lua.create_table_with_capacity(written.len(), 0)?;
    for one in written {
        let table = lua.create_table()?;
        table.raw_set("line", one.line)?;
        table.raw_set("names", one.names.as_slice())?;
        table.raw_set("computed", one.computed)?;
        all.raw_push(table)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(source: &str) -> Vec<(usize, Vec<String>, usize)> {
        checks(source.as_bytes()).into_iter().map(|one| (one.line, one.names, one.computed)).collect()
    }

    #[test]
    fn names_stand_where_check_is_called() {
        for (source, names) in [
            ("brunt.check(r, { a = x, ['b c'] = y, [\"d\"] = z })", &["a", "b c", "d"][..]),
            ("check(http:get('/', { name = 'x', n = 1 }), { a = f(1, { q = 2 }), b = t[1] == nil, })", &["a", "b"]),
            ("if check(r, { a = function(x, y) if x then return x, y end end; b = not {} }) then end", &["a", "b"]),
            ("check(r, -- { no = 1 }\n { a = 1, --[[ b = 2, ]] [ [[c]] ] = [==[ }) ]==] })", &["a", "c"]),
            ("check(r, {\n a = r.x == 'it\\'s }',\n b = 1 })", &["a", "b"]),
            ("check(r, { a = 1, a = 2 })", &["a"]),
            ("check(r, {})", &[]),
        ] {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(found(source), [(1, names, 0)], "{source}");
        }
        assert_eq!(found("#!/bin/x '\n\nbrunt.check\n(r, { a = 1 })"), [(4, vec!["a".to_owned()], 0)]);
    }

    #[test]
    fn names_that_are_computed_are_counted() {
        for (source, computed) in [
            ("check(r, { a = 1, [name] = 2 })", 1),
            ("check(r, { [f(1, { x = 2 })] = 3, a = 1, [t['x']] = 4 })", 2),
            ("check(r, { ['a\\n'] = 1, a = 2 })", 1),
        ] {
            assert_eq!(found(source), [(1, vec!["a".to_owned()], computed)], "{source}");
        }
        let (a, b) = (vec!["a".to_owned()], vec!["b".to_owned()]);
        assert_eq!(found("check(r, { a = 1 }) check(r, { b = 1 })"), [(1, a, 0), (1, b, 0)]);
    }

    #[test]
    fn names_are_those_of_the_module() {
        let named = |source: &str| names(source.as_bytes()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(named("brunt.check(r, { a = 1 }) check(r, { b = 1 })"), ["a"]);
        assert_eq!(
            named("local check = brunt.check\ncheck(r, { a = 1 }) brunt.check(s, { a = 1, b = 2 })"),
            ["a", "b"]
        );
        assert_eq!(names(b"\nbrunt.check(r, { a = 1 })"), [("a".to_owned(), 2)]);
    }

    #[test]
    fn what_is_not_certain_is_left_out() {
        for source in [
            "check(r, checks)",
            "check(r, { a = 1, 'b' })",
            "check(r, merged { a = 1 })",
            "check(r, { a = 1 } or other)",
            "check { a = 1 }",
            "check(r, { a = 1",
            "-- check(r, { a = 1 })",
            "x = 'check(r, { a = 1 })'",
            "checks(r, { a = 1 })",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(source in "(check\\(|[\\[\\]{}(),;='\"\\\\\n -]|a|end|function|--|\\[=\\[|\\PC){0,60}") {
            checks(source.as_bytes());
        }
    }
}
