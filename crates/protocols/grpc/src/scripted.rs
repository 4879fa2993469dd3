//! Messages as tables of Lua, and back.

use std::borrow::Cow;
use std::collections::HashMap;

use brunt_protocol::scenario::Value as Lua;
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage as _, Value,
};

use crate::fitting;

/// Whole numbers up to this are exact as numbers of Lua.
const EXACT: i128 = 1 << 53;

/// The message of this type that a value of Lua is: a table by the names of the fields; for Google's own types, what they are in JSON
/// as well.
///
/// # Errors
/// Names the field that does not fit.
pub(crate) fn message(message_type: &MessageDescriptor, value: &Lua<'_>) -> Result<DynamicMessage, String> {
    let name = message_type.full_name();
    let is_json = matches!(name, "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue");
    let entries = match value {
        Lua::Table(entries) if !is_json => entries,
        other if name.starts_with("google.protobuf.") => {
            return fitting::message(message_type, &json(other)?).map_err(|misfit| misfit.to_string());
        }
        other => return Err(format!("expected a table of {name}, got {}", other.kind())),
    };
    let mut message = DynamicMessage::new(message_type.clone());
    let mut chosen: Vec<String> = Vec::new();
    for (key, value) in entries {
        let Some(key) = key.as_str() else {
            return Err(format!("expected the names of fields of {name}, got {} as a key", key.kind()));
        };
        let field = message_type.get_field_by_name(key).or_else(|| message_type.get_field_by_json_name(key));
        let Some(field) = field else {
            let names: Vec<_> = message_type.fields().map(|field| field.name().to_owned()).collect();
            return Err(format!("{name} has no field '{key}'; it has {}", names.join(", ")));
        };
        if let Some(choice) = field.containing_oneof() {
            if chosen.iter().any(|known| known == choice.name()) {
                return Err(format!("{key}: another field of the oneof '{}' is given, too", choice.name()));
            }
            chosen.push(choice.name().to_owned());
        }
        let value = field_value(&field, value).map_err(|problem| join(key, &problem))?;
        message.set_field(&field, value);
    }
    Ok(message)
}

/// `problem`, which begins with a path or is in words, below `key`.
fn join(key: &str, problem: &str) -> String {
    match problem.split_once(": ") {
        Some((path, rest)) if !path.contains(' ') => format!("{key}.{path}: {rest}"),
        _ => format!("{key}: {problem}"),
    }
}

fn field_value(field: &FieldDescriptor, value: &Lua<'_>) -> Result<Value, String> {
    let kind = field.kind();
    if field.is_map() {
        let Kind::Message(entry) = &kind else { return Err("a map without entries".to_owned()) };
        let (key_kind, value_field) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field());
        let Lua::Table(entries) = value else { return Err(format!("expected a table, got {}", value.kind())) };
        let mut map = HashMap::new();
        for (key, value) in entries {
            let made = map_key(&key_kind, key)?;
            let value = single(&value_field.kind(), value).map_err(|problem| join(&shown(key), &problem))?;
            map.insert(made, value);
        }
        return Ok(Value::Map(map));
    }
    if !field.is_list() {
        return single(&kind, value);
    }
    let Lua::Table(entries) = value else { return Err(format!("expected a list, got {}", value.kind())) };
    let items = list(entries).ok_or("expected a list, got a table with other keys than 1, 2, 3 …")?;
    let items = (1_usize..).zip(items);
    let items: Result<_, String> =
        items.map(|(at, item)| single(&kind, item).map_err(|problem| join(&format!("[{at}]"), &problem))).collect();
    Ok(Value::List(items?))
}

/// The items of a table that is a list, in their order; `None` for any other table.
pub(crate) fn list<'l, 'v>(entries: &'l [(Lua<'v>, Lua<'v>)]) -> Option<Vec<&'l Lua<'v>>> {
    let mut items = vec![None; entries.len()];
    for (key, value) in entries {
        let place = key.as_number().filter(|number| number.fract() == 0.0 && *number >= 1.0)?;
        *items.get_mut(place as usize - 1)? = Some(value);
    }
    items.into_iter().collect()
}

fn map_key(kind: &Kind, key: &Lua<'_>) -> Result<MapKey, String> {
    let wrong = || format!("expected a key of {kind:?}, got {}", shown(key));
    match (kind, single(kind, key)?) {
        (_, Value::Bool(value)) => Ok(MapKey::Bool(value)),
        (_, Value::I32(value)) => Ok(MapKey::I32(value)),
        (_, Value::I64(value)) => Ok(MapKey::I64(value)),
        (_, Value::U32(value)) => Ok(MapKey::U32(value)),
        (_, Value::U64(value)) => Ok(MapKey::U64(value)),
        (_, Value::String(value)) => Ok(MapKey::String(value)),
        _ => Err(wrong()),
    }
}

fn single(kind: &Kind, value: &Lua<'_>) -> Result<Value, String> {
    let wrong = |expected: &str| format!("expected {expected}, got {}", shown(value));
    let whole = |least: i128, most: i128, name: &str| {
        let number = match value {
            Lua::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT as f64 => Some(*number as i128),
            Lua::Text(_) => value.as_str().and_then(|text| text.parse().ok()),
            _ => None,
        };
        let fits = number.filter(|number| (least..=most).contains(number));
        fits.ok_or_else(|| wrong(&format!("{name} ({least} to {most})")))
    };
    let float = || match value {
        Lua::Number(number) => Ok(*number),
        Lua::Text(_) => value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| wrong("a number")),
        _ => Err(wrong("a number")),
    };
    Ok(match kind {
        Kind::Double => Value::F64(float()?),
        Kind::Float => Value::F32(float()? as f32),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Value::I32(whole(i32::MIN.into(), i32::MAX.into(), "a whole number")? as i32)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            Value::I64(whole(i64::MIN.into(), i64::MAX.into(), "a whole number, or its digits as a string")? as i64)
        }
        Kind::Uint32 | Kind::Fixed32 => Value::U32(whole(0, u32::MAX.into(), "a whole number")? as u32),
        Kind::Uint64 | Kind::Fixed64 => {
            Value::U64(whole(0, u64::MAX.into(), "a whole number, or its digits as a string")? as u64)
        }
        Kind::Bool => match value {
            Lua::Boolean(value) => Value::Bool(*value),
            _ => return Err(wrong("true or false")),
        },
        Kind::String => Value::String(value.as_str().ok_or_else(|| wrong("a string in UTF-8"))?.to_owned()),
        Kind::Bytes => Value::Bytes(value.as_bytes().ok_or_else(|| wrong("a string"))?.to_vec().into()),
        Kind::Enum(known) => Value::EnumNumber(enum_number(known, value).ok_or_else(|| {
            let names: Vec<_> = known.values().map(|value| value.name().to_owned()).collect();
            wrong(&format!("{} ({})", known.full_name(), names.join(", ")))
        })?),
        Kind::Message(message_type) => Value::Message(message(message_type, value)?),
    })
}

fn enum_number(known: &EnumDescriptor, value: &Lua<'_>) -> Option<i32> {
    match value {
        Lua::Number(number) if number.fract() == 0.0 => i32::try_from(*number as i64).ok(),
        _ => known.get_value_by_name(value.as_str()?).map(|value| value.number()),
    }
}

/// A value in the words of an error.
fn shown(value: &Lua<'_>) -> String {
    match value {
        Lua::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Lua::Number(number) => number.to_string(),
        other => other.kind().to_owned(),
    }
}

/// A value as JSON, for Google's own types.
fn json(value: &Lua<'_>) -> Result<serde_json::Value, String> {
    Ok(match value {
        Lua::Nil => serde_json::Value::Null,
        Lua::Boolean(value) => (*value).into(),
        Lua::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT as f64 => (*number as i64).into(),
        Lua::Number(number) => (*number).into(),
        Lua::Text(_) => value.as_str().ok_or_else(|| "expected a string in UTF-8".to_owned())?.into(),
        Lua::Table(entries) => match list(entries) {
            Some(items) if !items.is_empty() => items.into_iter().map(json).collect::<Result<_, _>>()?,
            _ => {
                let pair = |(key, value): &(Lua<'_>, Lua<'_>)| match key.as_str() {
                    Some(key) => Ok((key.to_owned(), json(value)?)),
                    None => Err(format!("expected names, got {} as a key", key.kind())),
                };
                serde_json::Value::Object(entries.iter().map(pair).collect::<Result<_, String>>()?)
            }
        },
    })
}

/// A message as a table. Unset fields have their defaults, unless their type distinguishes unset from default.
pub(crate) fn in_lua(message: &DynamicMessage) -> Lua<'static> {
    let fields = message.descriptor();
    let fields = fields.fields().filter(|field| !field.supports_presence() || message.has_field(field));
    Lua::Table(
        fields.map(|field| (text(field.name()), value_in_lua(&field.kind(), &message.get_field(&field)))).collect(),
    )
}

fn text(text: &str) -> Lua<'static> {
    Lua::Text(Cow::Owned(text.as_bytes().to_vec()))
}

fn whole(number: i128) -> Lua<'static> {
    if number.abs() <= EXACT { Lua::Number(number as f64) } else { text(&number.to_string()) }
}

fn value_in_lua(kind: &Kind, value: &Value) -> Lua<'static> {
    match value {
        Value::Bool(value) => Lua::Boolean(*value),
        Value::I32(number) => whole((*number).into()),
        Value::I64(number) => whole((*number).into()),
        Value::U32(number) => whole((*number).into()),
        Value::U64(number) => whole((*number).into()),
        Value::F32(number) => Lua::Number((*number).into()),
        Value::F64(number) => Lua::Number(*number),
        Value::String(value) => text(value),
        Value::Bytes(bytes) => Lua::Text(Cow::Owned(bytes.to_vec())),
        Value::EnumNumber(number) => match kind {
            Kind::Enum(known) => known.get_value(*number).map_or(whole((*number).into()), |value| text(value.name())),
            _ => whole((*number).into()),
        },
        Value::Message(message) => in_lua(message),
        Value::List(items) => Lua::list(items.iter().map(|item| value_in_lua(kind, item))),
        Value::Map(entries) => {
            let value_kind = match kind {
                Kind::Message(entry) => entry.map_entry_value_field().kind(),
                other => other.clone(),
            };
            Lua::Table(entries.iter().map(|(key, value)| (key_in_lua(key), value_in_lua(&value_kind, value))).collect())
        }
    }
}

fn key_in_lua(key: &MapKey) -> Lua<'static> {
    match key {
        MapKey::Bool(value) => Lua::Boolean(*value),
        MapKey::I32(number) => whole((*number).into()),
        MapKey::I64(number) => whole((*number).into()),
        MapKey::U32(number) => whole((*number).into()),
        MapKey::U64(number) => whole((*number).into()),
        MapKey::String(value) => text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Sources, compile};

    fn item() -> MessageDescriptor {
        let source = "syntax = \"proto3\"; package t; import \"google/protobuf/timestamp.proto\"; import \"google/protobuf/struct.proto\";
            enum Colour { NONE = 0; RED = 1; }
            message Item { string sku = 1; int64 big = 2; Colour colour = 3; map<int32, Item> items = 4; repeated uint32 many = 5;
              oneof either { bool yes = 6; bytes raw = 7; } google.protobuf.Timestamp at = 8; google.protobuf.Struct any = 9; double d = 10; }";
        let name = "t.proto".to_owned();
        let schema = compile(std::slice::from_ref(&name), &Sources::from([(name.clone(), source.to_owned())])).unwrap();
        schema.pool().get_message_by_name("t.Item").unwrap()
    }

    fn table(entries: &[(&'static str, Lua<'static>)]) -> Lua<'static> {
        Lua::Table(entries.iter().map(|(key, value)| (Lua::text(key), value.clone())).collect())
    }

    #[test]
    fn tables_come_back_as_they_were() {
        let inner = table(&[("sku", Lua::text("b"))]);
        let given = table(&[
            ("sku", Lua::text("a ü")),
            ("big", Lua::text("-9007199254740993")),
            ("colour", Lua::text("RED")),
            ("items", Lua::Table(vec![(Lua::Number(-1.0), inner)])),
            ("many", Lua::list([1.0, 4_294_967_295.0].map(Lua::Number))),
            ("raw", Lua::Text(Cow::Borrowed(b"\xff\0"))),
            ("at", Lua::text("1970-01-01T00:00:05Z")),
            ("d", Lua::Number(0.5)),
        ]);
        let back = in_lua(&message(&item(), &given).unwrap());
        for name in ["sku", "big", "colour", "many", "raw", "d"] {
            assert_eq!(back.get(name), given.get(name), "{name}");
        }
        assert_eq!(back.get("at").get("seconds"), &Lua::Number(5.0));
        assert_eq!(back.get("items").entries()[0].0, Lua::Number(-1.0));
        assert_eq!(back.get("items").entries()[0].1.get("sku"), &Lua::text("b"));
        assert!(back.get("yes").is_nil() && back.get("any").is_nil());
        let empty = in_lua(&message(&item(), &table(&[])).unwrap());
        assert_eq!((empty.get("big"), empty.get("many").entries().len()), (&Lua::Number(0.0), 0));
        assert_eq!(empty.get("colour"), &Lua::text("NONE"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let nested = table(&[("many", Lua::list([Lua::Number(1.0), Lua::Number(-1.0)]))]);
        for (given, expected) in [
            (table(&[("skuu", Lua::text(""))]), "t.Item has no field 'skuu'; it has sku, big"),
            (table(&[("sku", Lua::Number(5.0))]), "sku: expected a string in UTF-8, got 5"),
            (table(&[("big", Lua::Number(0.5))]), "big: expected a whole number"),
            (table(&[("colour", Lua::text("PINK"))]), "colour: expected t.Colour (NONE, RED), got 'PINK'"),
            (
                table(&[("items", Lua::Table(vec![(Lua::Number(2.0), nested)]))]),
                "items.2.many.[2]: expected a whole number (0 to",
            ),
            (table(&[("yes", Lua::Boolean(true)), ("raw", Lua::text(""))]), "oneof 'either'"),
            (table(&[("at", Lua::text("noon"))]), "at: "),
            (Lua::Number(1.0), "expected a table of t.Item, got a number"),
        ] {
            let error = message(&item(), &given).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
