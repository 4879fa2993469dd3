//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::expected::Expected;
use super::hints::{CLOSES, DISCARD, KEEPS, Streaming, asks_to_close};
use super::response::{ENDED_EARLY, Parser, Step};
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Progress, Started};
use brunt_record::kinds::Look;
use brunt_record::outcome::Failure;

/// The properties of a request that decide how its answer is read.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// The method is HEAD: the answer has no body.
    is_head: bool,
    /// Its hint.
    hint: u32,
    /// It asks the peer to close the connection.
    closes: bool,
}

impl Request {
    fn from_message(message: &Message<'_>) -> Self {
        // An empty line before a request is not part of it (RFC 9112, section 2.2).
        let is_head = message.bytes.trim_ascii_start().starts_with(b"HEAD ");
        let closes = match message.hint & (CLOSES | KEEPS) {
            0 => asks_to_close(message.bytes),
            known => known & CLOSES != 0,
        };
        Self { is_head, hint: message.hint, closes }
    }
}

pub(super) struct Http1Client {
    parser: Parser,
    /// The requests in flight, oldest first.
    in_flight: VecDeque<Request>,
    streaming: Streaming,
    keep: bool,
    /// The expected content of answers.
    expected: Option<Expected>,
    /// Whether a request has asked the peer to close the connection: it is the last one.
    has_asked_to_close: bool,
}

impl Http1Client {
    pub(super) fn new(keep: bool) -> Self {
        let parser = if keep { Parser::keeping() } else { Parser::default() };
        let (in_flight, streaming) = (VecDeque::new(), Streaming::default());
        Self { parser, in_flight, streaming, keep, expected: None, has_asked_to_close: false }
    }

    /// Makes some of its answers come as messages.
    pub(super) fn streaming(mut self, streaming: Streaming) -> Self {
        if streaming.is_of_all() {
            self.parser.cut_body(streaming.messages(0).map(|messages| Box::new(messages.reader(self.keep))));
        }
        self.parser.know_streams(streaming.clone());
        self.streaming = streaming;
        self
    }

    /// A client that notes the location of the first redirect in `redirect`.
    pub(super) fn noting(keep: bool, redirect: Arc<OnceLock<String>>) -> Self {
        let mut client = Self::new(keep);
        client.parser.note_redirect(redirect);
        client
    }

    /// Sets the expected content of answers.
    pub(super) fn expecting(mut self, expected: Option<Expected>) -> Self {
        if let Some(expected) = &expected {
            self.parser.search_bodies(expected.search());
        }
        self.expected = expected;
        self
    }

    /// The expected content of answers.
    pub(super) fn expected(&self) -> Option<Expected> {
        self.expected.clone()
    }

    /// Handles a complete answer. Returns whether it is the expected one.
    #[inline]
    fn complete(&mut self, status: u16, reusable: bool) -> Progress {
        if let Some(expected) = &self.expected
            && let Some(reason) = self.parser.search().and_then(|search| expected.missing(status, search))
        {
            let reason = reason.to_owned().into();
            self.ended();
            return Progress::Failed(FailedCall { position: 0, failure: Failure::Mismatch, reason, reusable });
        }
        Progress::Answered(self.answered(status, reusable))
    }

    /// Handles a stream that is complete without its last message.
    fn ended_early(&mut self, reusable: bool) -> FailedCall {
        self.ended();
        FailedCall { position: 0, failure: Failure::EndedEarly, reason: ENDED_EARLY.into(), reusable }
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
        self.parser.keep_body(self.keep && request.hint & DISCARD == 0);
        if self.streaming.is_hinted() {
            let messages = self.streaming.messages(request.hint);
            self.parser.cut_body(messages.map(|messages| Box::new(messages.reader(self.keep))));
        }
    }
}

impl Client for Http1Client {
    /// Behind a request that asked for the end of the connection, no other is sent.
    fn capacity(&self) -> usize {
        if self.has_asked_to_close { self.in_flight.len() } else { usize::MAX }
    }

    fn has_asked_to_close(&self) -> bool {
        self.has_asked_to_close
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let request = Request::from_message(message);
        if self.in_flight.is_empty() {
            self.expect(request);
        }
        self.has_asked_to_close |= request.closes;
        self.in_flight.push_back(request);
        out.extend_from_slice(message.bytes);
        self.streaming.started(request.hint)
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let Some(request) = self.in_flight.front() else {
            return Err(Malformed::because("an answer that nobody asked for"));
        };
        let keeps = !request.closes;
        let (taken, step) = self.parser.receive(bytes, request.is_head)?;
        Ok((
            taken,
            match step {
                Step::More => Progress::More,
                Step::Message { status } => Progress::Message { position: 0, status },
                Step::Done { status, reusable } => self.complete(status, reusable && keeps),
                Step::EndedEarly { reusable } => Progress::Failed(self.ended_early(reusable && keeps)),
            },
        ))
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        match self.parser.closed()? {
            Step::Done { status, .. } => match self.complete(status, false) {
                Progress::Answered(answer) => Some(Ok(answer)),
                Progress::Failed(failed) => Some(Err(failed)),
                _ => None,
            },
            Step::EndedEarly { .. } => Some(Err(self.ended_early(false))),
            Step::More | Step::Message { .. } => None,
        }
    }

    fn parts(&self) -> AnswerParts<'_> {
        let (head, body) = self.parser.kept();
        AnswerParts { head, body }
    }

    /// The bytes behind the head; for an answer in pieces, its last piece. The size line of a first chunk (RFC 9112,
    /// section 7.1) is left out.
    fn excerpt<'a>(&self, came: &'a [u8]) -> &'a [u8] {
        let after = |bytes: &'a [u8], end: &[u8]| {
            let at = bytes.windows(end.len()).position(|window| window == end)?;
            Some((bytes.get(..at)?, bytes.get(at + end.len()..)?))
        };
        if !came.starts_with(b"HTTP/") {
            return came;
        }
        let Some((head, body)) = after(came, b"\r\n\r\n") else { return &[] };
        let is_chunked = head.to_ascii_lowercase().windows(8).any(|window| window == b": chunke");
        if !is_chunked {
            return body;
        }
        let chunk = after(body, b"\r\n").map_or(body, |(_, chunk)| chunk);
        after(chunk, b"\r\n").map_or(chunk, |(chunk, _)| chunk)
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        let untidy = self.parser.take_untidy();
        if untidy > 0 {
            note("answers with header fields that are folded or have a blank before the colon", untidy);
        }
    }

    fn look(&mut self) -> bool {
        self.parser.look();
        true
    }

    fn looked(&self) -> Option<Look<'_>> {
        self.parser.looked()
    }

    fn hand_over(&mut self, kept: &mut KeptAnswer) {
        self.parser.hand_over(kept);
    }
}
