//! Values without types, as people write them in JSON, in an IDL's constants or in Lua.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A value whose type is not known yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Untyped {
    /// Leaves the field out, or at its default.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Double(f64),
    /// Text.
    Text(String),
    /// Bytes that need not be text.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Untyped>),
    /// Keys, or names of fields, with their values.
    Map(Vec<(Untyped, Untyped)>),
}

impl From<&serde_json::Value> for Untyped {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from))
                .map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Integer),
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(fields) => {
                Self::Map(fields.iter().map(|(name, value)| (Self::Text(name.clone()), Self::from(value))).collect())
            }
        }
    }
}

/// The form of JSON, where JSON has one.
impl fmt::Display for Untyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) => write!(f, r#"{{"base64": "{}"}}"#, STANDARD.encode(bytes)),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The way to the value: names of fields, places from 1, keys.
    pub(super) path: Vec<String>,
    pub(super) expected: String,
    pub(super) got: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.path.iter().enumerate() {
            let dot = if index == 0 || part.starts_with('[') { "" } else { "." };
            write!(f, "{dot}{part}")?;
        }
        write!(f, "{}expected {}, got {}", if self.path.is_empty() { "" } else { ": " }, self.expected, self.got)
    }
}

impl std::error::Error for Misfit {}
