//! Thrift values as they are on the wire: without names, and with the types of fields and elements.

use std::fmt;

/// The type of a value on the wire (Thrift's "type id"). Strings and binary share one, and so do structs, unions and
/// exceptions; an enum is an [`I32`](Self::I32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireType {
    /// A truth value.
    Bool,
    /// Eight bits, signed.
    I8,
    /// Sixteen bits, signed.
    I16,
    /// Thirty-two bits, signed, or an enum.
    I32,
    /// Sixty-four bits, signed.
    I64,
    /// IEEE 754, 64 bits.
    Double,
    /// A string or binary.
    Bytes,
    /// A struct, union or exception.
    Struct,
    /// A map.
    Map,
    /// A set.
    Set,
    /// A list.
    List,
    /// Sixteen bytes (RFC 9562), since Thrift 0.20.
    Uuid,
}

impl WireType {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::Double,
        Self::Bytes,
        Self::Struct,
        Self::Map,
        Self::Set,
        Self::List,
        Self::Uuid,
    ];

    /// The type's name in the IDL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Double => "double",
            Self::Bytes => "string or binary",
            Self::Struct => "struct",
            Self::Map => "map",
            Self::Set => "set",
            Self::List => "list",
            Self::Uuid => "uuid",
        }
    }
}

impl fmt::Display for WireType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value with the types that the wire needs, so that it is written and read without the IDL.
#[derive(Debug, Clone, PartialEq)]
pub enum WireValue {
    /// A truth value.
    Bool(bool),
    /// Eight bits.
    I8(i8),
    /// Sixteen bits.
    I16(i16),
    /// Thirty-two bits, or an enum's number.
    I32(i32),
    /// Sixty-four bits.
    I64(i64),
    /// A floating-point number.
    Double(f64),
    /// A string's UTF-8, or binary.
    Bytes(Vec<u8>),
    /// Fields by their ids, in the order in which they are written.
    Struct(Vec<(i16, WireValue)>),
    /// Keys and values, each of one type.
    Map(WireType, WireType, Vec<(WireValue, WireValue)>),
    /// Elements of one type.
    Set(WireType, Vec<WireValue>),
    /// Elements of one type.
    List(WireType, Vec<WireValue>),
    /// Sixteen bytes, in the order of a UUID's text.
    Uuid([u8; 16]),
}

impl WireValue {
    /// The value's type on the wire.
    pub fn wire_type(&self) -> WireType {
        match self {
            Self::Bool(_) => WireType::Bool,
            Self::I8(_) => WireType::I8,
            Self::I16(_) => WireType::I16,
            Self::I32(_) => WireType::I32,
            Self::I64(_) => WireType::I64,
            Self::Double(_) => WireType::Double,
            Self::Bytes(_) => WireType::Bytes,
            Self::Struct(_) => WireType::Struct,
            Self::Map(..) => WireType::Map,
            Self::Set(..) => WireType::Set,
            Self::List(..) => WireType::List,
            Self::Uuid(_) => WireType::Uuid,
        }
    }

    /// Whether `got` equals this value. Sets and maps have no order, and structs in `got` may have more fields.
    pub fn is_met_by(&self, got: &Self) -> bool {
        let has = |items: &[Self], wanted: &Self| items.iter().any(|item| wanted.is_met_by(item));
        match (self, got) {
            (Self::Struct(wanted), Self::Struct(fields)) => {
                wanted.iter().all(|(id, value)| fields.iter().any(|(got_id, got)| got_id == id && value.is_met_by(got)))
            }
            (Self::List(_, wanted), Self::List(_, items)) => {
                wanted.len() == items.len() && wanted.iter().zip(items).all(|(wanted, item)| wanted.is_met_by(item))
            }
            (Self::Set(_, wanted), Self::Set(_, items)) => {
                wanted.len() == items.len() && wanted.iter().all(|wanted| has(items, wanted))
            }
            (Self::Map(_, _, wanted), Self::Map(_, _, pairs)) => {
                let met = |(key, value): &(Self, Self)| {
                    pairs.iter().any(|(got_key, got)| key.is_met_by(got_key) && value.is_met_by(got))
                };
                wanted.len() == pairs.len() && wanted.iter().all(met)
            }
            (Self::Double(wanted), Self::Double(got)) => wanted == got || wanted.is_nan() && got.is_nan(),
            (wanted, got) => wanted == got,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_met_by_what_is_the_same_but_for_order_and_further_fields() {
        let (one, two) = (WireValue::I32(1), WireValue::I32(2));
        let set = |items: &[&WireValue]| WireValue::Set(WireType::I32, items.iter().copied().cloned().collect());
        assert!(set(&[&one, &two]).is_met_by(&set(&[&two, &one])));
        assert!(!set(&[&one, &two]).is_met_by(&set(&[&two])));
        let list = |items: &[&WireValue]| WireValue::List(WireType::I32, items.iter().copied().cloned().collect());
        assert!(!list(&[&one, &two]).is_met_by(&list(&[&two, &one])));
        let map = |pairs: &[(&WireValue, &WireValue)]| {
            let pairs = pairs.iter().map(|(key, value)| ((*key).clone(), (*value).clone())).collect();
            WireValue::Map(WireType::I32, WireType::I32, pairs)
        };
        assert!(map(&[(&one, &two), (&two, &two)]).is_met_by(&map(&[(&two, &two), (&one, &two)])));
        assert!(!map(&[(&one, &two)]).is_met_by(&map(&[(&one, &one)])));
        let (less, more) = (vec![(1, one.clone())], vec![(2, two.clone()), (1, one.clone())]);
        assert!(WireValue::Struct(less.clone()).is_met_by(&WireValue::Struct(more.clone())));
        assert!(!WireValue::Struct(more).is_met_by(&WireValue::Struct(less)));
        assert!(WireValue::Double(f64::NAN).is_met_by(&WireValue::Double(f64::NAN)));
        assert!(!one.is_met_by(&WireValue::I64(1)));
    }
}
