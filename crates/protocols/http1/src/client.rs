//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::response::{Parser, Step};
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, Client, Kept, Malformed, Parts, Progress, Started};

/// The hint of a request whose answer's body nobody will read.
pub(super) const DISCARD: u32 = 1;

/// What of a request decides how its answer is read.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// The method is HEAD: the answer has no body.
    is_head: bool,
    keeps_body: bool,
}

impl Request {
    fn of(message: &Message<'_>) -> Self {
        // An empty line before a request is not part of it (RFC 9112, section 2.2).
        let is_head = message.bytes.trim_ascii_start().starts_with(b"HEAD ");
        Self { is_head, keeps_body: message.hint & DISCARD == 0 }
    }
}

pub(super) struct Http1Client {
    parser: Parser,
    /// The requests in flight, oldest first.
    in_flight: VecDeque<Request>,
}

impl Http1Client {
    pub(super) fn new(keep: bool) -> Self {
        Self { parser: if keep { Parser::keeping() } else { Parser::default() }, in_flight: VecDeque::new() }
    }

    /// The same; the first redirect's goal is noted in `redirect`.
    pub(super) fn noting(keep: bool, redirect: Arc<OnceLock<String>>) -> Self {
        let mut client = Self::new(keep);
        client.parser.note_redirect(redirect);
        client
    }

    fn answered(&mut self, status: u16, reusable: bool) -> Answer {
        self.in_flight.pop_front();
        if let Some(next) = self.in_flight.front() {
            self.parser.keep_body(next.keeps_body);
        }
        Answer { position: 0, status, reusable }
    }
}

impl Client for Http1Client {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let request = Request::of(message);
        if self.in_flight.is_empty() {
            self.parser.keep_body(request.keeps_body);
        }
        self.in_flight.push_back(request);
        out.extend_from_slice(message.bytes);
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let Some(request) = self.in_flight.front() else {
            return Err(Malformed::because("an answer that nobody asked for"));
        };
        let (taken, step) = self.parser.receive(bytes, request.is_head)?;
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
