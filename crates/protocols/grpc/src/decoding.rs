//! Whether bytes are a message of a type: as strict as reading it, without making anything of it.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// The deepest that messages may lie in each other, as for protobuf's own readers.
const DEEPEST: u32 = 100;

/// Whether `bytes` are a message of this type. Unknown fields are well, as everywhere in protobuf.
fn is_message(message_type: &MessageDescriptor, mut bytes: &[u8]) -> bool {
    read_fields(message_type, &mut bytes, None, DEEPEST).is_some()
}

/// Tells messages from other bytes, and remembers the last one: to a flood most servers answer with the same bytes each time.
#[derive(Debug, Default)]
pub(crate) struct Recogniser {
    /// The number of its type, as the caller counts them, and its bytes; empty where they are many.
    known: u32,
    bytes: Vec<u8>,
}

impl Recogniser {
    /// The longest message that is remembered, in bytes.
    const LONGEST: usize = 256;

    /// Whether `bytes` are a message of this type, which has this number.
    pub(crate) fn is_message(&mut self, number: u32, message_type: &MessageDescriptor, bytes: &[u8]) -> bool {
        if !bytes.is_empty() && self.bytes == bytes && self.known == number {
            return true;
        }
        let is_message = is_message(message_type, bytes);
        if is_message && bytes.len() <= Self::LONGEST {
            self.known = number;
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
        }
        is_message
    }
}

/// Skips the fields of a message, to the end of `bytes` or of the group with this number. `None` where the bytes are no
/// fields of this type.
fn read_fields(message_type: &MessageDescriptor, bytes: &mut &[u8], group: Option<u32>, depth: u32) -> Option<()> {
    while !bytes.is_empty() {
        let (number, wire) = decode_key(bytes).ok()?;
        let field = message_type.get_field(number);
        let is_entry = group.is_none() && field.as_ref().is_some_and(FieldDescriptor::is_map);
        if wire == WireType::EndGroup && !is_entry {
            return (group == Some(number)).then_some(());
        }
        match field {
            Some(field) => read_value(&field, wire, bytes, depth)?,
            None => skip_field(wire, number, bytes, DecodeContext::default()).ok()?,
        }
    }
    group.is_none().then_some(())
}

/// Passes by a value of `field`, behind its key.
fn read_value(field: &FieldDescriptor, wire: WireType, bytes: &mut &[u8], depth: u32) -> Option<()> {
    let scalar = match field.kind() {
        Kind::Message(inner) if field.is_group() => {
            let deeper = depth.checked_sub(1).filter(|_| wire == WireType::StartGroup)?;
            return read_fields(&inner, bytes, Some(field.number()), deeper);
        }
        Kind::Message(inner) => {
            // `prost-reflect` reads a map's entry behind a key of any wire type.
            let is_one = wire == WireType::LengthDelimited || field.is_map();
            let deeper = depth.checked_sub(1).filter(|_| is_one)?;
            return read_fields(&inner, &mut take(bytes)?, None, deeper);
        }
        Kind::String | Kind::Bytes if wire != WireType::LengthDelimited => return None,
        Kind::String => return std::str::from_utf8(take(bytes)?).ok().map(drop),
        Kind::Bytes => return take(bytes).map(drop),
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::SixtyFourBit,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::ThirtyTwoBit,
        _ => WireType::Varint,
    };
    let skip = |bytes: &mut &[u8]| skip_field(scalar, field.number(), bytes, DecodeContext::default()).ok();
    if wire == scalar {
        return skip(bytes);
    }
    // Several numbers may be packed, whatever the type says (protobuf's encoding, "Packed Repeated Fields").
    let mut packed = take(bytes).filter(|_| wire == WireType::LengthDelimited && field.is_list())?;
    while !packed.is_empty() {
        skip(&mut packed)?;
    }
    Some(())
}

/// Takes as many bytes as the length before them says.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;
    use prost_reflect::{DescriptorPool, DynamicMessage};

    use super::*;
    use crate::schema::{Sources, compile};

    const PROTO: &str = "syntax = \"proto2\";
        message Number { optional int32 number = 1; }
        message All {
          optional int32 number = 1; optional string text = 2; optional bytes raw = 3; optional All inner = 4;
          repeated sint64 numbers = 5 [packed = true]; repeated fixed32 words = 6; map<string, double> shares = 7;
          optional group Part = 8 { optional float share = 1; } optional bool is = 9; repeated string texts = 10;
          enum Kind { A = 0; B = 1; } repeated Kind kinds = 11;
        }";

    fn all() -> MessageDescriptor {
        named("All")
    }

    fn named(name: &str) -> MessageDescriptor {
        let sources = Sources::from([("a.proto".to_owned(), PROTO.to_owned())]);
        let pool: DescriptorPool = compile(&["a.proto".to_owned()], &sources).unwrap().pool().clone();
        pool.get_message_by_name(name).unwrap()
    }

    fn agrees(message_type: &MessageDescriptor, bytes: &[u8]) -> Result<(), TestCaseError> {
        let read = DynamicMessage::decode(message_type.clone(), bytes);
        prop_assert_eq!(is_message(message_type, bytes), read.is_ok(), "{:02x?}: {:?}", bytes, read.err());
        Ok(())
    }

    #[test]
    fn what_is_remembered_is_of_one_type_and_whole() {
        let types = [named("Number"), named("All")];
        let mut recogniser = Recogniser::default();
        let text = b"\x0a\x01a";
        for (number, bytes) in [
            (0, &b"\x08\x05"[..]),
            (0, b"\x08\x05"),
            (1, b"\x08\x05"),
            (1, b"\x12\x01a"),
            (0, b"\x12\x01a"),
            (1, b"\x12\x01"),
            (1, b"\x12\x01a"),
            (0, text),
            (1, text),
            (0, b""),
            (1, &[&b"\x12\xac\x02"[..], &[b'a'; 300]].concat()),
            (1, &[&b"\x12\xac\x02"[..], &[b'a'; 299]].concat()),
            (1, b""),
        ] {
            let message_type = &types[number];
            let expected = is_message(message_type, bytes);
            assert_eq!(recogniser.is_message(number as u32, message_type, bytes), expected, "{number}: {bytes:?}");
        }
        assert!(recogniser.is_message(1, &types[1], b"\x12\x01a"));
        assert!(!recogniser.is_message(0, &types[0], b"\x0d\x01a"));
    }

    /// A field of any number and wire type, with a value that may belong to it.
    fn field() -> impl Strategy<Value = Vec<u8>> {
        let value = prop_oneof![
            (0_u8..=127).prop_map(|byte| vec![byte]),
            prop::collection::vec(any::<u8>(), 4..=8),
            prop::collection::vec(prop_oneof![Just(b'a'), Just(0x08), Just(0x12), any::<u8>()], 0..12).prop_map(
                |bytes| {
                    let mut value = vec![bytes.len() as u8];
                    value.extend(bytes);
                    value
                }
            ),
        ];
        (1_u8..=13, 0_u8..=5, value).prop_map(|(number, wire, value)| {
            let mut field = vec![number << 3 | wire];
            field.extend(value);
            field
        })
    }

    #[test]
    fn an_entry_of_a_map_is_read_behind_any_key() {
        for wire in 0..=5 {
            for entry in [&b"\x00"[..], b"\x03\x0a\x01a", b"\x03\x0a\x02a", b"\x01\x00", b""] {
                agrees(&all(), &[&[7 << 3 | wire], entry].concat()).unwrap();
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_are_a_message_where_they_can_be_read_as_one(fields in prop::collection::vec(field(), 0..5)) {
            agrees(&all(), &fields.concat())?;
        }

        #[test]
        fn a_message_that_is_hurt_is_judged_as_it_is_read(at in 0_usize..64, byte: u8, cut in 0_usize..64) {
            let json = serde_json::json!({
                "number": -5, "text": "\u{e9}t\u{e9}", "raw": "AAEC", "inner": {"is": true, "texts": ["a", "b"]},
                "numbers": [1, -1, 300], "words": [7, 8], "shares": {"x": 0.5}, "part": {"share": 0.25}, "kinds": ["B"],
            });
            let message = DynamicMessage::deserialize(all(), json).unwrap().encode_to_vec();
            agrees(&all(), &message)?;
            prop_assert!(is_message(&all(), &message));
            let mut hurt = message.clone();
            hurt.truncate(message.len().saturating_sub(cut % message.len()));
            if let Some(place) = hurt.get_mut(at) {
                *place = byte;
            }
            agrees(&all(), &hurt)?;
        }
    }

    #[test]
    fn messages_lie_as_deep_in_each_other_as_readers_allow() {
        for depth in [90, 99, 100, 101, 200] {
            let deep = (0..depth).fold(Vec::new(), |inner: Vec<u8>, _| {
                let mut outer = vec![4 << 3 | 2];
                prost::encoding::encode_varint(inner.len() as u64, &mut outer);
                outer.extend(inner);
                outer
            });
            agrees(&all(), &deep).unwrap();
        }
    }
}
