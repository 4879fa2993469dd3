//! The body of an answer: its transfer coding taken off.

use crate::chunked::{Chunked, Decoded};
use brunt_protocol::Malformed;

/// Decodes one body. Content is handed on as it comes and is not stored.
#[derive(Debug)]
pub(super) enum BodyDecoder {
    /// This many more bytes.
    Length {
        left: u64,
        /// The last byte was handed on, and is taken with the end of the body.
        is_last_seen: bool,
    },
    /// Chunks.
    Chunked(Chunked),
    /// Everything until the connection ends.
    UntilClose,
}

impl BodyDecoder {
    /// A body of `length` bytes, which is not 0.
    pub(super) fn of_length(length: u64) -> Self {
        Self::Length { left: length, is_last_seen: false }
    }

    /// A body in chunks.
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunked::new())
    }

    /// Takes bytes. Returns how many, and the progress. Content goes to `take`, with a flag if a chunk ends with it; if
    /// `take` returns a number, decoding stops after that many bytes of the content. A body never completes with bytes
    /// at which it stops: its end follows with the next call, so that no two things happen at once.
    #[inline]
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8], bool) -> Result<Option<usize>, Malformed>,
    ) -> Result<(usize, Decoded), Malformed> {
        match self {
            Self::Length { left, is_last_seen } => {
                let n = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let content = bytes.get(..n).unwrap_or(bytes);
                let stopped = if std::mem::take(is_last_seen) { None } else { take(content, false)? };
                let Some(end) = stopped else {
                    *left -= n as u64;
                    return Ok((n, if *left == 0 { Decoded::Complete } else { Decoded::More }));
                };
                if end as u64 == *left {
                    (*left, *is_last_seen) = (1, true);
                    return Ok((end - 1, Decoded::Stopped));
                }
                *left -= end as u64;
                Ok((end, Decoded::Stopped))
            }
            Self::Chunked(chunked) => chunked.receive(bytes, take),
            Self::UntilClose => Ok(match take(bytes, false)? {
                Some(end) => (end, Decoded::Stopped),
                None => (bytes.len(), Decoded::More),
            }),
        }
    }
}
