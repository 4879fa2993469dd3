//! The calls of a gRPC connection: one on each stream.

use std::borrow::Cow;
use std::sync::Arc;

use brunt_http2_calls::{CallError, EndedBy, MOST_KEPT_BYTES, StreamClient, StreamProtocol, Streams};
use brunt_protocol::source::Message;
use brunt_protocol::{AnswerParts, KeptAnswer, Malformed, Started};
use brunt_record::outcome::Failure;
use prost_reflect::MessageDescriptor;

use crate::decoding::Recogniser;
use crate::framing::{Fault, PrefixedReader, decompressed, write_message};
use crate::request::{Writer, parts};
use crate::status;

/// A hint of a call: its answer is a stream of messages, each of them timed, and not exactly one message.
pub(crate) const STREAMS: u32 = 1;
/// A hint of a call: its user sends more messages after its start.
pub(crate) const OPEN: u32 = 2;
/// A hint of a call: its user takes the messages of its answer one by one, however many there are.
pub(crate) const TAKEN: u32 = 4;
/// A hint of a later message: it is the last one.
pub(crate) const FINISH: u32 = 8;
/// A hint of no call at all: it ends as soon as there is a connection.
pub(crate) const CONNECT: u32 = 16;
/// Where in a hint the number of the call's method begins: its answers have the type at this place of
/// [`Limits::answers`].
const METHOD_FROM: u32 = 8;
/// The most bytes that wait on a stream until the server accepts them.
const MOST_WAITING_BYTES: usize = 4 << 20;
/// The reason of a call that failed because its server does not accept the user's messages.
pub(crate) const UNTAKEN: &str = "more than 4 MiB waited for the server to take them";

/// The limits that all connections of a run share.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The most bytes of a message in an answer.
    pub(crate) message_bytes: u32,
    /// The longest gap between the messages of a stream, in nanoseconds; [`u64::MAX`] for no limit.
    pub(crate) stall_ns: u64,
    /// How long a server is silent before it is pinged, in seconds; `None` for no pings.
    pub(crate) keep_alive_s: Option<u32>,
    /// The types of the methods' answers, by the number of the method.
    pub(crate) answers: Vec<MessageDescriptor>,
}

/// The part of a hint that says which method is called.
pub(crate) const fn hint_of_method(number: usize) -> u32 {
    (number as u32) << METHOD_FROM
}

/// A call on its stream.
#[derive(Debug)]
pub(crate) struct Call {
    reader: PrefixedReader,
    /// The hint of its start: [`STREAMS`], [`TAKEN`].
    hint: u32,
    /// Whether the head says that compressed messages are in gzip.
    is_gzip: bool,
    /// Whether a message has come.
    has_message: bool,
    /// The kept part of its answer, if answers are kept.
    kept: Option<Box<KeptAnswer>>,
}

/// A connection that speaks gRPC.
pub(crate) type GrpcClient = StreamClient<GrpcStreams>;

/// The longest silence before a ping, from nanoseconds to whole seconds.
///
/// # Errors
/// When it is below a second, or beyond a day.
pub(crate) fn keep_alive_s(ns: u64) -> Result<u32, String> {
    match ns.div_ceil(1_000_000_000) {
        s @ 1..=86_400 if ns >= 1_000_000_000 => Ok(s as u32),
        _ => Err("expected a duration from 1s to 24h".to_owned()),
    }
}

/// gRPC on one connection.
pub(crate) struct GrpcStreams {
    writer: Writer,
    is_secure: bool,
    keeps: bool,
    limits: Arc<Limits>,
    recogniser: Recogniser,
    /// The answer that was completed last: its metadata as lines, and its messages, framed and decompressed. While a
    /// stream goes on: its metadata so far, and its newest message.
    kept: Box<KeptAnswer>,
    /// Memory for the messages of calls to come: as many as were in flight together.
    spare: Vec<Vec<u8>>,
}

impl GrpcStreams {
    pub(crate) fn new(keep: bool, is_secure: bool, limits: Arc<Limits>) -> Self {
        let (writer, recogniser) = (Writer::default(), Recogniser::default());
        Self { writer, is_secure, keeps: keep, limits, recogniser, kept: Box::default(), spare: Vec::new() }
    }

    /// A client of a connection.
    pub(crate) fn client(keep: bool, is_secure: bool, limits: &Arc<Limits>) -> GrpcClient {
        GrpcClient::new(Self::new(keep, is_secure, Arc::clone(limits))).kept_alive(limits.keep_alive_s)
    }
}

/// What keeps a head from beginning an answer of gRPC; `None` if it does begin one.
fn head_fault(status: u16, streams: &impl Streams<Call>) -> Option<CallError> {
    if status != 200 {
        return Some(CallError::protocol(format!("HTTP status {status} where an answer of gRPC belongs")));
    }
    let is_grpc = streams.fields().get("content-type").is_some_and(|value| value.starts_with(b"application/grpc"));
    (!is_grpc).then(|| CallError::protocol("an answer whose content-type is not application/grpc"))
}

/// Appends the newest fields to a call's kept answer.
fn keep_fields(kept: &mut KeptAnswer, status: Option<u16>, streams: &impl Streams<Call>) {
    if let Some(status) = status {
        kept.head.extend_from_slice(format!("HTTP/2 {status}\r\n").as_bytes());
    }
    for (name, value) in streams.fields().iter().filter(|(name, _)| !name.starts_with(b":")) {
        for part in [name, b": ", value, b"\r\n"] {
            kept.head.extend_from_slice(part);
        }
    }
}

impl Call {
    /// Whether the call's answer is a stream of messages.
    fn streams(&self) -> bool {
        self.hint & STREAMS != 0
    }

    /// Whether the user takes the messages one by one, so that only the last one is kept.
    fn is_taken(&self) -> bool {
        self.hint & TAKEN != 0
    }

    /// Handles a complete message: decompresses and checks it. Returns where it begins in the kept bytes.
    #[inline]
    fn message_came(&mut self, limits: &Limits, recogniser: &mut Recogniser) -> Result<usize, CallError> {
        if self.has_message && !self.streams() {
            return Err(CallError::protocol("a second message where the method answers with one"));
        }
        self.has_message = true;
        let is_compressed = self.reader.is_compressed();
        if is_compressed && !self.is_gzip {
            return Err(CallError::protocol("a compressed message, and grpc-encoding is not gzip"));
        }
        let Some(message) = self.reader.message() else { return Ok(0) };
        let message = if is_compressed {
            Cow::Owned(decompressed(message, limits.message_bytes)?)
        } else {
            Cow::Borrowed(message)
        };
        let method = self.hint >> METHOD_FROM;
        if let Some(answer) = limits.answers.get(method as usize)
            && !recogniser.is_message(method, answer, &message)
        {
            return Err(CallError::protocol(format!("an answer that is not a {}", answer.full_name())));
        }
        let is_taken = self.is_taken();
        let Some(kept) = &mut self.kept else { return Ok(0) };
        if is_taken {
            kept.body.clear();
        }
        let from = kept.body.len();
        if from + message.len() > MOST_KEPT_BYTES {
            return Err(CallError::protocol("an answer of more than 64 MiB, which would have to be held in memory"));
        }
        write_message(&message, false, &mut kept.body);
        Ok(from)
    }
}

impl StreamProtocol for GrpcStreams {
    type Call = Call;

    fn open(&mut self, alpn: Option<&[u8]>) -> Result<(), Malformed> {
        if self.is_secure && alpn != Some(b"h2") {
            return Err(Malformed::because("the target does not agree on HTTP/2 (by ALPN), which gRPC needs"));
        }
        Ok(())
    }

    fn start(&mut self, message: &Message<'_>, streams: &mut impl Streams<Call>, out: &mut Vec<u8>) -> Started {
        if message.hint & CONNECT != 0 {
            return Started::Sent(0);
        }
        let (head, body) = parts(message.bytes);
        let block = self.writer.write(head, streams.encoder());
        let ends = message.hint & OPEN == 0;
        let call = Call {
            reader: PrefixedReader::new(self.limits.message_bytes, self.keeps, self.spare.pop().unwrap_or_default()),
            hint: message.hint,
            is_gzip: false,
            has_message: false,
            kept: self.keeps.then(Box::default),
        };
        streams.start(block, ends && body.is_empty(), false, call, out);
        if !body.is_empty() {
            streams.send(streams.len() - 1, body, ends, out);
        }
        if message.hint & (STREAMS | TAKEN) != 0 {
            Started::Streamed { stall_ns: self.limits.stall_ns }
        } else {
            Started::Awaited
        }
    }

    fn send_message(
        &mut self,
        message: &Message<'_>,
        streams: &mut impl Streams<Call>,
        position: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let (_, body) = parts(message.bytes);
        streams.send(position, body, message.hint & FINISH != 0, out);
        // A single message may be of any length.
        if streams.waiting(position) > MOST_WAITING_BYTES.max(body.len()) { Err(UNTAKEN) } else { Ok(()) }
    }

    #[inline]
    fn head(
        &mut self,
        streams: &mut impl Streams<Call>,
        position: usize,
        status: u16,
        end: bool,
    ) -> Result<(), CallError> {
        let has_status = end && streams.fields().get("grpc-status").is_some();
        if !has_status && let Some(wrong) = head_fault(status, streams) {
            return Err(wrong);
        }
        let is_gzip = streams.fields().get("grpc-encoding") == Some(b"gzip");
        let kept = streams.data_mut(position).and_then(|call| {
            call.is_gzip = is_gzip;
            call.kept.take()
        });
        if let Some(mut kept) = kept {
            keep_fields(&mut kept, Some(status), streams);
            if let Some(call) = streams.data_mut(position) {
                call.kept = Some(kept);
            }
        }
        Ok(())
    }

    #[inline]
    fn body(&mut self, call: &mut Call, bytes: &[u8], _ends_frame: bool) -> Result<Option<usize>, CallError> {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..)
            && !rest.is_empty()
        {
            let (count, is_whole) = call.reader.read(rest)?;
            taken += count;
            if !is_whole {
                continue;
            }
            let from = call.message_came(&self.limits, &mut self.recogniser)?;
            if call.streams() || call.is_taken() {
                if let Some(kept) = &call.kept {
                    self.kept.head.clone_from(&kept.head);
                    self.kept.body.clear();
                    self.kept.body.extend_from_slice(kept.body.get(from..).unwrap_or(&[]));
                }
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// gRPC sends the status at the end of a call.
    fn status(&self, _call: &Call) -> u16 {
        0
    }

    #[inline]
    fn ended(&mut self, call: Call, by: EndedBy, streams: &impl Streams<Call>) -> Result<u16, CallError> {
        let status = if by == EndedBy::Data { None } else { streams.fields().get("grpc-status").map(status::number) };
        let wrong = match status {
            None if call.streams() => {
                let reason = "the stream ended without its status";
                return Err(CallError { failure: Failure::EndedEarly, reason: reason.into() });
            }
            None if by == EndedBy::Data => Some("an answer that ends without trailers, which have its status"),
            None => Some("an answer without grpc-status"),
            Some(None) => Some("a grpc-status that is not a number"),
            Some(Some(_)) if call.reader.is_within() => Some("an answer that ends within a message"),
            Some(Some(0)) if !call.streams() && !call.has_message => Some("an answer with status OK and no message"),
            Some(Some(_)) => None,
        };
        if let Some(reason) = wrong {
            return Err(CallError::protocol(reason));
        }
        let is_taken = call.is_taken();
        self.spare.push(call.reader.into_memory());
        if let Some(mut kept) = call.kept {
            if is_taken {
                // These bytes were handed out with their message.
                kept.body.clear();
            }
            if by == EndedBy::Trailers {
                keep_fields(&mut kept, None, streams);
            }
            self.kept = kept;
        }
        Ok(status.flatten().unwrap_or(0))
    }

    fn left(&mut self, call: Call) {
        if let Some(kept) = call.kept {
            self.kept = kept;
        }
    }

    fn parts(&self) -> AnswerParts<'_> {
        self.kept.parts()
    }

    fn hand_over(&mut self, kept: &mut KeptAnswer) {
        std::mem::swap(&mut *self.kept, kept);
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        let failure = if fault == Fault::Oversize { Failure::Oversize } else { Failure::Protocol };
        Self { failure, reason: fault.to_string().into() }
    }
}

#[cfg(test)]
mod tests;
