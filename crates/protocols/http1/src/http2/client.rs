//! One HTTP/2 connection: a stream for each call.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use brunt_http2::frame::{Head, flag, kind};
use brunt_http2::{Config, Connection, ErrorCode, Event, Violation};
use brunt_model::outcome::Failure;
use brunt_protocol::user::Message;
use brunt_protocol::{Answer, Client, Failed, Kept, Malformed, Opening, Parts, Progress, Started};

use super::request::Writer;
use crate::client::DISCARD;
use crate::response::{MOST_KEPT_BYTES, note_location};

/// Why a call has failed that was refused too often.
const REFUSED: &str = "the peer refused the call's stream 9 times (REFUSED_STREAM)";

/// A call on its stream.
#[derive(Debug)]
struct Call {
    status: u16,
    /// What of its answer is kept, if answers are.
    kept: Option<Box<Kept>>,
    keeps_body: bool,
}

pub(crate) struct Http2Client {
    connection: Connection<Call>,
    writer: Writer,
    /// Whether the target's scheme wants TLS: it has to agree on HTTP/2 then.
    is_secure: bool,
    keeps: bool,
    /// Where the first redirect led, if that is noted.
    redirect: Option<Arc<OnceLock<String>>>,
    /// The answer that was complete last.
    kept: Box<Kept>,
    /// The most streams at once that a peer takes which has refused some; grows with each answer.
    limit: usize,
    /// What the heads of requests take in HTTP/1.1, in bytes, since that was last told.
    head_bytes: u64,
    /// Why the peer ends the connection, once it has said so.
    closing: Option<ErrorCode>,
}

impl Http2Client {
    pub(crate) fn new(keep: bool, is_secure: bool) -> Self {
        Self {
            connection: Connection::new(Config::default()),
            writer: Writer::new(),
            is_secure,
            keeps: keep,
            redirect: None,
            kept: Box::default(),
            limit: usize::MAX,
            head_bytes: 0,
            closing: None,
        }
    }

    /// The same; the first redirect's goal is noted in `redirect`.
    pub(crate) fn noting(keep: bool, is_secure: bool, redirect: Arc<OnceLock<String>>) -> Self {
        Self { redirect: Some(redirect), ..Self::new(keep, is_secure) }
    }

    /// A final head has come.
    #[inline]
    fn begin_answer(&mut self, position: usize, status: u16) {
        if matches!(status, 301..=303 | 307 | 308)
            && let Some(redirect) = &self.redirect
            && let Some(location) = self.connection.fields().get("location")
        {
            note_location(redirect, location);
        }
        if self.keeps {
            let head = head_as_text(&self.connection, status);
            if let Some(kept) = self.connection.data_mut(position).and_then(|call| call.kept.as_mut()) {
                kept.head = head;
            }
        }
        if let Some(call) = self.connection.data_mut(position) {
            call.status = status;
        }
    }

    /// A call's answer is complete.
    #[inline]
    fn answered(&mut self, position: usize, out: &mut Vec<u8>) -> Progress {
        let Some(call) = self.connection.take(position, out) else { return Progress::Aside };
        if let Some(kept) = call.kept {
            self.kept = kept;
        }
        self.limit = self.limit.saturating_add(1);
        Progress::Answered(Answer { position, status: call.status, reusable: self.is_reusable() })
    }

    /// Whether the connection can carry another call. One whose streams are used up ends once the last has.
    fn is_reusable(&self) -> bool {
        !(self.connection.is_exhausted() && self.connection.is_empty())
    }

    fn failed(&mut self, position: usize, failure: Failure, reason: impl Into<Cow<'static, str>>) -> Progress {
        Progress::Failed(Failed { position, failure, reason: reason.into(), reusable: self.is_reusable() })
    }

    /// Keeps a part of a body; false if it is too large.
    #[inline]
    fn keep(&mut self, position: usize, bytes: &[u8]) -> bool {
        if !self.keeps {
            return true;
        }
        let Some(call) = self.connection.data_mut(position) else { return true };
        let Some(kept) = call.kept.as_mut().filter(|_| call.keeps_body) else { return true };
        if kept.body.len() + bytes.len() > MOST_KEPT_BYTES {
            return false;
        }
        kept.body.extend_from_slice(bytes);
        true
    }

    /// What an event means; none if it is nothing that a call has to hear of. `rest` is what comes behind it.
    #[inline]
    fn meaning(&mut self, event: Event<'_>, rest: &[u8], out: &mut Vec<u8>) -> Option<Progress> {
        match event {
            Event::Aside => None,
            Event::Head { position, status, end } => {
                self.begin_answer(position, status);
                if end {
                    return Some(self.answered(position, out));
                }
                // Where the whole answer has come, it is not told twice.
                let goes_on = !self.connection.id(position).is_some_and(|id| is_completed(id, rest));
                goes_on.then_some(Progress::Part { position })
            }
            Event::Data { position, bytes, end } => {
                if !self.keep(position, bytes) {
                    self.connection.reset(position, ErrorCode::CANCEL, out);
                    let reason = "a body of more than 64 MiB, which a script would have to hold in memory";
                    return Some(self.failed(position, Failure::Protocol, reason));
                }
                end.then(|| self.answered(position, out))
            }
            Event::Trailers { position } => Some(self.answered(position, out)),
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

fn malformed(violation: Violation) -> Malformed {
    Malformed::because(match violation {
        Violation::HTTP_1 => "the target answers in HTTP/1.1: leave --http 2 out",
        other => other.reason,
    })
}

/// Whether the stream ends with the first frame in `bytes`, which is all there.
#[inline]
fn is_completed(stream: u32, bytes: &[u8]) -> bool {
    Head::read(bytes).is_some_and(|head| {
        head.kind == kind::DATA
            && head.stream == stream
            && head.has(flag::END_STREAM)
            && bytes.len() >= brunt_http2::frame::HEAD_BYTES + head.length
    })
}

/// The head that came last as a text, in the form of HTTP/1.1's.
fn head_as_text(connection: &Connection<Call>, status: u16) -> Vec<u8> {
    let mut text = format!("HTTP/2 {status}\r\n").into_bytes();
    for (name, value) in connection.fields().iter().filter(|(name, _)| !name.starts_with(b":")) {
        for part in [name, b": ", value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

impl Client for Http2Client {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        match alpn {
            Some(b"h2") => self.writer.set_scheme("https"),
            None if !self.is_secure => {}
            _ => {
                return Err(Malformed::because(
                    "the target does not agree on HTTP/2 (by ALPN): --http auto takes what it agrees on",
                ));
            }
        }
        self.connection.open(out);
        Ok(Opening::Exchange)
    }

    fn capacity(&self) -> usize {
        self.connection.capacity().min(self.limit)
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let (block, shape) = self.writer.write(message.bytes, self.connection.encoder());
        let body = message.bytes.get(shape.body..).unwrap_or(&[]);
        self.head_bytes += shape.body as u64;
        let has_body = !body.is_empty() || message.tail.is_some();
        let call = Call { status: 0, kept: self.keeps.then(Box::default), keeps_body: message.hint & DISCARD == 0 };
        self.connection.start(block, !has_body, shape.is_head, call, out);
        if has_body {
            let position = self.connection.len() - 1;
            self.connection.send(position, body, message.tail.is_none(), out);
            if let Some(tail) = message.tail {
                self.connection.send_shared(position, tail.of, tail.from..tail.to, true, out);
            }
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
            let (count, event) = self.connection.receive(rest, out).map_err(malformed)?;
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

    fn stalled(&mut self) {
        self.connection.stalled();
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        self.connection.resumed(out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.connection.close(out);
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        let counters = self.connection.take_counters();
        let saved = std::mem::take(&mut self.head_bytes).saturating_sub(counters.block_bytes);
        for (name, count) in [("GOAWAY", counters.goaways), ("header bytes saved", saved)] {
            if count > 0 {
                note(name, count);
            }
        }
        for (code, count) in (0..).zip(counters.resets).filter(|(_, count)| *count > 0) {
            note(&format!("RST_STREAM {}", ErrorCode(code)), count);
        }
    }

    fn parts(&self) -> Parts<'_> {
        self.kept.parts()
    }

    fn hand_over(&mut self, kept: &mut Kept) {
        std::mem::swap(&mut *self.kept, kept);
    }
}
