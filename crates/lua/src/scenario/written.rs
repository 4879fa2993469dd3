//! Checks whose names are in a script's text, as in `brunt.check(answer, { name = value })`.
//!
//! Lua keeps no key whose value is nil, so a given table lacks such a check. The text has it: in the call, in a local that
//! stands before it, or in the call of a function that hands its argument on to `brunt.check`.

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
    /// Whether these are all of its names. Otherwise the script does something else with the table before the call, too.
    is_exact: bool,
}

/// A token of Lua, in the detail needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
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

/// The tokens of a text, with their lines.
pub(crate) fn tokens(source: &[u8]) -> Vec<(usize, Token)> {
    let mut reader = Tokens { text: source, at: 0, line: 1 };
    if source.starts_with(b"#") {
        reader.take_while(|byte| byte != b'\n');
    }
    std::iter::from_fn(|| reader.next()).collect()
}

/// A function whose argument is a table of checks: `check` itself, or one that hands an argument on to such a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sink {
    /// The last part of its name.
    name: String,
    /// The argument's place, from 0.
    argument: usize,
    /// Whether it was defined with a colon, and has `self` as an argument before the first.
    is_method: bool,
    /// Whether it certainly is, or calls, the module's `check`.
    is_ours: bool,
}

/// Where the table of a call comes from.
enum Origin {
    /// The constructor that begins here, and is never touched before the call.
    Constructor(usize),
    /// The constructor that begins here, and other mentions of the variable before the call.
    Touched(usize, Vec<usize>),
    /// A parameter of the function around the call.
    Parameter(Sink),
}

/// The last line up to `line` that assigns the variable `name`, if one does.
pub(super) fn last_assigned(source: &[u8], name: &str, line: usize) -> Option<usize> {
    let tokens = tokens(source);
    let before = tokens.iter().take_while(|(at, _)| *at <= line).count();
    let is_variable = |place: usize| is(&tokens, place, name) && !is_key(&tokens, place);
    let assigns = |place: usize| {
        // In a list, as in `local a, b = f()`, further names stand before the sign.
        let mut sign = place + 1;
        while symbol(&tokens, sign) == Some(b',') && matches!(tokens.get(sign + 1), Some((_, Token::Name(_)))) {
            sign += 2;
        }
        symbol(&tokens, sign) == Some(b'=')
    };
    let place = (0..before).rev().find(|place| is_variable(*place) && assigns(*place))?;
    tokens.get(place).map(|(line, _)| *line)
}

/// Whether a text assigns a field of this name to a table, as in `vu.token = …` or `a.x, b["token"] = …`.
pub(super) fn assigns_field(source: &[u8], name: &str) -> bool {
    let tokens = tokens(source);
    // The end of the field that begins at a place, and whether it has the name.
    let field = |place: usize| match (symbol(&tokens, place)?, &tokens.get(place + 1)?.1) {
        (b'.', Token::Name(field)) => Some((place + 2, field == name)),
        (b'[', Token::Text(Some(field))) => Some((place + 3, field == name)),
        _ => None,
    };
    let is_assigned = |place: usize| {
        let (mut end, _) = field(place).filter(|(_, is_named)| *is_named)?;
        // In a list further variables, each with its fields, stand before the sign.
        while symbol(&tokens, end) == Some(b',') && matches!(tokens.get(end + 1), Some((_, Token::Name(_)))) {
            end += 2;
            while let Some((next, _)) = field(end) {
                end = next;
            }
        }
        (symbol(&tokens, end) == Some(b'=')).then_some(())
    };
    (0..tokens.len()).any(|place| is_assigned(place).is_some())
}

/// Everything that a script's text says of its checks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    tables: Vec<Written>,
    /// Lines of calls whose table is one of the caller's.
    handed_on: Vec<usize>,
}

/// The tables of checks in a script's text, by the lines of the calls that they are written in.
fn checks(source: &[u8]) -> Found {
    let tokens = tokens(source);
    let is_member = |place: usize| {
        place
            .checked_sub(2)
            .is_some_and(|before| is(&tokens, before, "brunt") && symbol(&tokens, before + 1) == Some(b'.'))
    };
    let is_alias =
        |place: usize| is(&tokens, place, "check") && symbol(&tokens, place + 1) == Some(b'=') && is_member(place + 4);
    let has_alias = (0..tokens.len()).any(|place| is_alias(place) && is(&tokens, place + 4, "check"));
    let mut sinks = vec![Sink { name: "check".to_owned(), argument: 1, is_method: false, is_ours: has_alias }];
    let mut found = Found::default();
    let mut next = 0;
    while let Some(sink) = sinks.get(next).cloned() {
        for place in (0..tokens.len()).filter(|place| is_call(&tokens, *place, &sink.name)) {
            let is_ours = sink.is_ours || next == 0 && is_member(place);
            let Some((line, _)) = tokens.get(place + 1) else { continue };
            let Some(argument) = argument_of(&tokens, place, &sink) else { continue };
            let mut add = |at: usize, mentions: Option<&[usize]>| {
                let Some((mut names, computed, _)) = constructor(&tokens, at) else { return };
                let later = mentions.unwrap_or(&[]).iter().filter_map(|at| assigned_key(&tokens, *at));
                for name in later {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                found.tables.push(Written { line: *line, names, computed, is_ours, is_exact: mentions.is_none() });
            };
            match origin(&tokens, argument, place) {
                Some(Origin::Constructor(at)) => add(at, None),
                Some(Origin::Touched(at, mentions)) => add(at, Some(&mentions)),
                Some(Origin::Parameter(outer)) => {
                    found.handed_on.push(*line);
                    let outer = Sink { is_ours, ..outer };
                    if !sinks.iter().any(|known| known.name == outer.name && known.argument == outer.argument) {
                        sinks.push(outer);
                    }
                }
                None => {}
            }
        }
        next += 1;
    }
    found
}

/// Whether a function of this name is called at a place, and not defined.
fn is_call(tokens: &[(usize, Token)], place: usize, name: &str) -> bool {
    let is_defined = || {
        let mut first = place;
        while let Some(before) = first.checked_sub(2)
            && matches!(symbol(tokens, before + 1), Some(b'.' | b':'))
        {
            first = before;
        }
        first.checked_sub(1).is_some_and(|before| is(tokens, before, "function"))
    };
    is(tokens, place, name) && symbol(tokens, place + 1) == Some(b'(') && !is_defined()
}

/// Where the argument of a call begins that is the sink's table.
fn argument_of(tokens: &[(usize, Token)], place: usize, sink: &Sink) -> Option<usize> {
    let is_method = place.checked_sub(1).is_some_and(|before| symbol(tokens, before) == Some(b':'));
    let count = (sink.argument + usize::from(sink.is_method)).checked_sub(usize::from(is_method))?;
    let mut at = place + 2;
    for _ in 0..count {
        at = end_of_value(tokens, at).filter(|end| symbol(tokens, *end) == Some(b','))? + 1;
    }
    Some(at)
}

/// Where the table of the argument at `at` comes from, in a call at `place`. `None` where the text does not tell.
fn origin(tokens: &[(usize, Token)], at: usize, place: usize) -> Option<Origin> {
    let end = end_of_value(tokens, at)?;
    let name = match &tokens.get(at)?.1 {
        Token::Symbol(b'{') => {
            let (_, _, close) = constructor(tokens, at)?;
            return (close + 1 == end).then_some(Origin::Constructor(at));
        }
        Token::Name(name) if end == at + 1 => name,
        _ => return None,
    };
    let mut mentions = Vec::new();
    // Blocks that are over before the call, as seen going back: what is local in them is not known there.
    let mut over = 0_usize;
    for before in (0..place).rev() {
        let Token::Name(word) = &tokens.get(before)?.1 else { continue };
        match word.as_str() {
            "end" | "until" => over += 1,
            "function" if over == 0 => {
                // The parameters themselves are no mentions.
                let body = (before..place).find(|at| symbol(tokens, *at) == Some(b')'))?;
                mentions.retain(|mention| *mention > body);
                if let Some(sink) = parameter(tokens, before, name) {
                    return mentions.is_empty().then_some(Origin::Parameter(sink));
                }
            }
            "function" | "if" | "do" | "repeat" => over = over.saturating_sub(1),
            _ if word == name && !is_key(tokens, before) => {
                let is_local = before.checked_sub(1).is_some_and(|before| is(tokens, before, "local"));
                if !is_local {
                    mentions.push(before);
                } else if over == 0 {
                    let is_table = symbol(tokens, before + 1) == Some(b'=') && symbol(tokens, before + 2) == Some(b'{');
                    let at = Some(before + 2).filter(|_| is_table)?;
                    mentions.reverse();
                    return Some(if mentions.is_empty() {
                        Origin::Constructor(at)
                    } else {
                        Origin::Touched(at, mentions)
                    });
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether the name at a place is a member of something, as in `answer.checks`.
fn is_key(tokens: &[(usize, Token)], place: usize) -> bool {
    place.checked_sub(1).is_some_and(|before| matches!(symbol(tokens, before), Some(b'.' | b':')))
}

/// The key of a field that is assigned to the table whose name is at a place: `checks.name = …` or `checks["name"] = …`.
fn assigned_key(tokens: &[(usize, Token)], place: usize) -> Option<String> {
    let (key, sign) = match (symbol(tokens, place + 1)?, &tokens.get(place + 2)?.1) {
        (b'.', Token::Name(key)) => (key, place + 3),
        (b'[', Token::Text(Some(key))) if symbol(tokens, place + 3) == Some(b']') => (key, place + 4),
        _ => return None,
    };
    (symbol(tokens, sign) == Some(b'=')).then(|| key.clone())
}

/// The function that begins at a place, as one whose parameter `name` is a table of checks; `None` where it has no such
/// parameter, or no name.
fn parameter(tokens: &[(usize, Token)], place: usize, name: &str) -> Option<Sink> {
    let mut open = place + 1;
    while symbol(tokens, open) != Some(b'(') {
        matches!(tokens.get(open)?.1, Token::Name(_) | Token::Symbol(b'.' | b':')).then_some(())?;
        open += 1;
    }
    let (named, is_method) = if open > place + 1 {
        (open - 1, symbol(tokens, open.checked_sub(2)?) == Some(b':'))
    } else {
        // `local expect = function(…)`
        (
            place
                .checked_sub(2)
                .filter(|_| place.checked_sub(1).and_then(|sign| symbol(tokens, sign)) == Some(b'='))?,
            false,
        )
    };
    let Token::Name(function) = &tokens.get(named)?.1 else { return None };
    let mut argument = 0;
    for at in open + 1.. {
        match &tokens.get(at)?.1 {
            Token::Name(one) if one == name => {
                return Some(Sink { name: function.clone(), argument, is_method, is_ours: false });
            }
            Token::Symbol(b',') => argument += 1,
            Token::Name(_) => {}
            _ => return None,
        }
    }
    None
}

/// The names of the checks in a script's text, each once, with the first line that has it.
pub(super) fn names(source: &[u8]) -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for written in checks(source).tables.into_iter().filter(|written| written.is_ours) {
        for name in written.names {
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, written.line));
            }
        }
    }
    all
}

fn is(tokens: &[(usize, Token)], place: usize, name: &str) -> bool {
    matches!(tokens.get(place), Some((_, Token::Name(known))) if known == name)
}

fn symbol(tokens: &[(usize, Token)], at: usize) -> Option<u8> {
    match tokens.get(at)? {
        (_, Token::Symbol(symbol)) => Some(*symbol),
        _ => None,
    }
}

/// The names in the constructor of a table of checks that begins at `at`, the number of other checks, whose names are
/// computed, and the place of its closing brace.
fn constructor(tokens: &[(usize, Token)], at: usize) -> Option<(Vec<String>, usize, usize)> {
    let mut at = Some(at).filter(|at| symbol(tokens, *at) == Some(b'{'))? + 1;
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
    Some((names, computed, at))
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

/// The tables of checks in a script's text for Lua: a list of tables with `line`, `names` and `computed`; its field
/// `handed_on` has the lines of calls whose table is one of the caller's.
pub(super) fn to_lua(lua: &Lua, source: &[u8]) -> mlua::Result<Table> {
    let Found { tables, handed_on } = checks(source);
    let all = lua.create_table_with_capacity(tables.len(), 1)?;
    all.raw_set("handed_on", handed_on)?;
    for one in tables.into_iter().filter(|one| one.is_exact) {
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
        checks(source.as_bytes()).tables.into_iter().map(|one| (one.line, one.names, one.computed)).collect()
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

    #[test]
    fn names_stand_in_a_local_before_the_call() {
        for (source, names, is_exact) in [
            ("local c = { a = x, ['b'] = y } brunt.check(r, c)", &["a", "b"][..], true),
            ("local c = { a = x }\nif y then for _ = 1, 2 do log(1) end brunt.check(r, c) end", &["a"], true),
            ("local c = { a = x } scenario('s', function() brunt.check(get(), c) end)", &["a"], true),
            ("local c = { z = 1 } local c = { a = x } brunt.check(r, c)", &["a"], true),
            ("local c = { a = x } other.c = 1 brunt.check(r, c)", &["a"], true),
            ("local c = { a = x } c.b = y c['d'] = z brunt.check(r, c)", &["a", "b", "d"], false),
            ("local c = { a = x } extend(c) brunt.check(r, c)", &["a"], false),
        ] {
            let tables = checks(source.as_bytes()).tables;
            let [one] = tables.as_slice() else { panic!("{source}: {tables:?}") };
            assert_eq!(
                (one.names.iter().map(String::as_str).collect::<Vec<_>>(), one.is_exact),
                (names.to_vec(), is_exact),
                "{source}"
            );
        }
        for source in [
            "do local c = { a = 1 } end brunt.check(r, c)",
            "local c = { a = 1 } local c = made() brunt.check(r, c)",
            "function f() local c = { a = 1 } end brunt.check(r, c)",
            "local c = { a = 1 } brunt.check(r, c.inner)",
        ] {
            assert_eq!(checks(source.as_bytes()), Found::default(), "{source}");
        }
    }

    #[test]
    fn names_come_through_functions_that_hand_them_on() {
        for (source, line) in [
            ("local function expect(r, c) brunt.check(r, c) end\nexpect(get(1, 2), { a = x })", 2),
            ("local expect = function(c, r)\nreturn brunt.check(r, c) end\n\nexpect({ a = x }, r)", 4),
            ("function M.expect(r, c) brunt.check(r, c) end\nM.expect(r, { a = x })", 2),
            ("function M:expect(r, c) brunt.check(r, c) end\nM:expect(r, { a = x })", 2),
            ("function M.expect(self, r, c) brunt.check(r, c) end\nM:expect(r, { a = x })", 2),
            (
                "local function inner(r, c) brunt.check(r, c) end local function outer(c) inner(1, c) end\nouter({ a = x })",
                2,
            ),
            ("local function expect(r, c) brunt.check(r, c) end\nlocal d = { a = x }\nexpect(r, d)", 3),
        ] {
            let found = checks(source.as_bytes());
            assert_eq!(found.tables.len(), 1, "{source}: {found:?}");
            assert_eq!((found.tables[0].line, &found.tables[0].names), (line, &vec!["a".to_owned()]), "{source}");
            assert!(found.tables[0].is_ours && !found.handed_on.is_empty(), "{source}: {found:?}");
        }
        let found = checks(b"local function expect(r, c) c.more = 1 brunt.check(r, c) end expect(r, { a = x })");
        assert_eq!(found, Found::default());
    }

    #[test]
    fn fields_are_assigned_alone_and_in_lists() {
        for source in ["vu.a = 1", "x['a'], y = 1, 2", "r.a, s.b.c['d'] = f()", "vu.store.a = nil"] {
            assert!(assigns_field(source.as_bytes(), "a"), "{source}");
        }
        for source in ["f(vu.a, b)", "if r.a == 1 then end", "t = { a = 1 }", "a = 1", "-- vu.a = 1", "r.b = r.a"] {
            assert!(!assigns_field(source.as_bytes(), "a"), "{source}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(source in "(check\\(|[\\[\\]{}(),;:='\"\\\\\n -]|a|end|local |function |--|\\[=\\[|\\PC){0,60}") {
            checks(source.as_bytes());
        }
    }
}
