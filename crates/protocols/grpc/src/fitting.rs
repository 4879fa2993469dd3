//! Arguments from JSON (the JSON mapping of protobuf) to messages of a method's type.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, Kind, MapKey, MessageDescriptor, MethodDescriptor, ReflectMessage as _,
    SerializeOptions, Value as Wire,
};
use serde_json::{Map, Value, json};

/// Arguments that do not fit a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(String);

/// The messages that a call of `method` sends: `args` itself, or each of them where it is a list and the client streams.
///
/// # Errors
/// Names the field that does not fit.
pub fn messages(method: &MethodDescriptor, args: &Value) -> Result<Vec<DynamicMessage>, Misfit> {
    let input = method.input();
    match args {
        Value::Array(all) if method.is_client_streaming() => all
            .iter()
            .zip(1..)
            .map(|(args, number): (_, usize)| {
                message(&input, args).map_err(|misfit| Misfit(format!("message {number}: {misfit}")))
            })
            .collect(),
        Value::Array(_) if input.full_name() != "google.protobuf.ListValue" => {
            Err(Misfit(format!("a list of messages, and {} takes one: its client does not stream", method.full_name())))
        }
        one => Ok(vec![message(&input, one)?]),
    }
}

/// The message of this type that `value` is in JSON.
///
/// # Errors
/// Names the field that does not fit.
pub fn message(message_type: &MessageDescriptor, value: &Value) -> Result<DynamicMessage, Misfit> {
    if message_type.full_name() == ANY && value.as_object().is_some_and(Map::is_empty) {
        return Ok(DynamicMessage::new(message_type.clone()));
    }
    let mut value = value.clone();
    let has_empty = conform(message_type, message_type, &mut value);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&value, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let message = DynamicMessage::deserialize_with_options(message_type.clone(), tracked, &options);
    let mut message = message.map_err(|error| {
        let path = track.path().to_string();
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        Misfit(format!("{place}{error} (a {})", message_type.full_name()))
    })?;
    if has_empty {
        empty_anys(&mut message);
    }
    Ok(message)
}

const ANY: &str = "google.protobuf.Any";
/// Before the type of an `Any` that holds nothing, for which the reader of JSON has no form.
const NOTHING: &str = "nothing.brunt/";

/// Rewrites JSON that protobuf allows and its reader does not take, or takes for something else: whole numbers as texts with an exponent or a
/// fraction of zero, numbers beyond 64 bits (which are floats by now, and would be cut off), and an `Any` without a type. Returns whether there
/// is such an `Any`; it has a type of its own, which [`empty_anys`] takes out, with messages of the type `root`.
fn conform(root: &MessageDescriptor, message_type: &MessageDescriptor, value: &mut Value) -> bool {
    if message_type.full_name() == ANY {
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        if is_empty {
            *value = json!({ "@type": format!("{NOTHING}{}", root.full_name()) });
        }
        return is_empty;
    }
    if let Some(wrapped) = message_type.get_field_by_name("value").filter(|_| is_wrapper(message_type.full_name())) {
        return conform_kind(root, &wrapped.kind(), value);
    }
    let Value::Object(fields) = value else { return false };
    let mut has_empty = false;
    for (name, value) in fields {
        let field = message_type.get_field_by_name(name).or_else(|| message_type.get_field_by_json_name(name));
        let Some(field) = field else { continue };
        match (field.kind(), value) {
            (Kind::Message(entry), Value::Object(entries)) if field.is_map() => {
                let kind = entry.map_entry_value_field().kind();
                for value in entries.values_mut() {
                    has_empty |= conform_kind(root, &kind, value);
                }
            }
            (kind, Value::Array(all)) if field.is_list() => {
                for one in all {
                    has_empty |= conform_kind(root, &kind, one);
                }
            }
            (kind, value) => has_empty |= conform_kind(root, &kind, value),
        }
    }
    has_empty
}

fn is_wrapper(name: &str) -> bool {
    let number = name.strip_prefix("google.protobuf.").and_then(|name| name.strip_suffix("Value"));
    matches!(number, Some("Int32" | "Int64" | "UInt32" | "UInt64"))
}

fn conform_kind(root: &MessageDescriptor, kind: &Kind, value: &mut Value) -> bool {
    match kind {
        Kind::Message(inner) => return conform(root, inner, value),
        Kind::Double | Kind::Float | Kind::Bool | Kind::String | Kind::Bytes | Kind::Enum(_) => {}
        // Every other kind is a whole number.
        _ => {
            let whole = match &*value {
                Value::Number(number) if number.is_f64() => number.as_f64().filter(|n| n.fract() == 0.0).map(digits),
                Value::String(text) => whole_number(text),
                _ => None,
            };
            if let Some(whole) = whole {
                *value = whole.into();
            }
        }
    }
    false
}

/// A whole number as a text; one beyond 64 bits as a text that is no whole number. The least one would have been read as an integer.
fn digits(number: f64) -> String {
    let is_beyond = number <= i64::MIN as f64 || number >= u64::MAX as f64;
    if is_beyond { format!("{number:e}") } else { format!("{number:.0}") }
}

/// The digits of a whole number that is written with an exponent or a fraction of zero; `None` for any other text, and for numbers far
/// beyond 64 bits.
fn whole_number(text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number =
        !whole.is_empty() && [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_written_so = exponent != 0 || digits.contains('.') && !fraction.is_empty();
    if !is_number || !is_written_so || digits.len() > 100 {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let places = fraction.len() as i64 - i64::from(exponent);
    let all = match usize::try_from(places) {
        Ok(places) => {
            let (kept, left) = all.split_at(all.len().saturating_sub(places));
            if left.bytes().any(|digit| digit != b'0') {
                return None;
            }
            kept.to_owned()
        }
        Err(_) if places < -40 => return None,
        Err(_) => all + &"0".repeat(places.unsigned_abs() as usize),
    };
    let all = all.trim_start_matches('0');
    Some(if all.is_empty() { "0".to_owned() } else { format!("{sign}{all}") })
}

/// Takes what [`conform`] has put into an `Any` that holds nothing out of it again.
fn empty_anys(message: &mut DynamicMessage) {
    if message.descriptor().full_name() == ANY {
        let holds = |field: &Cow<'_, Wire>| field.as_str().is_some_and(|url| url.starts_with(NOTHING));
        if message.get_field_by_name("type_url").as_ref().is_some_and(holds) {
            message.clear();
        }
        return;
    }
    for (_, value) in message.fields_mut() {
        match value {
            Wire::Message(inner) => empty_anys(inner),
            Wire::List(all) => all.iter_mut().filter_map(Wire::as_message_mut).for_each(empty_anys),
            Wire::Map(entries) => entries.values_mut().filter_map(Wire::as_message_mut).for_each(empty_anys),
            _ => {}
        }
    }
}

/// A message's bytes.
pub fn encoded(message: &DynamicMessage) -> Vec<u8> {
    message.encode_to_vec()
}

/// A message as JSON, with the names of the `.proto` file and without unset fields; `None` if the bytes are not such a
/// message. What has no form in JSON, such as an `Any` of an unknown type, is shown by its fields.
pub fn shown(message_type: &MessageDescriptor, bytes: &[u8]) -> Option<String> {
    let message = DynamicMessage::decode(message_type.clone(), bytes).ok()?;
    let mut text = Vec::new();
    match message.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &as_shown()) {
        Ok(()) => String::from_utf8(text).ok(),
        Err(_) => Some(by_fields(&message).to_string()),
    }
}

/// A message in the JSON mapping of protobuf, with all of its fields by their names there.
///
/// # Errors
/// When the bytes are not such a message, or it has no form in JSON.
pub(crate) fn in_json(message_type: &MessageDescriptor, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let message = DynamicMessage::decode(message_type.clone(), bytes).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let options = SerializeOptions::new().skip_default_fields(false);
    let written = message.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options);
    written.map(|()| text).map_err(|error| error.to_string())
}

fn as_shown() -> SerializeOptions {
    SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false)
}

/// A message in the JSON mapping of protobuf, if it has a form there.
fn written(message: &DynamicMessage) -> Option<Value> {
    message.serialize_with_options(serde_json::value::Serializer, &as_shown()).ok()
}

/// A message by its fields, each in the JSON mapping where it has a form there.
fn by_fields(message: &DynamicMessage) -> Value {
    Value::Object(message.fields().map(|(field, value)| (field.name().to_owned(), field_of(value))).collect())
}

fn field_of(value: &Wire) -> Value {
    match value {
        Wire::Message(inner) => written(inner).unwrap_or_else(|| by_fields(inner)),
        Wire::List(all) => Value::Array(all.iter().map(field_of).collect()),
        Wire::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key_of(key), field_of(value))).collect())
        }
        Wire::Bool(value) => json!(value),
        Wire::I32(number) | Wire::EnumNumber(number) => json!(number),
        Wire::I64(number) => json!(number),
        Wire::U32(number) => json!(number),
        Wire::U64(number) => json!(number),
        Wire::F32(number) => json!(number),
        Wire::F64(number) => json!(number),
        Wire::String(text) => json!(text),
        Wire::Bytes(bytes) => json!(STANDARD.encode(bytes)),
    }
}

fn key_of(key: &MapKey) -> String {
    match key {
        MapKey::Bool(value) => value.to_string(),
        MapKey::I32(number) => number.to_string(),
        MapKey::I64(number) => number.to_string(),
        MapKey::U32(number) => number.to_string(),
        MapKey::U64(number) => number.to_string(),
        MapKey::String(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::{Schema, Sources, compile};

    fn schema() -> Schema {
        let text = "syntax = \"proto3\"; package t; import \"google/protobuf/timestamp.proto\"; import \"google/protobuf/struct.proto\";
            enum Colour { NONE = 0; RED = 1; }
            message Inner { int32 n = 1; }
            message All { string text = 1; int64 big = 2; Colour colour = 3; map<string, Inner> inners = 4; repeated sint32 many = 5;
              oneof either { bool yes = 6; bytes raw = 7; } google.protobuf.Timestamp at = 8; Inner inner = 9; }
            service S { rpc One(All) returns (All); rpc Many(stream All) returns (All); rpc List(google.protobuf.ListValue) returns (All); }";
        compile(&["t.proto".to_owned()], &Sources::from([("t.proto".to_owned(), text.to_owned())])).unwrap()
    }

    #[test]
    fn what_fits_comes_back() {
        let method = schema().method("One").unwrap();
        let args = json!({"text": "a", "big": 5_000_000_000_i64, "colour": "RED", "inners": {"x": {"n": 1}}, "many": [-1, 2],
            "raw": "AQI=", "at": "2026-11-22T00:00:00Z"});
        let all = messages(&method, &args).unwrap();
        let shown = shown(&method.input(), &encoded(&all[0])).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), args);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let method = schema().method("One").unwrap();
        for (args, expected) in [
            (json!({"texd": 1}), "texd"),
            (json!({"text": 1}), "text: invalid type: integer `1`"),
            (json!({"inner": {"n": "x"}}), "inner.n: "),
            (json!({"inners": {"x": {"n": 1.5}}}), "inners.x.n: "),
            (json!({"many": [1, 99_999_999_999_i64]}), "many[1]: "),
            (json!({"colour": "BLUE"}), "colour: "),
            (json!({"yes": true, "raw": ""}), "either"),
            (json!(5), "invalid type"),
            (json!([{}]), "takes one"),
        ] {
            let error = messages(&method, &args).unwrap_err().to_string();
            assert!(error.contains(expected), "{args}: {error}");
        }
    }

    #[test]
    fn numbers_are_exact_however_they_are_written() {
        for (text, expected) in [
            ("1e2", Some("100")),
            ("-1.50E1", Some("-15")),
            ("7.0", Some("7")),
            ("0.0", Some("0")),
            ("120e-1", Some("12")),
            ("9223372036854775807.0", Some("9223372036854775807")),
            ("1.5", None),
            ("1e-1", None),
            ("7", None),
            ("1e99", None),
            ("e2", None),
            (".5e1", None),
            ("1e2e3", None),
        ] {
            assert_eq!(whole_number(text).as_deref(), expected, "{text}");
        }
        let method = schema().method("One").unwrap();
        let big = |value: Value| {
            let message = messages(&method, &json!({ "big": value })).map_err(|misfit| misfit.to_string())?;
            Ok::<_, String>(message[0].get_field_by_name("big").and_then(|big| big.as_i64()))
        };
        assert_eq!(big(json!("-3e3")), Ok(Some(-3000)));
        assert_eq!(big(json!(5e2)), Ok(Some(500)));
        for beyond in ["9223372036854775808", "-9223372036854775809", "1e30"] {
            let error = big(serde_json::from_str(beyond).unwrap()).unwrap_err();
            assert!(error.starts_with("big: "), "{beyond}: {error}");
        }
    }

    #[test]
    fn an_any_may_be_empty_or_of_an_unknown_type() {
        let text = "syntax = \"proto3\"; package t; import \"google/protobuf/any.proto\"; import \"google/protobuf/duration.proto\";
            message Box { google.protobuf.Any one = 1; repeated google.protobuf.Any many = 2; map<string, google.protobuf.Any> named = 3;
              Box inner = 4; google.protobuf.Duration took = 5; string name = 6; }
            service S { rpc Send(Box) returns (Box); rpc Raw(google.protobuf.Any) returns (Box); }";
        let sources = Sources::from([("t.proto".to_owned(), text.to_owned())]);
        let schema = compile(&["t.proto".to_owned()], &sources).unwrap();
        assert_eq!(encoded(&messages(&schema.method("Raw").unwrap(), &json!({})).unwrap()[0]), b"");
        let method = schema.method("Send").unwrap();
        let args = json!({"one": {}, "many": [{}, {"@type": "x/t.Box", "name": "a"}], "named": {"k": {}}, "inner": {"one": {}}});
        let bytes = encoded(&messages(&method, &args).unwrap()[0]);
        let full = [&[10, 7][..], b"x/t.Box", &[18, 3, 50, 1, b'a']].concat();
        let many = [&[18, 0, 18, full.len() as u8][..], &full].concat();
        assert_eq!(bytes, [&[10, 0][..], &many, &[26, 5, 10, 1, b'k', 18, 0, 34, 2, 10, 0]].concat());
        // A duration of more seconds than the mapping allows, beside a type that nobody knows.
        let odd =
            [&[10, 6][..], &[10, 4], b"x/un", &[42, 7, 8], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], b"2\x01b"].concat();
        let shown: Value = serde_json::from_str(&shown(&method.input(), &odd).unwrap()).unwrap();
        assert_eq!(
            shown,
            json!({"one": {"type_url": "x/un"}, "took": {"seconds": 4_398_046_511_103_i64}, "name": "b"})
        );
        assert_eq!(super::shown(&method.input(), b"\x0a\x05x"), None, "cut short");
    }

    proptest! {
        #[test]
        fn any_text_of_a_number_is_read_or_left_alone(text in "-?[0-9.eE+-]{0,12}") {
            if let Some(whole) = whole_number(&text) {
                prop_assert!(whole.trim_start_matches('-').bytes().all(|digit| digit.is_ascii_digit()), "{} {}", text, whole);
                let (got, near): (f64, f64) = (whole.parse().unwrap(), text.parse().unwrap());
                prop_assert!(got == near || (got - near).abs() <= near.abs() * 1e-9, "{} {}", text, whole);
            }
        }
    }

    #[test]
    fn a_list_is_a_stream_of_messages_or_a_message() {
        let schema = schema();
        assert_eq!(messages(&schema.method("Many").unwrap(), &json!([{}, {"text": "b"}])).unwrap().len(), 2);
        assert_eq!(messages(&schema.method("Many").unwrap(), &json!({})).unwrap().len(), 1);
        assert_eq!(messages(&schema.method("List").unwrap(), &json!([1, "a"])).unwrap().len(), 1);
        let error = messages(&schema.method("Many").unwrap(), &json!([{}, {"text": 2}])).unwrap_err().to_string();
        assert!(error.starts_with("message 2: text: "), "{error}");
    }
}
