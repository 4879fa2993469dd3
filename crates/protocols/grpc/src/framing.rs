//! Messages on a stream (gRPC over HTTP/2, "Length-Prefixed-Message"): a flag, a length in four bytes, the message.

use std::io::Read as _;

use flate2::Compression;
use flate2::bufread::GzEncoder;
use flate2::read::GzDecoder;

/// The bytes before each message: the flag of a compressed message, and the length.
pub const PREFIX_BYTES: usize = 5;
/// The most memory that a message keeps once it is taken, in bytes.
const KEPT_BYTES: usize = 16 * 1024;
/// The longest message that is held for its check alone, in bytes.
const MOST_CHECKED_BYTES: u32 = 1 << 20;

/// Appends a message with its prefix.
pub fn write_message(message: &[u8], is_compressed: bool, out: &mut Vec<u8>) {
    out.push(u8::from(is_compressed));
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// Compresses a message with gzip.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn compressed(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzEncoder::new(message, Compression::default()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Decompresses a message of gzip, to `limit` bytes at most.
///
/// # Errors
/// When it is not gzip, or longer.
pub fn decompressed(message: &[u8], limit: u32) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(message).take(u64::from(limit) + 1).read_to_end(&mut bytes);
    match read {
        Err(_) => Err(Fault::Malformed("a compressed message that is not gzip")),
        Ok(length) if length > limit as usize => Err(Fault::Oversize),
        Ok(_) => Ok(bytes),
    }
}

/// Why bytes are no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes break the format.
    #[error("{0}")]
    Malformed(&'static str),
    /// A message is longer than allowed.
    #[error("a message of more bytes than --max-answer allows")]
    Oversize,
}

/// Splits the body of a stream into messages. Pure and bounded: a message that is neither asked for nor compressed, which
/// is then decompressed as a whole, is held up to 1 MiB, to be checked.
#[derive(Debug)]
pub struct PrefixedReader {
    prefix: [u8; PREFIX_BYTES],
    /// The number of prefix bytes that have come.
    prefixed: u8,
    /// The missing bytes of the message.
    left: u32,
    /// The longest message, in bytes.
    limit: u32,
    keeps: bool,
    /// Whether the newest message is held.
    holds: bool,
    message: Vec<u8>,
}

impl PrefixedReader {
    /// A reader of messages of at most `limit` bytes, which it holds in `memory`: with `keep` each, without those that are
    /// compressed or short.
    pub fn new(limit: u32, keep: bool, memory: Vec<u8>) -> Self {
        Self { prefix: [0; PREFIX_BYTES], prefixed: 0, left: 0, limit, keeps: keep, holds: keep, message: memory }
    }

    /// The memory of the messages, for another reader.
    pub fn into_memory(mut self) -> Vec<u8> {
        self.message.clear();
        self.message.shrink_to(KEPT_BYTES);
        self.message
    }

    /// Takes bytes, up to the end of a message at most. Returns how many it took, and whether a message is complete.
    ///
    /// # Errors
    /// When a flag is neither 0 nor 1, or a message is too long.
    #[inline]
    pub fn read(&mut self, bytes: &[u8]) -> Result<(usize, bool), Fault> {
        let mut taken = 0;
        let before = usize::from(self.prefixed);
        if before < PREFIX_BYTES {
            if before == 0 {
                self.message.clear();
                self.message.shrink_to(KEPT_BYTES);
            }
            taken = bytes.len().min(PREFIX_BYTES - before);
            if let (Some(prefix), Some(bytes)) = (self.prefix.get_mut(before..before + taken), bytes.get(..taken)) {
                prefix.copy_from_slice(bytes);
            }
            self.prefixed += taken as u8;
            let [flag, length @ ..] = self.prefix;
            if flag > 1 {
                return Err(Fault::Malformed("a message whose first byte is neither 0 nor 1"));
            }
            if before + taken < PREFIX_BYTES {
                return Ok((taken, false));
            }
            self.left = u32::from_be_bytes(length);
            if self.left > self.limit {
                return Err(Fault::Oversize);
            }
            self.holds = self.keeps || flag == 1 || self.left <= MOST_CHECKED_BYTES;
        }
        let rest = bytes.get(taken..).unwrap_or(&[]);
        let part = rest.get(..self.left as usize).unwrap_or(rest);
        if self.holds {
            self.message.extend_from_slice(part);
        }
        self.left -= part.len() as u32;
        let is_whole = self.left == 0;
        if is_whole {
            self.prefixed = 0;
        }
        Ok((taken + part.len(), is_whole))
    }

    /// Whether a message is under way.
    pub fn is_within(&self) -> bool {
        self.prefixed > 0
    }

    /// Whether the newest message is compressed.
    pub fn is_compressed(&self) -> bool {
        self.prefix.first() == Some(&1)
    }

    /// The newest message as it came, if it is held.
    pub fn message(&self) -> Option<&[u8]> {
        self.holds.then_some(&self.message)
    }
}

/// The messages in a complete body, each with a flag for compressed ones; an incomplete one at the end is left out.
pub fn messages(mut body: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    std::iter::from_fn(move || {
        let (prefix, rest) = body.split_first_chunk::<PREFIX_BYTES>()?;
        let [flag, length @ ..] = *prefix;
        let (message, after) = rest.split_at_checked(u32::from_be_bytes(length) as usize)?;
        body = after;
        Some((flag == 1, message))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(reader: &mut PrefixedReader, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (taken, is_whole) = reader.read(bytes)?;
            assert!(taken > 0, "bytes are always taken");
            bytes = &bytes[taken..];
            if is_whole {
                all.push(reader.message().unwrap().to_vec());
            }
        }
        Ok(all)
    }

    #[test]
    fn a_flag_and_a_length_are_checked() {
        assert_eq!(
            read_all(&mut PrefixedReader::new(9, true, Vec::new()), &[2]),
            Err(Fault::Malformed("a message whose first byte is neither 0 nor 1"))
        );
        assert_eq!(read_all(&mut PrefixedReader::new(9, true, Vec::new()), &[0, 0, 0, 0, 10]), Err(Fault::Oversize));
        let mut reader = PrefixedReader::new(9, true, Vec::new());
        assert_eq!(read_all(&mut reader, &[0, 0, 0, 0, 2, 7]), Ok(vec![]));
        assert!(reader.is_within());
        assert_eq!(read_all(&mut reader, &[8]), Ok(vec![vec![7, 8]]));
        assert!(!reader.is_within());
    }

    #[test]
    fn gzip_comes_back_within_the_limit() {
        let message = vec![7; 10_000];
        let small = compressed(&message).unwrap();
        assert!(small.len() < 100);
        assert_eq!(decompressed(&small, 10_000), Ok(message));
        assert_eq!(decompressed(&small, 9_999), Err(Fault::Oversize));
        assert!(decompressed(b"no gzip", 9).is_err());
        let cut = decompressed(&small[..small.len() - 9], 10_000);
        assert_eq!(cut, Err(Fault::Malformed("a compressed message that is not gzip")));
    }

    proptest! {
        #[test]
        fn messages_come_out_however_they_are_cut(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
            cuts in prop::collection::vec(1_usize..30, 1..40),
        ) {
            let mut body = Vec::new();
            for message in &sent {
                write_message(message, false, &mut body);
            }
            let (mut reader, mut rest, mut got) = (PrefixedReader::new(100, false, Vec::new()), body.as_slice(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                got.extend(read_all(&mut reader, piece).unwrap());
                rest = after;
            }
            prop_assert_eq!(&got, &sent);
            let whole: Vec<_> = messages(&body).map(|(_, message)| message.to_vec()).collect();
            prop_assert_eq!(&whole, &sent);
        }

        #[test]
        fn hostile_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_all(&mut PrefixedReader::new(1000, true, Vec::new()), &bytes);
            let _ = messages(&bytes).count();
            let _ = decompressed(&bytes, 1000);
        }
    }
}
