//! Sample values for schemas: their examples, or otherwise the smallest value that fits.

use serde_json::Number;

use super::document::Document;
use crate::lua::comment;
use crate::value::Value;

/// The greatest depth of samples; optional fields are left out from half of it on.
const MOST_DEPTH: usize = 10;
/// The most values of one sample.
const MOST_VALUES: usize = 400;
/// The longest text that is made for a schema.
const MOST_TEXT: usize = 1_000;

/// The purpose of a sample: answers have read-only fields, requests write-only ones.
#[derive(Debug)]
pub(crate) struct Sampler<'d> {
    document: Document<'d>,
    values: usize,
    /// What the samples may not meet, with the fields: patterns, references out of the document.
    pub(crate) unclear: Vec<String>,
}

impl<'d> Sampler<'d> {
    pub(crate) fn new(document: Document<'d>) -> Self {
        Self { document, values: 0, unclear: Vec::new() }
    }

    /// A value for a schema. `name` is the field that holds it.
    pub(crate) fn value(&mut self, schema: &'d Value, name: &str) -> Value {
        self.values = 0;
        self.sampled(schema, name, 0)
    }

    fn sampled(&mut self, schema: &'d Value, name: &str, depth: usize) -> Value {
        self.values += 1;
        let Some(schema) = self.document.resolved(schema) else {
            self.is_elsewhere(schema, name);
            return Value::Null;
        };
        if self.values > MOST_VALUES || depth > MOST_DEPTH {
            return Value::Null;
        }
        if let Some(given) = given(schema) {
            return given;
        }
        if !schema.list_at("allOf").is_empty() {
            return self.all_of(schema, name, depth);
        }
        for several in ["oneOf", "anyOf"] {
            let is_null = |one: &&Value| one.text_at("type") == Some("null");
            if let Some(first) = schema.list_at(several).iter().find(|one| !is_null(one)) {
                let chosen = merged(self.object(schema, depth), self.sampled(first, name, depth + 1));
                return named(schema, first, chosen);
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.list(schema, name, depth),
            "integer" | "number" => Value::Number(number(schema)),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => Value::Text(self.text(schema, name)),
        }
    }

    fn all_of(&mut self, schema: &'d Value, name: &str, depth: usize) -> Value {
        let mut whole = self.object(schema, depth);
        for part in schema.list_at("allOf").iter().take(50) {
            let part = self.sampled(part, name, depth + 1);
            whole = merged(whole, part);
        }
        whole
    }

    fn object(&mut self, schema: &'d Value, depth: usize) -> Value {
        let required: Vec<&str> = schema.list_at("required").iter().filter_map(Value::text).collect();
        let mut fields = Vec::new();
        for (name, property) in schema.fields_at("properties") {
            let Some(resolved) = self.document.resolved(property) else {
                self.is_elsewhere(property, name);
                continue;
            };
            let is_required = required.contains(&name.as_str());
            let is_left = resolved.is_true("readOnly") || resolved.is_true("deprecated") && !is_required;
            let is_deep = depth > MOST_DEPTH / 2 || self.values > MOST_VALUES / 2;
            if is_left || is_deep && !is_required {
                continue;
            }
            let value = self.sampled(property, name, depth + 1);
            fields.push((name.clone(), value));
        }
        let wanted = whole(schema, "minProperties").unwrap_or(0).min(10);
        let more = schema.get("additionalProperties").filter(|more| matches!(more, Value::Object(_)));
        if let Some(more) = more.filter(|_| depth < MOST_DEPTH) {
            for number in fields.len() as u64 + 1..=wanted {
                let name = format!("field_{number}");
                let value = self.sampled(more, &name, depth + 1);
                fields.push((name, value));
            }
        }
        Value::Object(fields)
    }

    fn list(&mut self, schema: &'d Value, name: &str, depth: usize) -> Value {
        let first = schema.list_at("prefixItems");
        if !first.is_empty() {
            return Value::List(first.iter().take(20).map(|one| self.sampled(one, name, depth + 1)).collect());
        }
        let least = whole(schema, "minItems");
        // A schema that holds itself ends with an empty list.
        let most = if depth > MOST_DEPTH / 2 && least.unwrap_or(0) == 0 { 0 } else { MOST_DEPTH };
        let Some(items) = schema.get("items").filter(|_| depth < most) else { return Value::List(Vec::new()) };
        let wanted = least.unwrap_or(1).clamp(1, 10);
        Value::List((0..wanted).map(|_| self.sampled(items, name, depth + 1)).collect())
    }

    /// Lists a schema that a reference names and the document has not got.
    fn is_elsewhere(&mut self, schema: &Value, name: &str) {
        let reference = comment(schema.text_at("$ref").unwrap_or("a reference"), 60);
        self.unclear.push(format!("{name} is not described here, but by {reference}: write its value"));
    }

    fn text(&mut self, schema: &Value, name: &str) -> String {
        if let Some(pattern) = schema.text_at("pattern") {
            self.unclear.push(format!("{name} shall match {pattern}"));
        }
        let text = match schema.text_at("format").unwrap_or_default() {
            "date-time" => "2026-01-01T00:00:00Z",
            "date" => "2026-01-01",
            "time" => "00:00:00Z",
            "duration" => "PT1S",
            "uuid" => "00000000-0000-4000-8000-000000000001",
            "email" | "idn-email" => "someone@example.com",
            "uri" | "url" | "uri-reference" => "https://example.com/",
            "hostname" => "example.com",
            "ipv4" => "192.0.2.1",
            "ipv6" => "2001:db8::1",
            "byte" => "dGV4dA==",
            _ => "text",
        };
        let (least, most) = (whole(schema, "minLength").unwrap_or(0), whole(schema, "maxLength").unwrap_or(u64::MAX));
        let mut text = text.to_owned();
        while (text.len() as u64) < least && text.len() < MOST_TEXT {
            text.push('x');
        }
        if text.len() as u64 > most {
            text.truncate(most as usize);
        }
        text
    }
}

/// The value that a schema gives itself: an example, a default, a constant, the first of an enumeration.
fn given(schema: &Value) -> Option<Value> {
    let first = |name: &str| match schema.get(name)? {
        Value::List(all) => all.first(),
        _ => None,
    };
    let given = schema.get("example").or_else(|| first("examples")).or_else(|| schema.get("const"));
    given.or_else(|| schema.get("default")).or_else(|| first("enum")).filter(|given| **given != Value::Null).cloned()
}

/// The type of a schema; of several, the first that is not null.
pub(crate) fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::Text(kind)) => Some(kind.as_str()),
        Some(Value::List(kinds)) => kinds.iter().filter_map(Value::text).find(|kind| *kind != "null").or(Some("null")),
        _ => None,
    };
    named.unwrap_or_else(|| {
        let has = |name: &str| schema.get(name).is_some();
        if has("properties") || has("additionalProperties") {
            "object"
        } else if has("items") || has("prefixItems") {
            "array"
        } else if has("minimum") || has("maximum") {
            "number"
        } else {
            "string"
        }
    })
}

fn whole(schema: &Value, name: &str) -> Option<u64> {
    if let Some(Value::Number(number)) = schema.get(name) { number.as_u64() } else { None }
}

/// The least number from 1 on that a schema allows, or the greatest allowed one if that is less.
fn number(schema: &Value) -> Number {
    let bound = |name: &str| match schema.get(name) {
        Some(Value::Number(number)) => number.as_f64(),
        _ => None,
    };
    let is_whole = kind(schema) == "integer";
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(if is_whole { 1.0 } else { 0.5 });
    // OpenAPI 3.0 has flags beside the bounds, 3.1 separate numbers.
    let above = bound("exclusiveMinimum").or_else(|| bound("minimum").filter(|_| schema.is_true("exclusiveMinimum")));
    let below = bound("exclusiveMaximum").or_else(|| bound("maximum").filter(|_| schema.is_true("exclusiveMaximum")));
    let least = above.map(|above| above + step).or_else(|| bound("minimum")).unwrap_or(1.0_f64.max(step));
    let most = below.map(|below| below - step).or_else(|| bound("maximum")).unwrap_or(f64::INFINITY);
    let mut value = if least > most { most } else { least };
    if bound("multipleOf").is_some() {
        value = (value / step).ceil() * step;
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Number::from(value as i64);
    }
    Number::from_f64(value).unwrap_or_else(|| Number::from(1))
}

/// A sample of `chosen`, one of several schemas, with the name by which the discriminator of these knows it.
fn named(several: &Value, chosen: &Value, sample: Value) -> Value {
    let (Value::Object(mut fields), Some(property), Some(reference)) =
        (sample.clone(), several.at(&["discriminator", "propertyName"]).and_then(Value::text), chosen.text_at("$ref"))
    else {
        return sample;
    };
    let own = reference.rsplit('/').next().unwrap_or(reference);
    let is_it = |(_, to): &&(String, Value)| to.text().is_some_and(|to| to == reference || to == own);
    let mapping = several.at(&["discriminator", "mapping"]).map_or(&[][..], Value::fields);
    let name = Value::Text(mapping.iter().find(is_it).map_or(own, |(name, _)| name.as_str()).to_owned());
    match fields.iter_mut().find(|(known, _)| known == property) {
        Some((_, value)) => *value = name,
        None => fields.push((property.to_owned(), name)),
    }
    Value::Object(fields)
}

/// Merges two samples: the fields of both, the second's where both have one.
fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut fields), Value::Object(more)) => {
            for (name, value) in more {
                match fields.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = value,
                    None => fields.push((name, value)),
                }
            }
            Value::Object(fields)
        }
        (Value::Object(fields), other) if fields.is_empty() => other,
        (one, _) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(schema: &str) -> String {
        let root = Value::from_json(schema.as_bytes()).unwrap();
        Sampler::new(Document { root: &root }).value(&root, "x").to_json()
    }

    #[test]
    fn values_fit_their_schemas() {
        for (schema, expected) in [
            (r#"{"type":"string"}"#, r#""text""#),
            (r#"{"type":"string","minLength":6,"maxLength":8}"#, r#""textxx""#),
            (r#"{"type":"string","maxLength":2}"#, r#""te""#),
            (r#"{"type":"string","format":"date"}"#, r#""2026-01-01""#),
            (r#"{"type":["null","integer"],"minimum":5}"#, "5"),
            (r#"{"type":"integer","exclusiveMinimum":5}"#, "6"),
            (r#"{"type":"integer","minimum":5,"exclusiveMinimum":true,"multipleOf":4}"#, "12"),
            (r#"{"type":"number","maximum":0.25}"#, "0.25"),
            (r#"{"enum":["b","a"]}"#, r#""b""#),
            (r#"{"type":"string","example":"e","default":"d"}"#, r#""e""#),
            (r#"{"type":"array","items":{"type":"boolean"},"minItems":2}"#, "[true,true]"),
            (
                r#"{"required":["a"],"properties":{"a":{"type":"integer"},"b":{"readOnly":true},"c":{"nullable":true}}}"#,
                r#"{"a":1,"c":"text"}"#,
            ),
            (
                r#"{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"const":2}}}],"properties":{"c":{"const":3}}}"#,
                r#"{"c":3,"a":1,"b":2}"#,
            ),
            (r#"{"oneOf":[{"type":"null"},{"properties":{"a":{"const":1}}}]}"#, r#"{"a":1}"#),
            (r#"{"anyOf":[{"type":"integer"}]}"#, "1"),
            (
                r#"{"type":"object","minProperties":2,"additionalProperties":{"type":"integer"}}"#,
                r#"{"field_1":1,"field_2":1}"#,
            ),
            (
                r##"{"oneOf":[{"$ref":"#/d/Sloop"}],"d":{"Sloop":{"properties":{"rig":{"type":"string"}}}},
                    "discriminator":{"propertyName":"rig","mapping":{"s":"#/d/Sloop"}}}"##,
                r#"{"rig":"s"}"#,
            ),
            (
                r##"{"anyOf":[{"$ref":"#/d/Yawl"}],"d":{"Yawl":{"required":["m"],"properties":{"m":{"type":"integer"}}}},
                    "discriminator":{"propertyName":"rig"}}"##,
                r#"{"m":1,"rig":"Yawl"}"#,
            ),
        ] {
            assert_eq!(sample(schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_of_itself_ends() {
        let optional = sample(r##"{"properties":{"next":{"$ref":"#"},"a":{"const":1}}}"##);
        assert!(optional.matches("next").count() <= MOST_DEPTH, "{optional}");
        let required = sample(r##"{"required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}"##);
        assert!(required.len() < 100_000, "{}", required.len());
        let list = sample(r##"{"items":{"$ref":"#"},"minItems":10}"##);
        assert!(list.len() < 100_000, "{}", list.len());
    }
}
