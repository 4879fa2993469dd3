//! Answers cut out of a stream of bytes, which come in pieces of any size.

use memchr::memmem;

use super::options::{AnswerFraming, LengthPrefix};
use brunt_protocol::Malformed;

/// The longest answer, in bytes.
pub const MOST_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Capacity that a connection's buffer keeps between answers, in bytes.
const KEPT_BYTES: usize = 1024;

/// Reads one answer after the other.
#[derive(Debug, Default)]
pub struct AnswerReader {
    /// Received bytes that were not returned, behind those that were.
    buffer: Vec<u8>,
    /// The number of returned bytes.
    given: usize,
    /// The length of the rest that was searched for the end of an answer without finding it.
    searched: usize,
}

impl AnswerReader {
    /// Takes bytes, up to the end of one answer at most. Returns how many it took, and the answer if it is complete,
    /// without the bytes that only mark its length or its end.
    ///
    /// # Errors
    /// When the answer is longer than [`MOST_ANSWER_BYTES`].
    #[inline]
    pub fn receive<'a>(
        &'a mut self,
        bytes: &'a [u8],
        framing: &AnswerFraming,
    ) -> Result<(usize, Option<&'a [u8]>), Malformed> {
        self.tidy();
        let before = self.buffer.len() - self.given;
        if before == 0 {
            // An answer in one piece is returned without copying it.
            if let Some(cut) = cut(bytes, 0, framing)? {
                return Ok((cut.whole, bytes.get(cut.body)));
            }
        }
        self.buffer.extend_from_slice(bytes);
        let rest = self.buffer.get(self.given..).unwrap_or_default();
        let length = rest.len();
        let Some(cut) = cut(rest, self.searched, framing)? else {
            if length > MOST_ANSWER_BYTES {
                return Err(Malformed::because(TOO_LONG));
            }
            self.searched = length;
            return Ok((bytes.len(), None));
        };
        // Bytes behind the answer come again.
        self.buffer.truncate(self.given + cut.whole.max(before));
        let taken = cut.whole.saturating_sub(before).max(1);
        Ok((taken, Some(self.give(&cut))))
    }

    /// Keeps bytes that nobody has asked for yet.
    ///
    /// # Errors
    /// When there would be more than [`MOST_ANSWER_BYTES`] of them.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.tidy();
        if self.buffer.len() - self.given + bytes.len() > MOST_ANSWER_BYTES {
            return Err(Malformed::because("more than 16 MiB that nobody has received"));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The complete answer at the beginning of the kept bytes, if there is one.
    ///
    /// # Errors
    /// When it is longer than [`MOST_ANSWER_BYTES`].
    pub(super) fn take(&mut self, framing: &AnswerFraming) -> Result<Option<&[u8]>, Malformed> {
        self.tidy();
        let rest = self.buffer.get(self.given..).unwrap_or_default();
        let length = rest.len();
        let Some(cut) = cut(rest, self.searched, framing)? else {
            self.searched = length;
            return Ok(None);
        };
        Ok(Some(self.give(&cut)))
    }

    /// All that was kept.
    pub(super) fn take_rest(&mut self) -> &[u8] {
        let length = self.buffer.len() - self.given;
        self.give(&Cut { whole: length, body: 0..length })
    }

    /// The next answer ends in another way than the last: nothing was searched for its end.
    pub(super) fn search_anew(&mut self) {
        self.searched = 0;
    }

    fn give(&mut self, cut: &Cut) -> &[u8] {
        let body = self.given + cut.body.start..self.given + cut.body.end;
        self.given += cut.whole;
        self.searched = 0;
        self.buffer.get(body).unwrap_or_default()
    }

    /// Drops returned bytes, unless they are few and others lie behind them.
    #[inline]
    fn tidy(&mut self) {
        if self.given == 0 {
            return;
        }
        if self.given == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
            self.given = 0;
        } else if self.given > KEPT_BYTES {
            self.buffer.drain(..self.given);
            self.given = 0;
        }
    }
}

pub(super) const TOO_LONG: &str = "an answer of more than 16 MiB";

/// The end of an answer, and the range of its content.
pub(super) struct Cut {
    pub(super) whole: usize,
    pub(super) body: std::ops::Range<usize>,
}

/// The answer at the beginning of `bytes`; the first `searched` bytes were searched before, without finding its end.
#[inline]
pub(super) fn cut(bytes: &[u8], searched: usize, framing: &AnswerFraming) -> Result<Option<Cut>, Malformed> {
    let (head, length) = match framing {
        AnswerFraming::None => return Ok(Some(Cut { whole: bytes.len(), body: 0..bytes.len() })),
        AnswerFraming::Until(end) => {
            let end = end.0.as_slice();
            // The end may lie across two pieces.
            let from = searched.saturating_sub(end.len().saturating_sub(1));
            let found = memmem::find(bytes.get(from..).unwrap_or_default(), end).map(|at| from + at);
            return match found {
                Some(at) if at > MOST_ANSWER_BYTES => Err(Malformed::because(TOO_LONG)),
                found => Ok(found.map(|at| Cut { whole: at + end.len(), body: 0..at })),
            };
        }
        AnswerFraming::Bytes(count) => (0, *count as usize),
        AnswerFraming::LengthPrefix(prefix) => match length(*prefix, bytes) {
            Some(length) => (usize::from(prefix.bytes), length),
            None => return Ok(None),
        },
    };
    if length > MOST_ANSWER_BYTES {
        return Err(Malformed::because(TOO_LONG));
    }
    let whole = head + length;
    Ok((bytes.len() >= whole).then_some(Cut { whole, body: head..whole }))
}

fn length(prefix: LengthPrefix, bytes: &[u8]) -> Option<usize> {
    let digits = bytes.get(..usize::from(prefix.bytes))?;
    let add = |length: usize, byte: &u8| length << 8 | usize::from(*byte);
    Some(if prefix.little_endian { digits.iter().rev().fold(0, add) } else { digits.iter().fold(0, add) })
}

#[cfg(test)]
mod tests {
    use brunt_plan::content::Content;
    use proptest::prelude::*;

    use super::*;

    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        framing: &AnswerFraming,
    ) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut reader, mut answers) = (AnswerReader::default(), Vec::new());
        for piece in pieces {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, answer) = reader.receive(rest, framing)?;
                assert!((1..=rest.len()).contains(&taken));
                answers.extend(answer.map(<[u8]>::to_vec));
                rest = &rest[taken..];
            }
        }
        Ok(answers)
    }

    fn until(end: &[u8]) -> AnswerFraming {
        AnswerFraming::Until(Content(end.to_vec()))
    }

    fn prefix(text: &str) -> AnswerFraming {
        AnswerFraming::LengthPrefix(LengthPrefix::parse(text).unwrap())
    }

    #[test]
    fn answers_end_where_they_are_said_to() {
        let answers = |bytes: &[u8], framing: &AnswerFraming| read([bytes], framing).unwrap();
        assert_eq!(answers(b"+PONG\r\n+OK\r\nhalf", &until(b"\r\n")), [b"+PONG".to_vec(), b"+OK".to_vec()]);
        assert_eq!(answers(b"\r\n\r\n", &until(b"\r\n")), [b"", b""]);
        assert_eq!(answers(b"abcdefgh", &AnswerFraming::Bytes(3)), [b"abc", b"def"]);
        assert_eq!(answers(b"\x02ab\x00\x01cX", &prefix("1")), [b"ab".to_vec(), b"".to_vec(), b"c".to_vec()]);
        assert_eq!(answers(b"\x00\x02ab", &prefix("2")), [b"ab"]);
        assert_eq!(answers(b"\x02\x00ab", &prefix("2le")), [b"ab"]);
        assert_eq!(answers(b"\x00\x00\x00\x02ab", &prefix("4")), [b"ab"]);
        assert_eq!(answers(b"\x02\x00\x00\x00ab", &prefix("4le")), [b"ab"]);
    }

    #[test]
    fn an_answer_has_a_limit() {
        let long = vec![b'x'; MOST_ANSWER_BYTES + 1];
        assert!(read(long.chunks(65_536), &until(b"\n")).unwrap_err().0.contains("more than 16 MiB"));
        assert!(read([b"\xff\xff\xff\xff".as_slice()], &prefix("4")).is_err(), "as soon as its length is known");
    }

    proptest! {
        #[test]
        fn pieces_change_nothing(
            bytes in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'\r'), Just(b'\n'), 0_u8..4], 0..200),
            size in 1_usize..9,
        ) {
            for framing in [until(b"\r\n"), until(b"aa\n"), AnswerFraming::Bytes(7), prefix("1"), prefix("2"), prefix("4le")] {
                let whole = read([bytes.as_slice()], &framing);
                let cut = read(bytes.chunks(size), &framing);
                prop_assert_eq!(whole, cut, "{:?}", framing);
            }
        }
    }
}
