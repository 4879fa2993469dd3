//! One WebSocket connection of a virtual user: whatever its script says and waits for, in the order in which it does.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use brunt_model::outcome::Failure;
use brunt_model::random::Random;

use super::super::{Answer, Client, Failed, Malformed, Parts, Progress, Started};
use super::frame::{self, Opcode};
use super::handshake;
use super::message::{Reader, Step, close_name};
use crate::user::Message;

/// The most messages that wait for somebody to receive them; the oldest is forgotten for one more.
const MOST_WAITING: usize = 1000;
/// The same in bytes, as far as it is more than one message.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// The status of everything but handshakes, which have HTTP's.
const NO_STATUS: u16 = 0;

/// What a call asks for, in its hint.
pub(super) mod hint {
    /// The handshake; the message's bytes are its request, as far as the key.
    pub(in super::super) const CONNECT: u32 = 1;
    /// A text message is sent.
    pub(in super::super) const TEXT: u32 = 2;
    /// A binary message is sent.
    pub(in super::super) const BINARY: u32 = 4;
    /// The next message is waited for.
    pub(in super::super) const RECEIVE: u32 = 8;
    /// With `RECEIVE`: one that comes from now on.
    pub(in super::super) const NEW: u32 = 16;
    /// The last message that was received is put back for others.
    pub(in super::super) const PUT_BACK: u32 = 32;
    /// A Close frame with the message's bytes is sent, and the one that answers it waited for.
    pub(in super::super) const CLOSE: u32 = 64;
}

/// What the head of a message's parts says.
pub(super) const TEXT_HEAD: &[u8] = b"text message";
const BINARY_HEAD: &[u8] = b"binary message";

enum Phase {
    /// Nothing was said yet.
    Fresh,
    /// The handshake is under way.
    Opening(Box<handshake::Reader>),
    /// Messages go back and forth.
    Open,
    /// A Close frame was sent, and the one that answers it is waited for.
    Leaving,
    /// Both have said goodbye.
    Left,
}

/// A message that came.
#[derive(Debug, Default)]
struct Received {
    text: bool,
    body: Vec<u8>,
}

pub(super) struct Conversation {
    request: Arc<handshake::Request>,
    phase: Phase,
    reader: Reader,
    /// Masking keys, and the nonce of the handshake.
    random: Random,
    /// Whether permessage-deflate was agreed upon.
    deflate: bool,
    /// Whether a call waits for a message.
    waits: bool,
    /// Messages that nobody has received, oldest first.
    inbox: VecDeque<Received>,
    inbox_bytes: usize,
    /// What the last call was answered with.
    head: Cow<'static, [u8]>,
    last: Received,
}

impl Conversation {
    pub(super) fn new(request: Arc<handshake::Request>, random: Random) -> Self {
        Self {
            request,
            phase: Phase::Fresh,
            reader: Reader::default(),
            random,
            deflate: false,
            waits: false,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            head: Cow::Borrowed(&[]),
            last: Received::default(),
        }
    }

    fn connect(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Started {
        let mut nonce = [0; 16];
        for half in nonce.chunks_exact_mut(8) {
            half.copy_from_slice(&self.random.next_u64().to_ne_bytes());
        }
        let key = handshake::write_key(bytes, nonce, out);
        self.phase = Phase::Opening(Box::new(handshake::Reader::new(key)));
        Started::Awaited
    }

    fn send(&mut self, text: bool, payload: &[u8], out: &mut Vec<u8>) {
        let opcode = if text { Opcode::Text } else { Opcode::Binary };
        let key = self.random.next_u64() as u32;
        if self.deflate {
            frame::write(opcode, true, &super::deflate::compress(payload), key, out);
        } else {
            frame::write(opcode, false, payload, key, out);
        }
    }

    fn put_into_inbox(&mut self, message: Received) {
        self.inbox_bytes += message.body.len();
        self.inbox.push_back(message);
        while self.inbox.len() > MOST_WAITING || self.inbox.len() > 1 && self.inbox_bytes > MOST_WAITING_BYTES {
            self.take_from_inbox();
        }
    }

    fn take_from_inbox(&mut self) -> Option<Received> {
        let message = self.inbox.pop_front()?;
        self.inbox_bytes -= message.body.len();
        Some(message)
    }

    fn give(&mut self, message: Received) {
        self.head = Cow::Borrowed(if message.text { TEXT_HEAD } else { BINARY_HEAD });
        self.last = message;
    }

    fn opening(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Malformed> {
        let Phase::Opening(reader) = &mut self.phase else { return Ok((bytes.len(), Progress::Aside)) };
        let (taken, answer) = reader.receive(bytes, &self.request)?;
        let Some(answer) = answer else { return Ok((taken, Progress::More)) };
        self.head = Cow::Owned(reader.head().to_vec());
        self.last = Received::default();
        let answered = |status, reusable| Progress::Answered(Answer { position: 0, status, reusable });
        let progress = match answer {
            handshake::Answer::Agreed(agreed) => {
                if let Some(takes_over) = agreed.deflate {
                    self.deflate = true;
                    self.reader.accept_compressed(takes_over);
                }
                self.phase = Phase::Open;
                answered(handshake::SWITCHING, true)
            }
            handshake::Answer::Denied(status) => {
                self.phase = Phase::Left;
                answered(status, false)
            }
            handshake::Answer::Refused(reason) => {
                self.phase = Phase::Left;
                let failed =
                    Failed { position: 0, failure: Failure::Handshake, reason: Cow::Borrowed(reason), reusable: false };
                Progress::Failed(failed)
            }
        };
        Ok((taken, progress))
    }
}

impl Client for Conversation {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let wants = |what: u32| message.hint & what != 0;
        if wants(hint::CONNECT) {
            return self.connect(message.bytes, out);
        }
        self.head = Cow::Borrowed(&[]);
        let last = std::mem::take(&mut self.last);
        if wants(hint::PUT_BACK) {
            self.put_into_inbox(last);
        }
        if wants(hint::CLOSE) {
            if matches!(self.phase, Phase::Open) {
                frame::write(Opcode::Close, false, message.bytes, self.random.next_u64() as u32, out);
                self.phase = Phase::Leaving;
            }
            return Started::Awaited;
        }
        if wants(hint::TEXT | hint::BINARY) {
            self.send(wants(hint::TEXT), message.bytes, out);
        }
        if !wants(hint::RECEIVE) {
            return Started::Sent(NO_STATUS);
        }
        if !wants(hint::NEW)
            && let Some(message) = self.take_from_inbox()
        {
            self.give(message);
            return Started::Sent(NO_STATUS);
        }
        self.waits = true;
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        match self.phase {
            Phase::Fresh => return Err(Malformed::because("bytes before the handshake")),
            Phase::Opening(_) => return self.opening(bytes),
            // Nothing after a Close frame means anything (RFC 6455, section 5.5.1).
            Phase::Left => return Ok((bytes.len(), Progress::Aside)),
            Phase::Open | Phase::Leaving => {}
        }
        let (taken, step) = self.reader.receive(bytes)?;
        let progress = match step {
            Step::More if self.waits => Progress::More,
            Step::More | Step::Pong => Progress::Aside,
            Step::Message { text, body } => {
                let message = Received { text, body: body.to_vec() };
                if self.waits {
                    self.waits = false;
                    self.give(message);
                    Progress::Answered(Answer { position: 0, status: NO_STATUS, reusable: true })
                } else {
                    self.put_into_inbox(message);
                    Progress::Unasked
                }
            }
            Step::Ping(payload) => {
                if matches!(self.phase, Phase::Open) {
                    frame::write(Opcode::Pong, false, payload, self.random.next_u64() as u32, out);
                }
                Progress::Aside
            }
            Step::Close(close) => {
                let leaving = matches!(self.phase, Phase::Leaving);
                self.phase = Phase::Left;
                if leaving {
                    return Ok((taken, Progress::Answered(Answer { position: 0, status: NO_STATUS, reusable: false })));
                }
                let code = close.code.map(u16::to_be_bytes);
                let payload = code.as_ref().map_or(&[][..], |code| code);
                frame::write(Opcode::Close, false, payload, self.random.next_u64() as u32, out);
                Progress::Closing(Cow::Owned(format!("the peer closed with {}", close_name(close.code))))
            }
        };
        Ok((taken, progress))
    }

    fn closed(&mut self) -> Option<Answer> {
        // Some servers end the connection instead of answering a Close frame.
        let leaving = matches!(self.phase, Phase::Leaving);
        self.phase = Phase::Left;
        leaving.then_some(Answer { position: 0, status: NO_STATUS, reusable: false })
    }

    fn give_up(&mut self) -> bool {
        // A message that comes later is one that nobody waited for.
        let waited = std::mem::take(&mut self.waits);
        waited && matches!(self.phase, Phase::Open)
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Open) {
            frame::write(Opcode::Close, false, &frame::NORMAL, self.random.next_u64() as u32, out);
            self.phase = Phase::Leaving;
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts { head: &self.head, body: &self.last.body }
    }
}
