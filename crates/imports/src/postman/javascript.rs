//! Reads as much of JavaScript as is needed to tell statements apart: texts, brackets, comments.

use crate::value::Value;

/// The code of an event, in lines.
pub(crate) fn lines(event: &Value) -> String {
    let code = match event.at(&["script", "exec"]) {
        Some(Value::List(all)) => all.iter().filter_map(Value::text).collect::<Vec<_>>().join("\n"),
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    without_comments(&code).trim().to_owned()
}

/// The state of the scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Code,
    Text(char),
    Line,
    Block,
}

/// Calls `f` with each character's position, the character, and the state that it is in.
fn scan(code: &str, mut f: impl FnMut(usize, char, In)) {
    let mut state = In::Code;
    let mut escaped = false;
    let mut letters = code.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, letter)) = letters.next() {
        let following = letters.peek().map_or(' ', |(_, letter)| *letter);
        let before = state;
        match state {
            In::Code if letter == '/' && following == '/' => state = In::Line,
            In::Code if letter == '/' && following == '*' => {
                state = In::Block;
                last = ' ';
                f(at, letter, In::Block);
                continue;
            }
            In::Code if matches!(letter, '"' | '\'' | '`') => state = In::Text(letter),
            In::Line if letter == '\n' => state = In::Code,
            In::Block if last == '*' && letter == '/' => state = In::Code,
            In::Text(_) if escaped => escaped = false,
            In::Text(_) if letter == '\\' => escaped = true,
            In::Text(quote) if letter == quote => state = In::Code,
            In::Text(quote) if letter == '\n' && quote != '`' => state = In::Code,
            _ => {}
        }
        // Quotes belong to their text, and the end of a block comment to the comment; a line comment ends before the
        // end of its line.
        let shown = match (before, state) {
            (In::Code, after) => after,
            (In::Line, In::Code) => In::Code,
            (before, _) => before,
        };
        f(at, letter, shown);
        last = letter;
    }
}

/// The code without its comments.
pub(crate) fn without_comments(code: &str) -> String {
    let mut plain = String::new();
    scan(code, |_, letter, inside| {
        if !matches!(inside, In::Line | In::Block) {
            plain.push(letter);
        }
    });
    plain
}

/// Splits code without comments into statements, which end by `;` or by the end of a line outside of brackets.
pub(crate) fn statements(code: &str) -> Vec<String> {
    let (mut all, mut current, mut depth) = (Vec::new(), String::new(), 0_i32);
    let mut end = |current: &mut String| {
        let statement = current.trim();
        if !statement.is_empty() {
            all.push(statement.to_owned());
        }
        current.clear();
    };
    let mut cuts = Vec::new();
    scan(code, |at, letter, inside| {
        if inside != In::Code {
            return;
        }
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ';' if depth <= 0 => cuts.push(at),
            '\n' if depth <= 0 => {
                // A line that begins with a dot continues the statement.
                let goes_on = code.get(at..).is_some_and(|rest| rest.trim_start().starts_with('.'));
                if !goes_on {
                    cuts.push(at);
                }
            }
            _ => {}
        }
    });
    let mut from = 0;
    for cut in cuts {
        current.push_str(code.get(from..cut).unwrap_or_default());
        end(&mut current);
        from = cut + 1;
    }
    current.push_str(code.get(from..).unwrap_or_default());
    end(&mut current);
    all
}

/// A statement without insignificant spaces.
pub(crate) fn squeezed(statement: &str) -> String {
    let mut plain = String::new();
    let mut space = false;
    scan(statement, |_, letter, inside| {
        if inside == In::Code && letter.is_whitespace() {
            space = true;
            return;
        }
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        if space && plain.ends_with(is_word) && is_word(letter) {
            plain.push(' ');
        }
        space = false;
        plain.push(letter);
    });
    plain
}

/// The arguments of a call of `function`, if a squeezed statement consists of it.
pub(crate) fn arguments(statement: &str, function: &str) -> Option<Vec<String>> {
    let inner = statement.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')')?;
    let (mut cuts, mut depth, mut balanced) = (Vec::new(), 0_i32, true);
    scan(inner, |at, letter, inside| {
        if inside == In::Code {
            match letter {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => {
                    depth -= 1;
                    balanced &= depth >= 0;
                }
                ',' if depth == 0 => cuts.push(at),
                _ => {}
            }
        }
    });
    if !balanced || depth != 0 {
        return None;
    }
    let mut all = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([inner.len()]) {
        all.push(inner.get(from..cut)?.to_owned());
        from = cut + 1;
    }
    Some(all)
}

/// The value of a string literal.
pub(crate) fn literal(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    if quote == '`' && inner.contains("${") {
        return None;
    }
    let mut plain = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                'u' | 'x' => return None,
                other => plain.push(other),
            },
            letter if letter == quote => return None,
            letter => plain.push(letter),
        }
    }
    Some(plain)
}

/// The variable and the value of an assignment.
pub(crate) fn assignment(statement: &str) -> Option<(String, String)> {
    let squeezed = squeezed(statement);
    let functions = [
        "pm.environment.set",
        "pm.collectionVariables.set",
        "pm.globals.set",
        "pm.variables.set",
        "postman.setEnvironmentVariable",
        "postman.setGlobalVariable",
    ];
    let arguments = functions.iter().find_map(|function| arguments(&squeezed, function))?;
    match arguments.as_slice() {
        [name, value] => Some((literal(name)?, value.clone())),
        _ => None,
    }
}

/// The variables that code sets, at its top or in a test.
pub(crate) fn assigned(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for statement in statements(code) {
        if let Some((name, _)) = assignment(&statement) {
            names.push(name);
        } else if let Some(parts) = arguments(&squeezed(&statement), "pm.test")
            && let Some(body) = parts.get(1).and_then(|function| body_of(function))
        {
            names.extend(statements(&body).iter().filter_map(|one| Some(assignment(one)?.0)));
        }
    }
    names
}

/// The body of a function: `function () { … }`, `() => { … }`, `() => …`.
pub(crate) fn body_of(function: &str) -> Option<String> {
    let body = function.split_once('{').and_then(|(head, rest)| {
        let is_function = head.ends_with("=>") || head.starts_with("function") && head.ends_with(')');
        rest.strip_suffix('}').filter(|_| is_function)
    });
    body.or_else(|| function.split_once("=>").map(|(_, body)| body)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart() {
        let code =
            "// a; b\nconst x = pm.response\n  .json(); pm.test(\"a;b\", () => {\n  c(';'); /* ; */ d();\n})\ne('//')";
        let plain = without_comments(code);
        let shown: Vec<String> = statements(&plain).iter().map(|one| squeezed(one)).collect();
        assert_eq!(shown, ["const x=pm.response.json()", "pm.test(\"a;b\",()=>{c(';');d();})", "e('//')"]);
    }

    #[test]
    fn calls_and_texts_are_read() {
        assert_eq!(arguments("f(\"a,b\",g(1,2))", "f").unwrap(), ["\"a,b\"", "g(1,2)"]);
        assert_eq!(arguments("f(1).g(2)", "f"), None);
        assert_eq!(literal("'a\\'b'").as_deref(), Some("a'b"));
        assert_eq!(literal("`a${b}`"), None);
        assert_eq!(literal("'a'+'b'"), None);
        assert_eq!(assignment("pm.environment.set('t', json.token)"), Some(("t".into(), "json.token".into())));
        let code = "pm.globals.set('a', 1)\npm.test('x', function () { f(); pm.variables.set('b', j.b) })";
        assert_eq!(assigned(code), ["a", "b"]);
        for garbage in ["", "\"", "/*", "f(", "))((", "`${", "'\\"] {
            let _ = (statements(garbage), squeezed(garbage), literal(garbage), arguments(garbage, "f"));
        }
    }
}
