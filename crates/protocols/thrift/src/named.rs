//! Received values with the names of the IDL.

use super::schema::{Base, Schema, Struct, Type};
use super::untyped::{Misfit, Untyped};
use super::value::WireValue;

/// How a UUID is written.
pub(super) fn uuid_text(uuid: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(uuid));
    let group = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    [group(0..8), group(8..12), group(12..16), group(16..20), group(20..32)].join("-")
}

/// A received value with the names of its type: fields and enum members have names, and fields that the IDL lacks are
/// left out.
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
