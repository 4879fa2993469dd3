//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and shorter ones come
//! first. So the lengths in appendix B define all of it.

/// The length of each byte's code, in bits (RFC 7541, appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// The longest code, in bits. The code of 30 ones is EOS, which never occurs in a string.
const LONGEST: usize = 30;
/// Codes of up to this length are found by one table look-up, in bits.
const SHORT: usize = 10;

/// The code in all the forms that reading and writing want.
struct Canon {
    /// Each byte's code.
    codes_of: [u32; 256],
    /// The first code of each length.
    first: [u32; LONGEST + 1],
    /// The number of codes of each length.
    count: [u16; LONGEST + 1],
    /// Where the bytes of each length begin in `in_order`.
    start: [u16; LONGEST + 1],
    /// The bytes by their codes.
    in_order: [u8; 256],
    /// By the next bits: the byte whose code they begin with, and the code's length; length 0 for longer codes.
    short: [(u8, u8); 1 << SHORT],
}

static CODE: Canon = Canon::new();

#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled, where a wrong index is an error")]
impl Canon {
    const fn new() -> Self {
        let mut made = Self {
            codes_of: [0; 256],
            first: [0; LONGEST + 1],
            count: [0; LONGEST + 1],
            start: [0; LONGEST + 1],
            in_order: [0; 256],
            short: [(0, 0); 1 << SHORT],
        };
        let (mut length, mut code, mut place) = (1, 0_u32, 0_usize);
        while length <= LONGEST {
            code <<= 1;
            made.first[length] = code;
            made.start[length] = place as u16;
            let mut byte = 0;
            while byte < 256 {
                if LENGTHS[byte] as usize == length {
                    made.codes_of[byte] = code;
                    made.in_order[place] = byte as u8;
                    made.count[length] += 1;
                    if length <= SHORT {
                        let mut next = (code as usize) << (SHORT - length);
                        let end = (code as usize + 1) << (SHORT - length);
                        while next < end {
                            made.short[next] = (byte as u8, length as u8);
                            next += 1;
                        }
                    }
                    code += 1;
                    place += 1;
                }
                byte += 1;
            }
            length += 1;
        }
        made
    }
}

/// A string is not valid code: it contains EOS, or ends with invalid padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotHuffman;

/// Appends the decoded bytes of `encoded` to `out`.
///
/// # Errors
/// When it is not valid code, or ends with more than 7 bits of padding or with padding that is not all ones.
pub(super) fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    // The next bits from the top.
    let (mut bits, mut held) = (0_u64, 0_usize);
    let mut rest = encoded.iter();
    loop {
        while held <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
        }
        if held == 0 {
            return Ok(());
        }
        let (byte, length) = match CODE.short.get((bits >> (64 - SHORT)) as usize) {
            Some((byte, length)) if *length > 0 => (*byte, usize::from(*length)),
            _ => match long(bits) {
                Some(found) => found,
                None if is_padding(bits, held) => return Ok(()),
                None => return Err(NotHuffman),
            },
        };
        if length > held {
            return if is_padding(bits, held) { Ok(()) } else { Err(NotHuffman) };
        }
        out.push(byte);
        bits <<= length;
        held -= length;
    }
}

/// The byte whose code these bits begin with, among codes longer than [`SHORT`], and the code's length.
fn long(bits: u64) -> Option<(u8, usize)> {
    (SHORT + 1..=LONGEST).find_map(|length| {
        let code = (bits >> (64 - length)) as u32;
        let place = code.checked_sub(*CODE.first.get(length)?)?;
        if place >= u32::from(*CODE.count.get(length)?) {
            return None;
        }
        let byte = CODE.in_order.get(usize::from(*CODE.start.get(length)?) + place as usize)?;
        Some((*byte, length))
    })
}

/// Whether the last bits of a string are padding: fewer than 8, all ones.
fn is_padding(bits: u64, held: usize) -> bool {
    held < 8 && bits >> (64 - held) == (1 << held) - 1
}

/// How many bytes `text` takes in the code.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(length_of(*byte))).sum();
    bits.div_ceil(8)
}

/// Appends `text` in the code to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0_u32);
    for byte in text {
        let length = u32::from(length_of(*byte));
        let code = CODE.codes_of.get(usize::from(*byte)).copied().unwrap_or(0);
        bits = bits << length | u64::from(code);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    if held > 0 {
        out.push((bits << (8 - held)) as u8 | (0xff >> held));
    }
}

fn length_of(byte: u8) -> u8 {
    LENGTHS.get(usize::from(byte)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(encoded: &[u8]) -> Result<Vec<u8>, NotHuffman> {
        let mut out = Vec::new();
        decode(encoded, &mut out).map(|()| out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541, appendices C.4 and C.6.
        for (text, bytes) in [
            ("www.example.com", [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff].as_slice()),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("302", &[0x64, 0x02]),
        ] {
            assert_eq!(encoded(text.as_bytes()), bytes);
            assert_eq!(decoded(bytes), Ok(text.as_bytes().to_vec()));
            assert_eq!(encoded_len(text.as_bytes()), bytes.len());
        }
    }

    #[test]
    fn what_is_not_in_the_code_is_refused() {
        for bytes in [
            // EOS; eight bits of padding; padding that is not all ones.
            [0xff, 0xff, 0xff, 0xff].as_slice(),
            &[0x64, 0x02, 0xff],
            &[0b0011_1000],
            &[0xff],
        ] {
            assert_eq!(decoded(bytes), Err(NotHuffman), "{bytes:?}");
        }
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn every_text_is_read_back(text in prop::collection::vec(any::<u8>(), 0..100)) {
            let encoded = encoded(&text);
            prop_assert_eq!(encoded.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&encoded), Ok(text));
        }

        #[test]
        fn what_is_read_has_one_form(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&bytes) {
                prop_assert_eq!(encoded(&text), bytes);
            }
        }
    }
}
