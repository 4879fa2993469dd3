//! How values and messages are written down: the binary and the compact protocol.
//!
//! A [`WireProtocol`] reads one token at a time (a number, a length, the head of a field) from the beginning of a slice, and says
//! if it is not there whole yet. Values are put together from tokens by [`write_value`] and [`read_value`]; answers of
//! which nobody needs the values are checked token by token as they come ([`super::reply`]).
//!
//! Formats: `thrift-binary-protocol.md`, `thrift-compact-protocol.md` and `thrift-rpc.md` in Apache Thrift's `doc/specs`.

mod binary;
mod compact;
mod value;

pub use binary::Binary;
pub use compact::Compact;
pub use value::{read_message, read_value, write_value};

use super::value::WireType;
use brunt_protocol::Malformed;

/// How deep values may be nested in each other; Apache Thrift's own limit.
pub const MOST_NESTED: usize = 64;
/// The longest name of a method in an answer, in bytes, with the name of its service before it.
pub const MOST_NAME_BYTES: usize = 1024;

/// A token from the beginning of some bytes, with the number of bytes that it took; `None` if it is incomplete.
pub type Token<T> = Result<Option<(T, usize)>, Malformed>;

/// The kind of a message (`thrift-rpc.md`, "Message").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A call with an answer.
    Call,
    /// An answer: the result, or an exception that the method declares.
    Reply,
    /// An exception that the method does not declare (`TApplicationException`).
    Exception,
    /// A call without an answer.
    Oneway,
}

impl MessageKind {
    /// The kind's number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Reply => 2,
            Self::Exception => 3,
            Self::Oneway => 4,
        }
    }

    pub(crate) fn from_number(number: u8) -> Result<Self, Malformed> {
        match number {
            1 => Ok(Self::Call),
            2 => Ok(Self::Reply),
            3 => Ok(Self::Exception),
            4 => Ok(Self::Oneway),
            _ => Err(Malformed::because("a message of a kind that Thrift does not have")),
        }
    }
}

/// The beginning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// The kind.
    pub kind: MessageKind,
    /// The method's name.
    pub name: &'a [u8],
    /// The sequence id.
    pub sequence: i32,
}

/// The head of a field, or the end of its struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldHead {
    /// No more fields.
    Stop,
    /// A field whose value follows.
    Field {
        /// The field's id.
        id: i16,
        /// The type of the field's value.
        wire_type: WireType,
    },
    /// A field with a truth value, which is part of the head itself.
    Bool {
        /// The field's id.
        id: i16,
        /// The field's value.
        value: bool,
    },
}

/// One of Thrift's two encodings. Reading never looks beyond the given slice.
pub trait WireProtocol: Copy + Default + Send + 'static {
    /// Appends a message's head up to the sequence id.
    fn write_head_before_sequence(out: &mut Vec<u8>, kind: MessageKind, name: &[u8]);
    /// Appends a sequence id in the encoding of a message's head.
    fn write_sequence(out: &mut Vec<u8>, sequence: i32);
    /// Appends the part of a message's head behind the sequence id.
    fn write_head_after_sequence(out: &mut Vec<u8>, name: &[u8]);

    /// Appends the head of a field whose value is no truth value; `last` is the id of the field before it in its
    /// struct, or 0.
    fn write_field(out: &mut Vec<u8>, last: i16, id: i16, wire_type: WireType);
    /// Appends a field whose value is a truth value.
    fn write_bool_field(out: &mut Vec<u8>, last: i16, id: i16, value: bool);
    /// Appends the head of a list or set.
    fn write_list(out: &mut Vec<u8>, element: WireType, length: u32);
    /// Appends the head of a map.
    fn write_map(out: &mut Vec<u8>, key: WireType, value: WireType, length: u32);
    /// Appends the length of a string or binary.
    fn write_length(out: &mut Vec<u8>, length: u32);
    /// Appends an element of type [`WireType::I16`].
    fn write_i16(out: &mut Vec<u8>, value: i16);
    /// Appends an element of type [`WireType::I32`].
    fn write_i32(out: &mut Vec<u8>, value: i32);
    /// Appends an element of type [`WireType::I64`].
    fn write_i64(out: &mut Vec<u8>, value: i64);
    /// Appends an element of type [`WireType::Double`].
    fn write_double(out: &mut Vec<u8>, value: f64);
    /// Appends an element that is a truth value.
    fn write_bool(out: &mut Vec<u8>, value: bool);

    /// Reads a message's head.
    ///
    /// # Errors
    /// When the bytes are no head, or its name is longer than [`MOST_NAME_BYTES`]. The same holds for all methods
    /// below.
    fn message(bytes: &[u8]) -> Token<MessageHead<'_>>;
    /// Reads the head of a field; `last` is the id of the field before it in its struct, or 0.
    fn field(bytes: &[u8], last: i16) -> Token<FieldHead>;
    /// Reads the head of a list or set: the type and the number of its elements.
    fn list(bytes: &[u8]) -> Token<(WireType, u32)>;
    /// Reads the head of a map: its types (`None` if it is empty) and the number of its entries.
    fn map(bytes: &[u8]) -> Token<(Option<(WireType, WireType)>, u32)>;
    /// Reads the length of a string or binary.
    fn length(bytes: &[u8]) -> Token<u32>;
    /// Reads an element of type [`WireType::I16`].
    fn i16(bytes: &[u8]) -> Token<i16>;
    /// Reads an element of type [`WireType::I32`].
    fn i32(bytes: &[u8]) -> Token<i32>;
    /// Reads an element of type [`WireType::I64`].
    fn i64(bytes: &[u8]) -> Token<i64>;
    /// Reads an element of type [`WireType::Double`].
    fn double(bytes: &[u8]) -> Token<f64>;
    /// Reads an element that is a truth value.
    fn bool(bytes: &[u8]) -> Token<bool>;
    /// The size of a value of a type, in bytes, if all its values have the same.
    fn fixed_size(wire_type: WireType) -> Option<u32>;
}

/// A length from a peer, which is a signed number on the wire.
fn length_of(number: i32) -> Result<u32, Malformed> {
    u32::try_from(number).map_err(|_| Malformed::because("a negative length"))
}

/// The first `N` bytes.
fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::value::WireValue;
    use super::*;

    /// Any value of a type, `depth` levels of containers deep at most.
    pub(crate) fn any_value_of(wire_type: WireType, depth: u32) -> BoxedStrategy<WireValue> {
        let element = || prop::sample::select(WireType::ALL.to_vec());
        match wire_type {
            WireType::Bool => any::<bool>().prop_map(WireValue::Bool).boxed(),
            WireType::I8 => any::<i8>().prop_map(WireValue::I8).boxed(),
            WireType::I16 => any::<i16>().prop_map(WireValue::I16).boxed(),
            WireType::I32 => any::<i32>().prop_map(WireValue::I32).boxed(),
            WireType::I64 => any::<i64>().prop_map(WireValue::I64).boxed(),
            WireType::Double => {
                any::<f64>().prop_filter("is equal to itself", |x| !x.is_nan()).prop_map(WireValue::Double).boxed()
            }
            WireType::Bytes => prop::collection::vec(any::<u8>(), 0..200).prop_map(WireValue::Bytes).boxed(),
            WireType::Uuid => any::<[u8; 16]>().prop_map(WireValue::Uuid).boxed(),
            _ if depth == 0 => any_value_of_leaf(wire_type),
            WireType::Struct => {
                let field =
                    (any::<i16>(), element()).prop_flat_map(move |(id, t)| (Just(id), any_value_of(t, depth - 1)));
                prop::collection::vec(field, 0..5).prop_map(WireValue::Struct).boxed()
            }
            WireType::Map => (element(), element())
                .prop_flat_map(move |(k, v)| {
                    let pair = (any_value_of(k, depth - 1), any_value_of(v, depth - 1));
                    (Just(k), Just(v), prop::collection::vec(pair, 0..4))
                })
                // The compact protocol does not encode the types of an empty map.
                .prop_map(|(k, v, pairs)| if pairs.is_empty() { empty_map() } else { WireValue::Map(k, v, pairs) })
                .boxed(),
            WireType::Set => element()
                .prop_flat_map(move |t| (Just(t), prop::collection::vec(any_value_of(t, depth - 1), 0..20)))
                .prop_map(|(t, items)| WireValue::Set(t, items))
                .boxed(),
            WireType::List => element()
                .prop_flat_map(move |t| (Just(t), prop::collection::vec(any_value_of(t, depth - 1), 0..20)))
                .prop_map(|(t, items)| WireValue::List(t, items))
                .boxed(),
        }
    }

    fn empty_map() -> WireValue {
        WireValue::Map(WireType::Bytes, WireType::Bytes, Vec::new())
    }

    fn any_value_of_leaf(wire_type: WireType) -> BoxedStrategy<WireValue> {
        Just(match wire_type {
            WireType::Map => empty_map(),
            WireType::Set => WireValue::Set(WireType::I32, Vec::new()),
            WireType::List => WireValue::List(WireType::I32, Vec::new()),
            _ => WireValue::Struct(Vec::new()),
        })
        .boxed()
    }

    /// Any value.
    pub(crate) fn any_value() -> BoxedStrategy<WireValue> {
        prop::sample::select(WireType::ALL.to_vec()).prop_flat_map(|t| any_value_of(t, 3)).boxed()
    }

    fn comes_back<W: WireProtocol>(value: &WireValue) {
        let mut bytes = Vec::new();
        write_value::<W>(&mut bytes, value);
        assert_eq!(read_value::<W>(&bytes, value.wire_type()), Ok((value.clone(), bytes.len())));
        // A message that is cut off is never taken for another one.
        for cut in 0..bytes.len() {
            assert!(read_value::<W>(&bytes[..cut], value.wire_type()).is_err(), "{cut} of {bytes:?}");
        }
    }

    fn head_comes_back<W: WireProtocol>(kind: MessageKind, name: &[u8], sequence: i32) {
        let mut bytes = Vec::new();
        W::write_head_before_sequence(&mut bytes, kind, name);
        W::write_sequence(&mut bytes, sequence);
        W::write_head_after_sequence(&mut bytes, name);
        assert_eq!(W::message(&bytes), Ok(Some((MessageHead { kind, name, sequence }, bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(W::message(&bytes[..cut]), Ok(None));
        }
    }

    proptest! {
        #[test]
        fn values_come_back(value in any_value()) {
            comes_back::<Binary>(&value);
            comes_back::<Compact>(&value);
        }

        #[test]
        fn heads_come_back(number in 1_u8..=4, name in prop::collection::vec(any::<u8>(), 0..300), sequence in any::<i32>()) {
            let kind = MessageKind::from_number(number).unwrap();
            head_comes_back::<Binary>(kind, &name, sequence);
            head_comes_back::<Compact>(kind, &name, sequence);
        }

        #[test]
        fn no_bytes_can_hurt(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for wire_type in WireType::ALL {
                let _ = read_value::<Binary>(&bytes, wire_type);
                let _ = read_value::<Compact>(&bytes, wire_type);
            }
            let _ = read_message::<Binary>(&bytes);
            let _ = read_message::<Compact>(&bytes);
        }
    }
}
