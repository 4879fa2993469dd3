//! HPACK (RFC 7541): header fields in few bytes.

mod decoder;
mod encoder;
mod huffman;
mod table;

pub use self::decoder::{Decoder, Fields, MOST_LIST_BYTES, REMEMBERED, ReadBlock};
pub use self::encoder::Encoder;

/// Appends an integer with a prefix of `bits` bits to `out`; `first` holds the bits before it (RFC 7541, section 5.1).
fn write_integer(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1_usize << bits) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes an integer with a prefix of `bits` bits from the beginning of `bytes`; `None` if it is incomplete or too
/// large.
fn take_integer(bytes: &mut &[u8], bits: u32) -> Option<usize> {
    let (first, mut rest) = bytes.split_first()?;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        // Four bytes hold more than any limit here.
        for shift in [0, 7, 14, 21] {
            let (byte, after) = rest.split_first()?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *bytes = rest;
                return Some(value);
            }
        }
        return None;
    }
    *bytes = rest;
    Some(value)
}
