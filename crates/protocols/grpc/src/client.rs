//! One connection: a stream for each call.

use std::borrow::Cow;
use std::sync::Arc;

use brunt_http2::frame::{HEAD_BYTES, Head, flag, kind};
use brunt_http2::{Config, Connection, ErrorCode, Event};
use brunt_model::outcome::Failure;
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, Client, Failed, Kept, Malformed, Opening, Parts, Progress, Started};

use crate::framing::{Fault, Reader, decompressed, write_message};
use crate::request::{Writer, parts};
use crate::status;

/// A call's hint: its answer may be any number of messages, not exactly one.
pub(crate) const STREAMS: u32 = 1;
/// The most that is kept of an answer, in bytes.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// How many frames are looked ahead through to see whether an answer is all there.
const MOST_AHEAD: usize = 4;
/// Why a call has failed that was refused too often.
const REFUSED: &str = "the peer refused the call's stream 9 times (REFUSED_STREAM)";

/// What all connections of a run have in common.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The most bytes of a message in an answer.
    pub(crate) message_bytes: u32,
}

/// A call on its stream.
#[derive(Debug)]
struct Call {
    reader: Reader,
    /// Whether its answer may be any number of messages.
    streams: bool,
    /// Whether the head said that compressed messages are in gzip.
    is_gzip: bool,
    /// Whether a message has come.
    has_message: bool,
    /// What of its answer is kept, if answers are.
    kept: Option<Box<Kept>>,
}

pub(crate) struct GrpcClient {
    connection: Connection<Call>,
    writer: Writer,
    is_secure: bool,
    keeps: bool,
    limits: Arc<Limits>,
    /// The answer that was complete last: its metadata as lines, and its messages, framed and no longer compressed.
    kept: Box<Kept>,
    /// The most streams at once that a peer takes which has refused some; grows with each answer.
    limit: usize,
    /// Why the peer ends the connection, once it has said so.
    closing: Option<ErrorCode>,
}

impl GrpcClient {
    pub(crate) fn new(keep: bool, is_secure: bool, limits: Arc<Limits>) -> Self {
        Self {
            connection: Connection::new(Config::default()),
            writer: Writer::default(),
            is_secure,
            keeps: keep,
            limits,
            kept: Box::default(),
            limit: usize::MAX,
            closing: None,
        }
    }

    /// A call has failed whose stream may go on: it is reset.
    #[cold]
    fn fail(
        &mut self,
        position: usize,
        failure: Failure,
        reason: impl Into<Cow<'static, str>>,
        out: &mut Vec<u8>,
    ) -> Progress {
        self.connection.reset(position, ErrorCode::CANCEL, out);
        self.failed(position, failure, reason)
    }

    fn failed(&self, position: usize, failure: Failure, reason: impl Into<Cow<'static, str>>) -> Progress {
        Progress::Failed(Failed { position, failure, reason: reason.into(), reusable: self.is_reusable() })
    }

    /// Whether the connection can carry another call. One whose streams are used up ends once the last has.
    fn is_reusable(&self) -> bool {
        !(self.connection.is_exhausted() && self.connection.is_empty())
    }

    /// Why a head does not begin an answer of gRPC, if it does not.
    fn head_fault(&self, status: u16) -> Option<Cow<'static, str>> {
        let fields = self.connection.fields();
        if status != 200 {
            return Some(format!("HTTP status {status} where an answer of gRPC belongs").into());
        }
        let is_grpc = fields.get("content-type").is_some_and(|value| value.starts_with(b"application/grpc"));
        (!is_grpc).then_some(Cow::Borrowed("an answer whose content-type is not application/grpc"))
    }

    /// A final head has come; with `end` it is all of the answer ("Trailers-Only").
    #[inline]
    fn begin(&mut self, position: usize, status: u16, end: bool, rest: &[u8], out: &mut Vec<u8>) -> Option<Progress> {
        let fields = self.connection.fields();
        let has_status = end && fields.get("grpc-status").is_some();
        if !has_status && let Some(reason) = self.head_fault(status) {
            return Some(self.fail(position, Failure::Protocol, reason, out));
        }
        let is_gzip = self.connection.fields().get("grpc-encoding") == Some(b"gzip");
        self.keep_fields(position, Some(status));
        if end {
            return Some(self.end(position, out));
        }
        if let Some(call) = self.connection.data_mut(position) {
            call.is_gzip = is_gzip;
        }
        // Where the whole answer has come, it is not told twice.
        let goes_on = !self.connection.id(position).is_some_and(|id| is_completed(id, rest));
        goes_on.then_some(Progress::Part { position })
    }

    /// Keeps the fields that came last, if answers are kept.
    #[inline]
    fn keep_fields(&mut self, position: usize, status: Option<u16>) {
        if !self.keeps {
            return;
        }
        let mut text = status.map_or(String::new(), |status| format!("HTTP/2 {status}\r\n")).into_bytes();
        for (name, value) in self.connection.fields().iter().filter(|(name, _)| !name.starts_with(b":")) {
            for part in [name, b": ", value, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
        if let Some(kept) = self.connection.data_mut(position).and_then(|call| call.kept.as_mut()) {
            kept.head.extend_from_slice(&text);
        }
    }

    /// The stream has ended with the fields that came last.
    #[inline]
    fn end(&mut self, position: usize, out: &mut Vec<u8>) -> Progress {
        let status = self.connection.fields().get("grpc-status").map(status::number);
        let Some(call) = self.connection.take(position, out) else { return Progress::Aside };
        let wrong = match status {
            None => Some("an answer without grpc-status"),
            Some(None) => Some("a grpc-status that is no number"),
            Some(Some(_)) if call.reader.is_within() => Some("an answer that ends within a message"),
            Some(Some(0)) if !call.streams && !call.has_message => Some("an answer with status OK and no message"),
            Some(Some(_)) => None,
        };
        if let Some(reason) = wrong {
            return self.failed(position, Failure::Protocol, reason);
        }
        if let Some(kept) = call.kept {
            self.kept = kept;
        }
        self.limit = self.limit.saturating_add(1);
        Progress::Answered(Answer { position, status: status.flatten().unwrap_or(0), reusable: self.is_reusable() })
    }

    /// A part of a body; why it is none of the answer's, if it is not.
    #[inline]
    fn data(&mut self, position: usize, mut bytes: &[u8]) -> Result<(), Fault> {
        let limit = self.limits.message_bytes;
        let Some(call) = self.connection.data_mut(position) else { return Ok(()) };
        while !bytes.is_empty() {
            let (taken, is_whole) = call.reader.read(bytes)?;
            bytes = bytes.get(taken..).unwrap_or(&[]);
            if is_whole {
                call.message_came(limit)?;
            }
        }
        Ok(())
    }

    /// What an event means; none if it is nothing that a call has to hear of. `rest` is what comes behind it.
    #[inline]
    fn meaning(&mut self, event: Event<'_>, rest: &[u8], out: &mut Vec<u8>) -> Option<Progress> {
        match event {
            Event::Aside => None,
            Event::Head { position, status, end } => self.begin(position, status, end, rest, out),
            Event::Data { position, bytes, end } => match self.data(position, bytes) {
                Err(fault) => {
                    let failure = if fault == Fault::Oversize { Failure::Oversize } else { Failure::Protocol };
                    Some(self.fail(position, failure, fault.to_string(), out))
                }
                Ok(()) if end => {
                    let reason = "an answer that ends without trailers, which have its status";
                    Some(self.fail(position, Failure::Protocol, reason, out))
                }
                Ok(()) => None,
            },
            Event::Trailers { position } => {
                self.keep_fields(position, None);
                Some(self.end(position, out))
            }
            other => Some(self.rare_meaning(other, out)),
        }
    }

    #[cold]
    fn rare_meaning(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Progress {
        match event {
            Event::Opened => Progress::Opened,
            Event::Reset { position, code: ErrorCode::REFUSED_STREAM } => {
                self.connection.take(position, out);
                self.limit = self.connection.len().max(1);
                Progress::Refused { position, reason: REFUSED }
            }
            Event::Reset { position, code } => {
                self.connection.take(position, out);
                self.failed(position, Failure::Closed, format!("the peer reset the stream: {code}"))
            }
            Event::Malformed { position, reason } => {
                self.connection.take(position, out);
                self.failed(position, Failure::Protocol, reason)
            }
            Event::GoAway { code, unprocessed } => {
                self.closing = (code != ErrorCode::NO_ERROR).then_some(code);
                Progress::Draining { unprocessed }
            }
            Event::Aside | Event::Head { .. } | Event::Data { .. } | Event::Trailers { .. } => Progress::Aside,
        }
    }
}

impl Call {
    /// A message is complete. What is kept is no longer compressed.
    #[inline]
    fn message_came(&mut self, limit: u32) -> Result<(), Fault> {
        if self.has_message && !self.streams {
            return Err(Fault::Malformed("a second message where the method answers with one"));
        }
        self.has_message = true;
        let is_compressed = self.reader.is_compressed();
        if is_compressed && !self.is_gzip {
            return Err(Fault::Malformed("a compressed message, and grpc-encoding is not gzip"));
        }
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let message = self.reader.message();
        let message = if is_compressed { Cow::Owned(decompressed(message, limit)?) } else { Cow::Borrowed(message) };
        if kept.body.len() + message.len() > MOST_KEPT_BYTES {
            return Err(Fault::Malformed("an answer of more than 64 MiB, which would have to be held in memory"));
        }
        write_message(&message, false, &mut kept.body);
        Ok(())
    }
}

/// Whether the stream ends within the first frames in `bytes`, which are all there.
#[inline]
fn is_completed(stream: u32, mut bytes: &[u8]) -> bool {
    for _ in 0..MOST_AHEAD {
        let Some(head) = Head::read(bytes) else { return false };
        let Some(after) = bytes.get(HEAD_BYTES + head.length..) else { return false };
        let may_end = matches!(head.kind, kind::DATA | kind::HEADERS);
        if may_end && head.stream == stream && head.has(flag::END_STREAM) {
            return true;
        }
        bytes = after;
    }
    false
}

impl Client for GrpcClient {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        if self.is_secure && alpn != Some(b"h2") {
            return Err(Malformed::because("the target does not agree on HTTP/2 (by ALPN), which gRPC needs"));
        }
        self.connection.open(out);
        Ok(Opening::Exchange)
    }

    fn capacity(&self) -> usize {
        self.connection.capacity().min(self.limit)
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let (head, body) = parts(message.bytes);
        let block = self.writer.write(head, self.connection.encoder());
        let call = Call {
            reader: Reader::new(self.limits.message_bytes, self.keeps),
            streams: message.hint & STREAMS != 0,
            is_gzip: false,
            has_message: false,
            kept: self.keeps.then(Box::default),
        };
        self.connection.start(block, body.is_empty(), false, call, out);
        if !body.is_empty() {
            self.connection.send(self.connection.len() - 1, body, true, out);
        }
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if let Some(code) = self.closing.take() {
            let reason = format!("the peer ended the connection: GOAWAY with {code}");
            return Ok((bytes.len(), Progress::Closing(reason.into())));
        }
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..)
            && !rest.is_empty()
        {
            let (count, event) =
                self.connection.receive(rest, out).map_err(|violation| Malformed::because(violation.reason))?;
            taken += count;
            if let Some(progress) = self.meaning(event, bytes.get(taken..).unwrap_or(&[]), out) {
                // The last byte of GOAWAY is left for what it means besides.
                if self.closing.is_some() && taken > 1 {
                    taken -= 1;
                } else {
                    self.closing = None;
                }
                return Ok((taken, progress));
            }
        }
        Ok((taken, Progress::Aside))
    }

    fn give_up(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        self.connection.reset(position, ErrorCode::CANCEL, out).is_some()
    }

    fn is_framed(&self) -> bool {
        true
    }

    fn has_more(&self) -> bool {
        self.connection.has_more()
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        self.connection.more(out);
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        let counters = self.connection.take_counters();
        if counters.goaways > 0 {
            note("GOAWAY", counters.goaways);
        }
        for (code, count) in (0..).zip(counters.resets).filter(|(_, count)| *count > 0) {
            note(&format!("RST_STREAM {}", ErrorCode(code)), count);
        }
    }

    fn stalled(&mut self) {
        self.connection.stalled();
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        self.connection.resumed(out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.connection.close(out);
    }

    fn parts(&self) -> Parts<'_> {
        self.kept.parts()
    }

    fn hand_over(&mut self, kept: &mut Kept) {
        std::mem::swap(&mut *self.kept, kept);
    }
}

#[cfg(test)]
mod tests;
