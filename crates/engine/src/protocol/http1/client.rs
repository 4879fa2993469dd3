//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;

use super::super::{Answer, Client, Kept, Malformed, Parts, Progress, Started};
use super::response::{Parser, Step};
use crate::user::Message;

/// The hint of a request whose method is HEAD: its answer has no body.
pub(super) const HEAD: u32 = 1;
/// The hint of a request whose answer's body nobody will read.
pub(super) const DISCARD: u32 = 2;

pub(super) struct Http1Client {
    parser: Parser,
    /// The hints of the requests in flight, oldest first.
    in_flight: VecDeque<u32>,
}

impl Http1Client {
    pub(super) fn new(keep: bool) -> Self {
        Self { parser: if keep { Parser::keeping() } else { Parser::default() }, in_flight: VecDeque::new() }
    }

    fn answered(&mut self, status: u16, reusable: bool) -> Answer {
        self.in_flight.pop_front();
        if let Some(next) = self.in_flight.front() {
            self.parser.keep_body(next & DISCARD == 0);
        }
        Answer { position: 0, status, reusable }
    }
}

impl Client for Http1Client {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        if self.in_flight.is_empty() {
            self.parser.keep_body(message.hint & DISCARD == 0);
        }
        self.in_flight.push_back(message.hint);
        out.extend_from_slice(message.bytes);
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let Some(&hint) = self.in_flight.front() else {
            return Err(Malformed::because("an answer that nobody asked for"));
        };
        let (taken, step) = self.parser.receive(bytes, hint & HEAD != 0)?;
        Ok((
            taken,
            match step {
                Step::More => Progress::More,
                Step::Done { status, reusable } => Progress::Answered(self.answered(status, reusable)),
            },
        ))
    }

    fn closed(&mut self) -> Option<Answer> {
        match self.parser.closed() {
            Some(Step::Done { status, .. }) => Some(self.answered(status, false)),
            _ => None,
        }
    }

    fn parts(&self) -> Parts<'_> {
        let (head, body) = self.parser.kept();
        Parts { head, body }
    }

    fn hand_over(&mut self, kept: &mut Kept) {
        self.parser.hand_over(kept);
    }
}
