//! What the engine says, as values and errors of a script.

use brunt_protocol::scenario::Value as Plain;
use rquickjs::{Array, Ctx, Error, Exception, Object, Result, Value};

use crate::bytes;

/// The error of what could not be done, for this reason.
pub(crate) fn refused(ctx: &Ctx<'_>, problem: &str) -> Error {
    Exception::throw_message(ctx, problem)
}

/// A value of a protocol's as one of the script's. Texts become strings.
pub(crate) fn shown<'js>(ctx: &Ctx<'js>, value: &Plain<'_>) -> Result<Value<'js>> {
    Ok(match value {
        Plain::Nil => Value::new_undefined(ctx.clone()),
        Plain::Boolean(value) => Value::new_bool(ctx.clone(), *value),
        Plain::Number(number) => Value::new_number(ctx.clone(), *number),
        Plain::Text(text) => bytes::string(ctx, text)?.into_value(),
        Plain::Table(entries) => {
            let is_list = !entries.is_empty() && entries.iter().all(|(key, _)| key.as_number().is_some());
            if is_list {
                let list = Array::new(ctx.clone())?;
                for (at, (_, value)) in entries.iter().enumerate() {
                    list.set(at, shown(ctx, value)?)?;
                }
                return Ok(list.into_value());
            }
            let object = Object::new(ctx.clone())?;
            for (key, value) in entries {
                object.set(bytes::string(ctx, key.as_bytes().unwrap_or_default())?, shown(ctx, value)?)?;
            }
            object.into_value()
        }
    })
}
