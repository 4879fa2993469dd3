//! The binary protocol (`thrift-binary-protocol.md`), written strictly, read either way.

use super::super::value::WireType;
use super::{FieldHead, MOST_NAME_BYTES, MessageHead, MessageKind, Token, WireProtocol, first, length_of};
use brunt_protocol::Malformed;

/// The binary protocol: numbers in network byte order, each in its full width.
#[derive(Debug, Clone, Copy, Default)]
pub struct Binary;

/// The strict head's version, in the upper half of its first word.
const VERSION_1: u32 = 0x8001_0000;

const fn number_of(wire_type: WireType) -> u8 {
    match wire_type {
        WireType::Bool => 2,
        WireType::I8 => 3,
        WireType::Double => 4,
        WireType::I16 => 6,
        WireType::I32 => 8,
        WireType::I64 => 10,
        WireType::Bytes => 11,
        WireType::Struct => 12,
        WireType::Map => 13,
        WireType::Set => 14,
        WireType::List => 15,
        WireType::Uuid => 16,
    }
}

fn type_of(number: u8) -> Result<WireType, Malformed> {
    Ok(match number {
        2 => WireType::Bool,
        3 => WireType::I8,
        4 => WireType::Double,
        6 => WireType::I16,
        8 => WireType::I32,
        10 => WireType::I64,
        11 => WireType::Bytes,
        12 => WireType::Struct,
        13 => WireType::Map,
        14 => WireType::Set,
        15 => WireType::List,
        16 => WireType::Uuid,
        _ => return Err(Malformed::because("a type that the binary protocol does not have")),
    })
}

/// The type of a container's elements. In an empty one it is ignored, as some peers write 0.
fn element_of(number: u8, length: u32) -> Result<WireType, Malformed> {
    if length == 0 && number == 0 { Ok(WireType::I8) } else { type_of(number) }
}

fn word(bytes: &[u8]) -> Option<i32> {
    first(bytes).map(i32::from_be_bytes)
}

impl WireProtocol for Binary {
    fn write_head_before_sequence(out: &mut Vec<u8>, kind: MessageKind, name: &[u8]) {
        out.extend_from_slice(&(VERSION_1 | u32::from(kind.number())).to_be_bytes());
        Self::write_length(out, name.len() as u32);
        out.extend_from_slice(name);
    }

    #[inline]
    fn write_sequence(out: &mut Vec<u8>, sequence: i32) {
        out.extend_from_slice(&sequence.to_be_bytes());
    }

    fn write_head_after_sequence(_out: &mut Vec<u8>, _name: &[u8]) {}

    fn write_field(out: &mut Vec<u8>, _last: i16, id: i16, wire_type: WireType) {
        out.push(number_of(wire_type));
        Self::write_i16(out, id);
    }

    fn write_bool_field(out: &mut Vec<u8>, last: i16, id: i16, value: bool) {
        Self::write_field(out, last, id, WireType::Bool);
        Self::write_bool(out, value);
    }

    fn write_list(out: &mut Vec<u8>, element: WireType, length: u32) {
        out.push(number_of(element));
        Self::write_length(out, length);
    }

    fn write_map(out: &mut Vec<u8>, key: WireType, value: WireType, length: u32) {
        out.extend_from_slice(&[number_of(key), number_of(value)]);
        Self::write_length(out, length);
    }

    fn write_length(out: &mut Vec<u8>, length: u32) {
        out.extend_from_slice(&length.to_be_bytes());
    }

    fn write_i16(out: &mut Vec<u8>, value: i16) {
        out.extend_from_slice(&value.to_be_bytes());
    }

    fn write_i32(out: &mut Vec<u8>, value: i32) {
        out.extend_from_slice(&value.to_be_bytes());
    }

    fn write_i64(out: &mut Vec<u8>, value: i64) {
        out.extend_from_slice(&value.to_be_bytes());
    }

    fn write_double(out: &mut Vec<u8>, value: f64) {
        out.extend_from_slice(&value.to_be_bytes());
    }

    fn write_bool(out: &mut Vec<u8>, value: bool) {
        out.push(u8::from(value));
    }

    #[inline]
    fn message(bytes: &[u8]) -> Token<MessageHead<'_>> {
        let Some(begin) = word(bytes) else { return Ok(None) };
        let strict = begin < 0;
        let (kind, length, name_at) = if strict {
            let begin = begin as u32;
            if begin & 0xffff_0000 != VERSION_1 {
                return Err(Malformed::because("a message that is not of the binary protocol, version 1"));
            }
            let Some(length) = bytes.get(4..).and_then(word) else { return Ok(None) };
            (Some(MessageKind::from_number(begin as u8)?), length, 8)
        } else {
            // The old head begins with a name's length, which is never negative.
            (None, begin, 4)
        };
        let length = length_of(length)? as usize;
        if length > MOST_NAME_BYTES {
            // The peer most likely speaks another protocol.
            return Err(Malformed::because("no message of the binary protocol: its name is longer than 1 KiB"));
        }
        let Some(name) = bytes.get(name_at..name_at + length) else { return Ok(None) };
        let rest = bytes.get(name_at + length..).unwrap_or(&[]);
        let (kind, rest) = match (kind, rest) {
            (Some(kind), rest) => (kind, rest),
            (None, [number, rest @ ..]) => (MessageKind::from_number(*number)?, rest),
            (None, []) => return Ok(None),
        };
        let Some(sequence) = word(rest) else { return Ok(None) };
        Ok(Some((MessageHead { kind, name, sequence }, bytes.len() - rest.len() + 4)))
    }

    #[inline]
    fn field(bytes: &[u8], _last: i16) -> Token<FieldHead> {
        match bytes {
            [] => Ok(None),
            [0, ..] => Ok(Some((FieldHead::Stop, 1))),
            [number, rest @ ..] => {
                let wire_type = type_of(*number)?;
                Ok(first(rest).map(|id| (FieldHead::Field { id: i16::from_be_bytes(id), wire_type }, 3)))
            }
        }
    }

    fn list(bytes: &[u8]) -> Token<(WireType, u32)> {
        let [number, rest @ ..] = bytes else { return Ok(None) };
        let Some(length) = word(rest) else { return Ok(None) };
        let length = length_of(length)?;
        Ok(Some(((element_of(*number, length)?, length), 5)))
    }

    fn map(bytes: &[u8]) -> Token<(Option<(WireType, WireType)>, u32)> {
        let [key, value, rest @ ..] = bytes else { return Ok(None) };
        let Some(length) = word(rest) else { return Ok(None) };
        let length = length_of(length)?;
        let types = (element_of(*key, length)?, element_of(*value, length)?);
        Ok(Some(((Some(types).filter(|_| length > 0), length), 6)))
    }

    #[inline]
    fn length(bytes: &[u8]) -> Token<u32> {
        word(bytes).map(|length| Ok((length_of(length)?, 4))).transpose()
    }

    fn i16(bytes: &[u8]) -> Token<i16> {
        Ok(first(bytes).map(|bytes| (i16::from_be_bytes(bytes), 2)))
    }

    fn i32(bytes: &[u8]) -> Token<i32> {
        Ok(word(bytes).map(|value| (value, 4)))
    }

    fn i64(bytes: &[u8]) -> Token<i64> {
        Ok(first(bytes).map(|bytes| (i64::from_be_bytes(bytes), 8)))
    }

    fn double(bytes: &[u8]) -> Token<f64> {
        Ok(first(bytes).map(|bytes| (f64::from_be_bytes(bytes), 8)))
    }

    fn bool(bytes: &[u8]) -> Token<bool> {
        // Existing implementations take any byte but 0 for true.
        Ok(bytes.first().map(|byte| (*byte != 0, 1)))
    }

    #[inline]
    fn fixed_size(wire_type: WireType) -> Option<u32> {
        match wire_type {
            WireType::Bool | WireType::I8 => Some(1),
            WireType::I16 => Some(2),
            WireType::I32 => Some(4),
            WireType::I64 | WireType::Double => Some(8),
            WireType::Uuid => Some(16),
            WireType::Bytes | WireType::Struct | WireType::Map | WireType::Set | WireType::List => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_as_in_the_specification() {
        // Strict: version 1, kind, the name with its length, the sequence id.
        let mut bytes = Vec::new();
        Binary::write_head_before_sequence(&mut bytes, MessageKind::Call, b"add");
        Binary::write_sequence(&mut bytes, 7);
        assert_eq!(bytes, b"\x80\x01\0\x01\0\0\0\x03add\0\0\0\x07");
        // Old: the name with its length, kind, the sequence id.
        let head = MessageHead { kind: MessageKind::Reply, name: b"add", sequence: 7 };
        assert_eq!(Binary::message(b"\0\0\0\x03add\x02\0\0\0\x07rest"), Ok(Some((head, 12))));
        assert_eq!(Binary::message(b"\0\0\0\x03add\x02\0\0\0"), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [
            b"\x80\x02\0\x01\0\0\0\x01a\0\0\0\0".as_slice(),
            b"\x80\x01\0\x09\0\0\0\x01a\0\0\0\0",
            b"\x80\x01\0\x02\xff\xff\xff\xff",
            b"HTTP/1.1 400 Bad Request",
            b"\0\0\0\x01a\x07\0\0\0\0",
        ] {
            assert!(Binary::message(bytes).is_err(), "{bytes:?}");
        }
        assert!(Binary::field(b"\x01\0\0", 0).is_err());
        assert!(Binary::list(b"\x08\x80\0\0\0").is_err());
        assert_eq!(Binary::list(b"\0\0\0\0\0"), Ok(Some(((WireType::I8, 0), 5))));
        assert!(Binary::list(b"\0\0\0\0\x01").is_err());
    }

    #[test]
    fn a_uuid_is_sixteen_bytes_of_type_16() {
        let uuid = super::super::super::value::WireValue::Uuid(
            *b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
        );
        let mut bytes = Vec::new();
        super::super::write_value::<Binary>(
            &mut bytes,
            &super::super::super::value::WireValue::Struct(vec![(1, uuid)]),
        );
        assert_eq!(bytes, b"\x10\0\x01\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\0");
    }
}
