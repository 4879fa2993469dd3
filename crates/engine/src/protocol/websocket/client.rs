//! One WebSocket connection: the handshake, messages out and back, the peer's pings, the goodbye.

use std::borrow::Cow;
use std::sync::Arc;

use brunt_model::outcome::Failure;
use brunt_model::random::Random;

use super::super::{Answer, Client, Failed, Malformed, Opening, Progress, Started};
use super::PreparedWebSocket;
use super::frame::{self, Opcode};
use super::handshake;
use super::message::{Reader, Step, close_name};
use crate::user::Message;

/// Nothing came back but the same message: there is no status to tell.
const ECHOED: u16 = 0;

enum Phase {
    /// The handshake is under way.
    Opening(Box<handshake::Reader>),
    /// Messages go back and forth.
    Open,
    /// A Close frame was sent, and the one that answers it ends the call.
    Leaving,
    /// Both have said goodbye.
    Left,
}

pub(super) struct WebSocketClient {
    prepared: Arc<PreparedWebSocket>,
    phase: Phase,
    reader: Reader,
    /// Masking keys, and the nonce of the handshake.
    random: Random,
    /// Whether permessage-deflate was agreed upon.
    deflate: bool,
    /// Messages sent that have not come back.
    in_flight: u32,
}

impl WebSocketClient {
    pub(super) fn new(prepared: Arc<PreparedWebSocket>, random: Random) -> Self {
        Self { prepared, phase: Phase::Left, reader: Reader::default(), random, deflate: false, in_flight: 0 }
    }

    fn opening(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Malformed> {
        let Phase::Opening(reader) = &mut self.phase else { return Ok((bytes.len(), Progress::Aside)) };
        let (taken, answer) = reader.receive(bytes, &self.prepared.request)?;
        match answer {
            None => Ok((taken, Progress::More)),
            Some(handshake::Answer::Denied(status)) => {
                let reason = format!("the server answered {status}, not 101 Switching Protocols");
                Ok((taken, Progress::Closing(Cow::Owned(reason))))
            }
            Some(handshake::Answer::Refused(reason)) => Ok((taken, Progress::Closing(Cow::Borrowed(reason)))),
            Some(handshake::Answer::Agreed(agreed)) => {
                if let Some(takes_over) = agreed.deflate {
                    self.deflate = true;
                    self.reader.accept_compressed(takes_over);
                }
                self.phase = Phase::Open;
                Ok((taken, Progress::Opened))
            }
        }
    }

    /// A message came while calls are in flight: it is the oldest one's echo, or the wrong one.
    fn echoed(&mut self, difference: Option<&'static str>, out: &mut Vec<u8>) -> Progress {
        self.in_flight -= 1;
        match difference {
            // With a connection for each call, the call ends with the connection.
            None if self.prepared.reconnect => {
                frame::write(Opcode::Close, false, &frame::NORMAL, self.random.next_u64() as u32, out);
                self.phase = Phase::Leaving;
                Progress::More
            }
            None => Progress::Answered(Answer { position: 0, status: ECHOED, reusable: true }),
            Some(reason) => Progress::Failed(Failed {
                position: 0,
                failure: Failure::Mismatch,
                reason: Cow::Borrowed(reason),
                reusable: true,
            }),
        }
    }
}

impl Client for WebSocketClient {
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        let mut nonce = [0; 16];
        for half in nonce.chunks_exact_mut(8) {
            half.copy_from_slice(&self.random.next_u64().to_ne_bytes());
        }
        let key = self.prepared.request.write(nonce, out);
        self.phase = Phase::Opening(Box::new(handshake::Reader::new(key)));
        Opening::Exchange
    }

    fn start(&mut self, _message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let echo = &self.prepared.echo;
        let opcode = if echo.text { Opcode::Text } else { Opcode::Binary };
        let key = self.random.next_u64() as u32;
        match &echo.compressed {
            Some(compressed) if self.deflate => frame::write(opcode, true, compressed, key, out),
            _ => frame::write(opcode, false, &echo.message, key, out),
        }
        self.in_flight += 1;
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        match self.phase {
            Phase::Opening(_) => return self.opening(bytes),
            // Nothing after a Close frame means anything (RFC 6455, section 5.5.1).
            Phase::Left => return Ok((bytes.len(), Progress::Aside)),
            Phase::Open | Phase::Leaving => {}
        }
        let (taken, step) = self.reader.receive(bytes)?;
        let progress = match step {
            Step::More if self.in_flight > 0 => Progress::More,
            Step::More | Step::Pong => Progress::Aside,
            Step::Message { text, body } if self.in_flight > 0 => {
                let difference = self.prepared.echo.difference(text, body);
                self.echoed(difference, out)
            }
            Step::Message { .. } => Progress::Unasked,
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
                    return Ok((taken, Progress::Answered(Answer { position: 0, status: ECHOED, reusable: false })));
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
        None
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Open) {
            frame::write(Opcode::Close, false, &frame::NORMAL, self.random.next_u64() as u32, out);
            self.phase = Phase::Leaving;
        }
    }
}
