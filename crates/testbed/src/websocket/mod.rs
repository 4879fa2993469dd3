//! A WebSocket echo (RFC 6455): what is said on one of its connections.
//!
//! Every message comes back as it came: text or binary, compressed or not. Where a client offers permessage-deflate
//! (RFC 7692), both sides are to compress each message by itself, so that a compressed one can go back unopened. The
//! first subprotocol offered is taken.

mod frame;
mod handshake;

use std::time::Duration;

use crate::echo::{DelayedAnswers, PartialInput};
use crate::service::{Closing, Kind, Service};
use frame::{Frame, Opcode, Read};
use handshake::Answer;

/// The longest message that is echoed, in bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The longest handshake, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// Codes of Close frames (section 7.4.1).
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const PROTOCOL_ERROR: u16 = 1002;
const TOO_BIG: u16 = 1009;

/// A message in fragments, as far as it has come.
#[derive(Debug)]
struct Message {
    opcode: Opcode,
    compressed: bool,
    body: Vec<u8>,
}

/// One connection's conversation.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    is_open: bool,
    /// What has come of a handshake or a frame that is not all there.
    carry: PartialInput,
    message: Option<Message>,
    /// What is not due yet.
    waiting: DelayedAnswers,
    echoed: u64,
    /// When to say something that nobody asked for.
    next_push: Option<Duration>,
    closing: Option<Closing>,
}

impl Echo {
    /// Everything was said: the connection can end once its output is sent.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.closing.filter(|_| self.waiting.is_empty())
    }

    /// Nothing waits to be said.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Too much waits for a peer that does not read, or does not wait for its echoes.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_full()
    }

    /// When something is to be said next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let echo = self.waiting.next_due();
        let push = self.next_push.filter(|_| self.closing.is_none());
        [echo, push].into_iter().flatten().min()
    }

    /// Appends what is due by now.
    pub(crate) fn pump(&mut self, service: &mut Service, out: &mut Vec<u8>) {
        self.waiting.pump(service, out);
        if let (Some(due), Some(period), None) = (self.next_push, service.push, self.closing)
            && service.is_due(due)
        {
            frame::write(Opcode::Text, false, b"push", out);
            self.next_push = Some(service.now() + period);
        }
    }

    /// Takes bytes from the client and appends what can be said at once to `out`.
    pub(crate) fn receive(&mut self, input: &[u8], service: &mut Service, out: &mut Vec<u8>) {
        let mut carry = std::mem::take(&mut self.carry);
        carry.receive(input, |all| self.take(all, service, out));
        self.carry = carry;
    }

    /// Takes everything that is whole; returns how much that was.
    fn take(&mut self, input: &[u8], service: &mut Service, out: &mut Vec<u8>) -> usize {
        let mut rest = input;
        if !self.is_open {
            match self.open(rest, service, out) {
                Some(taken) => rest = rest.get(taken..).unwrap_or_default(),
                None => return 0,
            }
        }
        while self.closing.is_none() && !rest.is_empty() {
            match frame::read(rest, MAX_MESSAGE) {
                Read::Incomplete => break,
                Read::Broken => {
                    self.leave(PROTOCOL_ERROR, Closing::Ours, out);
                }
                Read::TooBig => self.leave(TOO_BIG, Closing::Ours, out),
                Read::Complete(frame, taken) => {
                    self.frame(&frame, service, out);
                    rest = rest.get(taken..).unwrap_or_default();
                }
            }
        }
        if self.closing.is_some() { input.len() } else { input.len() - rest.len() }
    }

    /// The handshake; how much of the input it took, none while it is not all there.
    fn open(&mut self, input: &[u8], service: &mut Service, out: &mut Vec<u8>) -> Option<usize> {
        let end = input.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let (answer, taken) = match end {
            Some(end) => (handshake::answer(input.get(..end).unwrap_or_default()), end),
            None if input.len() > MAX_HEAD => (Answer::refusal("431 Request Header Fields Too Large"), input.len()),
            None => return None,
        };
        out.extend_from_slice(answer.text.as_bytes());
        self.is_open = true;
        if answer.is_agreed {
            self.next_push = service.push.map(|period| service.now() + period);
        } else {
            self.closing = Some(Closing::Ours);
        }
        Some(taken)
    }

    #[inline]
    fn frame(&mut self, frame: &Frame<'_>, service: &mut Service, out: &mut Vec<u8>) {
        match (frame.opcode, &mut self.message) {
            (Opcode::Ping, _) => frame.write_as(Opcode::Pong, out),
            (Opcode::Pong, _) => {}
            (Opcode::Close, _) => {
                let code = frame.payload().take(2).collect::<Vec<_>>();
                let code = <[u8; 2]>::try_from(code).map_or(NORMAL, u16::from_be_bytes);
                self.leave(code, Closing::Asked, out);
            }
            (Opcode::Text | Opcode::Binary, None) if frame.is_final => self.echo(frame, service, out),
            (opcode @ (Opcode::Text | Opcode::Binary), None) => {
                let body = frame.payload().collect();
                self.message = Some(Message { opcode, compressed: frame.is_compressed, body });
            }
            (Opcode::Continuation, Some(message)) => {
                if message.body.len() + frame.len() > MAX_MESSAGE {
                    self.leave(TOO_BIG, Closing::Ours, out);
                    return;
                }
                message.body.extend(frame.payload());
                if frame.is_final
                    && let Some(Message { opcode, compressed, body }) = self.message.take()
                {
                    self.echo(&Frame::plain(opcode, compressed, &body), service, out);
                }
            }
            (Opcode::Continuation, None) | (Opcode::Text | Opcode::Binary, Some(_)) => {
                self.leave(PROTOCOL_ERROR, Closing::Ours, out);
            }
        }
    }

    /// Sends a message back, when that is due.
    #[inline]
    fn echo(&mut self, message: &Frame<'_>, service: &mut Service, out: &mut Vec<u8>) {
        let due = service.due();
        let is_wrong = service.kind() == Kind::Unavailable;
        self.echoed += 1;
        self.waiting.answer(due, service, out, |out| {
            message.write_as(message.opcode, out);
            spoil(is_wrong, message.len(), out);
        });
        if self.echoed >= service.close_after {
            self.leave(GOING_AWAY, Closing::Ours, out);
        }
    }

    /// Says goodbye, behind the echoes that wait.
    fn leave(&mut self, code: u16, closing: Closing, out: &mut Vec<u8>) {
        let mut frame = Vec::new();
        frame::write(Opcode::Close, false, &code.to_be_bytes(), &mut frame);
        self.waiting.follow(frame, out);
        self.closing = Some(closing);
    }
}

/// Makes the last byte of a frame another one.
fn spoil(is_wrong: bool, length: usize, frame: &mut [u8]) {
    if is_wrong
        && length > 0
        && let Some(last) = frame.last_mut()
    {
        *last ^= 1;
    }
}
