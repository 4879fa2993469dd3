//! The JSON protocol (`TJSONProtocol`): messages as JSON arrays, fields by their ids and with the names of their types.
//!
//! It writes text and bytes in two ways under one name, so it needs the IDL. Received messages become messages of the
//! binary protocol, which everything else reads.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use brunt_protocol::{Malformed, OptionsError};
use serde_json::{Map, Value, json};

use super::fitting::uuid_of;
use super::named::uuid_text;
use super::schema::{Base, Field, Function, Schema, Struct, Type};
use super::value::{WireType, WireValue};
use super::wire::{Binary, MOST_NESTED, MessageKind, WireProtocol as _, write_value};

/// The version in each message.
const VERSION: i64 = 1;

const fn name_of(wire_type: WireType) -> &'static str {
    match wire_type {
        WireType::Bool => "tf",
        WireType::I8 => "i8",
        WireType::I16 => "i16",
        WireType::I32 => "i32",
        WireType::I64 => "i64",
        WireType::Double => "dbl",
        WireType::Bytes => "str",
        WireType::Struct => "rec",
        WireType::Map => "map",
        WireType::Set => "set",
        WireType::List => "lst",
        WireType::Uuid => "uid",
    }
}

fn type_named(name: Option<&Value>) -> Result<WireType, Malformed> {
    let name = name.and_then(Value::as_str);
    let found = WireType::ALL.into_iter().find(|wire_type| Some(name_of(*wire_type)) == name);
    found.ok_or(Malformed::because("a type that the JSON protocol does not have"))
}

// Writing --------------------------------------------------------------------------------------------------------------

/// Appends a call without its sequence id; returns the offset of that.
///
/// # Errors
/// When the arguments have what JSON cannot hold: keys with parts, or a string that is not UTF-8.
pub(super) fn write_call(
    schema: &Schema,
    function: &Function,
    name: &str,
    arguments: &WireValue,
    out: &mut Vec<u8>,
) -> Result<usize, OptionsError> {
    let kind = if function.oneway { MessageKind::Oneway } else { MessageKind::Call };
    let body = structure(schema, Some(&function.arguments.fields), arguments)?;
    let before = out.len();
    out.extend_from_slice(format!("[{VERSION},{},{},", json!(name), kind.number()).as_bytes());
    let sequence_at = out.len() - before;
    out.extend_from_slice(format!(",{body}]").as_bytes());
    Ok(sequence_at)
}

fn structure(schema: &Schema, types: Option<&[Field]>, value: &WireValue) -> Result<Value, OptionsError> {
    let WireValue::Struct(fields) = value else { return Ok(Value::Null) };
    let mut object = Map::new();
    for (id, value) in fields {
        let field_type = field_type(types, *id);
        object.insert(id.to_string(), json!({ name_of(value.wire_type()): written(schema, field_type, value)? }));
    }
    Ok(Value::Object(object))
}

fn field_type(types: Option<&[Field]>, id: i16) -> Option<&Type> {
    types?.iter().find(|field| field.id == id).map(|field| &field.field_type)
}

fn written(schema: &Schema, expected: Option<&Type>, value: &WireValue) -> Result<Value, OptionsError> {
    let items = |element: WireType, expected: Option<&Type>, items: &[WireValue]| {
        let mut list = vec![json!(name_of(element)), json!(items.len())];
        for item in items {
            list.push(written(schema, expected, item)?);
        }
        Ok(Value::Array(list))
    };
    Ok(match (value, expected) {
        (WireValue::Bool(value), _) => json!(u8::from(*value)),
        (WireValue::I8(number), _) => json!(number),
        (WireValue::I16(number), _) => json!(number),
        (WireValue::I32(number), _) => json!(number),
        (WireValue::I64(number), _) => json!(number),
        (WireValue::Double(number), _) if number.is_nan() => json!("NaN"),
        (WireValue::Double(number), _) if number.is_infinite() => {
            json!(if *number > 0.0 { "Infinity" } else { "-Infinity" })
        }
        (WireValue::Double(number), _) => json!(number),
        (WireValue::Bytes(bytes), Some(Type::Base(Base::Binary))) => json!(STANDARD.encode(bytes)),
        (WireValue::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => return Err(OptionsError("Thrift's JSON has text in UTF-8 alone".to_owned())),
        },
        (WireValue::Uuid(uuid), _) => json!(uuid_text(*uuid)),
        (WireValue::Struct(_), Some(Type::Struct(place))) => {
            structure(schema, schema.structure(*place).map(|of| of.fields.as_slice()), value)?
        }
        (WireValue::Struct(_), _) => structure(schema, None, value)?,
        (WireValue::List(element, list), Some(Type::List(of)))
        | (WireValue::Set(element, list), Some(Type::Set(of))) => items(*element, Some(of), list)?,
        (WireValue::List(element, list) | WireValue::Set(element, list), _) => items(*element, None, list)?,
        (WireValue::Map(key, of, pairs), _) => {
            let types = if let Some(Type::Map(types)) = expected { Some(&**types) } else { None };
            let mut object = Map::new();
            for (key, value) in pairs {
                let key = match written(schema, types.map(|types| &types.0), key)? {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    _ => return Err(OptionsError("Thrift's JSON has no keys with parts".to_owned())),
                };
                object.insert(key, written(schema, types.map(|types| &types.1), value)?);
            }
            json!([name_of(*key), name_of(*of), object.len(), object])
        }
    })
}

// Reading --------------------------------------------------------------------------------------------------------------

/// The message of the binary protocol that a message of JSON is. `functions` have the types of results.
///
/// # Errors
/// When the bytes are no such message.
pub(super) fn to_binary(schema: &Schema, functions: &[Function], message: &[u8]) -> Result<Vec<u8>, Malformed> {
    let wrong = || Malformed::because("no message of the JSON protocol, version 1");
    let Ok(Value::Array(parts)) = serde_json::from_slice(message) else { return Err(wrong()) };
    let [version, Value::String(name), kind, sequence, body] = parts.as_slice() else { return Err(wrong()) };
    let kind = kind.as_u64().and_then(|number| u8::try_from(number).ok()).unwrap_or(0);
    let kind = MessageKind::from_number(kind)?;
    let sequence = sequence.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(wrong)?;
    if version.as_i64() != Some(VERSION) {
        return Err(wrong());
    }
    let bare = name.rsplit_once(':').map_or(name.as_str(), |(_, name)| name);
    let function = functions.iter().find(|function| function.name == bare);
    let types = |id: i16| match (kind, id) {
        (MessageKind::Reply, 0) => function?.result.as_ref(),
        (MessageKind::Reply, _) => field_type(Some(&function?.throws), id),
        _ => None,
    };
    let value = fields(schema, &types, body, 0)?;
    let mut out = Vec::with_capacity(message.len());
    Binary::write_head_before_sequence(&mut out, kind, name.as_bytes());
    Binary::write_sequence(&mut out, sequence);
    write_value::<Binary>(&mut out, &value);
    Ok(out)
}

/// The arguments within a call, as the binary protocol writes them.
pub(super) fn arguments_to_binary(schema: &Schema, arguments: &Struct, body: &[u8]) -> Result<Vec<u8>, Malformed> {
    let body = serde_json::from_slice(body).map_err(|_| Malformed::because("arguments that are no JSON"))?;
    let value = fields(schema, &|id| field_type(Some(&arguments.fields), id), &body, 0)?;
    let mut out = Vec::new();
    write_value::<Binary>(&mut out, &value);
    Ok(out)
}

fn fields<'s>(
    schema: &'s Schema,
    types: &dyn Fn(i16) -> Option<&'s Type>,
    json: &Value,
    depth: usize,
) -> Result<WireValue, Malformed> {
    let object = json.as_object().ok_or(Malformed::because("a struct that is no object"))?;
    let mut found = Vec::with_capacity(object.len());
    for (id, field) in object {
        let id = id.parse().map_err(|_| Malformed::because("a field whose id is no number"))?;
        let mut typed = field.as_object().into_iter().flatten();
        let (Some((name, value)), None) = (typed.next(), typed.next()) else {
            return Err(Malformed::because("a field without its type"));
        };
        let wire_type = type_named(Some(&json!(name)))?;
        found.push((id, read(schema, types(id), wire_type, value, depth + 1)?));
    }
    Ok(WireValue::Struct(found))
}

/// A whole number, which is text where it is a key.
fn whole<T: TryFrom<i64>>(json: &Value) -> Result<T, Malformed> {
    let number = json.as_i64().or_else(|| json.as_str().and_then(|text| text.parse().ok()));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or(Malformed::because("a number that is none, or out of range"))
}

fn read(
    schema: &Schema,
    expected: Option<&Type>,
    wire_type: WireType,
    json: &Value,
    depth: usize,
) -> Result<WireValue, Malformed> {
    if depth > MOST_NESTED {
        return Err(Malformed::because("values nested more than 64 deep"));
    }
    let text = || json.as_str().ok_or(Malformed::because("a text that is none"));
    let container = || json.as_array().map(Vec::as_slice).ok_or(Malformed::because("a container that is no array"));
    let counted = |count: Option<&Value>, there: usize| {
        let is_right = count.and_then(Value::as_u64) == Some(there as u64);
        if is_right { Ok(()) } else { Err(Malformed::because("a container of another length than it says")) }
    };
    Ok(match wire_type {
        WireType::Bool => WireValue::Bool(match json {
            Value::Bool(value) => *value,
            number => whole::<i64>(number)? != 0,
        }),
        WireType::I8 => WireValue::I8(whole(json)?),
        WireType::I16 => WireValue::I16(whole(json)?),
        WireType::I32 => WireValue::I32(whole(json)?),
        WireType::I64 => WireValue::I64(whole(json)?),
        WireType::Double => WireValue::Double(match (json.as_f64(), json.as_str()) {
            (Some(number), _) => number,
            // "NaN", "Infinity" and "-Infinity" among them.
            (None, Some(text)) => text.parse().map_err(|_| Malformed::because("a double that is no number"))?,
            (None, None) => return Err(Malformed::because("a double that is no number")),
        }),
        WireType::Bytes if expected == Some(&Type::Base(Base::Binary)) => {
            let bytes = STANDARD_NO_PAD.decode(text()?.trim_end_matches('='));
            WireValue::Bytes(bytes.map_err(|_| Malformed::because("binary that is no base64"))?)
        }
        WireType::Bytes => WireValue::Bytes(text()?.as_bytes().to_vec()),
        WireType::Uuid => WireValue::Uuid(uuid_of(text()?).ok_or(Malformed::because("a uuid that is none"))?),
        WireType::Struct => {
            let known = if let Some(Type::Struct(place)) = expected { schema.structure(*place) } else { None };
            fields(schema, &|id| field_type(known.map(|of| of.fields.as_slice()), id), json, depth)?
        }
        WireType::List | WireType::Set => {
            let of = if let Some(Type::List(of) | Type::Set(of)) = expected { Some(&**of) } else { None };
            let parts = container()?;
            let (element, items) = (type_named(parts.first())?, parts.get(2..).unwrap_or_default());
            counted(parts.get(1), items.len())?;
            let items =
                items.iter().map(|item| read(schema, of, element, item, depth + 1)).collect::<Result<_, _>>()?;
            if wire_type == WireType::List { WireValue::List(element, items) } else { WireValue::Set(element, items) }
        }
        WireType::Map => {
            let types = if let Some(Type::Map(types)) = expected { Some(&**types) } else { None };
            let parts = container()?;
            let (key, of) = (type_named(parts.first())?, type_named(parts.get(1))?);
            let entries = parts.get(3).and_then(Value::as_object).ok_or(Malformed::because("a map without entries"))?;
            counted(parts.get(2), entries.len())?;
            let pair = |(name, value): (&String, &Value)| {
                let name = Value::String(name.clone());
                let key = read(schema, types.map(|types| &types.0), key, &name, depth + 1)?;
                Ok((key, read(schema, types.map(|types| &types.1), of, value, depth + 1)?))
            };
            WireValue::Map(key, of, entries.iter().map(pair).collect::<Result<_, Malformed>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::idl;
    use super::super::wire::{read_message, read_value};
    use super::*;

    const IDL: &str = "struct All { 1: bool a, 2: i8 b, 3: i16 c, 4: i32 d, 5: i64 e, 6: double f, 7: string g, 8: binary h,
          9: list<binary> i, 10: set<i64> j, 11: map<i32, string> k, 12: All l, 13: map<string, list<All>> m, 14: uuid n,
          15: map<double, bool> o }
        exception Gone { 1: string why }
        service S { All all(1: All all) throws (2: Gone gone), oneway void tell(1: binary what) }";

    fn schema() -> (Schema, Vec<Function>) {
        let schema = idl::load("a.thrift", &[], &mut |_| Ok(Some(IDL.as_bytes().to_vec()))).unwrap();
        let functions = schema.service("S").unwrap().functions.clone();
        (schema, functions)
    }

    fn call(place: usize, arguments: &WireValue) -> Result<String, String> {
        let (schema, functions) = schema();
        let mut out = Vec::new();
        let function = functions.get(place).unwrap();
        let at = write_call(&schema, function, &function.name, arguments, &mut out).map_err(|error| error.0)?;
        out.splice(at..at, *b"7");
        Ok(String::from_utf8(out).unwrap())
    }

    fn back(text: &str) -> Result<(i32, WireValue), String> {
        let (schema, functions) = schema();
        let bytes = to_binary(&schema, &functions, text.as_bytes()).map_err(|malformed| malformed.0.into_owned())?;
        let (head, value) = read_message::<Binary>(&bytes).unwrap();
        Ok((head.sequence, value))
    }

    #[test]
    fn calls_are_as_apaches_library_writes_them() {
        let told = call(1, &WireValue::Struct(vec![(1, WireValue::Bytes(vec![0, 255, 1]))])).unwrap();
        assert_eq!(told, r#"[1,"tell",4,7,{"1":{"str":"AP8B"}}]"#);
        let pairs = vec![(WireValue::I32(-3), WireValue::Bytes("ä\"".as_bytes().to_vec()))];
        let map = WireValue::Map(WireType::I32, WireType::Bytes, pairs);
        let all = WireValue::Struct(vec![(1, WireValue::Bool(true)), (11, map)]);
        let told = call(0, &WireValue::Struct(vec![(1, all)])).unwrap();
        let body = r#"{"1":{"rec":{"1":{"tf":1},"11":{"map":["i32","str",1,{"-3":"ä\""}]}}}}"#;
        assert_eq!(told, format!(r#"[1,"all",1,7,{body}]"#));
    }

    #[test]
    fn what_json_cannot_hold_is_said() {
        let key = WireValue::Struct(Vec::new());
        let map = WireValue::Map(WireType::Struct, WireType::Bool, vec![(key, WireValue::Bool(true))]);
        assert!(call(0, &WireValue::Struct(vec![(1, map)])).unwrap_err().contains("keys with parts"));
        let text = WireValue::Struct(vec![(7, WireValue::Bytes(vec![255]))]);
        assert!(call(0, &WireValue::Struct(vec![(1, text)])).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn answers_are_read_by_the_types_of_the_idl() {
        let answer = r#"[1,"S:all",2,9,{"0":{"rec":{"8":{"str":"AP8"},"10":{"set":["i64",2,-1,9007199254740993]},
            "6":{"dbl":"-Infinity"},"99":{"str":"new"}}}}]"#;
        let (sequence, value) = back(answer).unwrap();
        let WireValue::Struct(result) = value else { panic!() };
        let Some((0, WireValue::Struct(fields))) = result.first() else { panic!("{result:?}") };
        let of = |wanted: i16| fields.iter().find(|(id, _)| *id == wanted).map(|(_, value)| value.clone());
        assert_eq!((sequence, of(8)), (9, Some(WireValue::Bytes(vec![0, 255]))));
        let set = vec![WireValue::I64(-1), WireValue::I64(9_007_199_254_740_993)];
        assert_eq!(of(10), Some(WireValue::Set(WireType::I64, set)));
        assert_eq!(of(6), Some(WireValue::Double(f64::NEG_INFINITY)));
        let thrown = back(r#"[1,"all",3,0,{"1":{"str":"no"},"2":{"i32":6}}]"#).unwrap().1;
        let words = vec![(1, WireValue::Bytes(b"no".to_vec())), (2, WireValue::I32(6))];
        assert_eq!(thrown, WireValue::Struct(words));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let deep = format!(r#"[1,"all",2,0,{}{{}}{}]"#, r#"{"0":{"rec":"#.repeat(70), "}}".repeat(70));
        for text in [
            "",
            "[]",
            r#"[2,"all",2,0,{}]"#,
            r#"[1,"all",9,0,{}]"#,
            r#"[1,"all",2,9999999999,{}]"#,
            r#"[1,"all",2,0,{"x":{"i32":1}}]"#,
            r#"[1,"all",2,0,{"0":{"i32":1,"i64":1}}]"#,
            r#"[1,"all",2,0,{"0":{"i8":128}}]"#,
            r#"[1,"all",2,0,{"0":{"lst":["i32",2,1]}}]"#,
            r#"[1,"all",2,0,{"0":{"map":["str","i32",1,{}]}}]"#,
            r#"[1,"all",2,0,{"0":{"what":1}}]"#,
            r#"[1,"all",2,0,{"0":{"rec":{"8":{"str":"*"}}}}]"#,
            &deep,
        ] {
            assert!(back(text).is_err(), "{text}");
        }
    }

    fn any_all(depth: u32) -> BoxedStrategy<WireValue> {
        let text = || "[a-zäß\"\\\\/ ]{0,9}".prop_map(|text| WireValue::Bytes(text.into_bytes()));
        let bytes = || prop::collection::vec(any::<u8>(), 0..9).prop_map(WireValue::Bytes);
        let fields = (any::<bool>(), any::<i8>(), any::<i64>(), any::<f64>(), text(), bytes(), any::<[u8; 16]>());
        let lists = (prop::collection::vec(bytes(), 0..3), prop::collection::btree_map(any::<i32>(), text(), 0..3));
        let inner = if depth == 0 { Just(None).boxed() } else { prop::option::of(any_all(depth - 1)).boxed() };
        (fields, lists, inner)
            .prop_map(|((a, b, e, f, g, h, n), (i, k), l)| {
                let f = if f.is_nan() { 0.5 } else { f };
                let k = k.into_iter().map(|(key, value)| (WireValue::I32(key), value)).collect();
                let mut fields = vec![
                    (1, WireValue::Bool(a)),
                    (2, WireValue::I8(b)),
                    (5, WireValue::I64(e)),
                    (6, WireValue::Double(f)),
                    (7, g),
                    (8, h),
                    (9, WireValue::List(WireType::Bytes, i)),
                    (11, WireValue::Map(WireType::I32, WireType::Bytes, k)),
                    (14, WireValue::Uuid(n)),
                ];
                fields.extend(l.map(|inner| (12, inner)));
                WireValue::Struct(fields)
            })
            .boxed()
    }

    proptest! {
        #[test]
        fn values_come_back(value in any_all(3)) {
            let (schema, functions) = schema();
            let arguments = WireValue::Struct(vec![(1, value)]);
            let mut out = Vec::new();
            let at = write_call(&schema, &functions[0], "all", &arguments, &mut out).unwrap();
            let body = &out[at + 1..out.len() - 1];
            let binary = arguments_to_binary(&schema, &functions[0].arguments, body).unwrap();
            let (got, taken) = read_value::<Binary>(&binary, WireType::Struct).unwrap();
            prop_assert_eq!(taken, binary.len());
            // Maps have no order.
            prop_assert!(arguments.is_met_by(&got) && got.is_met_by(&arguments), "{:?}\n{:?}", arguments, got);
        }

        #[test]
        fn no_text_can_hurt(text in "[\\[\\]{}\",:0-9a-z ]{0,80}") {
            let (schema, functions) = schema();
            let _ = to_binary(&schema, &functions, text.as_bytes());
        }
    }
}
