//! Values that go from one Lua state to another: copied, never shared.

use mlua::{IntoLua, Lua, Value};

/// The deepest nesting of tables. A table that contains itself ends here.
const MOST_NESTED: usize = 100;

/// A value outside of any state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Copied {
    Nil,
    Boolean(bool),
    Number(f64),
    String(Vec<u8>),
    Table(Vec<(Copied, Copied)>),
}

/// Lua's name for the type of `value`.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}

impl Copied {
    /// A copy of `value`: nil, a boolean, a number, a string, or a table of them, nested.
    ///
    /// # Errors
    /// The type of a value that cannot go to another state.
    pub(super) fn from_lua(value: &Value) -> Result<Self, String> {
        Self::nested(value, 0)
    }

    fn nested(value: &Value, depth: usize) -> Result<Self, String> {
        Ok(match value {
            Value::Nil => Self::Nil,
            Value::Boolean(boolean) => Self::Boolean(*boolean),
            Value::Integer(number) => Self::Number(*number as f64),
            Value::Number(number) => Self::Number(*number),
            Value::String(string) => Self::String(string.as_bytes().to_vec()),
            Value::Table(_) if depth >= MOST_NESTED => {
                return Err("cannot transfer a table nested more than 100 deep to thread".to_owned());
            }
            Value::Table(table) => {
                let mut pairs = Vec::new();
                for pair in table.pairs::<Value, Value>() {
                    let (key, value) = pair.map_err(|error| error.to_string())?;
                    pairs.push((Self::nested(&key, depth + 1)?, Self::nested(&value, depth + 1)?));
                }
                Self::Table(pairs)
            }
            other => return Err(format!("cannot transfer '{}' to thread", kind(other))),
        })
    }
}

impl IntoLua for Copied {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Self::Nil => Ok(Value::Nil),
            Self::Boolean(boolean) => Ok(Value::Boolean(boolean)),
            Self::Number(number) => Ok(Value::Number(number)),
            Self::String(bytes) => lua.create_string(bytes).map(Value::String),
            Self::Table(pairs) => {
                let table = lua.create_table_with_capacity(0, pairs.len())?;
                for (key, value) in pairs {
                    table.raw_set(key, value)?;
                }
                Ok(Value::Table(table))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_in_another_state_as_they_were() {
        let (here, there) = (Lua::new(), Lua::new());
        let value = here.load("return {1, 'a\\0b', true, {x = {y = -0.5}}, [false] = 'no'}").eval().unwrap();
        there.globals().set("v", Copied::from_lua(&value).unwrap()).unwrap();
        let test = "return v[1] == 1 and v[2] == 'a\\0b' and v[3] == true and v[4].x.y == -0.5 and v[false] == 'no'";
        assert!(there.load(test).eval::<bool>().unwrap());
    }

    #[test]
    fn what_belongs_to_a_state_stays_there() {
        let lua = Lua::new();
        for (code, problem) in [
            ("return print", "cannot transfer 'function' to thread"),
            ("return {coroutine.create(print)}", "cannot transfer 'thread' to thread"),
            ("local t = {} t.t = t return t", "nested more than 100 deep"),
        ] {
            let error = Copied::from_lua(&lua.load(code).eval().unwrap()).unwrap_err();
            assert!(error.contains(problem), "{code}: {error}");
        }
    }
}
