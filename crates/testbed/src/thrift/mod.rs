//! A Thrift echo: what is said on one of its connections.
//!
//! Whatever the method, it returns its argument with the id 1, of whatever type, and nothing if it has none; so it serves any
//! IDL whose methods return what they take. A method called `refuse` throws the exception that has the id 1 in its
//! `throws`, with a text as its field 1; one called `fail` gets a `TApplicationException`. Binary and compact protocol,
//! framed and unframed, multiplexed or not are told apart by how a message begins.

mod scan;

use std::time::Duration;

use crate::echo::{DelayedAnswers, PartialInput};
use crate::service::{Closing, Kind, Service};
use scan::{Call, MessageForm, Trouble, call};

/// An IDL that the echo serves; any other whose methods return their argument will do as well.
pub const IDL: &str = include_str!("echo.thrift");
/// The longest message that is echoed, in bytes.
const MAX_MESSAGE: usize = 16_384_000;

/// One connection's conversation.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// What has come of a message that is not all there.
    carry: PartialInput,
    /// What is not due yet.
    waiting: DelayedAnswers,
    answered: u64,
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

    /// Too much waits for a peer that does not read, or does not wait for its answers.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_full()
    }

    /// When something is to be said next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.waiting.next_due()
    }

    /// Appends what is due by now.
    pub(crate) fn pump(&mut self, service: &mut Service, out: &mut Vec<u8>) {
        self.waiting.pump(service, out);
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
        while self.closing.is_none() && !rest.is_empty() {
            let (is_framed, message) = match message(rest) {
                Ok(found) => found,
                Err(Trouble::Incomplete) if rest.len() <= MAX_MESSAGE => break,
                Err(_) => return self.give_up(input),
            };
            let taken = match call(message) {
                // A frame is all there, and has one message.
                Ok((_, taken)) if is_framed && taken < message.len() => return self.give_up(input),
                Err(Trouble::Incomplete) if !is_framed && rest.len() <= MAX_MESSAGE => break,
                Err(_) => return self.give_up(input),
                Ok((call, taken)) => {
                    self.answer(&call, is_framed, service, out);
                    taken
                }
            };
            rest = rest.get(taken + if is_framed { 4 } else { 0 }..).unwrap_or_default();
        }
        if self.closing.is_some() { input.len() } else { input.len() - rest.len() }
    }

    /// What came is no Thrift: there is nothing to say, as nothing tells whom it would answer.
    fn give_up(&mut self, input: &[u8]) -> usize {
        self.closing = Some(Closing::Ours);
        input.len()
    }

    #[inline]
    fn answer(&mut self, call: &Call<'_>, is_framed: bool, service: &mut Service, out: &mut Vec<u8>) {
        self.answered += 1;
        let due = service.due();
        let is_wrong = service.kind() == Kind::Unavailable;
        if call.is_oneway {
            service.answered += 1;
        } else {
            self.waiting.answer(due, service, out, |out| write(call, is_framed, is_wrong, out));
        }
        if self.answered >= service.close_after {
            self.closing = Some(Closing::Ours);
        }
    }
}

/// The message at the beginning of `bytes`, and whether it is in a frame; one that is not in a frame may not be all there.
#[inline]
fn message(bytes: &[u8]) -> Result<(bool, &[u8]), Trouble> {
    match bytes {
        [0x80 | 0x82, ..] => Ok((false, bytes)),
        // A frame of less than 16 MiB begins with a zero.
        [0, a, b, c, rest @ ..] => {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            rest.get(..length).map(|message| (true, message)).ok_or(Trouble::Incomplete)
        }
        [0, ..] => Err(Trouble::Incomplete),
        _ => Err(Trouble::Broken),
    }
}

const REPLY: u8 = 2;
const EXCEPTION: u8 = 3;
/// `TApplicationException`'s number for an internal error.
const INTERNAL_ERROR: u8 = 6;

/// Appends the answer to a call.
#[inline]
fn write(call: &Call<'_>, is_framed: bool, is_wrong: bool, out: &mut Vec<u8>) {
    let begin = out.len();
    if is_framed {
        out.extend_from_slice(&[0; 4]);
    }
    // Where services are multiplexed, theirs is the name before the colon.
    let method = call.name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    let fails = is_wrong || method == b"fail";
    let kind = if fails { EXCEPTION } else { REPLY };
    match call.written {
        MessageForm::Binary => {
            out.extend_from_slice(&[0x80, 0x01, 0, kind]);
            out.extend_from_slice(&(call.name.len() as u32).to_be_bytes());
            out.extend_from_slice(call.name);
            out.extend_from_slice(call.sequence);
        }
        MessageForm::Compact => {
            out.extend_from_slice(&[0x82, kind << 5 | 1]);
            out.extend_from_slice(call.sequence);
            write_varint(call.name.len(), out);
            out.extend_from_slice(call.name);
        }
    }
    match (call.written, call.argument) {
        (MessageForm::Binary, _) if fails => {
            out.extend_from_slice(b"\x0b\0\x01\0\0\0\x0dasked to fail\x08\0\x02\0\0\0");
            out.push(INTERNAL_ERROR);
        }
        (MessageForm::Compact, _) if fails => {
            out.extend_from_slice(b"\x18\x0dasked to fail\x15");
            out.push(INTERNAL_ERROR << 1);
        }
        (MessageForm::Binary, _) if method == b"refuse" => {
            out.extend_from_slice(b"\x0c\0\x01\x0b\0\x01\0\0\0\x07refused\0");
        }
        (MessageForm::Compact, _) if method == b"refuse" => out.extend_from_slice(b"\x1c\x18\x07refused\0"),
        (MessageForm::Binary, Some((of, value))) => {
            out.extend_from_slice(&[of, 0, 0]);
            out.extend_from_slice(value);
        }
        (MessageForm::Compact, Some((of, value))) => {
            out.extend_from_slice(&[of, 0]);
            out.extend_from_slice(value);
        }
        (_, None) => {}
    }
    out.push(0);
    if is_framed {
        let length = (out.len() - begin - 4) as u32;
        if let Some(frame) = out.get_mut(begin..begin + 4) {
            frame.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Unsigned LEB128.
fn write_varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
