//! JSON Schemas for answers, of the drafts from 4 to 2020-12.

use jsonschema::Validator;
use serde_json::Value;

/// The most characters of a reason that are shown.
const MOST_SHOWN: usize = 200;

/// A compiled schema.
pub(super) type Schema = Validator;

/// Compiles a schema. It refers to nothing outside itself: no file is opened for it, and nothing is fetched.
///
/// # Errors
/// When it is not JSON, or not a schema.
pub(super) fn compile(text: &str) -> Result<Schema, String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    jsonschema::validator_for(&schema).map_err(|error| format!("it is not a JSON Schema: {}", reason(&error)))
}

/// The place and the reason of the first mismatch; `None` if the value matches.
pub(super) fn mismatch(schema: &Schema, value: &Value) -> Option<String> {
    schema.validate(value).err().map(|error| reason(&error))
}

/// A place and its problem: `at /items/0/price: "12" is not of type "number"`.
fn reason(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    let what = error.to_string();
    let shown: String = what.chars().take(MOST_SHOWN).collect();
    let end = if shown.len() < what.len() { "…" } else { "" };
    if place.is_empty() { format!("{shown}{end}") } else { format!("at {place}: {shown}{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(schema: &str, value: &str) -> Option<String> {
        mismatch(&compile(schema).unwrap(), &serde_json::from_str(value).unwrap())
    }

    #[test]
    fn a_mismatch_names_its_place_and_reason() {
        let items = r##"{"type": "object", "required": ["items"],
            "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
            "$defs": {"item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}}}}"##;
        for (value, expected) in [
            (r#"{"items": [{"price": 1}, {}]}"#, None),
            (
                r#"{"items": [{"price": 1}, {"price": "12"}]}"#,
                Some(r#"at /items/1/price: "12" is not of type "number""#),
            ),
            (r#"{"items": [{"price": -1}]}"#, Some("at /items/0/price: -1 is less than the minimum of 0")),
            ("{}", Some(r#""items" is a required property"#)),
            ("[]", Some(r#"[] is not of type "object""#)),
        ] {
            assert_eq!(checked(items, value).as_deref(), expected, "{value}");
        }
        let long = format!("{:?}", "x".repeat(10_000));
        assert!(checked(r#"{"type": "number"}"#, &long).unwrap().chars().count() <= MOST_SHOWN + 1);
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for (schema, expected) in [
            ("{", "it is not JSON: "),
            (r#"{"type": "text"}"#, "it is not a JSON Schema: at /type: "),
            (r#"{"required": {}}"#, "it is not a JSON Schema: at /required: "),
            (r#"{"pattern": "("}"#, "it is not a JSON Schema: "),
            // Nothing is fetched.
            (r#"{"$ref": "http://127.0.0.1:1/schema.json"}"#, "it is not a JSON Schema: "),
            (r#"{"$ref": "file:///etc/passwd"}"#, "it is not a JSON Schema: "),
            (r##"{"$ref": "#/$defs/none"}"##, "it is not a JSON Schema: "),
        ] {
            let problem = compile(schema).map(|_| ()).unwrap_err();
            assert!(problem.starts_with(expected), "{schema}: {problem}");
        }
    }

    #[test]
    fn schemas_within_themselves_and_patterns_that_look_back_come_to_an_end() {
        let tree = r##"{"type": "object", "properties": {"next": {"$ref": "#"}}}"##;
        let deep = format!("{}1{}", r#"{"next":"#.repeat(100), "}".repeat(100));
        assert!(checked(tree, &deep).unwrap().contains("is not of type"), "{deep}");
        let slow = r#"{"pattern": "^(a|a)*$"}"#;
        assert!(checked(slow, &format!("{:?}", format!("{}b", "a".repeat(5_000)))).is_some());
    }
}
