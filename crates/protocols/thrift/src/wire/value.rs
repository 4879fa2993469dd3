//! Whole values, from tokens.

use std::marker::PhantomData;

use super::super::value::{WireType, WireValue};
use super::{FieldHead, MOST_NESTED, MessageHead, Token, WireProtocol};
use brunt_protocol::Malformed;

/// Appends a value.
pub fn write_value<W: WireProtocol>(out: &mut Vec<u8>, value: &WireValue) {
    match value {
        WireValue::Bool(value) => W::write_bool(out, *value),
        WireValue::I8(value) => out.push(*value as u8),
        WireValue::I16(value) => W::write_i16(out, *value),
        WireValue::I32(value) => W::write_i32(out, *value),
        WireValue::I64(value) => W::write_i64(out, *value),
        WireValue::Double(value) => W::write_double(out, *value),
        WireValue::Bytes(bytes) => {
            W::write_length(out, bytes.len() as u32);
            out.extend_from_slice(bytes);
        }
        WireValue::Uuid(bytes) => out.extend_from_slice(bytes),
        WireValue::Struct(fields) => write_struct::<W>(out, fields),
        WireValue::Set(element, items) | WireValue::List(element, items) => {
            W::write_list(out, *element, items.len() as u32);
            for item in items {
                write_value::<W>(out, item);
            }
        }
        WireValue::Map(key_type, value_type, pairs) => {
            W::write_map(out, *key_type, *value_type, pairs.len() as u32);
            for (key, value) in pairs {
                write_value::<W>(out, key);
                write_value::<W>(out, value);
            }
        }
    }
}

fn write_struct<W: WireProtocol>(out: &mut Vec<u8>, fields: &[(i16, WireValue)]) {
    let mut last = 0;
    for (id, value) in fields {
        if let WireValue::Bool(value) = value {
            W::write_bool_field(out, last, *id, *value);
        } else {
            W::write_field(out, last, *id, value.wire_type());
            write_value::<W>(out, value);
        }
        last = *id;
    }
    out.push(0);
}

/// Reads a value of a type from the beginning of `bytes`; returns it with the number of bytes that it took.
///
/// # Errors
/// When the bytes are no such value, or it is incomplete.
pub fn read_value<W: WireProtocol>(bytes: &[u8], wire_type: WireType) -> Result<(WireValue, usize), Malformed> {
    let mut reader = Reader::<W> { rest: bytes, wire: PhantomData, depth: 0 };
    let value = reader.value(wire_type)?;
    Ok((value, bytes.len() - reader.rest.len()))
}

/// Reads a complete message: its head, and the struct that follows.
///
/// # Errors
/// When the bytes are no message, or more than one.
pub fn read_message<W: WireProtocol>(bytes: &[u8]) -> Result<(MessageHead<'_>, WireValue), Malformed> {
    let (head, taken) = W::message(bytes)?.ok_or(CUT_OFF)?;
    let rest = bytes.get(taken..).unwrap_or(&[]);
    let (value, taken) = read_value::<W>(rest, WireType::Struct)?;
    if taken < rest.len() {
        return Err(Malformed::because("bytes behind the end of a message"));
    }
    Ok((head, value))
}

const CUT_OFF: Malformed = Malformed::because("a value that is cut off");

struct Reader<'a, W> {
    rest: &'a [u8],
    wire: PhantomData<W>,
    depth: usize,
}

impl<'a, W: WireProtocol> Reader<'a, W> {
    fn token<T>(&mut self, read: impl FnOnce(&'a [u8]) -> Token<T>) -> Result<T, Malformed> {
        let (token, taken) = read(self.rest)?.ok_or(CUT_OFF)?;
        self.rest = self.rest.get(taken..).unwrap_or(&[]);
        Ok(token)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn value(&mut self, wire_type: WireType) -> Result<WireValue, Malformed> {
        Ok(match wire_type {
            WireType::Bool => WireValue::Bool(self.token(W::bool)?),
            WireType::I8 => WireValue::I8(self.bytes(1)?.first().copied().unwrap_or(0) as i8),
            WireType::I16 => WireValue::I16(self.token(W::i16)?),
            WireType::I32 => WireValue::I32(self.token(W::i32)?),
            WireType::I64 => WireValue::I64(self.token(W::i64)?),
            WireType::Double => WireValue::Double(self.token(W::double)?),
            WireType::Bytes => {
                let length = self.token(W::length)?;
                WireValue::Bytes(self.bytes(length as usize)?.to_vec())
            }
            WireType::Uuid => WireValue::Uuid(self.token(|bytes| Ok(super::first(bytes).map(|uuid| (uuid, 16))))?),
            WireType::Struct => self.nested(Self::fields).map(WireValue::Struct)?,
            WireType::Set => {
                let (element, length) = self.token(W::list)?;
                WireValue::Set(element, self.nested(|reader| reader.items(element, length))?)
            }
            WireType::List => {
                let (element, length) = self.token(W::list)?;
                WireValue::List(element, self.nested(|reader| reader.items(element, length))?)
            }
            WireType::Map => match self.token(W::map)? {
                (Some((key, value)), length) => {
                    WireValue::Map(key, value, self.nested(|reader| reader.pairs(key, value, length))?)
                }
                (None, _) => WireValue::Map(WireType::Bytes, WireType::Bytes, Vec::new()),
            },
        })
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        if self.depth == MOST_NESTED {
            return Err(Malformed::because("values nested more than 64 deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn fields(&mut self) -> Result<Vec<(i16, WireValue)>, Malformed> {
        let mut fields = Vec::new();
        let mut last = 0;
        loop {
            let (id, value) = match self.token(|bytes| W::field(bytes, last))? {
                FieldHead::Stop => return Ok(fields),
                FieldHead::Bool { id, value } => (id, WireValue::Bool(value)),
                FieldHead::Field { id, wire_type } => (id, self.value(wire_type)?),
            };
            fields.push((id, value));
            last = id;
        }
    }

    /// Every element has at least one byte, so a false length takes no memory.
    fn items(&mut self, element: WireType, length: u32) -> Result<Vec<WireValue>, Malformed> {
        if length as usize > self.rest.len() {
            return Err(CUT_OFF);
        }
        (0..length).map(|_| self.value(element)).collect()
    }

    fn pairs(&mut self, key: WireType, value: WireType, length: u32) -> Result<Vec<(WireValue, WireValue)>, Malformed> {
        if length as usize > self.rest.len() / 2 {
            return Err(CUT_OFF);
        }
        (0..length).map(|_| Ok((self.value(key)?, self.value(value)?))).collect()
    }
}
