//! A value of a YAML text (1.2, core schema), built from a parser's events, within limits of depth, size and repetition
//! by aliases.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Number;

use super::Value;
use crate::ImportError;

/// The deepest nesting.
const MOST_DEPTH: usize = 100;
/// The most values, including those that aliases repeat.
const MOST_VALUES: usize = 4_000_000;

/// A list or an object that has not ended yet.
struct Open {
    value: Value,
    anchor: usize,
    /// The name of the field whose value comes next.
    key: Option<String>,
    /// Fields that `<<` adds when the object ends.
    merged: Vec<(String, Value)>,
}

impl Open {
    fn ended(self) -> Value {
        let Value::Object(mut fields) = self.value else { return self.value };
        for (name, value) in self.merged {
            if fields.iter().all(|(known, _)| *known != name) {
                fields.push((name, value));
            }
        }
        Value::Object(fields)
    }
}

/// The state of reading.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// The values of anchors, with their numbers of values and depths.
    anchors: HashMap<usize, (Value, usize, usize)>,
    values: usize,
    whole: Option<Value>,
}

/// The most closing brackets that are moved, one reading of the text for each.
const MOST_CLOSERS: usize = 200;

/// The value of the first document in a text.
///
/// A bracket that closes a list or an object may stand at the indentation of its key, as many write it. The parser
/// refuses this, so that bracket is moved to the right.
pub(super) fn read(text: &str) -> Result<Value, ImportError> {
    let mut moved = None;
    for _ in 0..MOST_CLOSERS {
        let text = moved.as_deref().unwrap_or(text);
        let error = match read_strictly(text) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let ImportError::Syntax { line, problem, .. } = &error else { return Err(error) };
        let lines: Vec<&str> = text.split('\n').collect();
        let closes = problem.contains("indentation")
            && lines.get(line.wrapping_sub(1)).is_some_and(|line| {
                line.trim_start().starts_with([']', '}']) && line.len() - line.trim_start().len() < MOST_DEPTH
            });
        if !closes {
            return Err(error);
        }
        let shifted = lines.iter().enumerate().map(|(number, content)| {
            if number + 1 == *line { format!("{}{content}", " ".repeat(MOST_DEPTH)) } else { (*content).to_owned() }
        });
        moved = Some(shifted.collect::<Vec<_>>().join("\n"));
    }
    read_strictly(moved.as_deref().unwrap_or(text))
}

fn read_strictly(text: &str) -> Result<Value, ImportError> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            wrong(marker.line(), marker.col(), format!("no YAML: {}", error.info()))
        })?;
        if event == Event::DocumentEnd {
            break;
        }
        builder.take(event).map_err(|problem| wrong(span.start.line(), span.start.col(), problem.to_owned()))?;
    }
    Ok(builder.whole.unwrap_or(Value::Null))
}

fn wrong(line: usize, column: usize, problem: String) -> ImportError {
    ImportError::Syntax { line, column: column + 1, problem }
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str");
                let is_key = self.open.last().is_some_and(|open| is_object(&open.value) && open.key.is_none());
                let value = if is_text || is_key { Value::Text(text.into_owned()) } else { plain(&text) };
                self.put(value, anchor, 1, 0)
            }
            Event::SequenceStart(anchor, _) => self.begin(Value::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(Value::Object(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => {
                    let (anchor, value) = (open.anchor, open.ended());
                    let (count, depth) = if anchor > 0 { measure(&value) } else { (1, 0) };
                    self.put(value, anchor, count, depth)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some((value, count, depth)) = self.anchors.get(&anchor).cloned() else {
                    return Err("an alias stands for something that it is in, or that comes later");
                };
                if self.values.saturating_add(count) > MOST_VALUES {
                    return Err("more than 4,000,000 values, with what aliases repeat");
                }
                self.put(value, 0, count, depth)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, value: Value, anchor: usize) -> Result<(), &'static str> {
        if self.open.len() >= MOST_DEPTH {
            return Err("more than 100 levels");
        }
        self.open.push(Open { value, anchor, key: None, merged: Vec::new() });
        Ok(())
    }

    /// Adds a value to the innermost open one; it consists of `count` values, `depth` levels deep.
    fn put(&mut self, value: Value, anchor: usize, count: usize, depth: usize) -> Result<(), &'static str> {
        self.values = self.values.saturating_add(count);
        if self.values > MOST_VALUES {
            return Err("more than 4,000,000 values, with what aliases repeat");
        }
        if self.open.len() + depth > MOST_DEPTH {
            return Err("more than 100 levels");
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), count, depth));
        }
        let Some(open) = self.open.last_mut() else {
            self.whole.get_or_insert(value);
            return Ok(());
        };
        match &mut open.value {
            Value::List(all) => all.push(value),
            Value::Object(fields) => match open.key.take() {
                None => open.key = Some(value.shown().unwrap_or_default()),
                // Values merged by `<<` add only fields that the object does not have.
                Some(key) if key == "<<" => {
                    let merged = if let Value::List(all) = value { all } else { vec![value] };
                    open.merged.extend(merged.into_iter().flat_map(|one| one.fields().to_vec()));
                }
                Some(key) => fields.push((key, value)),
            },
            _ => {}
        }
        Ok(())
    }
}

fn is_object(value: &Value) -> bool {
    matches!(value, Value::Object(_))
}

/// The number of values in a value, and its depth in levels.
fn measure(value: &Value) -> (usize, usize) {
    let below = |all: &mut dyn Iterator<Item = &Value>| {
        all.map(measure).fold((1, 0), |(count, depth), (more, deeper)| (count + more, depth.max(deeper + 1)))
    };
    match value {
        Value::List(all) => below(&mut all.iter()),
        Value::Object(fields) => below(&mut fields.iter().map(|(_, value)| value)),
        _ => (1, 0),
    }
}

/// The value of an unquoted scalar.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(Number::from);
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        let whole = plain.parse::<i64>().ok().map(Number::from);
        return whole.or_else(|| plain.parse::<u64>().ok().map(Number::from));
    }
    plain.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn values_are_those_of_the_core_schema() {
        let text = "a: 1\nb: [0x1f, -2.5, +3, 1e3, .5]\nc: {d: 'x', e: ~, f: true}\n200: ok\ng: \"1\"\nh: 2026-01-01\ni: 1.2.3\n";
        let expected = r#"{"a":1,"b":[31,-2.5,3,1000.0,0.5],"c":{"d":"x","e":null,"f":true},"200":"ok","g":"1","h":"2026-01-01","i":"1.2.3"}"#;
        assert_eq!(read(text).unwrap().to_json(), expected);
    }

    #[test]
    fn aliases_and_merges_are_what_they_stand_for() {
        let text = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nlist: [*b]\n";
        let expected = r#"{"base":{"x":1,"y":2},"own":{"y":3,"x":1},"list":[{"x":1,"y":2}]}"#;
        assert_eq!(read(text).unwrap().to_json(), expected);
    }

    #[test]
    fn what_would_grow_without_end_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let repeated = vec![format!("*a{}", level - 1); 9].join(", ");
            let _ = writeln!(bomb, "a{level}: &a{level} [{repeated}]");
        }
        assert!(read(&bomb).unwrap_err().to_string().contains("4,000,000 values"));
        assert!(read(&"[".repeat(20_000)).is_err());
        assert!(read("a: &a [*a]\n").unwrap_err().to_string().contains("an alias"));
        assert!(read("a: b: c\n").unwrap_err().to_string().starts_with("line 1, column"));
    }
}
