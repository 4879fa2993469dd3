//! One connection of a virtual user over plain TCP: bytes out, and whatever piece of what comes its script asks for.

use super::super::{Answer, Client, Malformed, Parts, Progress, Started};
use super::answer::{MOST_ANSWER_BYTES, cut};
use super::options::{Framing, LengthPrefix};
use crate::user::Message;
use brunt_model::content::Content;

/// There is no status in an answer of which nothing is known.
const NO_STATUS: u16 = 0;
/// What is kept of an empty buffer, in bytes.
const KEPT_BYTES: usize = 4 * 1024;

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Nothing: it ends when it is sent.
    None,
    /// A piece that ends as a flood's answers do.
    Framed(Framing),
    /// Everything until the peer closes its side.
    Rest,
}

impl Piece {
    /// Packs itself into a hint, and what does not fit into that behind the call's bytes.
    pub(super) fn pack(&self, bytes: &mut Vec<u8>) -> u32 {
        let packed = |kind: u32, number: usize| kind | (number as u32) << 3;
        match self {
            Self::None | Self::Framed(Framing::None) => 0,
            Self::Framed(Framing::Until(end)) => {
                bytes.extend_from_slice(&end.0);
                packed(1, end.0.len())
            }
            Self::Framed(Framing::Bytes(count)) => packed(2, *count as usize),
            Self::Framed(Framing::LengthPrefix(prefix)) => {
                packed(3, usize::from(prefix.bytes) << 1 | usize::from(prefix.little_endian))
            }
            Self::Rest => 4,
        }
    }

    /// What was packed into a hint, and the call's bytes alone.
    pub(super) fn unpack(hint: u32, bytes: &[u8]) -> (Self, &[u8]) {
        let number = hint >> 3;
        match hint & 7 {
            1 => {
                let (bytes, end) =
                    bytes.split_at_checked(bytes.len().saturating_sub(number as usize)).unwrap_or((bytes, &[]));
                (Self::Framed(Framing::Until(Content(end.to_vec()))), bytes)
            }
            2 => (Self::Framed(Framing::Bytes(number)), bytes),
            3 => {
                let prefix = LengthPrefix { bytes: (number >> 1) as u8, little_endian: number & 1 == 1 };
                (Self::Framed(Framing::LengthPrefix(prefix)), bytes)
            }
            4 => (Self::Rest, bytes),
            _ => (Self::None, bytes),
        }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    /// What has come and was not given out, behind what was.
    buffer: Vec<u8>,
    /// How much of it was given out.
    given: usize,
    /// How much of the rest was searched for the end of a piece, and did not have it.
    searched: usize,
    /// What the call in flight waits for.
    waits: Piece,
    /// Whether that call has sent something, whose answer may still come when nobody waits for it any more.
    has_sent: bool,
    /// Whether the peer sends no more.
    ended: bool,
    /// Where in the buffer the last piece lies.
    piece: std::ops::Range<usize>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            given: 0,
            searched: 0,
            waits: Piece::None,
            has_sent: false,
            ended: false,
            piece: 0..0,
        }
    }
}

impl Stream {
    /// The piece that is waited for, if it is there; it lies in `piece` then.
    fn find(&mut self) -> Result<bool, Malformed> {
        let rest = self.buffer.get(self.given..).unwrap_or_default();
        let found = match &self.waits {
            Piece::None => None,
            Piece::Rest => self.ended.then_some((rest.len(), 0..rest.len())),
            Piece::Framed(framing) => cut(rest, self.searched, framing)?.map(|cut| (cut.whole, cut.body)),
        };
        let Some((whole, body)) = found else {
            self.searched = rest.len();
            return Ok(false);
        };
        self.piece = self.given + body.start..self.given + body.end;
        self.given += whole;
        self.searched = 0;
        self.waits = Piece::None;
        Ok(true)
    }

    /// Forgets what was given out.
    fn tidy(&mut self) {
        self.piece = 0..0;
        if self.given == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
            self.given = 0;
        } else if self.given > KEPT_BYTES {
            self.buffer.drain(..self.given);
            self.given = 0;
        }
    }

    const fn answered(reusable: bool) -> Answer {
        Answer { position: 0, status: NO_STATUS, reusable }
    }
}

impl Client for Stream {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        self.tidy();
        let (piece, bytes) = Piece::unpack(message.hint, message.bytes);
        out.extend_from_slice(bytes);
        self.has_sent = !bytes.is_empty();
        self.searched = 0;
        self.waits = piece;
        if self.waits == Piece::None {
            return Started::Sent(NO_STATUS);
        }
        match self.find() {
            Ok(true) => Started::Sent(NO_STATUS),
            // What is wrong with what is there is said with the next bytes, or comes too late.
            Ok(false) | Err(_) => Started::Awaited,
        }
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        self.tidy();
        if self.buffer.len() - self.given + bytes.len() > MOST_ANSWER_BYTES {
            return Err(Malformed::because("more than 16 MiB that nobody has received"));
        }
        self.buffer.extend_from_slice(bytes);
        if self.waits == Piece::None {
            return Ok((bytes.len(), Progress::Aside));
        }
        let progress = if self.find()? { Progress::Answered(Self::answered(true)) } else { Progress::More };
        Ok((bytes.len(), progress))
    }

    fn closed(&mut self) -> Option<Answer> {
        self.ended = true;
        let waits_for_rest = self.waits == Piece::Rest;
        (waits_for_rest && self.find().is_ok_and(|found| found)).then_some(Self::answered(false))
    }

    fn give_up(&mut self) -> bool {
        self.waits = Piece::None;
        self.searched = 0;
        !self.has_sent
    }

    fn parts(&self) -> Parts<'_> {
        Parts { head: &[], body: self.buffer.get(self.piece.clone()).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start(stream: &mut Stream, piece: &Piece, bytes: &[u8]) -> (Started, Vec<u8>) {
        let (mut encoded, mut out) = (bytes.to_vec(), Vec::new());
        let hint = piece.pack(&mut encoded);
        (stream.start(&Message { bytes: &encoded, hint, ..Message::default() }, &mut out), out)
    }

    fn until(end: &str) -> Piece {
        Piece::Framed(Framing::Until(Content(end.as_bytes().to_vec())))
    }

    fn prefixed(text: &str) -> Piece {
        Piece::Framed(Framing::LengthPrefix(LengthPrefix::parse(text).unwrap()))
    }

    fn bytes(count: u32) -> Piece {
        Piece::Framed(Framing::Bytes(count))
    }

    #[test]
    fn pieces_are_packed_into_hints() {
        for piece in [Piece::None, until("\r\n"), bytes(16 << 20), prefixed("4le"), prefixed("1"), Piece::Rest] {
            let mut packed = b"call".to_vec();
            let hint = piece.pack(&mut packed);
            assert_eq!(Piece::unpack(hint, &packed), (piece, b"call".as_slice()));
        }
    }

    #[test]
    fn what_came_early_is_there_when_it_is_asked_for() {
        let mut stream = Stream::default();
        assert_eq!(start(&mut stream, &until("\n"), b"PING"), (Started::Awaited, b"PING".to_vec()));
        let answered = Progress::Answered(Stream::answered(true));
        assert_eq!(stream.receive(b"one\ntwo\n\x02abc", &mut Vec::new()), Ok((12, answered)));
        assert_eq!(stream.parts().body, b"one");
        assert_eq!(start(&mut stream, &until("\n"), b"").0, Started::Sent(0));
        assert_eq!(stream.parts().body, b"two");
        assert_eq!(start(&mut stream, &prefixed("1"), b"").0, Started::Sent(0));
        assert_eq!(stream.parts().body, b"ab");
        assert_eq!(start(&mut stream, &Piece::Rest, b"").0, Started::Awaited);
        assert_eq!(stream.closed(), Some(Stream::answered(false)));
        assert_eq!(stream.parts().body, b"c");
    }

    #[test]
    fn only_a_call_that_has_sent_nothing_can_be_given_up() {
        let mut stream = Stream::default();
        start(&mut stream, &bytes(3), b"");
        assert_eq!(stream.receive(b"ab", &mut Vec::new()), Ok((2, Progress::More)));
        assert!(stream.give_up());
        assert_eq!(stream.receive(b"c", &mut Vec::new()), Ok((1, Progress::Aside)));
        assert_eq!(start(&mut stream, &bytes(3), b"x").0, Started::Sent(0), "nothing of it is lost");
        start(&mut stream, &bytes(3), b"x");
        assert!(!stream.give_up());
    }

    #[test]
    fn what_nobody_receives_has_a_limit() {
        let mut stream = Stream::default();
        let chunk = vec![0; 1 << 20];
        let error = (0..17).find_map(|_| stream.receive(&chunk, &mut Vec::new()).err()).unwrap();
        assert_eq!(error.0, "more than 16 MiB that nobody has received");
    }

    proptest! {
        /// However the bytes are cut, and whether they come before or after they are asked for.
        #[test]
        fn pieces_change_nothing(sent in prop::collection::vec(0_u8..4, 0..100), size in 1_usize..9, early: bool) {
            let wanted = [bytes(3), until("\x01\x02"), prefixed("1"), until("\x03"), bytes(1)];
            let mut stream = Stream::default();
            let mut chunks = sent.chunks(size);
            if early {
                for chunk in chunks.by_ref() {
                    stream.receive(chunk, &mut Vec::new()).unwrap();
                }
            }
            let (mut got, mut reference, mut at) = (Vec::new(), Vec::new(), 0);
            'asking: for piece in wanted.iter().cycle().take(40) {
                let mut there = start(&mut stream, piece, b"").0 == Started::Sent(0);
                while !there {
                    let Some(chunk) = chunks.next() else { break 'asking };
                    there = matches!(stream.receive(chunk, &mut Vec::new()).unwrap().1, Progress::Answered(_));
                }
                got.push(stream.parts().body.to_vec());
            }
            for piece in wanted.iter().cycle().take(40) {
                let Piece::Framed(framing) = piece else { unreachable!() };
                let rest = &sent[at..];
                let Some(found) = cut(rest, 0, framing).unwrap() else { break };
                reference.push(rest[found.body].to_vec());
                at += found.whole;
            }
            prop_assert_eq!(got, reference);
        }
    }
}
