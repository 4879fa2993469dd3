//! A value of a document, in the document's order, from JSON or YAML.

mod yaml;

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::ImportError;

/// The most values in a table of Lua: a function may have 65,536 constants.
const MOST_IN_TABLE: usize = 2_000;

/// Whether a double holds a number exactly, as it does every integer up to 2⁵³.
pub(crate) fn is_exact(number: &Number) -> bool {
    let is_small = |number: u64| number <= 1 << 53;
    number.as_i64().map(i64::unsigned_abs).or(number.as_u64()).is_none_or(is_small)
}

/// A value of JSON. Fields keep the document's order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Parses JSON, up to 128 levels deep.
    pub(crate) fn from_json(text: &[u8]) -> Result<Self, ImportError> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        serde_json::from_slice(text).map_err(|error| ImportError::Syntax {
            line: error.line(),
            column: error.column(),
            problem: syntax_of(&error),
        })
    }

    /// Parses YAML, within limits of depth and size.
    pub(crate) fn from_yaml(text: &str) -> Result<Self, ImportError> {
        yaml::read(text)
    }

    /// The field of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The field at a path of names.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// A text field.
    pub(crate) fn text_at(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    pub(crate) fn list(&self) -> &[Self] {
        if let Self::List(all) = self { all } else { &[] }
    }

    /// The elements of a list field.
    pub(crate) fn list_at(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::list)
    }

    pub(crate) fn fields(&self) -> &[(String, Self)] {
        if let Self::Object(fields) = self { fields } else { &[] }
    }

    /// The fields of an object field.
    pub(crate) fn fields_at(&self, name: &str) -> &[(String, Self)] {
        self.get(name).map_or(&[], Self::fields)
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Self::Bool(true))
    }

    /// A text, number or boolean as a text; `None` for other values.
    pub(crate) fn shown(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(match number.as_f64().filter(|_| number.is_f64()) {
                // A whole number has no fraction as a text.
                Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => format!("{whole:.0}"),
                _ => number.to_string(),
            }),
            Self::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Whether it may be written as a table of Lua: it has few enough values, every integer fits a double, and no object
    /// has two fields of one name.
    pub(crate) fn fits_a_table(&self) -> bool {
        self.count() <= MOST_IN_TABLE && self.is_exact()
    }

    /// The number of values in it, itself included.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::List(all) => 1 + all.iter().map(Self::count).sum::<usize>(),
            Self::Object(fields) => 1 + fields.iter().map(|(_, value)| value.count()).sum::<usize>(),
            _ => 1,
        }
    }

    fn is_exact(&self) -> bool {
        match self {
            Self::Number(number) => is_exact(number),
            Self::List(all) => all.iter().all(Self::is_exact),
            Self::Object(fields) => {
                let mut names = HashSet::new();
                fields.iter().all(|(name, value)| names.insert(name) && value.is_exact())
            }
            _ => true,
        }
    }

    /// The value as JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::new();
        self.append_json(&mut json);
        json
    }

    fn append_json(&self, json: &mut String) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null => json.push_str("null"),
            Self::Bool(flag) => json.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => json.push_str(&number.to_string()),
            Self::Text(text) => json.push_str(&quoted(text)),
            Self::List(all) => {
                json.push('[');
                for (place, one) in all.iter().enumerate() {
                    json.push_str(if place > 0 { "," } else { "" });
                    one.append_json(json);
                }
                json.push(']');
            }
            Self::Object(fields) => {
                json.push('{');
                for (place, (name, one)) in fields.iter().enumerate() {
                    json.push_str(if place > 0 { "," } else { "" });
                    json.push_str(&quoted(name));
                    json.push(':');
                    one.append_json(json);
                }
                json.push('}');
            }
        }
    }
}

/// The error of `serde_json`, without the place that it repeats.
fn syntax_of(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let end = said.rfind(" at line ").unwrap_or(said.len());
    format!("not JSON: {}", said.get(..end).unwrap_or(&said))
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = access.next_element()? {
            all.push(one);
        }
        Ok(Value::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order() {
        let value = Value::from_json(br#"{"b": [1, -2, 2.5, null], "a": {"x": true}}"#).unwrap();
        assert_eq!(value.to_json(), r#"{"b":[1,-2,2.5,null],"a":{"x":true}}"#);
        assert_eq!(value.at(&["a", "x"]), Some(&Value::Bool(true)));
        assert!(value.fits_a_table());
        assert!(!Value::from_json(b"[9007199254740993]").unwrap().fits_a_table());
        assert!(!Value::List(vec![Value::Null; MOST_IN_TABLE]).fits_a_table());
    }

    #[test]
    fn what_is_no_json_is_placed() {
        let error = Value::from_json(b"{\n\"a\": }").unwrap_err();
        assert!(error.to_string().starts_with("line 2, column 6: not JSON: "), "{error}");
        assert!(Value::from_json("[".repeat(100_000).as_bytes()).is_err());
    }
}
