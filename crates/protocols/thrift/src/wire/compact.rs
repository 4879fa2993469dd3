//! The compact protocol (`thrift-compact-protocol.md`).

use super::super::value::WireType;
use super::{FieldHead, MOST_NAME_BYTES, MessageHead, MessageKind, Token, WireProtocol, first, length_of};
use brunt_protocol::Malformed;

/// The compact protocol: integers in as few bytes as they need, field ids as differences.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compact;

const PROTOCOL_ID: u8 = 0x82;
const VERSION: u8 = 1;
/// Field heads carry truth values as types of their own.
const TRUE: u8 = 1;
const FALSE: u8 = 2;

const fn number_of(wire_type: WireType) -> u8 {
    match wire_type {
        WireType::Bool => 2,
        WireType::I8 => 3,
        WireType::I16 => 4,
        WireType::I32 => 5,
        WireType::I64 => 6,
        WireType::Double => 7,
        WireType::Bytes => 8,
        WireType::List => 9,
        WireType::Set => 10,
        WireType::Map => 11,
        WireType::Struct => 12,
        WireType::Uuid => 13,
    }
}

/// The type of a container's elements. Truth values are 2 by the specification, and 1 from some peers.
fn type_of(number: u8) -> Result<WireType, Malformed> {
    Ok(match number {
        1 | 2 => WireType::Bool,
        3 => WireType::I8,
        4 => WireType::I16,
        5 => WireType::I32,
        6 => WireType::I64,
        7 => WireType::Double,
        8 => WireType::Bytes,
        9 => WireType::List,
        10 => WireType::Set,
        11 => WireType::Map,
        12 => WireType::Struct,
        13 => WireType::Uuid,
        _ => return Err(Malformed::because("a type that the compact protocol does not have")),
    })
}

/// Unsigned LEB128.
#[inline]
fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number of at most `most` bytes in unsigned LEB128.
#[inline]
fn varint(bytes: &[u8], most: usize) -> Token<u64> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(most).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((number, index + 1)));
        }
    }
    if bytes.len() < most { Ok(None) } else { Err(Malformed::because("a number of more bytes than it can have")) }
}

/// A number of 32 bits; a greater one is an error, and not cut off.
#[inline]
fn varint_32(bytes: &[u8]) -> Token<u32> {
    let Some((number, taken)) = varint(bytes, 5)? else { return Ok(None) };
    match u32::try_from(number) {
        Ok(number) => Ok(Some((number, taken))),
        // Some peers sign-extend negative sequence ids into the spare bits of the fifth byte.
        Err(_) => Err(Malformed::because("a number of more than 32 bits where one of 32 belongs")),
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn from_zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn zigzag_32(bytes: &[u8]) -> Token<i32> {
    // Zigzag of 32 bits is zigzag of 64 bits for numbers of 32 bits.
    Ok(varint_32(bytes)?.map(|(number, taken)| (from_zigzag(u64::from(number)) as i32, taken)))
}

/// Appends the head of a field whose type has this number.
fn write_field_head(out: &mut Vec<u8>, last: i16, id: i16, number: u8) {
    if let difference @ 1..=15 = i32::from(id) - i32::from(last) {
        out.push((difference as u8) << 4 | number);
    } else {
        out.push(number);
        Compact::write_i16(out, id);
    }
}

impl WireProtocol for Compact {
    fn write_head_before_sequence(out: &mut Vec<u8>, kind: MessageKind, _name: &[u8]) {
        out.extend_from_slice(&[PROTOCOL_ID, kind.number() << 5 | VERSION]);
    }

    #[inline]
    fn write_sequence(out: &mut Vec<u8>, sequence: i32) {
        write_varint(out, u64::from(sequence as u32));
    }

    fn write_head_after_sequence(out: &mut Vec<u8>, name: &[u8]) {
        Self::write_length(out, name.len() as u32);
        out.extend_from_slice(name);
    }

    fn write_field(out: &mut Vec<u8>, last: i16, id: i16, wire_type: WireType) {
        write_field_head(out, last, id, number_of(wire_type));
    }

    fn write_bool_field(out: &mut Vec<u8>, last: i16, id: i16, value: bool) {
        write_field_head(out, last, id, if value { TRUE } else { FALSE });
    }

    fn write_list(out: &mut Vec<u8>, element: WireType, length: u32) {
        if length < 15 {
            out.push((length as u8) << 4 | number_of(element));
        } else {
            out.push(0xf0 | number_of(element));
            Self::write_length(out, length);
        }
    }

    fn write_map(out: &mut Vec<u8>, key: WireType, value: WireType, length: u32) {
        Self::write_length(out, length);
        if length > 0 {
            out.push(number_of(key) << 4 | number_of(value));
        }
    }

    fn write_length(out: &mut Vec<u8>, length: u32) {
        write_varint(out, u64::from(length));
    }

    fn write_i16(out: &mut Vec<u8>, value: i16) {
        write_varint(out, zigzag(value.into()));
    }

    fn write_i32(out: &mut Vec<u8>, value: i32) {
        write_varint(out, zigzag(value.into()));
    }

    fn write_i64(out: &mut Vec<u8>, value: i64) {
        write_varint(out, zigzag(value));
    }

    fn write_double(out: &mut Vec<u8>, value: f64) {
        out.extend_from_slice(&value.to_le_bytes());
    }

    fn write_bool(out: &mut Vec<u8>, value: bool) {
        out.push(u8::from(value));
    }

    #[inline]
    fn message(bytes: &[u8]) -> Token<MessageHead<'_>> {
        match bytes {
            [] | [PROTOCOL_ID] => return Ok(None),
            [PROTOCOL_ID, second, ..] if second & 0x1f == VERSION => {}
            _ => return Err(Malformed::because("a message that is not of the compact protocol, version 1")),
        }
        let kind = MessageKind::from_number(bytes.get(1).copied().unwrap_or(0) >> 5)?;
        let after_kind = bytes.get(2..).unwrap_or(&[]);
        let Some((sequence, sequence_bytes)) = varint_32(after_kind)? else { return Ok(None) };
        let after_sequence = after_kind.get(sequence_bytes..).unwrap_or(&[]);
        let Some((length, length_bytes)) = Self::length(after_sequence)? else { return Ok(None) };
        let length = length as usize;
        if length > MOST_NAME_BYTES {
            return Err(Malformed::because("a method's name of more than 1 KiB"));
        }
        let Some(name) = after_sequence.get(length_bytes..length_bytes + length) else { return Ok(None) };
        let taken = 2 + sequence_bytes + length_bytes + length;
        Ok(Some((MessageHead { kind, name, sequence: sequence as i32 }, taken)))
    }

    #[inline]
    fn field(bytes: &[u8], last: i16) -> Token<FieldHead> {
        let [head, rest @ ..] = bytes else { return Ok(None) };
        if *head == 0 {
            return Ok(Some((FieldHead::Stop, 1)));
        }
        let (id, taken) = match head >> 4 {
            0 => match Self::i16(rest)? {
                Some((id, taken)) => (id, 1 + taken),
                None => return Ok(None),
            },
            difference => match last.checked_add(i16::from(difference)) {
                Some(id) => (id, 1),
                None => return Err(Malformed::because("a field id of more than 16 bits")),
            },
        };
        let field = match head & 0x0f {
            TRUE => FieldHead::Bool { id, value: true },
            FALSE => FieldHead::Bool { id, value: false },
            number => FieldHead::Field { id, wire_type: type_of(number)? },
        };
        Ok(Some((field, taken)))
    }

    fn list(bytes: &[u8]) -> Token<(WireType, u32)> {
        let [head, rest @ ..] = bytes else { return Ok(None) };
        let (length, taken) = match head >> 4 {
            15 => match Self::length(rest)? {
                Some((length, taken)) => (length, 1 + taken),
                None => return Ok(None),
            },
            length => (u32::from(length), 1),
        };
        let element = match (head & 0x0f, length) {
            // In an empty one the type is ignored, as some peers write 0.
            (0, 0) => WireType::I8,
            (number, _) => type_of(number)?,
        };
        Ok(Some(((element, length), taken)))
    }

    fn map(bytes: &[u8]) -> Token<(Option<(WireType, WireType)>, u32)> {
        let Some((length, taken)) = Self::length(bytes)? else { return Ok(None) };
        if length == 0 {
            return Ok(Some(((None, 0), taken)));
        }
        let Some(types) = bytes.get(taken) else { return Ok(None) };
        Ok(Some(((Some((type_of(types >> 4)?, type_of(types & 0x0f)?)), length), taken + 1)))
    }

    #[inline]
    fn length(bytes: &[u8]) -> Token<u32> {
        let Some((length, taken)) = varint_32(bytes)? else { return Ok(None) };
        Ok(Some((length_of(length as i32)?, taken)))
    }

    fn i16(bytes: &[u8]) -> Token<i16> {
        let Some((number, taken)) = zigzag_32(bytes)? else { return Ok(None) };
        match i16::try_from(number) {
            Ok(number) => Ok(Some((number, taken))),
            Err(_) => Err(Malformed::because("a number of more than 16 bits where one of 16 belongs")),
        }
    }

    fn i32(bytes: &[u8]) -> Token<i32> {
        zigzag_32(bytes)
    }

    fn i64(bytes: &[u8]) -> Token<i64> {
        Ok(varint(bytes, 10)?.map(|(number, taken)| (from_zigzag(number), taken)))
    }

    fn double(bytes: &[u8]) -> Token<f64> {
        Ok(first(bytes).map(|bytes| (f64::from_le_bytes(bytes), 8)))
    }

    fn bool(bytes: &[u8]) -> Token<bool> {
        // 1 and 0 by the specification; some peers write a field's types, where false is 2.
        Ok(bytes.first().map(|byte| (*byte == TRUE, 1)))
    }

    #[inline]
    fn fixed_size(wire_type: WireType) -> Option<u32> {
        match wire_type {
            WireType::Bool | WireType::I8 => Some(1),
            WireType::Double => Some(8),
            WireType::Uuid => Some(16),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::value::WireValue;
    use super::super::{read_value, write_value};
    use super::*;

    fn written(value: &WireValue) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_value::<Compact>(&mut bytes, value);
        bytes
    }

    #[test]
    fn numbers_are_as_in_the_specification() {
        let mut bytes = Vec::new();
        write_varint(&mut bytes, 50399);
        assert_eq!(bytes, [0xdf, 0x89, 0x03]);
        for (zigzagged, number) in [(0, 0), (1, -1), (2, 1), (3, -2), (4, 2)] {
            assert_eq!((zigzag(number), from_zigzag(zigzagged)), (zigzagged, number));
        }
        assert!(varint_32(&[0xff; 5]).is_err());
        assert!(varint(&[0xff; 10], 10).is_err());
        assert_eq!(varint(&[0xff; 9], 10), Ok(None));
    }

    #[test]
    fn heads_are_as_in_the_specification() {
        let mut bytes = Vec::new();
        Compact::write_head_before_sequence(&mut bytes, MessageKind::Call, b"add");
        Compact::write_sequence(&mut bytes, 300);
        Compact::write_head_after_sequence(&mut bytes, b"add");
        assert_eq!(bytes, b"\x82\x21\xac\x02\x03add");
        assert!(Compact::message(b"\x80\x01").is_err());
        assert!(Compact::message(b"\x82\x22").is_err());
    }

    #[test]
    fn fields_and_containers_are_as_in_the_specification() {
        // Ids by difference, truth values in the head, a jump beyond 15 in the long form.
        let fields = vec![
            (1, WireValue::Bool(true)),
            (3, WireValue::I8(5)),
            (40, WireValue::Bool(false)),
            (2, WireValue::I32(-1)),
        ];
        assert_eq!(written(&WireValue::Struct(fields)), [0x11, 0x23, 5, 0x02, 80, 0x05, 4, 1, 0]);
        // A list of up to 14 has its length in its head.
        assert_eq!(
            written(&WireValue::List(WireType::Bool, vec![WireValue::Bool(true), WireValue::Bool(false)])),
            [0x22, 1, 0]
        );
        let long = written(&WireValue::Set(WireType::I8, vec![WireValue::I8(9); 15]));
        assert_eq!(long[..3], [0xf3, 15, 9]);
        assert_eq!(written(&WireValue::Map(WireType::I8, WireType::Bytes, Vec::new())), [0]);
        assert_eq!(
            written(&WireValue::Map(WireType::I8, WireType::I8, vec![(WireValue::I8(1), WireValue::I8(2))])),
            [1, 0x33, 1, 2]
        );
        // The only number in the protocol that is in little-endian order.
        assert_eq!(written(&WireValue::Double(1.0)), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn a_uuid_is_sixteen_bytes_of_type_13() {
        let uuid = WireValue::Uuid(*b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");
        let bytes = written(&WireValue::Struct(vec![(1, uuid)]));
        assert_eq!(bytes, b"\x1d\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\0");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(read_value::<Compact>(&[0x80, 0x80, 0x08], WireType::I16).is_err());
        assert!(read_value::<Compact>(&[0xff, 0xff, 0xff, 0xff, 0x0f], WireType::Bytes).is_err());
        assert!(Compact::field(&[0xf3], i16::MAX).is_err());
        assert!(Compact::list(&[0x1e]).is_err());
    }
}
