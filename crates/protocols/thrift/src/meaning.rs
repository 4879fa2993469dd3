//! Calls and answers in words, with the names of the IDL, as `--once` shows them.

use std::borrow::Cow;

use super::client::Calls;
use super::json;
use super::named::{named, named_fields};
use super::options::WireName;
use super::schema::{Function, Schema};
use super::untyped::Untyped;
use super::value::{WireType, WireValue};
use super::wire::{Binary, Compact, MessageHead, WireProtocol as _, read_value};
use brunt_protocol::Direction;
use brunt_protocol::OptionsError;

/// A method's name and its arguments, from the argument struct.
pub(super) fn of_call(schema: &Schema, function: &Function, body: &[u8], wire: WireName) -> String {
    // What the client keeps of answers is binary where they are JSON; calls are as they are sent.
    let read = match wire {
        WireName::Json => json::arguments_to_binary(schema, &function.arguments, body)
            .map_err(|e| OptionsError(e.0.into_owned()))
            .and_then(|body| fields(&body, wire)),
        _ => fields(body, wire),
    };
    let shown = read.ok().and_then(|fields| named_fields(schema, &function.arguments, &fields).ok());
    format!("{}({})", function.name, shown.map_or_else(String::new, |arguments| arguments.to_string()))
}

/// A method's result or the exception that it threw, from the result struct.
pub(super) fn of_answer(schema: &Schema, function: &Function, body: &[u8], wire: WireName) -> String {
    match outcome(schema, function, body, wire) {
        Ok((Some(name), value)) => format!("threw {name} {value}"),
        Ok((None, value)) => format!("returned {value}"),
        Err(problem) => problem.0,
    }
}

/// A method's result, or the name and the content of the exception that it threw.
pub(super) fn outcome(
    schema: &Schema,
    function: &Function,
    body: &[u8],
    wire: WireName,
) -> Result<(Option<String>, Untyped), OptionsError> {
    let fields = fields(body, wire)?;
    let Some((id, value)) = fields.first() else { return Ok((None, Untyped::Null)) };
    let thrown = function.throws.iter().find(|field| field.id == *id);
    let expected = if *id == 0 { function.result.as_ref() } else { thrown.map(|field| &field.field_type) };
    let Some(expected) = expected else { return Ok((None, Untyped::Null)) };
    let value = named(schema, expected, value).map_err(|misfit| OptionsError(misfit.to_string()))?;
    Ok((thrown.map(|_| schema.type_name(expected)), value))
}

/// The fields of the struct that these bytes are; those of JSON have become binary before.
fn fields(body: &[u8], wire: WireName) -> Result<Vec<(i16, WireValue)>, OptionsError> {
    let read = match wire {
        WireName::Binary | WireName::Json => read_value::<Binary>(body, WireType::Struct),
        WireName::Compact => read_value::<Compact>(body, WireType::Struct),
    };
    match read.map_err(|malformed| OptionsError(malformed.0.into_owned()))? {
        (WireValue::Struct(fields), _) => Ok(fields),
        _ => Ok(Vec::new()),
    }
}

/// The head of a message, and its length.
pub(super) fn head(message: &[u8], wire: WireName) -> Option<(MessageHead<'_>, usize)> {
    let head = match wire {
        WireName::Binary | WireName::Json => Binary::message(message),
        WireName::Compact => Compact::message(message),
    };
    head.ok().flatten()
}

/// The function that a message names, with or without a service before it.
pub(super) fn function<'a>(functions: &'a [Function], name: &[u8]) -> Option<&'a Function> {
    let name: Cow<'_, str> = String::from_utf8_lossy(name);
    let name = name.rsplit_once(':').map_or(&*name, |(_, name)| name);
    functions.iter().find(|function| function.name == name)
}

/// A message on the wire in words.
pub(super) fn of_message(calls: &Calls, wire: WireName, direction: Direction, bytes: &[u8]) -> Option<String> {
    let message = calls.transport.message(bytes)?;
    if wire == WireName::Json && direction == Direction::Sent {
        let parts: Vec<serde_json::Value> = serde_json::from_slice(message).ok()?;
        let name = parts.get(1)?.as_str()?.as_bytes();
        let function = function(&calls.functions, name)?;
        return Some(of_call(&calls.schema, function, parts.get(4)?.to_string().as_bytes(), wire));
    }
    let message = match wire {
        WireName::Json => Cow::Owned(json::to_binary(&calls.schema, &calls.functions, message).ok()?),
        WireName::Binary | WireName::Compact => Cow::Borrowed(message),
    };
    let (head, length) = head(&message, wire)?;
    let (function, body) = (function(&calls.functions, head.name)?, message.get(length..)?);
    Some(match direction {
        Direction::Sent => of_call(&calls.schema, function, body, wire),
        Direction::Received if head.kind == super::wire::MessageKind::Reply => {
            of_answer(&calls.schema, function, body, wire)
        }
        // The client already describes the server's own exceptions.
        Direction::Received => return None,
    })
}
