//! Checks that received values have the types of an IDL, down to their innermost parts.

use super::schema::{Field, Function, Presence, Schema, StructKind, Type};
use super::value::WireValue;

/// Where a result struct departs from what its function returns or throws: the path, the expected and the actual type.
/// The text depends on the cause alone, not on the values, so that it can be counted.
pub fn fault(schema: &Schema, function: &Function, result: &WireValue) -> Option<String> {
    let WireValue::Struct(fields) = result else { return Some("a result that is not a struct".to_owned()) };
    fields.iter().find_map(|(id, value)| {
        let (name, expected) = if *id == 0 {
            (function.name.as_str(), function.result.as_ref()?)
        } else {
            let thrown = function.throws.iter().find(|field| field.id == *id)?;
            (thrown.name.as_str(), &thrown.field_type)
        };
        let (path, problem) = within(schema, expected, value)?;
        let path: String = std::iter::once(name.to_owned()).chain(path.into_iter().rev()).collect();
        Some(format!("{path}: {problem}"))
    })
}

/// A fault, with the path to it, innermost part first.
type Fault = (Vec<String>, String);

fn within(schema: &Schema, expected: &Type, value: &WireValue) -> Option<Fault> {
    if value.wire_type() != expected.wire_type() {
        return Some((Vec::new(), format!("expected {}, got {}", schema.type_name(expected), value.wire_type())));
    }
    match (expected, value) {
        (Type::List(element), WireValue::List(of, items)) | (Type::Set(element), WireValue::Set(of, items)) => {
            if *of != element.wire_type() && !items.is_empty() {
                let problem = format!("expected {}, got elements that are {of}", schema.type_name(expected));
                return Some((Vec::new(), problem));
            }
            items.iter().find_map(|item| inside("[]", within(schema, element, item)))
        }
        (Type::Map(types), WireValue::Map(key, of, pairs)) => {
            if (*key, *of) != (types.0.wire_type(), types.1.wire_type()) && !pairs.is_empty() {
                let problem = format!("expected {}, got a map from {key} to {of}", schema.type_name(expected));
                return Some((Vec::new(), problem));
            }
            pairs.iter().find_map(|(key, value)| {
                inside("[key]", within(schema, &types.0, key)).or_else(|| inside("[]", within(schema, &types.1, value)))
            })
        }
        (Type::Struct(place), WireValue::Struct(fields)) => {
            let structure = schema.structure(*place)?;
            let there = |field: &Field| fields.iter().any(|(id, _)| *id == field.id);
            let missing = structure.fields.iter().find(|field| field.presence == Presence::Required && !there(field));
            if let Some(field) = missing {
                return Some((Vec::new(), format!("{} has no '{}', which is required", structure.name, field.name)));
            }
            if structure.kind == StructKind::Union && fields.len() != 1 {
                return Some((
                    Vec::new(),
                    format!("the union {} has {} fields, not one", structure.name, fields.len()),
                ));
            }
            // A field that this IDL lacks may be of a later version.
            fields.iter().find_map(|(id, value)| {
                let field = structure.fields.iter().find(|field| field.id == *id)?;
                inside(&format!(".{}", field.name), within(schema, &field.field_type, value))
            })
        }
        _ => None,
    }
}

fn inside(part: &str, fault: Option<Fault>) -> Option<Fault> {
    fault.map(|(mut path, problem)| {
        path.push(part.to_owned());
        (path, problem)
    })
}

/// Whether a function's result or exceptions have parts that their outermost type alone does not check.
pub fn has_parts(function: &Function) -> bool {
    !function.throws.is_empty()
        || matches!(function.result, Some(Type::Struct(_) | Type::List(_) | Type::Set(_) | Type::Map(_)))
}

#[cfg(test)]
mod tests {
    use super::super::idl;
    use super::super::value::WireType;
    use super::*;

    const IDL: &str = "struct Item { 1: required string sku, 2: i32 count }
        union Either { 1: i32 a, 2: string b }
        exception Busy { 1: i64 seconds }
        service Shop {
          list<Item> items(),
          map<string, Either> all() throws (3: Busy busy),
          i32 count(),
        }";

    fn fault_of_argument(function: &str, id: i16, value: WireValue) -> Option<String> {
        let schema = idl::load("a.thrift", &[], &mut |_| Ok(Some(IDL.as_bytes().to_vec()))).unwrap();
        let service = schema.service("Shop").unwrap();
        let function = service.functions.iter().find(|found| found.name == function).unwrap();
        fault(&schema, function, &WireValue::Struct(vec![(id, value)]))
    }

    fn text(text: &str) -> WireValue {
        WireValue::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn what_the_idl_says_is_right() {
        let item = WireValue::Struct(vec![(1, text("a")), (2, WireValue::I32(1)), (9, WireValue::Bool(true))]);
        assert_eq!(fault_of_argument("items", 0, WireValue::List(WireType::Struct, vec![item])), None);
        assert_eq!(
            fault_of_argument("items", 0, WireValue::List(WireType::I8, Vec::new())),
            None,
            "what is empty may be of any type"
        );
        let either = WireValue::Struct(vec![(2, text("b"))]);
        assert_eq!(
            fault_of_argument("all", 0, WireValue::Map(WireType::Bytes, WireType::Struct, vec![(text("k"), either)])),
            None
        );
        assert_eq!(fault_of_argument("all", 3, WireValue::Struct(vec![(1, WireValue::I64(1))])), None);
        assert_eq!(fault_of_argument("count", 0, WireValue::I32(1)), None);
    }

    #[test]
    fn what_is_not_is_named() {
        let items = |item: Vec<(i16, WireValue)>| {
            fault_of_argument("items", 0, WireValue::List(WireType::Struct, vec![WireValue::Struct(item)]))
        };
        assert_eq!(items(vec![(2, WireValue::I32(1))]).unwrap(), "items[]: Item has no 'sku', which is required");
        let count = vec![(1, text("a")), (2, WireValue::I64(1))];
        assert_eq!(items(count).unwrap(), "items[].count: expected i32, got i64");
        let wrong = fault_of_argument("items", 0, WireValue::List(WireType::I32, vec![WireValue::I32(1)]));
        assert_eq!(wrong.unwrap(), "items: expected list<Item>, got elements that are i32");
        let empty = WireValue::Map(WireType::Bytes, WireType::Struct, vec![(text("k"), WireValue::Struct(Vec::new()))]);
        assert_eq!(fault_of_argument("all", 0, empty).unwrap(), "all[]: the union Either has 0 fields, not one");
        let busy = WireValue::Struct(vec![(1, text("soon"))]);
        assert_eq!(fault_of_argument("all", 3, busy).unwrap(), "busy.seconds: expected i64, got string or binary");
    }
}
