//! Where a Thrift message ends, and what of it an echo needs (Apache Thrift's `thrift-binary-protocol.md` and
//! `thrift-compact-protocol.md`).

/// How deep values may be nested.
const MOST_NESTED: u32 = 64;
/// The longest name, in bytes.
const MOST_NAME: usize = 1024;

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is not all there.
    Incomplete,
    /// It breaks the grammar.
    Broken,
}

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageForm {
    Binary,
    Compact,
}

/// A call that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) written: MessageForm,
    pub(super) is_oneway: bool,
    pub(super) name: &'a [u8],
    /// The sequence id as it stands in the head.
    pub(super) sequence: &'a [u8],
    /// Type and bytes of the argument with the id 1.
    pub(super) argument: Option<(u8, &'a [u8])>,
}

const CALL: u8 = 1;
const ONEWAY: u8 = 4;

/// Reads a call at the beginning of `bytes`; how many of them it takes.
#[inline]
pub(super) fn call(bytes: &[u8]) -> Result<(Call<'_>, usize), Trouble> {
    let mut reader = Reader { bytes, at: 0 };
    let call = match bytes.first() {
        None => return Err(Trouble::Incomplete),
        Some(0x80) => reader.binary_call()?,
        Some(0x82) => reader.compact_call()?,
        Some(_) => return Err(Trouble::Broken),
    };
    Ok((call, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Trouble> {
        let end = self.at.checked_add(length).ok_or(Trouble::Broken)?;
        let taken = self.bytes.get(self.at..end).ok_or(Trouble::Incomplete)?;
        self.at = end;
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Trouble> {
        self.take(1).map(|byte| byte.first().copied().unwrap_or(0))
    }

    /// A length of 32 bits.
    #[inline]
    fn word(&mut self) -> Result<usize, Trouble> {
        let word = self.take(4)?.first_chunk().copied().map_or(-1, i32::from_be_bytes);
        usize::try_from(word).map_err(|_| Trouble::Broken)
    }

    fn varint(&mut self) -> Result<u64, Trouble> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Trouble::Broken)
    }

    fn length(&mut self) -> Result<usize, Trouble> {
        let length = self.varint()?;
        i32::try_from(length).map_err(|_| Trouble::Broken).map(|length| length as usize)
    }

    fn name(&mut self, length: usize) -> Result<&'a [u8], Trouble> {
        if length > MOST_NAME { Err(Trouble::Broken) } else { self.take(length) }
    }

    fn binary_call(&mut self) -> Result<Call<'a>, Trouble> {
        let [0x80, 0x01, _, kind] = *self.take(4)? else { return Err(Trouble::Broken) };
        let is_oneway = is_oneway(kind)?;
        let length = self.word()?;
        let name = self.name(length)?;
        let sequence = self.take(4)?;
        let mut argument = None;
        loop {
            let field = self.byte()?;
            if field == 0 {
                return Ok(Call { written: MessageForm::Binary, is_oneway, name, sequence, argument });
            }
            let is_first = self.take(2)? == [0, 1];
            let from = self.at;
            self.skip_binary(field, 0)?;
            if is_first {
                argument = self.bytes.get(from..self.at).map(|value| (field, value));
            }
        }
    }

    fn skip_binary(&mut self, of: u8, depth: u32) -> Result<(), Trouble> {
        if depth > MOST_NESTED {
            return Err(Trouble::Broken);
        }
        match of {
            2 | 3 => self.take(1).map(drop),
            6 => self.take(2).map(drop),
            8 => self.take(4).map(drop),
            4 | 10 => self.take(8).map(drop),
            16 => self.take(16).map(drop),
            11 => {
                let length = self.word()?;
                self.take(length).map(drop)
            }
            12 => loop {
                let field = self.byte()?;
                if field == 0 {
                    return Ok(());
                }
                self.take(2)?;
                self.skip_binary(field, depth + 1)?;
            },
            13 => {
                let (key, value) = (self.byte()?, self.byte()?);
                for _ in 0..self.word()? {
                    self.skip_binary(key, depth + 1)?;
                    self.skip_binary(value, depth + 1)?;
                }
                Ok(())
            }
            14 | 15 => {
                let element = self.byte()?;
                for _ in 0..self.word()? {
                    self.skip_binary(element, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(Trouble::Broken),
        }
    }

    fn compact_call(&mut self) -> Result<Call<'a>, Trouble> {
        let [0x82, second] = *self.take(2)? else { return Err(Trouble::Broken) };
        if second & 0x1f != 1 {
            return Err(Trouble::Broken);
        }
        let is_oneway = is_oneway(second >> 5)?;
        let from = self.at;
        self.varint()?;
        let sequence = self.bytes.get(from..self.at).unwrap_or_default();
        let length = self.length()?;
        let name = self.name(length)?;
        let (mut argument, mut id) = (None, 0);
        while let Some(of) = self.compact_field(&mut id)? {
            let from = self.at;
            self.skip_compact(of, true, 0)?;
            if id == 1 {
                argument = self.bytes.get(from..self.at).map(|value| (of, value));
            }
        }
        Ok(Call { written: MessageForm::Compact, is_oneway, name, sequence, argument })
    }

    /// The type of the next field, whose id is told by the one before it; none at the end.
    fn compact_field(&mut self, id: &mut i64) -> Result<Option<u8>, Trouble> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *id = match head >> 4 {
            0 => {
                let zigzag = self.varint()?;
                (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
            }
            difference => *id + i64::from(difference),
        };
        Ok(Some(head & 0x0f))
    }

    fn skip_compact(&mut self, of: u8, is_field: bool, depth: u32) -> Result<(), Trouble> {
        if depth > MOST_NESTED {
            return Err(Trouble::Broken);
        }
        match of {
            // A field's truth is in its head.
            1 | 2 if is_field => Ok(()),
            1..=3 => self.take(1).map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.take(8).map(drop),
            8 => {
                let length = self.length()?;
                self.take(length).map(drop)
            }
            9 | 10 => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.length()? } else { usize::from(head >> 4) };
                for _ in 0..length {
                    self.skip_compact(head & 0x0f, false, depth + 1)?;
                }
                Ok(())
            }
            11 => {
                let length = self.length()?;
                let types = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.skip_compact(types >> 4, false, depth + 1)?;
                    self.skip_compact(types & 0x0f, false, depth + 1)?;
                }
                Ok(())
            }
            12 => {
                let mut id = 0;
                while let Some(of) = self.compact_field(&mut id)? {
                    self.skip_compact(of, true, depth + 1)?;
                }
                Ok(())
            }
            13 => self.take(16).map(drop),
            _ => Err(Trouble::Broken),
        }
    }
}

fn is_oneway(kind: u8) -> Result<bool, Trouble> {
    match kind {
        CALL => Ok(false),
        ONEWAY => Ok(true),
        _ => Err(Trouble::Broken),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BINARY: &[u8] = b"\x80\x01\0\x01\0\0\0\x04echo\0\0\0\x07\x0c\0\x01\x0f\0\x02\x0b\0\0\0\x01\0\0\0\x02ab\0\0";
    const COMPACT: &[u8] = b"\x82\x21\x07\x04echo\x1c\x29\x18\x02ab\0\0";

    #[test]
    fn calls_are_taken_whole() {
        for (bytes, argument) in [
            (BINARY, (12, b"\x0f\0\x02\x0b\0\0\0\x01\0\0\0\x02ab\0".as_slice())),
            (COMPACT, (12, b"\x29\x18\x02ab\0".as_slice())),
        ] {
            let (call, taken) = call(bytes).unwrap();
            assert_eq!((call.name, call.argument, taken), (b"echo".as_slice(), Some(argument), bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(super::call(&bytes[..cut]).unwrap_err(), Trouble::Incomplete, "{cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_can_hurt(tail in prop::collection::vec(any::<u8>(), 0..200), compact in any::<bool>()) {
            let head = if compact { &COMPACT[..8] } else { &BINARY[..16] };
            let _ = call(&[head, &tail].concat());
            let _ = call(&tail);
        }
    }
}
