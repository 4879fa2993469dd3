//! Values as people write them, in JSON, in an IDL's constants or in Lua.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::schema::{Base, Schema, Struct, Type};
use super::value::WireValue;

/// A value whose type is not known yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Untyped {
    /// Nothing: the field is left out, with its default.
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
    /// One after the other.
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

/// As JSON has it, as far as it goes.
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

/// How a UUID is written.
fn uuid_text(uuid: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(uuid));
    let group = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    [group(0..8), group(8..12), group(12..16), group(16..20), group(20..32)].join("-")
}

/// A value that came, with the names of its type: fields and enum members by name, what the IDL does not know left out.
///
/// # Errors
/// When the value is not of that type.
pub fn named(schema: &Schema, expected: &Type, value: &WireValue) -> Result<Untyped, Misfit> {
    let misfit =
        || Misfit { path: Vec::new(), expected: schema.type_name(expected), got: value.wire_type().name().to_owned() };
    if value.wire_type() != expected.wire_type() {
        return Err(misfit());
    }
    let all = |element: &Type, items: &[WireValue]| -> Result<Vec<Untyped>, Misfit> {
        items.iter().map(|item| named(schema, element, item)).collect()
    };
    Ok(match (expected, value) {
        (_, WireValue::Bool(value)) => Untyped::Bool(*value),
        (_, WireValue::I8(number)) => Untyped::Integer(i128::from(*number)),
        (_, WireValue::I16(number)) => Untyped::Integer(i128::from(*number)),
        (Type::Enum(place), WireValue::I32(number)) => {
            let members = schema.enumeration(*place).map_or(&[][..], |found| &found.members);
            let member = members.iter().find(|(_, of)| of == number);
            member.map_or(Untyped::Integer(i128::from(*number)), |(name, _)| Untyped::Text(name.clone()))
        }
        (_, WireValue::I32(number)) => Untyped::Integer(i128::from(*number)),
        (_, WireValue::I64(number)) => Untyped::Integer(i128::from(*number)),
        (_, WireValue::Double(number)) => Untyped::Double(*number),
        (_, WireValue::Uuid(uuid)) => Untyped::Text(uuid_text(*uuid)),
        (Type::Base(Base::String), WireValue::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Untyped::Text(text.to_owned()),
            Err(_) => Untyped::Bytes(bytes.clone()),
        },
        (_, WireValue::Bytes(bytes)) => Untyped::Bytes(bytes.clone()),
        (Type::List(element), WireValue::List(_, items)) | (Type::Set(element), WireValue::Set(_, items)) => {
            Untyped::List(all(element, items)?)
        }
        (Type::Map(types), WireValue::Map(_, _, pairs)) => {
            let pair = |(key, value): &(WireValue, WireValue)| {
                Ok((named(schema, &types.0, key)?, named(schema, &types.1, value)?))
            };
            Untyped::Map(pairs.iter().map(pair).collect::<Result<_, _>>()?)
        }
        (Type::Struct(place), WireValue::Struct(fields)) => {
            named_fields(schema, schema.structure(*place).ok_or_else(misfit)?, fields)?
        }
        _ => return Err(misfit()),
    })
}

pub(super) fn named_fields(
    schema: &Schema,
    structure: &Struct,
    values: &[(i16, WireValue)],
) -> Result<Untyped, Misfit> {
    let mut fields = Vec::with_capacity(values.len());
    for (id, value) in values {
        let Some(field) = structure.fields.iter().find(|field| field.id == *id) else { continue };
        let value = named(schema, &field.field_type, value).map_err(|mut misfit| {
            misfit.path.insert(0, field.name.clone());
            misfit
        })?;
        fields.push((Untyped::Text(field.name.clone()), value));
    }
    Ok(Untyped::Map(fields))
}
