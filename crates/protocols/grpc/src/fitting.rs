//! Arguments from JSON (the JSON mapping of protobuf) to messages of a method's type.

use prost_reflect::prost::Message as _;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;

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
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(message_type.clone(), tracked, &options).map_err(|error| {
        let path = track.path().to_string();
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        Misfit(format!("{place}{error} (a {})", message_type.full_name()))
    })
}

/// A message's bytes.
pub fn encoded(message: &DynamicMessage) -> Vec<u8> {
    message.encode_to_vec()
}

/// A message as JSON, with the names of the `.proto` file and without unset fields; `None` if the bytes are not such a
/// message.
pub fn shown(message_type: &MessageDescriptor, bytes: &[u8]) -> Option<String> {
    let message = DynamicMessage::decode(message_type.clone(), bytes).ok()?;
    let mut text = Vec::new();
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    message.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn a_list_is_a_stream_of_messages_or_a_message() {
        let schema = schema();
        assert_eq!(messages(&schema.method("Many").unwrap(), &json!([{}, {"text": "b"}])).unwrap().len(), 2);
        assert_eq!(messages(&schema.method("Many").unwrap(), &json!({})).unwrap().len(), 1);
        assert_eq!(messages(&schema.method("List").unwrap(), &json!([1, "a"])).unwrap().len(), 1);
        let error = messages(&schema.method("Many").unwrap(), &json!([{}, {"text": 2}])).unwrap_err().to_string();
        assert!(error.starts_with("message 2: text: "), "{error}");
    }
}
