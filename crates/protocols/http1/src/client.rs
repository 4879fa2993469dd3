//! One HTTP/1.1 connection: requests out in order, answers in the same order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::expected::Expected;
use super::response::{ENDED_EARLY, Parser, Step};
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Progress, Started};
use brunt_record::kinds::Look;
use brunt_record::outcome::Failure;

/// The hint of a request whose answer's body is not read by anybody.
pub(super) const DISCARD: u32 = 1;
/// The hints of a request that is known to ask its peer to close the connection after the answer, and of one that is
/// known not to. Of a request without either, its own words are read.
pub(super) const CLOSES: u32 = 8;
pub(super) const KEEPS: u32 = 16;
/// The hints of requests whose answers come as messages, by their framing.
const STREAMS: [(u32, Framing); 3] = [(2, Framing::Sse), (4, Framing::Lines), (6, Framing::Chunks)];
/// The bits of a hint that have these.
const STREAMS_BITS: u32 = 6;

/// The hint of a request whose answer comes as messages in this framing.
pub(super) fn streams_hint(framing: Framing) -> u32 {
    STREAMS.iter().find(|(_, known)| *known == framing).map_or(0, |(hint, _)| *hint)
}

/// The hint of a request with these header fields: whether it asks its peer to close the connection.
pub(super) fn closing_hint(fields: &[u8]) -> u32 {
    if asks_to_close(fields) { CLOSES } else { KEEPS }
}

/// Whether header fields, or a request with them, ask the peer to close the connection (RFC 9112, section 9.6).
pub(super) fn asks_to_close(request: &[u8]) -> bool {
    let end = memchr::memmem::find(request, b"\r\n\r\n").unwrap_or(request.len());
    let lines = request.get(..end).unwrap_or(request).split(|byte| *byte == b'\n');
    let mut fields = lines.filter_map(|line| line.split_at_checked(memchr::memchr(b':', line)?));
    fields.any(|(name, value)| {
        let value = value.get(1..).unwrap_or(&[]);
        name.eq_ignore_ascii_case(b"connection")
            && value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    })
}

/// The answers that come as messages, with their options.
#[derive(Debug, Clone, Default)]
pub(super) struct Streaming {
    /// By framing, as in hints; `None` if no answers do.
    by_framing: Option<Arc<[MessageOptions; 3]>>,
    /// The framing of all answers; `None` where the hints of requests have it.
    all: Option<Framing>,
}

impl Streaming {
    /// All answers do.
    pub(super) fn all(messages: &MessageOptions) -> Self {
        Self { all: Some(messages.framing), ..Self::hinted(messages) }
    }

    /// Answers to requests with such a hint. The framing in `messages` does not matter.
    pub(super) fn hinted(messages: &MessageOptions) -> Self {
        let by_framing = STREAMS.map(|(_, framing)| MessageOptions { framing, ..messages.clone() });
        Self { by_framing: Some(Arc::new(by_framing)), all: None }
    }

    /// The options for messages in the answer to a request with this hint, if it has some.
    #[inline]
    pub(super) fn messages(&self, hint: u32) -> Option<&MessageOptions> {
        let by_framing = self.by_framing.as_ref()?;
        let streams = self.all.map_or(hint & STREAMS_BITS, streams_hint);
        if streams == 0 {
            return None;
        }
        by_framing.iter().find(|messages| streams_hint(messages.framing) == streams)
    }

    /// Whether an answer with this status and `Content-Type` is a stream: a success, and where a request of its own asked for
    /// server-sent events, no page in their place.
    pub(super) fn is_stream(&self, framing: Framing, status: u16, content_type: Option<&[u8]>) -> bool {
        let is_page = |kind: &[u8]| memchr::memmem::find(&kind.to_ascii_lowercase(), b"text/event-stream").is_none();
        let may_be_page = self.all.is_none() && framing == Framing::Sse;
        (200..300).contains(&status) && !(may_be_page && content_type.is_some_and(is_page))
    }

    /// What a call with this hint waits for.
    #[inline]
    pub(super) fn started(&self, hint: u32) -> Started {
        self.messages(hint).map_or(Started::Awaited, MessageOptions::started)
    }
}

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
        if streaming.all.is_some() {
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
        if self.streaming.by_framing.is_some() && self.streaming.all.is_none() {
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
