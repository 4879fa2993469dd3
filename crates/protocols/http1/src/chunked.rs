//! The chunked transfer coding (RFC 9112 §7.1): read as it comes and counted, never stored.

use brunt_protocol::Malformed;

/// The most bytes of chunk extensions, and of trailers, that an answer may have.
const MOST_ASIDE_BYTES: u32 = 64 * 1024;
/// The most hexadecimal digits of a chunk size: numbers up to 2^60.
const MOST_SIZE_DIGITS: u8 = 15;

/// Where in a chunked body the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In a chunk's size, after this many digits.
    Size { digits: u8 },
    /// After the size, in white space or an extension, up to the line's end.
    Extension,
    /// At the LF that ends the size line.
    SizeEnd,
    /// In a chunk's data.
    Data,
    /// At the CR after the data.
    DataCr,
    /// At the LF after the data.
    DataLf,
    /// At the beginning of a trailer line; an empty one ends the body.
    TrailerStart,
    /// In a trailer line.
    Trailer,
    /// At the LF that ends the body.
    End,
}

/// How far a body was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// All bytes were taken, and more are to come.
    More,
    /// Whoever takes the content wanted to stop here.
    Stopped,
    /// The body is complete.
    Complete,
}

/// Reads one chunked body.
#[derive(Debug, Clone)]
pub(super) struct Chunked {
    at: At,
    /// The rest of the chunk, or the size read so far.
    left: u64,
    /// Bytes of extensions and trailers so far.
    aside: u32,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self { at: At::Size { digits: 0 }, left: 0, aside: 0 }
    }

    /// Takes bytes. Returns how many, and the progress. Content goes to `data`, with a flag if a chunk ends with it; if
    /// `data` returns a number, reading stops after that many bytes of the content.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8], bool) -> Result<Option<usize>, Malformed>,
    ) -> Result<(usize, Decoded), Malformed> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.at == At::Data {
                let there = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let chunk = rest.get(..there).unwrap_or(rest);
                let stopped = data(chunk, there as u64 == self.left)?;
                let taken = stopped.unwrap_or(there).min(there);
                self.left -= taken as u64;
                rest = rest.get(taken..).unwrap_or(&[]);
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                if stopped.is_some() {
                    return Ok((bytes.len() - rest.len(), Decoded::Stopped));
                }
                continue;
            }
            rest = after;
            if self.step(byte)? {
                return Ok((bytes.len() - rest.len(), Decoded::Complete));
            }
        }
        Ok((bytes.len(), Decoded::More))
    }

    /// Takes one byte that is not content. Returns whether it was the body's last.
    fn step(&mut self, byte: u8) -> Result<bool, Malformed> {
        self.at = match (self.at, byte) {
            (At::Size { digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if digits >= MOST_SIZE_DIGITS {
                    return Err(Malformed::because("a chunk size of more than 15 digits"));
                }
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.left = self.left * 16 + u64::from(digit);
                At::Size { digits: digits + 1 }
            }
            (At::Size { digits: 1.. } | At::Extension, b'\r') => At::SizeEnd,
            (At::Size { digits: 1.. }, b';' | b' ' | b'\t') => At::Extension,
            (At::Size { .. }, _) => return Err(Malformed::because("bad chunk size")),
            (At::Extension, b'\n') => return Err(Malformed::because("bad chunk extension")),
            (At::Extension, _) => self.aside(At::Extension)?,
            (At::SizeEnd, b'\n') if self.left == 0 => At::TrailerStart,
            (At::SizeEnd, b'\n') => At::Data,
            (At::SizeEnd, _) => return Err(Malformed::because("bad end of a chunk size")),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size { digits: 0 },
            (At::Data | At::DataCr | At::DataLf, _) => {
                return Err(Malformed::because("a chunk longer than its size"));
            }
            (At::TrailerStart, b'\r') => At::End,
            (At::TrailerStart | At::End, b'\n') => return Ok(true),
            (At::Trailer, b'\n') => At::TrailerStart,
            (At::TrailerStart | At::Trailer, _) => self.aside(At::Trailer)?,
            (At::End, _) => return Err(Malformed::because("bad end of a chunked body")),
        };
        Ok(false)
    }

    fn aside(&mut self, at: At) -> Result<At, Malformed> {
        self.aside += 1;
        if self.aside > MOST_ASIDE_BYTES {
            return Err(Malformed::because("more than 64 KiB of chunk extensions or trailers"));
        }
        Ok(at)
    }
}
