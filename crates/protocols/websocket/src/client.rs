//! One WebSocket connection: its handshake, its messages, its pings and pongs, its close.

use std::borrow::Cow;
use std::sync::Arc;

use brunt_plan::random::Random;
use brunt_protocol::source::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, Malformed, Opening, Progress, Started};
use brunt_record::outcome::Failure;

use super::deflate;
use super::flood::Echo;
use super::frame::{self, Opcode};
use super::handshake;
use super::mailbox::{Kind, Mailbox, hint};
use super::message::{FrameReader, ReadStep};

/// The status of a call that is not a handshake. Handshakes have that of HTTP; a message has none.
const NO_STATUS: u16 = 0;

/// The phase of a connection.
enum Phase {
    /// Nothing was sent yet.
    Fresh,
    /// The handshake was sent, and its answer is awaited.
    Opening(Box<handshake::Reader>),
    /// The handshake is over: messages go back and forth.
    Open,
    /// A Close frame was sent, and the peer's is awaited.
    Leaving,
    /// Both sides have sent a Close frame.
    Left,
}

/// The use of a connection.
enum Purpose {
    /// A flood: the same message over and over, and an echo of each.
    Flood {
        echo: Arc<Echo>,
        /// Each call has a connection of its own, and ends when that is closed.
        closes: bool,
        /// Messages sent whose echo has not come.
        in_flight: u32,
    },
    /// A user's conversation, driven by its script, the handshake included.
    Conversation(Box<Mailbox>),
}

/// The state of one connection, of a flood or of a user.
pub(super) struct WebSocketClient {
    request: Arc<handshake::Request>,
    phase: Phase,
    reader: FrameReader,
    /// Masking keys, and the nonce of the handshake.
    random: Random,
    /// Whether permessage-deflate was agreed upon.
    deflate: bool,
    purpose: Purpose,
    /// The operating system takes no more bytes for now.
    stalled: bool,
    /// The payload of the newest ping that came while the connection was stalled; older ones need no answer (RFC 6455,
    /// section 5.5.3).
    pong: Option<Box<[u8]>>,
}

impl WebSocketClient {
    /// A connection of a flood. With `closes`, each call has a connection of its own.
    pub(super) fn flood(request: Arc<handshake::Request>, echo: Arc<Echo>, closes: bool, random: Random) -> Self {
        Self::new(request, Purpose::Flood { echo, closes, in_flight: 0 }, random)
    }

    /// A connection of a user.
    pub(super) fn conversation(request: Arc<handshake::Request>, random: Random) -> Self {
        Self::new(request, Purpose::Conversation(Box::default()), random)
    }

    fn new(request: Arc<handshake::Request>, purpose: Purpose, random: Random) -> Self {
        Self {
            request,
            phase: Phase::Fresh,
            reader: FrameReader::default(),
            random,
            deflate: false,
            purpose,
            stalled: false,
            pong: None,
        }
    }

    fn key(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    fn nonce(&mut self) -> [u8; 16] {
        let mut nonce = [0; 16];
        for half in nonce.chunks_exact_mut(8) {
            half.copy_from_slice(&self.random.next_u64().to_ne_bytes());
        }
        nonce
    }

    fn opening(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Malformed> {
        let Phase::Opening(reader) = &mut self.phase else { return Ok((bytes.len(), Progress::ControlFrame)) };
        let (taken, answer) = reader.receive(bytes, &self.request)?;
        let Some(answer) = answer else { return Ok((taken, Progress::More)) };
        if let Purpose::Conversation(mailbox) = &mut self.purpose {
            mailbox.shake_hands(reader.head());
        }
        self.phase = Phase::Left;
        let is_flood = matches!(self.purpose, Purpose::Flood { .. });
        let progress = match answer {
            handshake::Answer::Agreed(agreed) => {
                if let Some(takes_over) = agreed.deflate {
                    self.deflate = true;
                    self.reader.accept_compressed(takes_over);
                }
                self.phase = Phase::Open;
                if is_flood { Progress::Opened } else { answered(0, handshake::SWITCHING, true) }
            }
            handshake::Answer::Denied(status) if is_flood => {
                Progress::Closing(Cow::Owned(format!("the server answered {status}, not 101 Switching Protocols")))
            }
            handshake::Answer::Denied(status) => answered(0, status, false),
            handshake::Answer::Refused(reason) if is_flood => Progress::Closing(Cow::Borrowed(reason)),
            handshake::Answer::Refused(reason) => failed(Failure::Handshake, reason),
        };
        Ok((taken, progress))
    }

    /// Hands a message to the call that it belongs to, and says what follows for the connection.
    fn messaged(&mut self, received: MessageRole, out: &mut Vec<u8>) -> Progress {
        match received {
            MessageRole::Taken(position) => answered(position, NO_STATUS, true),
            MessageRole::Echo { closes: false } => answered(0, NO_STATUS, true),
            MessageRole::Unasked => Progress::Unsolicited,
            // With a connection for each call, the call ends with the connection.
            MessageRole::Echo { closes: true } => {
                self.say_goodbye(&frame::NORMAL, out);
                Progress::More
            }
            // The echo may still come, and would be taken for the next call's: the connection ends.
            MessageRole::Other(difference) => failed(Failure::Mismatch, difference),
        }
    }

    fn closing(&mut self, code: Option<u16>, said: &[u8], words: &str, out: &mut Vec<u8>) -> Progress {
        let has_left = matches!(self.phase, Phase::Leaving);
        self.phase = Phase::Left;
        let heard = self.purpose.hear(Kind::Close, said);
        if has_left {
            return match self.purpose.say_goodbye() {
                Some(position) => answered(position, NO_STATUS, false),
                None => match heard {
                    Some(position) => answered(position, NO_STATUS, false),
                    None => Progress::Closing(Cow::Borrowed("the connection was closed by both sides")),
                },
            };
        }
        let bytes = code.map(u16::to_be_bytes);
        let payload = bytes.as_ref().map_or(&[][..], |bytes| bytes);
        let key = self.key();
        frame::write(Opcode::Close, false, payload, key, out);
        match heard {
            Some(position) => answered(position, NO_STATUS, false),
            None => Progress::Closing(Cow::Owned(format!("the peer closed with {words}"))),
        }
    }

    /// Sends a Close frame, unless one was sent before.
    fn say_goodbye(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Open) {
            let key = self.key();
            frame::write(Opcode::Close, false, payload, key, out);
            self.phase = Phase::Leaving;
        }
    }

    /// Begins a call of a user.
    fn converse(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let wants = |what: u32| message.hint & what != 0;
        if wants(hint::CONNECT) {
            // A call may ask for subprotocols and extensions of its own.
            self.request = Arc::new(handshake::Request::sent(message.bytes));
            if let Purpose::Conversation(mailbox) = &mut self.purpose
                && wants(hint::HEARS_ALL)
            {
                mailbox.hear_all();
            }
            let key = handshake::write_key(message.bytes, self.nonce(), out);
            self.phase = Phase::Opening(Box::new(handshake::Reader::new(key)));
            return Started::Awaited;
        }
        let sends = wants(hint::TEXT | hint::BINARY);
        let Purpose::Conversation(mailbox) = &mut self.purpose else { return Started::Sent(NO_STATUS) };
        let behind = mailbox.begin(wants(hint::PUT_BACK));
        let hears_all = mailbox.hears_all();
        let from = if wants(hint::NEW) { mailbox.next_number() } else { behind };
        if hears_all && wants(hint::PING) {
            let key = self.key();
            frame::write(Opcode::Ping, false, message.bytes, key, out);
            return Started::Sent(NO_STATUS);
        }
        if hears_all && wants(hint::CLOSE) {
            self.say_goodbye(message.bytes, out);
            return Started::Sent(NO_STATUS);
        }
        if wants(hint::PING) {
            let payload = self.random.next_u64();
            mailbox.await_pong(payload);
            let key = self.key();
            frame::write(Opcode::Ping, false, &payload.to_be_bytes(), key, out);
            return Started::Awaited;
        }
        if wants(hint::CLOSE) {
            mailbox.await_goodbye();
            self.say_goodbye(message.bytes, out);
            return Started::Awaited;
        }
        if sends {
            let opcode = if wants(hint::TEXT) { Opcode::Text } else { Opcode::Binary };
            let key = self.key();
            if self.deflate {
                frame::write(opcode, true, &deflate::compress(message.bytes), key, out);
            } else {
                frame::write(opcode, false, message.bytes, key, out);
            }
        }
        let Purpose::Conversation(mailbox) = &mut self.purpose else { return Started::Sent(NO_STATUS) };
        if !wants(hint::RECEIVE) || mailbox.take(from) {
            return Started::Sent(NO_STATUS);
        }
        mailbox.wait(from, message.hint & hint::LISTEN != 0);
        Started::Awaited
    }
}

/// The part that a received message plays for the calls in flight.
#[derive(Debug, Clone, Copy)]
enum MessageRole {
    /// The message that the user's call at this position waits for.
    Taken(usize),
    /// A message that no call waits for.
    Unasked,
    /// The echo of the flood's oldest call.
    Echo { closes: bool },
    /// Not the echo that the flood's oldest call waits for; says how it differs.
    Other(&'static str),
}

impl Purpose {
    /// Whether a call waits for a message.
    fn waits(&self) -> bool {
        match self {
            Self::Flood { in_flight, .. } => *in_flight > 0,
            Self::Conversation(mailbox) => mailbox.waits(),
        }
    }

    #[inline]
    fn receive(&mut self, text: bool, body: &[u8]) -> MessageRole {
        match self {
            Self::Flood { in_flight: 0, .. } => MessageRole::Unasked,
            Self::Flood { echo, closes, in_flight } => match echo.difference(text, body) {
                None => {
                    *in_flight -= 1;
                    MessageRole::Echo { closes: *closes }
                }
                Some(difference) => MessageRole::Other(difference),
            },
            Self::Conversation(mailbox) => {
                let kind = if text { Kind::Text } else { Kind::Binary };
                mailbox.receive(kind, body).map_or(MessageRole::Unasked, MessageRole::Taken)
            }
        }
    }

    /// Receives a frame that is not a message, where the user hears of them. Returns the position of the call that it answers.
    fn hear(&mut self, kind: Kind, body: &[u8]) -> Option<usize> {
        match self {
            Self::Conversation(mailbox) if mailbox.hears_all() => mailbox.receive(kind, body),
            _ => None,
        }
    }

    /// The peer has answered a ping with this payload: the position of the call that waits for that.
    fn receive_pong(&mut self, payload: &[u8]) -> Option<usize> {
        match self {
            Self::Flood { .. } => None,
            Self::Conversation(mailbox) => mailbox.receive_pong(payload),
        }
    }

    /// The peer has answered our goodbye: the position of the call that waits for that.
    fn say_goodbye(&mut self) -> Option<usize> {
        match self {
            Self::Flood { .. } => Some(0),
            Self::Conversation(mailbox) => mailbox.say_goodbye(),
        }
    }
}

fn answered(position: usize, status: u16, reusable: bool) -> Progress {
    Progress::Answered(Answer { position, status, reusable })
}

/// The oldest call fails, and the connection ends.
fn failed(failure: Failure, reason: &'static str) -> Progress {
    Progress::Failed(FailedCall { position: 0, failure, reason: Cow::Borrowed(reason), reusable: false })
}

impl Client for WebSocketClient {
    fn open(&mut self, _alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        if matches!(self.purpose, Purpose::Conversation(_)) {
            return Ok(Opening::Ready);
        }
        let nonce = self.nonce();
        let key = self.request.write(nonce, out);
        self.phase = Phase::Opening(Box::new(handshake::Reader::new(key)));
        Ok(Opening::Exchange)
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let key = self.random.next_u64() as u32;
        let Purpose::Flood { echo, in_flight, .. } = &mut self.purpose else { return self.converse(message, out) };
        let opcode = if echo.text { Opcode::Text } else { Opcode::Binary };
        match &echo.compressed {
            Some(compressed) if self.deflate => frame::write(opcode, true, compressed, key, out),
            _ => frame::write(opcode, false, &echo.message, key, out),
        }
        *in_flight += 1;
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        match self.phase {
            Phase::Fresh => return Err(Malformed::because("bytes before the handshake")),
            Phase::Opening(_) => return self.opening(bytes),
            // Whatever follows a Close frame is ignored (RFC 6455, section 5.5.1).
            Phase::Left => return Ok((bytes.len(), Progress::ControlFrame)),
            Phase::Open | Phase::Leaving => {}
        }
        let (taken, step) = self.reader.receive(bytes)?;
        let progress = match step {
            ReadStep::More if self.purpose.waits() => Progress::More,
            ReadStep::More => Progress::ControlFrame,
            ReadStep::Pong(payload) => {
                match self.purpose.receive_pong(payload).or_else(|| self.purpose.hear(Kind::Pong, payload)) {
                    Some(position) => answered(position, NO_STATUS, true),
                    None => Progress::ControlFrame,
                }
            }
            ReadStep::Message { text, body } => {
                let received = self.purpose.receive(text, body);
                self.messaged(received, out)
            }
            ReadStep::Ping(payload) => {
                match self.phase {
                    Phase::Open if self.stalled => self.pong = Some(payload.into()),
                    Phase::Open => frame::write(Opcode::Pong, false, payload, self.random.next_u64() as u32, out),
                    _ => {}
                }
                match self.purpose.hear(Kind::Ping, payload) {
                    Some(position) => answered(position, NO_STATUS, true),
                    None => Progress::ControlFrame,
                }
            }
            ReadStep::Close(close) => {
                let (code, words) = (close.code, close.words());
                let code_bytes = code.map(u16::to_be_bytes);
                let said = [code_bytes.as_ref().map_or(&[][..], |bytes| bytes), close.reason.as_bytes()].concat();
                self.closing(code, &said, &words, out)
            }
        };
        Ok((taken, progress))
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        // Some servers end the connection instead of answering a Close frame.
        let leaving = matches!(self.phase, Phase::Leaving);
        self.phase = Phase::Left;
        let position =
            if leaving { self.purpose.say_goodbye().or_else(|| self.purpose.hear(Kind::Close, &[])) } else { None }?;
        Some(Ok(Answer { position, status: NO_STATUS, reusable: false }))
    }

    fn cancel(&mut self, position: usize, _out: &mut Vec<u8>) -> bool {
        match &mut self.purpose {
            Purpose::Flood { .. } => false,
            Purpose::Conversation(mailbox) => mailbox.give_up(position),
        }
    }

    fn take_superseded(&mut self) -> Option<Answer> {
        let Purpose::Conversation(mailbox) = &mut self.purpose else { return None };
        Some(Answer { position: mailbox.pass_on()?, status: NO_STATUS, reusable: true })
    }

    /// A message is whole, whatever came of the one before it.
    fn is_framed(&self) -> bool {
        matches!(self.purpose, Purpose::Conversation(_))
    }

    fn stalled(&mut self) {
        self.stalled = true;
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        self.stalled = false;
        if let Some(payload) = self.pong.take()
            && matches!(self.phase, Phase::Open)
        {
            let key = self.key();
            frame::write(Opcode::Pong, false, &payload, key, out);
        }
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        if let Purpose::Conversation(mailbox) = &mut self.purpose {
            let dropped = mailbox.take_dropped();
            if dropped > 0 {
                note("unread messages dropped", dropped);
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.say_goodbye(&frame::NORMAL, out);
    }

    fn parts(&self) -> AnswerParts<'_> {
        match &self.purpose {
            Purpose::Flood { .. } => AnswerParts::default(),
            Purpose::Conversation(mailbox) => mailbox.parts(),
        }
    }
}
