//! Values as bytes, in the store, in results and between machines: CBOR by the names of fields (RFC 8949).
//!
//! Within a version fields are only ever added; reading ignores fields it does not know.
//!
//! ```
//! use brunt_record::bytes::{from_bytes, to_bytes};
//!
//! let bytes = to_bytes(&("second", 7_u64));
//! assert_eq!(from_bytes::<(String, u64)>(&bytes)?, ("second".to_owned(), 7));
//! // What was cut off is no value.
//! assert!(from_bytes::<(String, u64)>(&bytes[..5]).is_err());
//! # Ok::<(), brunt_record::bytes::Unreadable>(())
//! ```

use minicbor::data::Type;
use minicbor::decode::Decoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What bytes may hold. Somebody else may have made them, and a few can become many times as much memory.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How deep lists and maps may stand in one another: reading recurses, and no stack may end by it.
    pub depth: usize,
    /// How many values there may be.
    pub values: u64,
    /// How long a text may be, in bytes.
    pub text: usize,
    /// The greatest whole number.
    pub number: u64,
}

impl Limits {
    /// Enough for whatever is written: a table of a script takes three levels for each of its own 64.
    pub const WIDEST: Self = Self { depth: 256, values: u64::MAX, text: usize::MAX, number: u64::MAX };
    /// Of a recording: sums of a few of its numbers stay within 64 bits. In nanoseconds these are 36 years.
    pub const RECORDING: Self = Self { number: 1 << 60, ..Self::WIDEST };
}

/// Bytes that are not the expected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Too deep.
    #[error("expected values nested up to {0} deep")]
    Depth(usize),
    /// Too many values.
    #[error("expected up to {0} values")]
    Values(u64),
    /// A text that is too long.
    #[error("expected texts up to {most} bytes, got one of {got}")]
    Text {
        /// Its length.
        got: usize,
        /// The most.
        most: usize,
    },
    /// A number that is too great.
    #[error("expected whole numbers up to {most}, got {got}")]
    Number {
        /// The number.
        got: u64,
        /// The most.
        most: u64,
    },
    /// Bytes behind the value.
    #[error("expected the end, got {0} more bytes")]
    More(usize),
    /// No CBOR, or another type.
    #[error("{0}")]
    Content(String),
}

impl From<minicbor::decode::Error> for Unreadable {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::Content(error.to_string())
    }
}

/// `value` as bytes.
///
/// Writing into memory fails only for a value whose own `Serialize` does. The bytes are empty then, and cannot be read.
pub fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = minicbor_serde::Serializer::new(&mut bytes);
    // Options of protocols are JSON, whose null is a unit to serde. As a list of nothing it would come back as one.
    let written = value.serialize(serializer.serialize_unit_as_null(true));
    if written.is_ok() { bytes } else { Vec::new() }
}

/// The value in bytes that [`to_bytes`] made.
///
/// # Errors
/// When they are something else, or more than [`Limits::WIDEST`].
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    from_bytes_within(bytes, &Limits::WIDEST)
}

/// As [`from_bytes`], of bytes whose maker is not trusted.
///
/// # Errors
/// When they are something else, or more than `limits`.
pub fn from_bytes_within<T: DeserializeOwned>(bytes: &[u8], limits: &Limits) -> Result<T, Unreadable> {
    check(bytes, limits)?;
    minicbor_serde::from_slice(bytes).map_err(|error| Unreadable::Content(error.to_string()))
}

/// The name of the variant that an enum with a content has in `bytes`, without looking at the content.
pub fn variant(bytes: &[u8]) -> Option<&str> {
    let mut decoder = Decoder::new(bytes);
    decoder.map().ok().filter(|pairs| *pairs == Some(1)).and_then(|_| decoder.str().ok())
}

/// Goes through one value, without recursion and without keeping anything of it.
fn check(bytes: &[u8], limits: &Limits) -> Result<(), Unreadable> {
    let mut decoder = Decoder::new(bytes);
    let mut values = 0;
    // What is left of each list and map that is open.
    let mut open = vec![Inside::Values(1)];
    while let Some(left) = open.last_mut() {
        match left {
            Inside::Values(0) => {
                open.pop();
                continue;
            }
            Inside::Values(left) => *left -= 1,
            Inside::UpToMark if decoder.datatype()? == Type::Break => {
                decoder.set_position(decoder.position() + 1);
                open.pop();
                continue;
            }
            Inside::UpToMark => {}
        }
        values += 1;
        if values > limits.values {
            return Err(Unreadable::Values(limits.values));
        }
        open.extend(inside(&mut decoder, limits)?);
        if open.len() > limits.depth {
            return Err(Unreadable::Depth(limits.depth));
        }
    }
    match bytes.len() - decoder.position() {
        0 => Ok(()),
        more => Err(Unreadable::More(more)),
    }
}

/// What stands in a list or map.
enum Inside {
    /// So many values.
    Values(u64),
    /// Values up to a mark.
    UpToMark,
}

impl Inside {
    fn of(length: Option<u64>, each: u64) -> Self {
        length.map_or(Self::UpToMark, |length| Self::Values(length.saturating_mul(each)))
    }
}

/// Reads a value, or the head of a list or map: then what stands in it.
fn inside(decoder: &mut Decoder<'_>, limits: &Limits) -> Result<Option<Inside>, Unreadable> {
    match decoder.datatype()? {
        Type::Array | Type::ArrayIndef => return Ok(Some(Inside::of(decoder.array()?, 1))),
        Type::Map | Type::MapIndef => return Ok(Some(Inside::of(decoder.map()?, 2))),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => match decoder.u64()? {
            got if got > limits.number => return Err(Unreadable::Number { got, most: limits.number }),
            _ => {}
        },
        Type::String => match decoder.str()?.len() {
            got if got > limits.text => return Err(Unreadable::Text { got, most: limits.text }),
            _ => {}
        },
        never @ (Type::StringIndef | Type::BytesIndef | Type::Tag | Type::Break) => {
            return Err(Unreadable::Content(format!("expected a value, got {never}")));
        }
        _ => decoder.skip()?,
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Value {
        Nothing,
        Number(f64),
        Table(Vec<(Value, Value)>),
        Named { first: i64, second: Option<Box<Value>> },
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Nothing), (-1e9..1e9).prop_map(Value::Number)];
        leaf.prop_recursive(6, 60, 5, |inner| {
            prop_oneof![
                prop::collection::vec((inner.clone(), inner.clone()), 0..5).prop_map(Value::Table),
                (any::<i64>(), prop::option::of(inner.prop_map(Box::new)))
                    .prop_map(|(first, second)| Value::Named { first, second }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in values()) {
            prop_assert_eq!(from_bytes::<Value>(&to_bytes(&value)).unwrap(), value);
        }

        /// Each beginning is refused, as is each value with something behind it.
        #[test]
        fn no_part_of_a_value_is_one(value in values(), cut in any::<prop::sample::Index>()) {
            let mut bytes = to_bytes(&value);
            prop_assert!(from_bytes::<Value>(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(0);
            prop_assert_eq!(from_bytes::<Value>(&bytes), Err(Unreadable::More(1)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (from_bytes::<Value>(&bytes), variant(&bytes));
        }
    }

    /// Lists of known and of unknown length, maps, and a table that holds itself a million times.
    #[test]
    fn nothing_is_nested_without_end() {
        for head in [0x81, 0x9f, 0xa1, 0xbf] {
            assert_eq!(from_bytes::<Value>(&vec![head; 1 << 20]), Err(Unreadable::Depth(256)), "{head:x}");
        }
        let deep = (0..80).fold(Value::Nothing, |inner, _| Value::Table(vec![(Value::Number(1.0), inner)]));
        assert_eq!(from_bytes::<Value>(&to_bytes(&deep)).unwrap(), deep);
    }

    #[test]
    fn what_is_more_than_the_limits_is_found_wherever_it_stands() {
        let names = |number: u64| to_bytes(&BTreeMap::from([("a", vec![1, 2]), ("abc", vec![3, number])]));
        let most = Limits { depth: 3, values: 9, text: 3, number: 7 };
        assert_eq!(check(&names(7), &most), Ok(()));
        assert_eq!(check(&names(8), &most), Err(Unreadable::Number { got: 8, most: 7 }));
        assert_eq!(check(&names(7), &Limits { depth: 2, ..most }), Err(Unreadable::Depth(2)));
        assert_eq!(check(&names(7), &Limits { values: 8, ..most }), Err(Unreadable::Values(8)));
        assert_eq!(check(&names(7), &Limits { text: 2, ..most }), Err(Unreadable::Text { got: 3, most: 2 }));
        // A map and a list that end by a mark; a tag; a length alone, which allocates nothing.
        assert_eq!(check(&[0xbf, 0x61, b'a', 0x9f, 1, 0xff, 0xff], &most), Ok(()));
        assert!(matches!(check(&[0x9f, 0xc2, 0x41, 1, 0xff], &most), Err(Unreadable::Content(_))));
        assert!(matches!(check(&[0x7a, 0xff, 0xff, 0xff, 0xff], &most), Err(Unreadable::Content(_))));
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let json = serde_json::json!({"none": null, "list": [null, [], {}, -1, 1.5, "a", true], "": u64::MAX});
        assert_eq!(from_bytes::<serde_json::Value>(&to_bytes(&json)).unwrap(), json);
    }

    #[test]
    fn a_variant_is_known_by_its_name() {
        assert_eq!(variant(&to_bytes(&Value::Number(1.0))), Some("Number"));
        assert_eq!([variant(&to_bytes(&Value::Nothing)), variant(&[])], [None, None]);
    }

    /// A version may have more fields than this one.
    #[test]
    fn fields_that_are_not_known_are_left_out() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Known {
            b: u8,
        }
        let more = BTreeMap::from([("a", vec![vec![0]]), ("c", vec![])]);
        let mut bytes = to_bytes(&more);
        // The map has one entry more.
        bytes[0] += 1;
        bytes.extend(to_bytes(&"b").into_iter().chain([9]));
        assert_eq!(from_bytes::<Known>(&bytes).unwrap(), Known { b: 9 });
    }
}
