//! Finding the end of a request's body (RFC 9112, sections 6 and 7) without keeping any of it: a pure function over bytes.

use super::request::{Framing, Refusal};

/// The longest chunk-size line taken, extensions included, in bytes.
const MAX_CHUNK_LINE: usize = 4 * 1024;
/// The longest trailer section taken after a chunked body, in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// Finds the end of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyReader {
    /// This many bytes are still to come.
    Length(u64),
    Chunked(Chunk),
    Done,
}

/// Where in a chunked body (RFC 9112, section 7.1) the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    Size {
        size: u64,
        digits: u8,
    },
    Extension {
        size: u64,
        length: usize,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In the trailer section: its length so far, and that of the line.
    Trailer {
        length: usize,
        line: usize,
    },
    TrailerLf {
        length: usize,
        line: usize,
    },
}

/// One step through a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// How many bytes of the input this step took.
    pub(super) used: usize,
    /// The body bytes among them.
    pub(super) data: &'a [u8],
}

impl BodyReader {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Done,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunk::Size { size: 0, digits: 0 }),
        }
    }

    pub(super) fn is_done(self) -> bool {
        self == Self::Done
    }

    /// Takes the next stretch of the body from the start of `input`: at most one run of body bytes,
    /// with whatever framing stands before it.
    pub(super) fn step<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, Refusal> {
        match self {
            Self::Done => Ok(Step { used: 0, data: &[] }),
            Self::Length(left) => {
                let data = take(input, *left);
                *left -= data.len() as u64;
                if *left == 0 {
                    *self = Self::Done;
                }
                Ok(Step { used: data.len(), data })
            }
            Self::Chunked(chunk) => {
                let (step, next) = chunk.step(input)?;
                *self = next.map_or(Self::Done, Self::Chunked);
                Ok(step)
            }
        }
    }
}

/// The first `count` bytes of the input, or all of it.
fn take(input: &[u8], count: u64) -> &[u8] {
    usize::try_from(count).ok().and_then(|count| input.get(..count)).unwrap_or(input)
}

impl Chunk {
    /// Takes a step; also returns the state after it, `None` at the body's end.
    fn step(self, input: &[u8]) -> Result<(Step<'_>, Option<Self>), Refusal> {
        let mut chunk = self;
        let mut used = 0;
        let mut rest = input;
        loop {
            if let Self::Data { left } = chunk {
                let data = take(rest, left);
                let left = left - data.len() as u64;
                let next = if left == 0 { Self::DataCr } else { Self::Data { left } };
                return Ok((Step { used: used + data.len(), data }, Some(next)));
            }
            let Some((&byte, after)) = rest.split_first() else {
                return Ok((Step { used, data: &[] }, Some(chunk)));
            };
            rest = after;
            used += 1;
            match chunk.framing(byte)? {
                Some(next) => chunk = next,
                None => return Ok((Step { used, data: &[] }, None)),
            }
        }
    }

    /// One byte of framing; `None` when it ends the body.
    fn framing(self, byte: u8) -> Result<Option<Self>, Refusal> {
        let next = match (self, byte) {
            (Self::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                // 15 digits cannot overflow, and no body is longer than 2^60 bytes.
                if digits == 15 {
                    return Err(Refusal::Chunk);
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { digits: 0, .. }, _) => return Err(Refusal::Chunk),
            (Self::Size { size, .. } | Self::Extension { size, .. }, b'\r') => Self::SizeLf { size },
            (Self::Size { size, .. }, b';' | b' ' | b'\t') => Self::Extension { size, length: 0 },
            (Self::Extension { size, length }, b'\t' | b' '..=b'~' | 0x80..) if length < MAX_CHUNK_LINE => {
                Self::Extension { size, length: length + 1 }
            }
            (Self::SizeLf { size: 0 }, b'\n') => Self::Trailer { length: 0, line: 0 },
            (Self::SizeLf { size }, b'\n') => Self::Data { left: size },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size { size: 0, digits: 0 },
            (Self::Trailer { length, line }, b'\r') => Self::TrailerLf { length, line },
            (Self::Trailer { length, line }, _) if byte != b'\n' && length < MAX_TRAILERS => {
                Self::Trailer { length: length + 1, line: line + 1 }
            }
            (Self::TrailerLf { line: 0, .. }, b'\n') => return Ok(None),
            (Self::TrailerLf { length, .. }, b'\n') => Self::Trailer { length, line: 0 },
            _ => return Err(Refusal::Chunk),
        };
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a body cut into these pieces: its data, and the bytes left over.
    fn read(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize), Refusal> {
        let mut reader = BodyReader::new(framing);
        let (mut data, mut left) = (Vec::new(), 0);
        for piece in pieces {
            let mut rest = *piece;
            while !reader.is_done() && !rest.is_empty() {
                let step = reader.step(rest)?;
                assert!(step.used > 0, "a step that takes nothing would never end");
                data.extend_from_slice(step.data);
                rest = &rest[step.used..];
            }
            left += rest.len();
        }
        if reader.is_done() { Ok((data, left)) } else { Ok((data, usize::MAX)) }
    }

    const CHUNKED: &[u8] = b"5;a=\"b\"\r\nhello\r\n00A \r\n0123456789\r\n0\r\nT: v\r\nU: w\r\n\r\nNEXT";

    #[test]
    fn chunked_bodies_with_extensions_and_trailers() {
        assert_eq!(read(Framing::Chunked, &[CHUNKED]), Ok((b"hello0123456789".to_vec(), 4)));
        assert_eq!(read(Framing::Chunked, &[b"0\r\n\r\n"]), Ok((vec![], 0)));
        assert_eq!(read(Framing::Length(3), &[b"ab", b"cd"]), Ok((b"abc".to_vec(), 1)));
        assert_eq!(read(Framing::Length(3), &[b"ab"]), Ok((b"ab".to_vec(), usize::MAX)));
    }

    #[test]
    fn broken_chunks_are_refused() {
        let long_line = [b"1;".to_vec(), vec![b'x'; MAX_CHUNK_LINE + 1]].concat();
        let long_trailers = [b"0\r\n".to_vec(), vec![b'x'; MAX_TRAILERS + 1]].concat();
        let broken: [&[u8]; 8] = [
            b"x\r\n",
            b"\r\n",
            b"-1\r\n",
            b"5\nhello",
            b"1\r\nab",
            b"ffffffffffffffff\r\n",
            &long_line,
            &long_trailers,
        ];
        for input in broken {
            assert_eq!(read(Framing::Chunked, &[input]), Err(Refusal::Chunk), "{}", input.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_at_all_are_read_without_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(Framing::Chunked, &[&input]);
        }

        #[test]
        fn how_a_body_is_cut_makes_no_difference(first in 0..CHUNKED.len(), second in 0..CHUNKED.len()) {
            let (first, second) = (first.min(second), first.max(second));
            let pieces = [&CHUNKED[..first], &CHUNKED[first..second], &CHUNKED[second..]];
            prop_assert_eq!(read(Framing::Chunked, &pieces), read(Framing::Chunked, &[CHUNKED]));
        }
    }
}
