//! One connection over plain TCP: bytes out, and answers or pieces cut out of the received bytes.

use std::borrow::Cow;
use std::sync::Arc;

use brunt_plan::content::Content;
use brunt_protocol::source::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, Malformed, Opening, Progress, Started};
use brunt_record::outcome::Failure;

use super::answer::{AnswerReader, TOO_LONG};
use super::options::{AnswerFraming, Options};
use super::piece::Piece;

/// Plain TCP has no status.
const NO_STATUS: u16 = 0;
/// The answer of the oldest call, on a connection that goes on.
const ANSWERED: Answer = Answer { position: 0, status: NO_STATUS, reusable: true };

/// The use of a connection.
enum Purpose {
    /// A flood: calls that are all alike, and their answers in the same order.
    Flood {
        options: Arc<Options>,
        /// Calls that wait for their answers.
        in_flight: u32,
    },
    /// A user's conversation: anything that its script sends and waits for.
    Conversation(Box<Conversation>),
}

/// The piece that a user's call waits for, and the last one that came.
struct Conversation {
    waits: Piece,
    /// The call in flight has sent something, whose answer may still come when nobody waits for it any more.
    has_sent: bool,
    /// Our side is closed.
    has_finished: bool,
    /// The answer to the last call.
    last: Vec<u8>,
}

/// The state of one connection, of a flood or of a user.
pub(super) struct TcpClient {
    reader: AnswerReader,
    /// The end of the peer's greeting, until it has come.
    greeting: Option<AnswerFraming>,
    /// The peer sends no more.
    ended: bool,
    purpose: Purpose,
}

impl TcpClient {
    /// A connection of a flood.
    pub(super) fn flood(options: Arc<Options>) -> Self {
        let greeting = options.greeting.clone();
        Self::new(greeting, Purpose::Flood { options, in_flight: 0 })
    }

    /// A connection of a user, to a peer whose greeting ends with `greeting`, if it greets.
    pub(super) fn conversation(greeting: Option<Content>) -> Self {
        let conversation = Conversation { waits: Piece::None, has_sent: false, has_finished: false, last: Vec::new() };
        Self::new(greeting, Purpose::Conversation(Box::new(conversation)))
    }

    fn new(greeting: Option<Content>, purpose: Purpose) -> Self {
        Self { reader: AnswerReader::default(), greeting: greeting.map(AnswerFraming::Until), ended: false, purpose }
    }
}

impl Conversation {
    /// Takes the awaited piece out of bytes that came before. False if it is not there.
    fn find(&mut self, reader: &mut AnswerReader, ended: bool) -> Result<bool, Malformed> {
        let found = match &self.waits {
            Piece::Rest if ended => Some(reader.take_rest()),
            Piece::Rest | Piece::None | Piece::Finish => None,
            Piece::Framed(framing) => reader.take(framing)?,
        };
        let Some(found) = found else { return Ok(false) };
        self.last.clear();
        self.last.extend_from_slice(found);
        self.waits = Piece::None;
        Ok(true)
    }

    fn receive(&mut self, reader: &mut AnswerReader, bytes: &[u8]) -> Result<(usize, Progress), Malformed> {
        let Piece::Framed(framing) = &self.waits else {
            reader.store(bytes)?;
            let waits = self.waits == Piece::Rest;
            return Ok((bytes.len(), if waits { Progress::More } else { Progress::ControlFrame }));
        };
        let (taken, found) = reader.receive(bytes, framing)?;
        let Some(found) = found else { return Ok((taken, Progress::More)) };
        self.last.clear();
        self.last.extend_from_slice(found);
        self.waits = Piece::None;
        // The bytes behind it are for later calls.
        reader.store(bytes.get(taken..).unwrap_or_default())?;
        Ok((bytes.len(), Progress::Answered(ANSWERED)))
    }
}

impl Client for TcpClient {
    fn open(&mut self, _alpn: Option<&[u8]>, _out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        Ok(if self.greeting.is_some() { Opening::Exchange } else { Opening::Ready })
    }

    fn capacity(&self) -> usize {
        match self.purpose {
            Purpose::Flood { .. } => usize::MAX,
            // The boundary between two calls' pieces is known once the first has come.
            Purpose::Conversation(_) => 1,
        }
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        match &mut self.purpose {
            Purpose::Flood { options, in_flight } => {
                out.extend_from_slice(message.bytes);
                if options.framing == AnswerFraming::None {
                    return Started::Sent(NO_STATUS);
                }
                *in_flight += 1;
                Started::Awaited
            }
            Purpose::Conversation(conversation) => {
                let (piece, bytes) = Piece::unpack(message.hint, message.bytes);
                if conversation.has_finished && !bytes.is_empty() {
                    return Started::Malformed("the script has finished sending on this connection");
                }
                if piece == Piece::Finish {
                    conversation.has_finished = true;
                    return Started::Sent(NO_STATUS);
                }
                out.extend_from_slice(bytes);
                conversation.has_sent = !bytes.is_empty();
                conversation.last.clear();
                conversation.waits = piece;
                self.reader.search_anew();
                match conversation.find(&mut self.reader, self.ended) {
                    Ok(true) => Started::Sent(NO_STATUS),
                    Ok(false) if conversation.waits == Piece::None => Started::Sent(NO_STATUS),
                    Ok(false) => Started::Awaited,
                    Err(_) => Started::Malformed(TOO_LONG),
                }
            }
        }
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if let Some(end) = &self.greeting {
            let (taken, greeting) = self.reader.receive(bytes, end)?;
            if greeting.is_none() {
                return Ok((taken, Progress::More));
            }
            self.greeting = None;
            return Ok((taken, Progress::Opened));
        }
        let (options, in_flight) = match &mut self.purpose {
            Purpose::Conversation(conversation) => return conversation.receive(&mut self.reader, bytes),
            Purpose::Flood { options, .. } if options.framing == AnswerFraming::None => {
                return Ok((bytes.len(), Progress::ControlFrame));
            }
            Purpose::Flood { options, in_flight } => (options, in_flight),
        };
        let (taken, answer) = self.reader.receive(bytes, &options.framing)?;
        let progress = match answer {
            None if *in_flight > 0 => Progress::More,
            None => Progress::ControlFrame,
            Some(_) if *in_flight == 0 => Progress::Unsolicited,
            Some(answer) => {
                *in_flight -= 1;
                match &options.expect {
                    // The answer may still come, and would be taken for that of the next call: the connection ends.
                    Some(expected) if expected.0 != answer => Progress::Failed(FailedCall {
                        position: 0,
                        failure: Failure::Mismatch,
                        reason: Cow::Borrowed("another answer came than --expect says"),
                        reusable: false,
                    }),
                    _ => Progress::Answered(ANSWERED),
                }
            }
        };
        Ok((taken, progress))
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        self.ended = true;
        let Purpose::Conversation(conversation) = &mut self.purpose else { return None };
        let waits_for_rest = conversation.waits == Piece::Rest;
        let found = waits_for_rest && conversation.find(&mut self.reader, true).is_ok_and(|found| found);
        found.then_some(Ok(Answer { reusable: false, ..ANSWERED }))
    }

    fn has_finished(&self) -> bool {
        matches!(&self.purpose, Purpose::Conversation(conversation) if conversation.has_finished)
    }

    fn cancel(&mut self, _position: usize, _out: &mut Vec<u8>) -> bool {
        let Purpose::Conversation(conversation) = &mut self.purpose else { return false };
        conversation.waits = Piece::None;
        !conversation.has_sent
    }

    fn parts(&self) -> AnswerParts<'_> {
        match &self.purpose {
            Purpose::Flood { .. } => AnswerParts::default(),
            Purpose::Conversation(conversation) => AnswerParts { head: &[], body: &conversation.last },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::answer::cut;
    use super::super::options::LengthPrefix;
    use super::*;

    fn start(stream: &mut TcpClient, piece: &Piece, bytes: &[u8]) -> (Started, Vec<u8>) {
        let (mut encoded, mut out) = (bytes.to_vec(), Vec::new());
        let hint = piece.pack(&mut encoded);
        (stream.start(&Message { bytes: &encoded, hint, ..Message::default() }, &mut out), out)
    }

    fn until(end: &str) -> Piece {
        Piece::Framed(AnswerFraming::Until(Content(end.as_bytes().to_vec())))
    }

    fn prefixed(text: &str) -> Piece {
        Piece::Framed(AnswerFraming::LengthPrefix(LengthPrefix::parse(text).unwrap()))
    }

    fn bytes(count: u32) -> Piece {
        Piece::Framed(AnswerFraming::Bytes(count))
    }

    fn conversation() -> TcpClient {
        TcpClient::conversation(None)
    }

    /// A flood whose answers end at a line end, and must be `+`.
    fn flood() -> TcpClient {
        let framing = AnswerFraming::Until(Content(b"\n".to_vec()));
        let expect = Some(Content(b"+".to_vec()));
        let options = Options { send: Content(b"?".to_vec()), framing, expect, ..Options::default() };
        TcpClient::flood(Arc::new(options))
    }

    #[test]
    fn a_greeting_is_no_answer_however_it_is_cut() {
        let greeting = Some(Content(b"\r\n".to_vec()));
        let flood = Options { framing: AnswerFraming::Bytes(2), greeting: greeting.clone(), ..Options::default() };
        for size in 1..9 {
            for mut client in [TcpClient::flood(Arc::new(flood.clone())), TcpClient::conversation(greeting.clone())] {
                assert_eq!(client.open(None, &mut Vec::new()), Ok(Opening::Exchange));
                let mut opened_behind = None;
                let (sent, mut at) = (b"* OK\r\nok", 0);
                while opened_behind.is_none() {
                    let end = (at + size).min(sent.len());
                    let (taken, progress) = client.receive(&sent[at..end], &mut Vec::new()).unwrap();
                    at += taken;
                    opened_behind = (progress == Progress::Opened).then_some(at);
                }
                assert_eq!(opened_behind, Some(6));
                let early = matches!(client.purpose, Purpose::Conversation(_));
                if early {
                    client.receive(&sent[at..], &mut Vec::new()).unwrap();
                    assert_eq!(start(&mut client, &bytes(2), b"").0, Started::Sent(0));
                } else {
                    client.start(&Message { bytes: b"?", ..Message::default() }, &mut Vec::new());
                    assert_eq!(client.receive(&sent[at..], &mut Vec::new()), Ok((2, Progress::Answered(ANSWERED))));
                }
            }
        }
    }

    #[test]
    fn an_answer_that_is_owed_is_never_the_next_calls() {
        let mut client = flood();
        assert_eq!(client.start(&Message { bytes: b"?", ..Message::default() }, &mut Vec::new()), Started::Awaited);
        let (taken, progress) = client.receive(b"news\n+\n", &mut Vec::new()).unwrap();
        let Progress::Failed(failed) = progress else { panic!("{progress:?}") };
        assert_eq!((taken, failed.failure, failed.reusable), (5, Failure::Mismatch, false), "the connection ends");
    }

    #[test]
    fn a_flood_gives_each_call_its_answer() {
        let mut client = flood();
        for _ in 0..2 {
            client.start(&Message { bytes: b"?", ..Message::default() }, &mut Vec::new());
        }
        assert_eq!(client.receive(b"+", &mut Vec::new()), Ok((1, Progress::More)));
        assert_eq!(client.receive(b"\n+\n+\n", &mut Vec::new()), Ok((1, Progress::Answered(ANSWERED))));
        assert_eq!(client.receive(b"+\n+\n", &mut Vec::new()), Ok((2, Progress::Answered(ANSWERED))));
        assert_eq!(client.receive(b"+\n", &mut Vec::new()), Ok((2, Progress::Unsolicited)));
        assert_eq!(client.receive(b"+", &mut Vec::new()), Ok((1, Progress::ControlFrame)));
        assert_eq!(client.closed(), None);
    }

    #[test]
    fn what_came_early_is_there_when_it_is_asked_for() {
        let mut stream = conversation();
        assert_eq!(start(&mut stream, &until("\n"), b"PING"), (Started::Awaited, b"PING".to_vec()));
        let answered = Progress::Answered(ANSWERED);
        assert_eq!(stream.receive(b"one\ntwo\n\x02abc", &mut Vec::new()), Ok((12, answered)));
        assert_eq!(stream.parts().body, b"one");
        assert_eq!(start(&mut stream, &until("\n"), b"").0, Started::Sent(0));
        assert_eq!(stream.parts().body, b"two");
        assert_eq!(start(&mut stream, &prefixed("1"), b"").0, Started::Sent(0));
        assert_eq!(stream.parts().body, b"ab");
        assert_eq!(start(&mut stream, &Piece::Rest, b"").0, Started::Awaited);
        assert_eq!(stream.closed(), Some(Ok(Answer { reusable: false, ..ANSWERED })));
        assert_eq!(stream.parts().body, b"c");
    }

    #[test]
    fn a_length_beyond_the_limit_fails_the_call_that_finds_it_there() {
        let mut stream = conversation();
        start(&mut stream, &until("\n"), b"PING");
        stream.receive(b"hi\n\x7f\xff\xff\xff", &mut Vec::new()).unwrap();
        assert_eq!(start(&mut stream, &prefixed("4le"), b"").0, Started::Malformed(TOO_LONG));
    }

    #[test]
    fn only_a_call_that_has_sent_nothing_can_be_given_up() {
        let mut stream = conversation();
        start(&mut stream, &bytes(3), b"");
        assert_eq!(stream.receive(b"ab", &mut Vec::new()), Ok((2, Progress::More)));
        assert!(stream.cancel(0, &mut Vec::new()));
        assert_eq!(stream.receive(b"c", &mut Vec::new()), Ok((1, Progress::ControlFrame)));
        assert_eq!(start(&mut stream, &bytes(3), b"x").0, Started::Sent(0), "nothing of it is lost");
        start(&mut stream, &bytes(3), b"x");
        assert!(!stream.cancel(0, &mut Vec::new()));
    }

    #[test]
    fn what_nobody_receives_has_a_limit() {
        let mut stream = conversation();
        let chunk = vec![0; 1 << 20];
        let error = (0..17).find_map(|_| stream.receive(&chunk, &mut Vec::new()).err()).unwrap();
        assert_eq!(error.0, "more than 16 MiB that nobody has received");
    }

    proptest! {
        /// However the bytes are cut, and whether they come before or after they are asked for.
        #[test]
        fn pieces_change_nothing(sent in prop::collection::vec(0_u8..4, 0..100), size in 1_usize..9, early: bool) {
            let wanted = [bytes(3), until("\x01\x02"), prefixed("1"), until("\x03"), bytes(1)];
            let mut stream = conversation();
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
                    let mut rest = chunk;
                    while !rest.is_empty() {
                        let (taken, progress) = stream.receive(rest, &mut Vec::new()).unwrap();
                        there |= matches!(progress, Progress::Answered(_));
                        rest = &rest[taken..];
                    }
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
