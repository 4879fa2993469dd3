//! What a script throws, in words for its author.

use rquickjs::{Coerced, Ctx, FromJs as _, Value};

/// The most lines of a stack that are shown.
const MOST_FRAMES: usize = 12;

/// The text of what was thrown, with the stack of an error.
pub(crate) fn thrown(ctx: &Ctx<'_>) -> String {
    let value = ctx.catch();
    if let Some(exception) = value.as_exception() {
        let name: String =
            exception.as_object().get::<_, Coerced<String>>("name").map_or_else(|_| "Error".to_owned(), |name| name.0);
        let message = exception.message().unwrap_or_default();
        // A stack begins with the error's text as it was when the error was made.
        let stack = exception.stack().unwrap_or_default();
        let frames: Vec<_> = stack.lines().skip_while(|line| frame(line).is_none()).collect();
        let head = if message.is_empty() { name } else { format!("{name}: {message}") };
        return format!("{head}\n{}", frames.join("\n"));
    }
    let text = if value.is_object() {
        ctx.json_stringify(value.clone()).ok().flatten().and_then(|text| text.to_string().ok())
    } else {
        None
    };
    text.or_else(|| Coerced::<String>::from_js(ctx, value).ok().map(|text| text.0)).unwrap_or_default()
}

/// What is said of a value that a check has thrown.
pub(crate) fn told(value: &Value<'_>) -> String {
    let text = |value: Value<'_>| value.get::<Coerced<String>>().map(|text| text.0);
    let part = |name: &str| value.as_exception().map(|error| error.as_object().get(name).and_then(text));
    match (part("name"), part("message")) {
        (Some(Ok(name)), Some(Ok(message))) => format!("{name}: {message}"),
        _ => text(value.clone()).unwrap_or_default(),
    }
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
    if let Some(named) = head.strip_prefix("ReferenceError: ").filter(|rest| rest.contains(": there is no module")) {
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
