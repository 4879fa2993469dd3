//! Arguments of calls as JSON, and the flags for them that protocols with a schema share: Thrift and gRPC.

use brunt_plan::bodies::shown_body;
use brunt_plan::content::without_mark;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::OptionsError;
use crate::flags::{Flag, FlagValues, ValueKind};

/// The flag `--call`.
pub const CALL: Flag = Flag::new(
    "call",
    ValueKind::Text("METHOD"),
    "The method to call: Shop.price or shop.Cart/Add, or the method alone where there is one service",
);

/// The flag `--args`.
pub const ARGS: Flag = Flag::new(
    "args",
    ValueKind::TextOrFile("JSON|@F"),
    "Its arguments as a JSON object, by the names of the IDL or the .proto file; a list of objects where a gRPC client \
     streams [default: {}]",
)
.conflicts_with(&["args-lines"])
.shown_by(shown_arguments);

/// The flag `--args-lines`.
pub const ARGS_LINES: Flag =
    Flag::new("args-lines", ValueKind::File("F"), "Arguments for each call: JSON as for --args in each line, in turn");

/// The flag `--max-answer`.
pub const MAX_ANSWER: Flag = Flag::new(
    "max-answer",
    ValueKind::Text("BYTES"),
    "The largest answer, or message in an answer, in bytes [default: 16384000]",
)
.checked(bytes);

/// Default limit on one answer, or on one message of it, in bytes: the largest frame of `thrift-rpc.md`.
pub const DEFAULT_MOST_ANSWER_BYTES: u32 = 16_384_000;

/// Arguments for display: without the values of fields whose names suggest a secret.
fn shown_arguments(text: &str) -> String {
    String::from_utf8_lossy(&shown_body(text.as_bytes())).into_owned()
}

fn bytes(text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(1..=0x7fff_ffff_u32) => Ok(()),
        _ => Err("expected a number of bytes from 1 to 2147483647".to_owned()),
    }
}

/// The limit that the flag [`MAX_ANSWER`] sets, in bytes; the default without it.
pub fn most_answer_bytes(given: &FlagValues) -> u32 {
    given.text("max-answer").and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_MOST_ANSWER_BYTES)
}

/// The file that arguments come from, and the line of each, for errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentLines {
    /// The file's name.
    pub file: String,
    /// The numbers of the lines, from 1, in the order of the arguments.
    pub lines: Vec<usize>,
}

/// The place of the arguments with this number (from 0) in words: a line of a file, or the flag.
pub fn place_of(lines: Option<&ArgumentLines>, number: usize) -> String {
    let of_file = lines.and_then(|of| Some(format!("{}, line {}", of.file, of.lines.get(number)?)));
    of_file.unwrap_or_else(|| if number == 0 { "--args".to_owned() } else { format!("--args number {}", number + 1) })
}

/// The arguments of each call, in turn, from the flags [`ARGS`] or [`ARGS_LINES`], and where they stand in a file.
///
/// # Errors
/// Names the place where a text is not JSON.
pub fn arguments(given: &FlagValues) -> Result<(Vec<Value>, Option<ArgumentLines>), OptionsError> {
    if let Some((file, content)) = given.file("args-lines") {
        let lines = without_mark(&content.0).split(|byte| *byte == b'\n').zip(1..);
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        for (line, number) in lines.filter(|(line, _): &(_, usize)| !line.trim_ascii().is_empty()) {
            values.push(json(&format!("{file}, line {number}"), line)?);
            numbers.push(number);
        }
        if values.is_empty() {
            return Err(OptionsError(format!("{file}: there are no arguments in it")));
        }
        return Ok((values, Some(ArgumentLines { file: file.to_owned(), lines: numbers })));
    }
    let Some(text) = given.bytes("args") else { return Ok((vec![serde_json::Map::new().into()], None)) };
    Ok((vec![json("--args", &text)?], None))
}

/// Parses `text` as JSON; `place` names its origin in errors.
///
/// # Errors
/// Names the line, unless it is the first, and the column of the mistake.
pub fn json(place: &str, text: &[u8]) -> Result<Value, OptionsError> {
    serde_json::from_slice(without_mark(text)).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        let line = if error.line() > 1 { format!(", line {}", error.line()) } else { String::new() };
        OptionsError(format!("{place}{line}, column {}: not JSON: {problem}", error.column()))
    })
}

#[cfg(test)]
mod tests {
    use brunt_plan::content::Content;
    use serde_json::json;

    use super::*;
    use crate::flags::FlagValue;

    #[test]
    fn arguments_are_read_or_refused_by_their_place() {
        assert_eq!(arguments(&FlagValues::default()), Ok((vec![json!({})], None)));
        let mut given = FlagValues::default();
        given.push("args", FlagValue::Text("{\n\"a\": }".to_owned()));
        assert_eq!(arguments(&given).unwrap_err().0, "--args, line 2, column 6: not JSON: expected value");
        let lines = |text: &str| {
            let mut given = FlagValues::default();
            let content = Content(text.as_bytes().to_vec());
            given.push("args-lines", FlagValue::File { name: "f".to_owned(), content });
            arguments(&given).map_err(|error| error.0)
        };
        let (values, places) = lines("\u{feff}{\"a\": 1}\n\n[2]\n").unwrap();
        assert_eq!(values, [json!({"a": 1}), json!([2])]);
        assert_eq!([0, 1].map(|number| place_of(places.as_ref(), number)), ["f, line 1", "f, line 3"]);
        assert_eq!(place_of(None, 0), "--args");
        assert_eq!(lines("1\n{\n").unwrap_err(), "f, line 2, column 1: not JSON: EOF while parsing an object");
        assert_eq!(lines("\n \n").unwrap_err(), "f: there are no arguments in it");
        assert_eq!(ARGS.shown_text("{\"password\":\"x\"}"), "{\"password\":\"[redacted]\"}");
        assert!(MAX_ANSWER.check.is_some_and(|check| check("0").is_err() && check("1").is_ok()));
    }
}
