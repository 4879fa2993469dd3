//! How values that people write fit the types of a [`Schema`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::schema::{Base, Field, Function, Presence, Schema, Struct, StructKind, Type};
use super::untyped::{Misfit, Untyped};
use super::value::WireValue;

/// How deep values may be nested in each other.
const MOST_NESTED: usize = 64;
/// The most values in one value, defaults included.
const MOST_VALUES: usize = 1_000_000;
/// How much of a value an error shows, in characters.
const MOST_SHOWN_CHARS: usize = 80;
/// How many names an error offers.
const MOST_OFFERED: usize = 20;

/// Fits values to types.
pub struct Fitting<'a> {
    schema: &'a Schema,
    /// Whether values are constants of an IDL, where a truth value may be 0 or 1.
    constants: bool,
    /// Whether structs may be incomplete: then defaults are not filled in, and no field is required.
    parts: bool,
    /// Whether values come from Lua, whose lists are maps with the keys 1, 2, 3 …, and whose numbers are inexact beyond
    /// 2^53.
    scripted: bool,
    path: Vec<String>,
    values: usize,
}

impl<'a> Fitting<'a> {
    /// For arguments.
    pub fn new(schema: &'a Schema) -> Self {
        Self { schema, constants: false, parts: false, scripted: false, path: Vec::new(), values: 0 }
    }

    /// For arguments that a script in Lua has made.
    pub fn scripted(schema: &'a Schema) -> Self {
        Self { scripted: true, ..Self::new(schema) }
    }

    /// For a value that results are compared with: its structs may name a part of the fields.
    pub fn expectation(schema: &'a Schema) -> Self {
        Self { parts: true, ..Self::new(schema) }
    }

    /// For an IDL's constants.
    pub(super) fn constants(schema: &'a Schema) -> Self {
        Self { constants: true, ..Self::new(schema) }
    }

    /// The arguments of a call. Each must be given unless it has a default or is optional; `null` leaves one out.
    ///
    /// # Errors
    /// Names the first value that does not fit, and the type that it should have.
    pub fn arguments(mut self, function: &Function, given: &Untyped) -> Result<WireValue, Misfit> {
        self.path.push(function.arguments.name.clone());
        let names = |field: &Field| match given {
            Untyped::Map(given) => given.iter().any(|(key, _)| *key == Untyped::Text(field.name.clone())),
            Untyped::List(none) => !none.is_empty(),
            _ => true,
        };
        let missing = function
            .arguments
            .fields
            .iter()
            .find(|field| field.default.is_none() && field.presence != Presence::Optional && !names(field));
        if let Some(field) = missing {
            let expected = format!("the argument '{}' ({})", field.name, self.schema.type_name(&field.field_type));
            return Err(self.misfit(expected, "none of this name"));
        }
        self.structure(&function.arguments, given)
    }

    /// A value of a type.
    ///
    /// # Errors
    /// Names the first part that does not fit, and the type that it should have.
    pub fn value(&mut self, expected: &Type, given: &Untyped) -> Result<WireValue, Misfit> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(self.misfit(format!("at most {MOST_VALUES} values"), format!("more than {MOST_VALUES} values")));
        }
        if self.path.len() > MOST_NESTED {
            self.path.truncate(4);
            return Err(
                self.misfit(format!("values nested at most {MOST_NESTED} deep"), "one nested more than 64 deep")
            );
        }
        match (expected, given) {
            (Type::Base(base), given) => self.base(*base, given),
            (Type::Enum(place), given) => self.member(expected, *place, given),
            (Type::Struct(place), given) => match self.schema.structure(*place) {
                Some(structure) => self.structure(structure, given),
                None => Err(self.unfit(expected, given)),
            },
            (Type::List(element), Untyped::List(items)) => {
                Ok(WireValue::List(element.wire_type(), self.items(element, items)?))
            }
            (Type::Set(element), Untyped::List(items)) => self.set(element, items),
            (Type::Map(types), Untyped::Map(pairs)) => self.map(types, pairs.iter().map(|(key, value)| (key, value))),
            (Type::Map(types), Untyped::List(items)) if self.scripted => {
                let keys: Vec<_> = (1..=items.len() as i128).map(Untyped::Integer).collect();
                self.map(types, keys.iter().zip(items))
            }
            (Type::Map(types), Untyped::List(pairs)) => self.pairs(expected, types, pairs),
            // Lua does not distinguish an empty list from an empty map.
            (Type::List(element), Untyped::Map(none)) if none.is_empty() => {
                Ok(WireValue::List(element.wire_type(), Vec::new()))
            }
            (Type::Set(element), Untyped::Map(none)) if none.is_empty() => {
                Ok(WireValue::Set(element.wire_type(), Vec::new()))
            }
            _ => Err(self.unfit(expected, given)),
        }
    }

    fn misfit(&self, expected: impl Into<String>, got: impl Into<String>) -> Misfit {
        Misfit { path: self.path.clone(), expected: expected.into(), got: got.into() }
    }

    fn unfit(&self, expected: &Type, given: &Untyped) -> Misfit {
        self.misfit(self.schema.type_name(expected), shown(given))
    }

    fn base(&self, base: Base, given: &Untyped) -> Result<WireValue, Misfit> {
        let unfit = || self.misfit(base.name(), shown(given));
        match (base, given) {
            (Base::Bool, Untyped::Bool(value)) => Ok(WireValue::Bool(*value)),
            (Base::Bool, Untyped::Integer(number @ (0 | 1))) if self.constants => Ok(WireValue::Bool(*number == 1)),
            (Base::I8, Untyped::Integer(number)) => self.integer(base, *number, WireValue::I8),
            (Base::I16, Untyped::Integer(number)) => self.integer(base, *number, WireValue::I16),
            (Base::I32, Untyped::Integer(number)) => self.integer(base, *number, WireValue::I32),
            (Base::I64, Untyped::Text(digits)) if self.scripted => {
                digits.parse().map(WireValue::I64).map_err(|_| unfit())
            }
            (Base::I64, Untyped::Integer(number)) => self.integer(base, *number, WireValue::I64),
            (Base::Double, Untyped::Integer(number)) => Ok(WireValue::Double(*number as f64)),
            (Base::Double, Untyped::Double(number)) => Ok(WireValue::Double(*number)),
            // JSON has no word for these.
            (Base::Double, Untyped::Text(text)) => match text.as_str() {
                "NaN" => Ok(WireValue::Double(f64::NAN)),
                "Infinity" => Ok(WireValue::Double(f64::INFINITY)),
                "-Infinity" => Ok(WireValue::Double(f64::NEG_INFINITY)),
                _ => Err(unfit()),
            },
            (Base::String | Base::Binary, Untyped::Text(text)) => Ok(WireValue::Bytes(text.clone().into_bytes())),
            (Base::String | Base::Binary, Untyped::Bytes(bytes)) => Ok(WireValue::Bytes(bytes.clone())),
            (Base::Binary, Untyped::Map(fields)) => match fields.as_slice() {
                [(Untyped::Text(name), Untyped::Text(text))] if name == "base64" => {
                    STANDARD.decode(text).map(WireValue::Bytes).map_err(|_| self.misfit("base64", shown(given)))
                }
                _ => Err(self.misfit(r#"binary (a string, or {"base64": "…"})"#, shown(given))),
            },
            (Base::Uuid, Untyped::Text(text)) => match uuid_of(text) {
                Some(uuid) => Ok(WireValue::Uuid(uuid)),
                None => Err(self.misfit("uuid (123e4567-e89b-12d3-a456-426614174000)", shown(given))),
            },
            (Base::Uuid, Untyped::Bytes(bytes)) => {
                bytes.as_slice().try_into().map(WireValue::Uuid).map_err(|_| unfit())
            }
            _ => Err(unfit()),
        }
    }

    fn integer<T: TryFrom<i128>>(
        &self,
        base: Base,
        number: i128,
        make: fn(T) -> WireValue,
    ) -> Result<WireValue, Misfit> {
        T::try_from(number).map(make).map_err(|_| {
            let bits = match base {
                Base::I8 => 8,
                Base::I16 => 16,
                Base::I32 => 32,
                _ => 64,
            };
            let half = 1_i128 << (bits - 1);
            self.misfit(format!("{} ({} to {})", base.name(), -half, half - 1), number.to_string())
        })
    }

    /// A member of an enum, by its name (with or without the enum's name before it) or by its number.
    fn member(&self, expected: &Type, place: usize, given: &Untyped) -> Result<WireValue, Misfit> {
        let Some(of) = self.schema.enumeration(place) else { return Err(self.unfit(expected, given)) };
        let found = of.members.iter().find(|(name, number)| match given {
            Untyped::Text(text) => {
                name == text
                    || text.strip_suffix(name.as_str()).and_then(|rest| rest.strip_suffix('.')).is_some_and(|rest| {
                        rest == of.name || of.name.ends_with(rest) && of.name.rsplit('.').next() == Some(rest)
                    })
            }
            Untyped::Integer(given) => *given == i128::from(*number),
            _ => false,
        });
        if let Some((_, number)) = found {
            return Ok(WireValue::I32(*number));
        }
        let members = offered(of.members.iter().map(|(name, _)| name.as_str()));
        Err(self.misfit(format!("{} ({members})", of.name), shown(given)))
    }

    fn structure(&mut self, structure: &Struct, given: &Untyped) -> Result<WireValue, Misfit> {
        let given = match given {
            Untyped::Map(given) => given.as_slice(),
            // An empty table of Lua may be a list.
            Untyped::List(none) if none.is_empty() => &[],
            other => {
                let names = offered(structure.fields.iter().map(|field| field.name.as_str()));
                return Err(self.misfit(format!("{} (an object with {names})", structure.name), shown(other)));
            }
        };
        for (key, _) in given {
            let known = matches!(key, Untyped::Text(name) if structure.field(name).is_some());
            if !known {
                let names = offered(structure.fields.iter().map(|field| field.name.as_str()));
                return Err(self.misfit(format!("a field of {} ({names})", structure.name), shown(key)));
            }
        }
        let mut fields = Vec::with_capacity(given.len());
        for field in &structure.fields {
            let value = given.iter().find(|(key, _)| matches!(key, Untyped::Text(name) if *name == field.name));
            if let Some(value) = self.field(field, value.map(|(_, value)| value))? {
                fields.push((field.id, value));
            }
        }
        if structure.kind == StructKind::Union && fields.len() != 1 && !(self.parts && fields.is_empty()) {
            let names = offered(structure.fields.iter().map(|field| field.name.as_str()));
            let expected = format!("exactly one field of the union {} ({names})", structure.name);
            return Err(self.misfit(expected, format!("{} of them", fields.len())));
        }
        fields.sort_by_key(|(id, _)| *id);
        Ok(WireValue::Struct(fields))
    }

    /// A field's value; `None` if the field is not written.
    fn field(&mut self, field: &Field, given: Option<&Untyped>) -> Result<Option<WireValue>, Misfit> {
        let written = match (given, &field.default, field.presence) {
            (None | Some(Untyped::Null), ..) if self.parts => return Ok(None),
            (Some(Untyped::Null), _, Presence::Required) | (None, None, Presence::Required) => {
                let expected = format!(
                    "a value for '{}' ({}), which is required",
                    field.name,
                    self.schema.type_name(&field.field_type)
                );
                return Err(self.misfit(expected, "none"));
            }
            (Some(Untyped::Null), ..) | (None, _, Presence::Optional) | (None, None, Presence::Default) => {
                return Ok(None);
            }
            (Some(given), ..) => given,
            (None, Some(default), Presence::Required | Presence::Default) => {
                // A default is a constant wherever it is used.
                let constants = std::mem::replace(&mut self.constants, true);
                let value = self.inside(field.name.clone(), |fitting| fitting.value(&field.field_type, default));
                self.constants = constants;
                return value.map(Some);
            }
        };
        self.inside(field.name.clone(), |fitting| fitting.value(&field.field_type, written)).map(Some)
    }

    fn inside<T>(&mut self, part: String, fit: impl FnOnce(&mut Self) -> Result<T, Misfit>) -> Result<T, Misfit> {
        self.path.push(part);
        let fitted = fit(self)?;
        self.path.pop();
        Ok(fitted)
    }

    fn items(&mut self, element: &Type, items: &[Untyped]) -> Result<Vec<WireValue>, Misfit> {
        let item = |(index, item): (usize, &Untyped)| {
            self.inside(format!("[{}]", index + 1), |fitting| fitting.value(element, item))
        };
        items.iter().enumerate().map(item).collect()
    }

    fn set(&mut self, element: &Type, items: &[Untyped]) -> Result<WireValue, Misfit> {
        let values = self.items(element, items)?;
        if let Some(twice) = first_twice(&values) {
            let got = items.get(twice).map_or_else(String::new, shown);
            return Err(self.misfit("a set", format!("{got} twice")));
        }
        Ok(WireValue::Set(element.wire_type(), values))
    }

    /// A map written as `[[key, value], …]`, for keys that no object has.
    fn pairs(&mut self, expected: &Type, types: &(Type, Type), pairs: &[Untyped]) -> Result<WireValue, Misfit> {
        let mut split = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match pair {
                Untyped::List(pair) if pair.len() == 2 => split.extend(pair.first().zip(pair.get(1))),
                other => {
                    let expected = format!("{} (an object, or [[key, value], …])", self.schema.type_name(expected));
                    return Err(self.misfit(expected, shown(other)));
                }
            }
        }
        self.map(types, split.into_iter())
    }

    fn map<'b>(
        &mut self,
        types: &(Type, Type),
        pairs: impl Iterator<Item = (&'b Untyped, &'b Untyped)>,
    ) -> Result<WireValue, Misfit> {
        let (key_type, value_type) = types;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            let shown_key = shown(key);
            let key = self.inside(format!("[key {shown_key}]"), |fitting| fitting.key(key_type, key))?;
            keys.push(key);
            values.push(self.inside(format!("[{shown_key}]"), |fitting| fitting.value(value_type, value))?);
        }
        if let Some(twice) = first_twice(&keys) {
            return Err(self.misfit("a map", format!("the same key twice (number {})", twice + 1)));
        }
        Ok(WireValue::Map(key_type.wire_type(), value_type.wire_type(), keys.into_iter().zip(values).collect()))
    }

    /// A key of a map. In JSON a key is text, whatever its type is.
    fn key(&mut self, expected: &Type, given: &Untyped) -> Result<WireValue, Misfit> {
        let Untyped::Text(text) = given else { return self.value(expected, given) };
        let read = match expected {
            Type::Base(Base::I8 | Base::I16 | Base::I32 | Base::I64) | Type::Enum(_) => {
                text.parse().ok().map(Untyped::Integer)
            }
            Type::Base(Base::Double) => text.parse().ok().map(Untyped::Double),
            Type::Base(Base::Bool) => text.parse().ok().map(Untyped::Bool),
            _ => None,
        };
        self.value(expected, read.as_ref().unwrap_or(given))
    }
}

/// The index of the first value that repeats an earlier one.
fn first_twice(values: &[WireValue]) -> Option<usize> {
    let mut seen = std::collections::HashSet::with_capacity(values.len());
    values.iter().position(|value| {
        let mut bytes = Vec::new();
        super::wire::write_value::<super::wire::Binary>(&mut bytes, value);
        !seen.insert(bytes)
    })
}

fn offered<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.get(..MOST_OFFERED) {
        Some(some) if names.len() > MOST_OFFERED => format!("{}, …", some.join(", ")),
        _ if names.is_empty() => "no fields".to_owned(),
        _ => names.join(", "),
    }
}

fn shown(value: &Untyped) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Sixteen bytes from a UUID's text (RFC 9562, section 4).
pub(super) fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let groups: Vec<_> = text.split('-').collect();
    if groups.iter().map(|group| group.len()).ne([8, 4, 4, 4, 12]) {
        return None;
    }
    let digits = groups.concat();
    if !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests;
