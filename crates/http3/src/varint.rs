//! Variable-length integers (RFC 9000, section 16).

/// The largest one.
pub const MOST: u64 = (1 << 62) - 1;

/// Takes an integer from the beginning of `bytes`; `None` if it is incomplete. It need not be in its shortest form.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1_usize << (first >> 6);
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let value = own.iter().skip(1).fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some(value)
}

/// Appends an integer in its shortest form; [`MOST`] for a larger one.
#[inline]
pub fn write(value: u64, out: &mut Vec<u8>) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value.min(MOST) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// How many bytes an integer takes in its shortest form.
pub fn length(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 9000, appendix A.1.
        for (bytes, value) in [
            ([0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c].as_slice(), 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut rest = bytes;
            assert_eq!((take(&mut rest), rest), (Some(value), [].as_slice()));
            for cut in 0..bytes.len() {
                let mut rest = bytes.get(..cut).unwrap();
                assert_eq!(take(&mut rest), None);
            }
        }
    }

    proptest! {
        #[test]
        fn every_integer_is_read_back(value in 0..=MOST, shift in 0..62_u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            write(value, &mut out);
            prop_assert_eq!(out.len(), length(value));
            prop_assert_eq!(take(&mut out.as_slice()), Some(value));
        }
    }
}
