//! Conversion of Lua's values to those of protocols and to JSON.

use std::borrow::Cow;
use std::fmt;

use mlua::{Lua, Table, Value as LuaValue};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserializer, Serialize, Serializer};

use brunt_protocol::scenario::{Value, is_rounded, rounded};

/// The deepest nesting of tables; a deeper table most likely contains itself.
const DEEPEST: usize = 64;
/// The largest number up to which Lua represents every whole number: 2^53.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;
/// The registry key of the metatable that marks JSON's arrays.
const ARRAY: &str = "brunt.array";
/// The registry key of the metatable that marks JSON's whole numbers beyond [`MOST_EXACT`], and its name.
const INTEGER: &str = "brunt.integer";
/// The field with such a number's digits.
const DIGITS: &str = "digits";

/// A value of Lua as a value for protocols.
///
/// # Errors
/// When it is, or contains, a function, a coroutine or a table within itself.
pub(crate) fn of_lua(value: &LuaValue) -> Result<Value<'static>, String> {
    of_lua_at(value, None, 0)
}

/// A value that returns to Lua by [`given_to_lua`]: lists stay lists, even empty ones.
///
/// # Errors
/// As [`of_lua`].
pub(super) fn given_of_lua(lua: &Lua, value: &LuaValue) -> Result<Value<'static>, String> {
    let arrays = lua.named_registry_value::<Table>(ARRAY).map_err(|e| e.to_string())?;
    of_lua_at(value, Some(&arrays), 0)
}

/// The value of Lua that was converted by [`given_of_lua`], with JSON's nulls in tables restored.
///
/// # Errors
/// When Lua has no memory left.
pub(super) fn given_to_lua(lua: &Lua, value: &Value<'_>) -> mlua::Result<LuaValue> {
    let Value::Table(entries) = value else { return to_lua(lua, value) };
    let table = lua.create_table_with_capacity(0, entries.len())?;
    for (key, value) in entries {
        match (key, value) {
            (Value::Nil, Value::Text(digits)) => return integer_to_lua(lua, &String::from_utf8_lossy(digits)),
            // The mark of a list.
            (Value::Nil, _) => {
                table.set_metatable(Some(lua.named_registry_value::<Table>(ARRAY)?))?;
            }
            (key, Value::Nil) => table.raw_set(to_lua(lua, key)?, LuaValue::NULL)?,
            (key, value) => table.raw_set(to_lua(lua, key)?, given_to_lua(lua, value)?)?,
        }
    }
    Ok(LuaValue::Table(table))
}

/// Converts a value at a depth. `arrays` marks JSON's lists, where they are told apart from objects.
fn of_lua_at(value: &LuaValue, arrays: Option<&Table>, depth: usize) -> Result<Value<'static>, String> {
    Ok(match value {
        LuaValue::Nil => Value::Nil,
        LuaValue::LightUserData(pointer) if pointer.0.is_null() => Value::Nil,
        LuaValue::Boolean(value) => Value::Boolean(*value),
        LuaValue::Integer(number) => Value::Number(*number as f64),
        LuaValue::Number(number) => Value::Number(*number),
        LuaValue::String(text) => Value::Text(Cow::Owned(text.as_bytes().to_vec())),
        LuaValue::Table(table) => {
            if depth >= DEEPEST {
                return Err(format!("a table is more than {DEEPEST} tables deep: is it within itself?"));
            }
            if let Some(digits) = digits_of(table) {
                return Ok(kept_digits(digits, arrays));
            }
            let mut entries = Vec::new();
            if arrays.is_some_and(|arrays| table.metatable().is_some_and(|mark| mark == *arrays)) {
                entries.push((Value::Nil, Value::Nil));
            }
            for entry in table.pairs::<LuaValue, LuaValue>() {
                let (key, value) = entry.map_err(|e| e.to_string())?;
                entries.push((of_lua_at(&key, arrays, depth + 1)?, of_lua_at(&value, arrays, depth + 1)?));
            }
            Value::Table(entries)
        }
        other => match integer_of(other) {
            Some(digits) => kept_digits(digits, arrays),
            None => return Err(format!("a {} cannot leave the script: only plain values can", kind(other))),
        },
    })
}

/// A whole number by its digits: a text for protocols, or what becomes such a number again where lists are told apart.
fn kept_digits(digits: String, arrays: Option<&Table>) -> Value<'static> {
    let digits = Value::Text(Cow::Owned(digits.into_bytes()));
    if arrays.is_some() { Value::Table(vec![(Value::Nil, digits)]) } else { digits }
}

/// The digits of one of `LuaJIT`'s integers of 64 bits, such as `5LL`; `None` for any other value.
fn integer_of(value: &LuaValue) -> Option<String> {
    let LuaValue::Other(_) = value else { return None };
    let shown = value.to_string().ok()?;
    let digits = shown.strip_suffix("LL").map(|digits| digits.strip_suffix('U').unwrap_or(digits))?;
    let is_whole = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
    is_whole.then(|| digits.to_owned())
}

/// A value's type, by the name that Lua has for it.
fn kind(value: &LuaValue) -> &'static str {
    if matches!(value, LuaValue::Other(_)) { "cdata" } else { value.type_name() }
}

/// `value` as a value of Lua.
///
/// # Errors
/// When Lua has no memory left.
pub(crate) fn to_lua(lua: &Lua, value: &Value<'_>) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Nil => LuaValue::Nil,
        Value::Boolean(value) => LuaValue::Boolean(*value),
        Value::Number(number) => LuaValue::Number(*number),
        Value::Text(text) => LuaValue::String(lua.create_string(text.as_ref())?),
        Value::Table(entries) => {
            let table = lua.create_table_with_capacity(0, entries.len())?;
            for (key, value) in entries {
                if !key.is_nil() {
                    table.raw_set(to_lua(lua, key)?, to_lua(lua, value)?)?;
                }
            }
            LuaValue::Table(table)
        }
    })
}

/// Makes the metatable that marks JSON's arrays.
pub(super) fn prepare_arrays(lua: &Lua) -> mlua::Result<Table> {
    let mark = lua.create_table()?;
    mark.raw_set("__name", "array")?;
    lua.set_named_registry_value(ARRAY, &mark)?;
    Ok(mark)
}

/// Makes the metatable that marks JSON's whole numbers beyond [`MOST_EXACT`].
pub(super) fn prepare_integers(lua: &Lua) -> mlua::Result<Table> {
    let mark = lua.create_table()?;
    mark.raw_set("__name", INTEGER)?;
    lua.set_named_registry_value(INTEGER, &mark)?;
    Ok(mark)
}

/// A whole number that Lua's numbers cannot hold, by its digits.
fn integer_to_lua(lua: &Lua, digits: &str) -> mlua::Result<LuaValue> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(DIGITS, digits)?;
    table.set_metatable(Some(lua.named_registry_value::<Table>(INTEGER)?))?;
    Ok(LuaValue::Table(table))
}

/// The digits of such a number; `None` for any other table.
fn digits_of(table: &Table) -> Option<String> {
    let mark = table.metatable()?;
    let name = mark.raw_get::<Option<mlua::LuaString>>("__name").ok()??;
    if name.as_bytes() != INTEGER.as_bytes() {
        return None;
    }
    table.raw_get(DIGITS).ok()
}

/// Reads JSON straight into Lua: `null` becomes `brunt.null`, and arrays are marked so that they are written as arrays
/// again.
///
/// # Errors
/// When it is not JSON, with line and column.
pub(super) fn json_to_lua(lua: &Lua, text: &[u8]) -> Result<LuaValue, String> {
    let arrays = lua.named_registry_value::<Table>(ARRAY).map_err(|e| e.to_string())?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Reader { lua, arrays: &arrays }.deserialize(&mut reader).map_err(|e| e.to_string())?;
    reader.end().map_err(|e| e.to_string())?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    lua: &'a Lua,
    arrays: &'a Table,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = LuaValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<LuaValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = LuaValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<LuaValue, E> {
        Ok(LuaValue::NULL)
    }

    fn visit_bool<E>(self, value: bool) -> Result<LuaValue, E> {
        Ok(LuaValue::Boolean(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<LuaValue, E> {
        if value.unsigned_abs() > MOST_EXACT as u64 {
            return integer_to_lua(self.lua, &value.to_string()).map_err(E::custom);
        }
        Ok(LuaValue::Number(value as f64))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<LuaValue, E> {
        if value > MOST_EXACT as u64 {
            return integer_to_lua(self.lua, &value.to_string()).map_err(E::custom);
        }
        Ok(LuaValue::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LuaValue, E> {
        Ok(LuaValue::Number(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LuaValue, E> {
        self.lua.create_string(text).map(LuaValue::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<LuaValue, A::Error> {
        use serde::de::Error as _;

        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(value) = values.next_element_seed(self)? {
            table.raw_push(value).map_err(A::Error::custom)?;
        }
        table.set_metatable(Some(self.arrays.clone())).map_err(A::Error::custom)?;
        Ok(LuaValue::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<LuaValue, A::Error> {
        use serde::de::Error as _;

        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(key) = entries.next_key_seed(self)? {
            let value = entries.next_value_seed(self)?;
            table.raw_set(key, value).map_err(A::Error::custom)?;
        }
        Ok(LuaValue::Table(table))
    }
}

/// Writes a value of Lua as JSON.
///
/// # Errors
/// When it has no JSON: a function, a table within itself, NaN, an infinity, a key that is not a string.
pub(super) fn lua_to_json(lua: &Lua, value: &LuaValue) -> Result<Vec<u8>, String> {
    let arrays = lua.named_registry_value::<Table>(ARRAY).map_err(|e| e.to_string())?;
    serde_json::to_vec(&Writer { value, arrays: &arrays, depth: 0, place: Place::Top }).map_err(|e| e.to_string())
}

/// Where a value stands within the one that is written.
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Field(Self::Top, name) => f.write_str(name),
            Self::Field(outer, name) => write!(f, "{outer}.{name}"),
            Self::Item(outer, place) => write!(f, "{outer}[{place}]"),
        }
    }
}

struct Writer<'a> {
    value: &'a LuaValue,
    arrays: &'a Table,
    depth: usize,
    place: Place<'a>,
}

impl Writer<'_> {
    fn within<'v>(&'v self, value: &'v LuaValue, place: Place<'v>) -> Writer<'v> {
        Writer { value, arrays: self.arrays, depth: self.depth + 1, place }
    }

    /// The error that this value has no JSON, with the field that it is.
    fn wrong<E: serde::ser::Error>(&self, problem: impl fmt::Display) -> E {
        match (&self.place, self.depth >= DEEPEST) {
            (Place::Top, _) | (_, true) => E::custom(problem),
            (place, false) => E::custom(format_args!("'{place}': {problem}")),
        }
    }

    /// A whole number beyond [`MOST_EXACT`] and below 2^64.
    fn large<S: Serializer>(&self, number: f64, serializer: S) -> Result<S::Ok, S::Error> {
        if is_rounded(number) { Err(self.wrong(rounded(number))) } else { self.digits(&number.to_string(), serializer) }
    }

    fn digits<S: Serializer>(&self, digits: &str, serializer: S) -> Result<S::Ok, S::Error> {
        match (digits.parse::<i64>(), digits.parse::<u64>()) {
            (Ok(number), _) => serializer.serialize_i64(number),
            (_, Ok(number)) => serializer.serialize_u64(number),
            _ => Err(self.wrong(format!("'{digits}' is no whole number of 64 bits"))),
        }
    }

    fn table<S: Serializer>(&self, table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;

        if self.depth >= DEEPEST {
            return Err(self.wrong(format!("a table is more than {DEEPEST} tables deep: is it within itself?")));
        }
        if let Some(digits) = digits_of(table) {
            return self.digits(&digits, serializer);
        }
        let length = table.raw_len();
        let marked = table.metatable().is_some_and(|mark| mark == *self.arrays);
        if let Some(problem) = unlisted(table, length, marked).map_err(S::Error::custom)? {
            return Err(self.wrong(problem));
        }
        if length > 0 || marked {
            let mut list = serializer.serialize_seq(Some(length))?;
            for place in 1..=length {
                let value = table.raw_get::<LuaValue>(place).map_err(S::Error::custom)?;
                list.serialize_element(&self.within(&value, Place::Item(&self.place, place)))?;
            }
            return list.end();
        }
        let mut entries =
            table.pairs::<LuaValue, LuaValue>().collect::<mlua::Result<Vec<_>>>().map_err(S::Error::custom)?;
        let key_of = |key: &LuaValue| match key {
            LuaValue::String(text) => text.to_str().ok().map(|text| text.to_owned()),
            _ => None,
        };
        // Sorted, so that the order is the same in every run.
        entries.sort_by_cached_key(|(key, _)| key_of(key));
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for (key, value) in &entries {
            let Some(name) = key_of(key) else {
                let kind = kind(key);
                return Err(self.wrong(format!("the key of an object must be a string in UTF-8, not a {kind}")));
            };
            map.serialize_entry(&name, &self.within(value, Place::Field(&self.place, &name)))?;
        }
        map.end()
    }
}

/// The entry of a table that fits neither a list of this length nor an object, in words; `None` if all entries fit.
fn unlisted(table: &Table, length: usize, is_array: bool) -> mlua::Result<Option<String>> {
    let is_list = length > 0 || is_array;
    for entry in table.pairs::<LuaValue, LuaValue>() {
        let (key, value) = entry?;
        let place = match &key {
            LuaValue::Integer(place) => Some(*place as f64),
            LuaValue::Number(place) => Some(*place),
            _ => None,
        };
        let problem = match (place, key.as_string()) {
            (Some(place), _) if place.fract() == 0.0 && place >= 1.0 && place <= length as f64 => {
                // The length may count beyond a hole.
                value.is_nil().then(|| hole(place))
            }
            (Some(place), _) if place.fract() == 0.0 && place > 1.0 => Some(hole(place)),
            (None, Some(name)) if is_list => Some(format!(
                "a table is a list or an object, and this one has values 1 to {length} and the key '{}'",
                name.to_string_lossy()
            )),
            _ if is_list => {
                Some(format!("a list has values 1 to {length}, and this one has a {} as a key, too", kind(&key)))
            }
            _ => None,
        };
        if problem.is_some() {
            return Ok(problem);
        }
    }
    for place in 1..=length {
        if table.raw_get::<LuaValue>(place)?.is_nil() {
            return Ok(Some(hole((place + 1) as f64)));
        }
    }
    Ok(None)
}

/// The reason why a list cannot have a value at this place.
fn hole(place: f64) -> String {
    format!(
        "a list has no holes, and this one has a value [{place}] behind one that is nil: write brunt.null, or leave it out"
    )
}

impl Serialize for Writer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            LuaValue::Nil => serializer.serialize_unit(),
            LuaValue::LightUserData(pointer) if pointer.0.is_null() => serializer.serialize_unit(),
            LuaValue::Boolean(value) => serializer.serialize_bool(*value),
            // A number of Lua, of which whole ones come as this.
            LuaValue::Integer(number) if number.unsigned_abs() > MOST_EXACT as u64 => {
                self.large(*number as f64, serializer)
            }
            LuaValue::Integer(number) => serializer.serialize_i64(*number),
            // Whole numbers are written as such, as far as numbers of Lua are exact.
            LuaValue::Number(number) if number.fract() == 0.0 && number.abs() <= MOST_EXACT => {
                serializer.serialize_i64(*number as i64)
            }
            LuaValue::Number(number) if number.fract() == 0.0 && number.abs() < 2_f64.powi(64) => {
                self.large(*number, serializer)
            }
            LuaValue::Number(number) if number.is_finite() => serializer.serialize_f64(*number),
            LuaValue::Number(number) => Err(self.wrong(format!("{number} is not a JSON number"))),
            LuaValue::String(text) => match text.to_str() {
                Ok(text) => serializer.serialize_str(&text),
                Err(_) => Err(self.wrong("a string that is not UTF-8")),
            },
            LuaValue::Table(table) => self.table(table, serializer),
            other => match integer_of(other) {
                Some(digits) => self.digits(&digits, serializer),
                None => Err(self.wrong(format!("a {} cannot be JSON", kind(other)))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lua() -> Lua {
        let lua = Lua::new();
        prepare_arrays(&lua).unwrap();
        lua
    }

    fn again(text: &str) -> Result<String, String> {
        let lua = lua();
        let value = json_to_lua(&lua, text.as_bytes())?;
        lua_to_json(&lua, &value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn json_comes_back_as_it_was() {
        for text in
            ["null", "true", "-1", "1.5", "\"ü\\n\"", "[]", "{}", "[1,[],{\"a\":null}]", "{\"a\":[1,2],\"b\":{}}"]
        {
            assert_eq!(again(text).as_deref(), Ok(text));
        }
        assert!(again("[1,").unwrap_err().contains("line 1 column 3"));
        assert!(again("1 2").is_err() && again("").is_err());
        assert!(again(&"[".repeat(10_000)).is_err(), "a bomb is refused");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let lua = lua();
        let json = |code: &str| {
            let value = lua.load(code).eval::<LuaValue>().unwrap();
            lua_to_json(&lua, &value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(json("{ 1, 2, 3 }").as_deref(), Ok("[1,2,3]"));
        assert_eq!(json("{ b = 1, a = 'x' }").as_deref(), Ok("{\"a\":\"x\",\"b\":1}"));
        for (code, expected) in [
            ("{ 1, 2, x = 3 }", "has values 1 to 2 and the key 'x'"),
            ("{ 1, [true] = 3 }", "has a boolean as a key, too"),
            ("{ [3] = 1 }", "a value [3] behind one that is nil"),
            ("{ 1, nil, 3 }", "a value [3] behind one that is nil"),
            ("{ 1, 2, nil, nil, nil, nil, nil, nil, 9 }", "behind one that is nil"),
        ] {
            assert!(json(code).unwrap_err().contains(expected), "{code}: {:?}", json(code));
        }
        assert_eq!(
            json("{ 9007199254740991, -9007199254740991, 0.5 }").as_deref(),
            Ok("[9007199254740991,-9007199254740991,0.5]")
        );
        assert!(json("0/0").unwrap_err().contains("not a JSON number"));
        assert!(json("{ f = print }").unwrap_err().contains("a function cannot be JSON"));
        assert!(json("{ [true] = 1 }").unwrap_err().contains("must be a string"));
        assert!(json("(function() local t = {}; t.t = t; return t end)()").unwrap_err().contains("within itself"));
        assert!(json("'\\255'").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn integers_are_exact_or_an_error_that_names_the_field() {
        let lua = crate::state::everything();
        prepare_arrays(&lua).unwrap();
        let json = |code: &str| {
            let value = lua.load(code).eval::<LuaValue>().unwrap();
            lua_to_json(&lua, &value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(
            json("{ 9007199254740993LL, -5LL, 18446744073709551615ULL }").as_deref(),
            Ok("[9007199254740993,-5,18446744073709551615]")
        );
        assert_eq!(json("{ 2 ^ 53, 1.5e300 }").as_deref(), Ok("[9007199254740992,1.5e+300]"));
        // Of up to 15 digits all are kept, whatever zeros stand behind them.
        let kept = "[2733382000000000000,-123456789012345000,12345678901234500000]";
        assert_eq!(json(&kept.replace('[', "{").replace(']', "}")).as_deref(), Ok(kept));
        for (code, expected) in [
            ("{ order = { { id = 2 ^ 53 + 2 } } }", "'order[1].id': 9007199254740994 is beyond 2^53"),
            ("{ a = { 1, { b = print } } }", "'a[2].b': a function cannot be JSON"),
            ("{ a = 0/0 }", "'a': NaN is not a JSON number"),
            ("{ a = require('ffi').new('int[2]') }", "'a': a cdata cannot be JSON"),
        ] {
            assert!(json(code).unwrap_err().contains(expected), "{code}: {:?}", json(code));
        }
        let plain = of_lua(&lua.load("{ id = 9007199254740993LL }").eval().unwrap()).unwrap();
        assert_eq!(plain.get("id").as_str(), Some("9007199254740993"));
    }

    #[test]
    fn plain_values_leave_the_script_and_come_back() {
        let lua = lua();
        let value = lua.load("{ 1, 'a', { x = true } }").eval::<LuaValue>().unwrap();
        let plain = of_lua(&value).unwrap();
        let back = to_lua(&lua, &plain).unwrap();
        assert_eq!(lua_to_json(&lua, &back), lua_to_json(&lua, &value));
        assert!(of_lua(&lua.load("{ print }").eval().unwrap()).unwrap_err().contains("a function cannot leave"));
    }
}
