//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::response::{Parser, Step};
use brunt_model::outcome::Failure;
use brunt_protocol::messages::{Framing, Messages};
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, Client, Failed, Kept, Malformed, Parts, Progress, Started};

/// The hint of a request whose answer's body nobody will read.
pub(super) const DISCARD: u32 = 1;
/// The hints of requests whose answers come as messages, by their framing.
const STREAMS: [(u32, Framing); 3] = [(2, Framing::Sse), (4, Framing::Lines), (6, Framing::Chunks)];
/// The bits of a hint that have these.
const STREAMS_BITS: u32 = 6;

/// The hint of a request whose answer comes as messages in this framing.
pub(super) fn streams_hint(framing: Framing) -> u32 {
    STREAMS.iter().find(|(_, known)| *known == framing).map_or(0, |(hint, _)| *hint)
}

/// What of a request decides how its answer is read.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// The method is HEAD: the answer has no body.
    is_head: bool,
    keeps_body: bool,
    /// How its answer is cut into messages, if it is.
    framing: Option<Framing>,
}

impl Request {
    fn of(message: &Message<'_>) -> Self {
        // An empty line before a request is not part of it (RFC 9112, section 2.2).
        let is_head = message.bytes.trim_ascii_start().starts_with(b"HEAD ");
        let streams = message.hint & STREAMS_BITS;
        let framing = STREAMS.iter().find(|(hint, _)| *hint == streams).map(|(_, framing)| *framing);
        Self { is_head, keeps_body: message.hint & DISCARD == 0, framing }
    }
}

pub(super) struct Http1Client {
    parser: Parser,
    /// The requests in flight, oldest first.
    in_flight: VecDeque<Request>,
    /// How answers come as messages, if any do.
    messages: Option<Arc<Messages>>,
    /// Whether all of them do, and not only those whose requests say so.
    streams_all: bool,
    keep: bool,
}

impl Http1Client {
    pub(super) fn new(keep: bool) -> Self {
        let parser = if keep { Parser::keeping() } else { Parser::default() };
        Self { parser, in_flight: VecDeque::new(), messages: None, streams_all: false, keep }
    }

    /// The same, whose requests' hints say which answers come as messages; what else is known of these is in `messages`.
    pub(super) fn hinted(keep: bool, messages: Arc<Messages>) -> Self {
        Self { messages: Some(messages), ..Self::new(keep) }
    }

    /// The same, all of whose answers come as messages.
    pub(super) fn streaming(mut self, messages: Option<Arc<Messages>>) -> Self {
        self.streams_all = messages.is_some();
        self.parser.cut_body(messages.as_ref().map(|messages| Box::new(messages.reader(self.keep))));
        self.messages = messages;
        self
    }

    /// The same; the first redirect's goal is noted in `redirect`.
    pub(super) fn noting(keep: bool, redirect: Arc<OnceLock<String>>) -> Self {
        let mut client = Self::new(keep);
        client.parser.note_redirect(redirect);
        client
    }

    fn answered(&mut self, status: u16, reusable: bool) -> Answer {
        self.ended();
        Answer { position: 0, status, reusable }
    }

    /// The oldest request in flight has its answer.
    fn ended(&mut self) {
        self.in_flight.pop_front();
        if let Some(next) = self.in_flight.front().copied() {
            self.expect(next);
        }
    }

    /// The next answer is that to this request.
    #[inline]
    fn expect(&mut self, request: Request) {
        self.parser.keep_body(request.keeps_body);
        if let Some(messages) = &self.messages
            && !self.streams_all
        {
            let own = request.framing.map(|framing| Messages { framing, ..Messages::clone(messages) });
            self.parser.cut_body(own.map(|own| Box::new(own.reader(self.keep))));
        }
    }
}

impl Client for Http1Client {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let request = Request::of(message);
        if self.in_flight.is_empty() {
            self.expect(request);
        }
        self.in_flight.push_back(request);
        out.extend_from_slice(message.bytes);
        match &self.messages {
            Some(messages) if self.streams_all || request.framing.is_some() => messages.started(),
            _ => Started::Awaited,
        }
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
                Step::Message { status } => Progress::Message { position: 0, status },
                Step::Done { status, reusable } => Progress::Answered(self.answered(status, reusable)),
                Step::EndedEarly { reusable } => {
                    self.ended();
                    let reason = "the stream ended without its last message".into();
                    Progress::Failed(Failed { position: 0, failure: Failure::EndedEarly, reason, reusable })
                }
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
