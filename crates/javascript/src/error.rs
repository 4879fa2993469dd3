//! What a script throws, in words for its author.

use rquickjs::{Ctx, Value};

use crate::bytes;

/// The most lines of a stack that are shown.
const MOST_FRAMES: usize = 12;

/// The most bytes of a text that was thrown, and of those that are read of it: a stack stands behind its error's text.
const MOST_TEXT: usize = 4 << 10;
const MOST_READ: usize = 64 << 10;

/// The text of what was thrown, with the stack of an error. A script that has run out of memory may have had none for an error: it throws `null`.
pub(crate) fn thrown(ctx: &Ctx<'_>, ran_out: bool) -> String {
    let value = ctx.catch();
    if value.is_null() && ran_out {
        return "out of memory".to_owned();
    }
    let Some(exception) = value.as_exception() else { return said(ctx, &value) };
    // Getters may have been put there, and throw.
    let property = |name: &str| {
        let value = exception.as_object().get::<_, Value<'_>>(name);
        value.ok().filter(|value| !value.is_undefined()).and_then(|value| text(ctx, &value))
    };
    let name = property("name").unwrap_or_else(|| "Error".to_owned());
    let message = property("message").unwrap_or_default();
    // A stack begins with the error's text as it was when the error was made.
    let stack = property("stack").unwrap_or_default();
    let frames: Vec<_> = stack.lines().skip_while(|line| frame(line).is_none()).collect();
    drop(ctx.catch());
    let head = if message.is_empty() { name } else { format!("{name}: {message}") };
    format!("{}\n{}", cut(head), frames.join("\n"))
}

/// The text of a value that is no error: its JSON, if it is an object that has some.
fn said<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let json = || {
        let json = ctx.json_stringify(value.clone()).ok().flatten()?;
        text(ctx, json.as_value())
    };
    let said = if value.is_object() { json() } else { None };
    drop(ctx.catch());
    let said = said.or_else(|| text(ctx, value)).map_or_else(|| format!("a {} without a text", value.type_name()), cut);
    drop(ctx.catch());
    said
}

/// The text of a value, as `String` makes it; `None` where that throws. What is no UTF-8 in it becomes U+FFFD.
fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Option<String> {
    if let Some(symbol) = value.as_symbol() {
        let description = symbol.description().ok().and_then(|description| text(ctx, &description));
        return Some(format!("Symbol({})", description.unwrap_or_default()));
    }
    bytes::text_up_to(ctx, value, MOST_READ).ok()
}

/// A text without what is beyond its first bytes.
fn cut(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// What is said of a value that a check has thrown.
pub(crate) fn told(value: &Value<'_>) -> String {
    let ctx = value.ctx();
    let part = |name: &str| {
        let value = value.as_exception()?.as_object().get::<_, Value<'_>>(name);
        text(ctx, &value.ok()?)
    };
    let told = match (part("name"), part("message")) {
        (Some(name), Some(message)) => Some(format!("{name}: {message}")),
        _ => text(ctx, value),
    };
    drop(ctx.catch());
    cut(told.unwrap_or_default())
}

/// A text with a stack, whose first place in the script's own files comes first: `script.js:3:5: TypeError: …`.
pub(crate) fn explained(text: &str, script: &str) -> String {
    let mut lines = text.lines();
    let mut head = Vec::new();
    let mut frames = Vec::new();
    for line in lines.by_ref() {
        match frame(line) {
            Some(place) => frames.push((line.trim(), place)),
            None if frames.is_empty() => head.push(line),
            None => {}
        }
    }
    let head = head.join("\n");
    // What names its own place needs no other.
    if let Some(named) = head
        .strip_prefix("ReferenceError: ")
        .filter(|rest| [": there is no module", ": cannot read "].iter().any(|said| rest.contains(said)))
    {
        return named.to_owned();
    }
    match frames.first() {
        None => format!("{script}: {head}"),
        Some((_, place)) => {
            let rest: Vec<_> = frames.iter().take(MOST_FRAMES).map(|(line, _)| *line).collect();
            format!("{place}: {head}\n    {}", rest.join("\n    "))
        }
    }
}

/// The place in a line of a stack: `at f (a.js:1:2)` or `at a.js:1:2`.
fn frame(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("at ")?;
    let place = match rest.rfind('(') {
        Some(at) => rest.get(at + 1..)?.trim_end_matches(')'),
        None => rest,
    };
    (place != "native").then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_comes_first() {
        let text = "TypeError: not a function\n    at get (k6/lib.js:3:4)\n    at <anonymous> (s.js:7:9)";
        let told =
            "k6/lib.js:3:4: TypeError: not a function\n    at get (k6/lib.js:3:4)\n    at <anonymous> (s.js:7:9)";
        assert_eq!(explained(text, "s.js"), told);
        assert_eq!(explained("Error: x", "s.js"), "s.js: Error: x");
    }
}
