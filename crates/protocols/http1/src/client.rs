//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::expected::Expected;
use super::hints::{CLOSES, DISCARD, KEEPS, Streaming, asks_to_close};
use super::response::{ENDED_EARLY, Parser, ReadStep};
use brunt_protocol::source::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Progress, Started};
use brunt_record::kinds::AnswerSample;
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
    fn from_message(message: &Message<'_>, fields: &mut Fields) -> Self {
        let is_head = match message.bytes {
            [b'H', ..] => message.bytes.starts_with(b"HEAD "),
            // An empty line before a request is not part of it (RFC 9112, section 2.2).
            [first, ..] if first.is_ascii_whitespace() => message.bytes.trim_ascii_start().starts_with(b"HEAD "),
            _ => false,
        };
        let closes = match message.hint & (CLOSES | KEEPS) {
            0 => fields.ask_to_close(message.bytes),
            known => known & CLOSES != 0,
        };
        Self { is_head, hint: message.hint, closes }
    }
}

/// The fields of the last request whose own words said whether its connection shall be closed: those of the next are most
/// often the same.
#[derive(Debug, Default)]
struct Fields {
    /// With the empty line behind them; nothing before there is a request, and where they are long.
    text: Vec<u8>,
    closes: bool,
}

impl Fields {
    /// Longer ones are read anew each time, in bytes.
    const MOST: usize = 1024;

    /// Whether a request asks the peer to close the connection.
    fn ask_to_close(&mut self, request: &[u8]) -> bool {
        let fields = memchr::memchr(b'\n', request).and_then(|line| request.get(line + 1..)).unwrap_or(&[]);
        if self.text.is_empty() || !fields.starts_with(&self.text) {
            self.closes = asks_to_close(request);
            self.text.clear();
            let end = memchr::memmem::find(fields, b"\r\n\r\n").map(|end| end + 4).filter(|end| *end <= Self::MOST);
            self.text.extend_from_slice(end.and_then(|end| fields.get(..end)).unwrap_or(&[]));
        }
        self.closes
    }
}

pub(super) struct Http1Client {
    parser: Parser,
    /// The requests in flight, oldest first.
    in_flight: VecDeque<Request>,
    streaming: Streaming,
    keep: bool,
    fields: Fields,
    /// The expected content of answers.
    expected: Option<Expected>,
    /// Whether a request has asked the peer to close the connection: it is the last one.
    has_asked_to_close: bool,
}

impl Http1Client {
    pub(super) fn new(keep: bool) -> Self {
        let parser = if keep { Parser::keeping() } else { Parser::default() };
        Self {
            parser,
            in_flight: VecDeque::new(),
            streaming: Streaming::default(),
            keep,
            fields: Fields::default(),
            expected: None,
            has_asked_to_close: false,
        }
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
        let missing = if self.expected.is_some() { self.missing(status) } else { None };
        self.ended();
        match missing {
            None => Progress::Answered(Answer { position: 0, status, reusable }),
            Some(reason) => {
                let reason = reason.into();
                Progress::Failed(FailedCall { position: 0, failure: Failure::Mismatch, reason, reusable })
            }
        }
    }

    /// What the answer lacks of what is expected of it.
    #[cold]
    fn missing(&self, status: u16) -> Option<String> {
        let missing = self.expected.as_ref()?.missing(status, self.parser.search()?)?;
        Some(missing.to_owned())
    }

    /// Handles a stream that is complete without its last message.
    fn ended_early(&mut self, reusable: bool) -> FailedCall {
        self.ended();
        FailedCall { position: 0, failure: Failure::EndedEarly, reason: ENDED_EARLY.into(), reusable }
    }

    /// The oldest request in flight has its answer.
    #[inline]
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
        let request = Request::from_message(message, &mut self.fields);
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
                ReadStep::More => Progress::More,
                ReadStep::Message { status } => Progress::Message { position: 0, status },
                ReadStep::Done { status, reusable } => self.complete(status, reusable && keeps),
                ReadStep::EndedEarly { reusable } => Progress::Failed(self.ended_early(reusable && keeps)),
            },
        ))
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        match self.parser.closed()? {
            ReadStep::Done { status, .. } => match self.complete(status, false) {
                Progress::Answered(answer) => Some(Ok(answer)),
                Progress::Failed(failed) => Some(Err(failed)),
                _ => None,
            },
            ReadStep::EndedEarly { .. } => Some(Err(self.ended_early(false))),
            ReadStep::More | ReadStep::Message { .. } => None,
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

    fn request_sample(&mut self) -> bool {
        self.parser.look();
        true
    }

    fn take_sample(&self) -> Option<AnswerSample<'_>> {
        self.parser.looked()
    }

    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        self.parser.hand_over(kept);
    }
}
