//! HTTP over streams: a request and its answer on each.

use std::sync::{Arc, OnceLock};

use brunt_http2::{Counters, Fields, Violation};
use brunt_http2_calls::{CallError, EndedBy, MOST_KEPT_BYTES, StreamClient, StreamProtocol, Streams};
use brunt_protocol::messages::MessageReader;
use brunt_protocol::source::Message;
use brunt_protocol::{AnswerParts, KeptAnswer, Malformed, Started};
use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;

use super::request::{Writer, Written};
use crate::expected::{Expected, Search};
use crate::hints::{DISCARD, Streaming};
use crate::response::{ENDED_EARLY, keep_message, note_location};
use crate::seen::Seen;

/// A connection of HTTP/2 that speaks HTTP.
pub(crate) type Http2Client = StreamClient<Http2>;
/// A connection of HTTP/3.
pub(crate) type Http3Client = StreamClient<Http2, brunt_http3::Http3Connection<Call>>;

/// The most readers of messages that are kept for the next answers.
const MOST_SPARE: usize = 100;

/// A call on its stream.
#[derive(Debug)]
pub(crate) struct Call {
    status: u16,
    keeps_body: bool,
    /// The kept parts of its answer, if answers are kept.
    kept: Option<Box<KeptAnswer>>,
    /// The reader of its answer's messages, if it comes as messages.
    reader: Option<Box<MessageReader>>,
    /// The look at its answer, if it is sampled.
    seen: Option<Box<Seen>>,
    /// What looks for the expected text in its answer's body, if one is expected.
    search: Option<Box<Search>>,
}

/// Whether answers are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looking {
    /// No answer is sampled.
    Not,
    /// The next answer that begins is sampled.
    Next,
    /// The answer on the stream with this id is sampled.
    At(u64),
}

/// HTTP on one connection of HTTP/2.
pub(crate) struct Http2 {
    writer: Writer,
    /// The version: 2 or 3.
    version: u8,
    /// Whether the target's scheme wants TLS: it has to agree on HTTP/2 then.
    is_secure: bool,
    keeps: bool,
    streaming: Streaming,
    /// Readers whose answers have ended, for the next ones.
    #[expect(clippy::vec_box, reason = "a reader goes from call to call as it is, without an allocation")]
    spare: Vec<Box<MessageReader>>,
    /// The location of the first redirect, if it is noted.
    redirect: Option<Arc<OnceLock<String>>>,
    /// The last complete answer, or the last message with its answer's head.
    kept: Box<KeptAnswer>,
    /// The expected content of answers.
    expected: Option<Expected>,
    looking: Looking,
    /// The look at the last complete answer, if it was sampled.
    seen: Option<Box<Seen>>,
    /// The size of requests' heads in HTTP/1.1, in bytes, since it was last reported.
    head_bytes: u64,
}

impl Http2 {
    pub(crate) fn new(keep: bool, is_secure: bool, streaming: Streaming) -> Self {
        Self {
            writer: Writer::new(),
            version: 2,
            is_secure,
            keeps: keep,
            streaming,
            spare: Vec::new(),
            redirect: None,
            kept: Box::default(),
            expected: None,
            looking: Looking::Not,
            seen: None,
            head_bytes: 0,
        }
    }

    /// Sets the expected content of answers.
    pub(crate) fn expecting(self, expected: Option<Expected>) -> Self {
        Self { expected, ..self }
    }

    /// Makes it HTTP/3, whose targets have agreed on it before they are connected.
    pub(crate) fn over_quic(self) -> Self {
        Self { version: 3, ..self }
    }

    /// Makes it note the location of the first redirect in `redirect`.
    pub(crate) fn noting(self, redirect: Option<Arc<OnceLock<String>>>) -> Self {
        Self { redirect, ..self }
    }

    /// A reader of messages for the answer to a request with this hint, if it comes as messages.
    #[inline]
    fn reader(&mut self, hint: u32) -> Option<Box<MessageReader>> {
        let messages = self.streaming.messages(hint)?;
        let framing = messages.framing;
        let spare = self.spare.iter().rposition(|reader| reader.framing() == framing);
        let spare = spare.map(|at| self.spare.swap_remove(at));
        Some(spare.unwrap_or_else(|| Box::new(messages.reader(self.keeps))))
    }

    /// Takes the look at the head that came last.
    #[cold]
    fn see(&mut self, streams: &mut impl Streams<Call>, position: usize, status: u16) {
        let fields = streams.fields();
        let seen = Seen::new(status, |name| fields.get(name));
        let id = streams.id(position);
        if let (Some(id), Some(call)) = (id, streams.data_mut(position)) {
            call.seen = Some(Box::new(seen));
            self.looking = Looking::At(id);
        }
    }

    fn give_back(&mut self, reader: Option<Box<MessageReader>>) {
        if let Some(reader) = reader
            && self.spare.len() < MOST_SPARE
        {
            self.spare.push(reader);
        }
    }
}

impl Call {
    /// Keeps a part of a body.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        let Some(kept) = self.kept.as_mut().filter(|_| self.keeps_body) else { return Ok(()) };
        if kept.body.len() + bytes.len() > MOST_KEPT_BYTES {
            return Err(CallError::protocol("a body of more than 64 MiB, which a script would have to hold in memory"));
        }
        kept.body.extend_from_slice(bytes);
        Ok(())
    }
}

/// The last head as text, in the form of HTTP/1.1.
fn head_as_text(version: u8, fields: &Fields, status: u16) -> Vec<u8> {
    let mut text = format!("HTTP/{version} {status}\r\n").into_bytes();
    for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        for part in [name, b": ", value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

impl StreamProtocol for Http2 {
    type Call = Call;

    fn open(&mut self, alpn: Option<&[u8]>) -> Result<(), Malformed> {
        match alpn {
            Some(b"h2") if self.version == 2 => self.writer.set_scheme("https"),
            Some(b"h3") if self.version == 3 => self.writer.set_scheme("https"),
            None if !self.is_secure && self.version == 2 => {}
            _ if self.version == 3 => return Err(Malformed::because("HTTP/3 needs a target with https://")),
            _ => {
                return Err(Malformed::because(
                    "the target does not agree on HTTP/2 (by ALPN): --http auto takes what it agrees on",
                ));
            }
        }
        Ok(())
    }

    fn start(&mut self, message: &Message<'_>, streams: &mut impl Streams<Call>, out: &mut Vec<u8>) -> Started {
        let reader = self.reader(message.hint);
        let Written { block, body, is_head, head_bytes } = self.writer.write(message.bytes, streams.encoder());
        self.head_bytes += head_bytes as u64;
        let has_body = !body.is_empty() || message.tail.is_some();
        let keeps_body = message.hint & DISCARD == 0;
        let search = self.expected.as_ref().map(|expected| Box::new(expected.search()));
        let call = Call { status: 0, keeps_body, kept: self.keeps.then(Box::default), reader, seen: None, search };
        streams.start(block, !has_body, is_head, call, out);
        if has_body {
            let position = streams.len() - 1;
            streams.send(position, body, message.tail.is_none(), out);
            if let Some(tail) = message.tail {
                streams.send_shared(position, tail.of, tail.from..tail.to, true, out);
            }
        }
        self.streaming.started(message.hint)
    }

    #[inline]
    fn head(
        &mut self,
        streams: &mut impl Streams<Call>,
        position: usize,
        status: u16,
        _end: bool,
    ) -> Result<(), CallError> {
        if matches!(status, 301..=303 | 307 | 308)
            && let Some(redirect) = &self.redirect
            && let Some(location) = streams.fields().get("location")
        {
            note_location(redirect, location);
        }
        let head = self.keeps.then(|| head_as_text(self.version, streams.fields(), status));
        if self.looking == Looking::Next {
            self.see(streams, position, status);
        }
        let framing = streams.data_mut(position).and_then(|call| Some(call.reader.as_ref()?.framing()));
        let kind = || streams.fields().get("content-type");
        let is_stream = framing.is_some_and(|framing| self.streaming.is_stream(framing, status, kind()));
        let Some(call) = streams.data_mut(position) else { return Ok(()) };
        call.status = status;
        if let Some((kept, head)) = call.kept.as_mut().zip(head) {
            kept.head = head;
        }
        match &mut call.reader {
            Some(reader) if is_stream => reader.begin(),
            Some(_) => {
                let reader = call.reader.take();
                self.give_back(reader);
            }
            None => {}
        }
        Ok(())
    }

    #[inline]
    fn body(&mut self, call: &mut Call, bytes: &[u8], ends_frame: bool) -> Result<Option<usize>, CallError> {
        if let Some(seen) = &mut call.seen {
            seen.body(bytes);
        }
        if let Some(search) = &mut call.search {
            search.take(bytes);
        }
        let Some(reader) = &mut call.reader else { return call.keep(bytes).map(|()| None) };
        let ended = reader.read(bytes, ends_frame).map_err(|malformed| CallError::protocol(malformed.0))?;
        if ended.is_some()
            && let Some(kept) = &call.kept
        {
            self.kept.head.clone_from(&kept.head);
            keep_message(reader.message(), &mut self.kept.body);
        }
        Ok(ended)
    }

    fn status(&self, call: &Call) -> u16 {
        call.status
    }

    #[inline]
    fn ended(&mut self, call: Call, _by: EndedBy, _streams: &impl Streams<Call>) -> Result<u16, CallError> {
        let Call { status, reader, kept, seen, search, .. } = call;
        self.seen = seen;
        if let Some(kept) = kept {
            self.kept = kept;
        }
        let is_early = reader.as_ref().is_some_and(|reader| !reader.has_ended());
        self.give_back(reader);
        if is_early {
            return Err(CallError { failure: Failure::EndedEarly, reason: ENDED_EARLY.into() });
        }
        let both = self.expected.as_ref().zip(search.as_deref());
        match both.and_then(|(expected, search)| expected.missing(status, search)) {
            Some(reason) => Err(CallError { failure: Failure::Mismatch, reason: reason.to_owned().into() }),
            None => Ok(status),
        }
    }

    fn left(&mut self, call: Call) {
        if let Some(kept) = call.kept {
            self.kept = kept;
        }
        self.give_back(call.reader);
    }

    fn malformed(&self, violation: Violation) -> Malformed {
        Malformed::because(match violation {
            Violation::HTTP_1 => "the target answers in HTTP/1.1: leave --http 2 out",
            other => other.reason,
        })
    }

    fn take_events(&mut self, counters: &Counters, note: &mut dyn FnMut(&str, u64)) {
        let saved = std::mem::take(&mut self.head_bytes).saturating_sub(counters.block_bytes);
        if saved > 0 {
            note("header bytes saved", saved);
        }
        let trimmed = self.writer.take_trimmed();
        if trimmed > 0 {
            note("requests that lost fields of HTTP/1.1", trimmed);
        }
    }

    fn look(&mut self, streams: &impl Streams<Call>) -> bool {
        // An answer whose stream was given up will not be completed.
        let is_coming = matches!(self.looking, Looking::At(id) if streams.place(id).is_some());
        if !is_coming {
            self.looking = Looking::Next;
        }
        true
    }

    fn looked(&self) -> Option<AnswerSample<'_>> {
        self.seen.as_ref().map(|seen| seen.look())
    }

    fn parts(&self) -> AnswerParts<'_> {
        self.kept.parts()
    }

    fn hand_over(&mut self, kept: &mut KeptAnswer) {
        std::mem::swap(&mut *self.kept, kept);
    }
}
