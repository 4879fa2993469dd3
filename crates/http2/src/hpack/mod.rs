//! HPACK (RFC 7541): header fields in few bytes.

mod decoder;
mod encoder;
mod fields;
mod huffman;
mod table;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::fields::{BlockMemory, Fields, MOST_LIST_BYTES, REMEMBERED, ReadBlock};

/// Appends an integer with a prefix of `bits` bits to `out`; `first` holds the bits before it (RFC 7541, section 5.1).
pub fn write_integer(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
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
pub fn take_integer(bytes: &mut &[u8], bits: u32) -> Option<usize> {
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

/// Why bytes are no string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAString {
    /// They are cut short, or their length is beyond 2^28.
    Cut,
    /// They are not in Huffman's code.
    NotHuffman,
}

/// Takes a string whose length has a prefix of `bits` bits, behind the bit that says whether it is in Huffman's code
/// (RFC 7541, section 5.2; QPACK has other prefixes: RFC 9204, section 4.1.2). Appends it to `out`.
///
/// # Errors
/// When there is none.
pub fn take_string(rest: &mut &[u8], bits: u32, out: &mut Vec<u8>) -> Result<(), NotAString> {
    let is_huffman = rest.first().is_some_and(|first| first & (1 << bits) != 0);
    let length = take_integer(rest, bits).ok_or(NotAString::Cut)?;
    let (text, after) = rest.split_at_checked(length).ok_or(NotAString::Cut)?;
    *rest = after;
    if is_huffman {
        huffman::decode(text, out).map_err(|_| NotAString::NotHuffman)
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

/// Appends a string whose length has a prefix of `bits` bits, behind the bits of `first` and the one that says whether it is in
/// Huffman's code, which it is where that is shorter.
pub fn write_string(first: u8, bits: u32, text: &[u8], out: &mut Vec<u8>) {
    let encoded = huffman::encoded_len(text);
    if encoded < text.len() {
        write_integer(first | 1 << bits, bits, encoded, out);
        huffman::encode(text, out);
    } else {
        write_integer(first, bits, text.len(), out);
        out.extend_from_slice(text);
    }
}
