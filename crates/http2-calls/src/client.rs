//! One connection: a stream for each call.

use std::borrow::Cow;

use brunt_http2::{Config, Connection, ErrorCode, Event};
use brunt_protocol::source::Message;
use brunt_protocol::{
    Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Opening, Pending, Progress, Started,
};
use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;

use crate::streams::{Broken, Streams};
use crate::{CallError, EndedBy, StreamProtocol};

/// Data with a message in it. The bytes behind the message were left with the caller, and come again.
#[derive(Debug, Clone, Copy)]
struct PendingMessage {
    /// The data's stream, by its id: positions change when a call is given up in between.
    stream: u64,
    /// The remaining bytes of the data.
    left: usize,
    /// The bytes behind the data that are skipped.
    behind: usize,
    /// Whether a DATA frame ends with the data.
    ends_frame: bool,
    /// Whether the stream ends with the data.
    end: bool,
}

/// 425 Too Early (RFC 8470, section 5.2).
const TOO_EARLY: u16 = 425;

/// The longest wait for anything behind a ping, in seconds, as gRPC's own libraries have it.
const PING_WAITS_S: u32 = 20;

/// Pings on a quiet connection, counted in seconds.
#[derive(Debug)]
struct KeepAlive {
    /// How long the peer is silent before it is pinged.
    every: u32,
    /// How long it has been silent.
    silent: u32,
    /// How long it has left a ping unanswered.
    pinged: Option<u32>,
}

/// A connection for calls of the protocol `P`: of HTTP/2, or by `S` of HTTP/3.
#[derive(Debug)]
pub struct StreamClient<P: StreamProtocol, S = Connection<<P as StreamProtocol>::Call>> {
    connection: S,
    protocol: P,
    /// The most streams at once, for a peer that has refused some; grows with each answer.
    limit: usize,
    /// The error for which the peer ends the connection, once it has announced one.
    closing: Option<ErrorCode>,
    /// Whether that is still to be counted.
    closing_uncounted: bool,
    held: Option<PendingMessage>,
    keep_alive: Option<KeepAlive>,
    /// Whether calls go as early data.
    is_early: bool,
    /// The streams that went so: those up to this id.
    early_through: Option<u64>,
}

impl<P: StreamProtocol> StreamClient<P> {
    /// A new connection of HTTP/2, which has sent nothing yet.
    pub fn new(protocol: P) -> Self {
        Self::over(Connection::new(Config::default()), protocol)
    }
}

impl<P: StreamProtocol> StreamClient<P, brunt_http3::Http3Connection<P::Call>> {
    /// A new connection of HTTP/3, which has sent nothing yet.
    pub fn http3(protocol: P) -> Self {
        Self::over(brunt_http3::Http3Connection::client(), protocol)
    }
}

impl<P: StreamProtocol, S: Streams<P::Call>> StreamClient<P, S> {
    fn over(connection: S, protocol: P) -> Self {
        Self {
            connection,
            protocol,
            limit: usize::MAX,
            closing: None,
            closing_uncounted: false,
            held: None,
            keep_alive: None,
            is_early: false,
            early_through: None,
        }
    }

    /// The code with which the peer ends the connection, and what it said besides.
    #[cold]
    fn goodbye(&self, code: ErrorCode) -> String {
        let said = self.connection.said();
        match said {
            "" => format!("GOAWAY with {code}"),
            // What servers of gRPC say whose clients ping more often than they allow.
            "too_many_pings" if self.keep_alive.is_some() => {
                format!("GOAWAY with {code}: {said}, so a longer --ping-every is wanted")
            }
            _ => format!("GOAWAY with {code}: {said}"),
        }
    }

    /// Pings a peer that has been silent for so many seconds, if that is wanted, and gives it up if it then stays silent
    /// for 20 s.
    #[must_use]
    pub fn kept_alive(mut self, every: Option<u32>) -> Self {
        self.keep_alive = every.map(|every| KeepAlive { every, silent: 0, pinged: None });
        self
    }

    /// Whether the connection can carry another call. One whose streams are used up ends once the last has.
    fn is_reusable(&self) -> bool {
        !(self.connection.is_exhausted() && self.connection.is_empty())
    }

    #[cold]
    fn failed(&self, position: usize, failure: Failure, reason: impl Into<Cow<'static, str>>) -> Progress {
        Progress::Failed(FailedCall { position, failure, reason: reason.into(), reusable: self.is_reusable() })
    }

    /// Whether a call went as early data.
    #[cold]
    fn went_early(&self, position: usize) -> bool {
        self.connection.id(position).is_some_and(|id| Some(id) <= self.early_through)
    }

    /// A call fails whose stream may go on: the stream is reset.
    #[cold]
    fn fail(&mut self, position: usize, wrong: CallError, out: &mut Vec<u8>) -> Progress {
        self.connection.cancel(position, out);
        self.failed(position, wrong.failure, wrong.reason)
    }

    /// A call's answer is complete.
    #[inline]
    fn ended(&mut self, position: usize, by: EndedBy, out: &mut Vec<u8>) -> Progress {
        let Some(call) = self.connection.take(position, out) else { return Progress::ControlFrame };
        match self.protocol.ended(call, by, &self.connection) {
            Ok(status) => {
                self.limit = self.limit.saturating_add(1);
                Progress::Answered(Answer { position, status, reusable: self.is_reusable() })
            }
            Err(CallError { failure, reason }) => self.failed(position, failure, reason),
        }
    }

    /// The progress that an event other than data makes; `None` if it concerns no call. `rest` are the bytes behind it.
    #[inline]
    fn meaning(&mut self, event: Event<'_>, rest: &[u8], out: &mut Vec<u8>) -> Option<Progress> {
        match event {
            Event::Aside | Event::Data { .. } => None,
            Event::Head { position, status: TOO_EARLY, .. } if self.went_early(position) => {
                self.connection.cancel(position, out);
                let reason = "the target takes no early data, nor the request after it (425 Too Early)";
                Some(Progress::Refused { position, reason })
            }
            Event::Head { position, status, end } => {
                if let Err(wrong) = self.protocol.head(&mut self.connection, position, status, end) {
                    return Some(self.fail(position, wrong, out));
                }
                if end {
                    return Some(self.ended(position, EndedBy::Head, out));
                }
                // Where the whole answer has come, it is reported only once.
                let goes_on = !self.connection.id(position).is_some_and(|id| self.connection.is_completed(id, rest));
                goes_on.then_some(Progress::Part { position })
            }
            Event::Trailers { position } => Some(self.ended(position, EndedBy::Trailers, out)),
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
                Progress::Refused { position, reason: S::REFUSED_TOO_OFTEN }
            }
            Event::Reset { position, code } => {
                self.connection.take(position, out);
                self.failed(position, Failure::Closed, format!("the peer reset the stream: {}", S::code_text(code)))
            }
            Event::Malformed { position, reason } => {
                self.connection.take(position, out);
                self.failed(position, Failure::Protocol, reason)
            }
            Event::GoAway { code, unprocessed } => {
                if code != ErrorCode::NO_ERROR {
                    self.closing_uncounted |= self.closing.is_none();
                    self.closing = Some(code);
                }
                Progress::Draining { unprocessed }
            }
            Event::Aside | Event::Head { .. } | Event::Data { .. } | Event::Trailers { .. } => Progress::ControlFrame,
        }
    }

    /// Reads data at the beginning of `bytes`: returns how many bytes were taken, and the progress.
    #[inline]
    fn read(
        &mut self,
        mut data: PendingMessage,
        position: usize,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Option<Progress>) {
        let whole = data.left + data.behind;
        let Some(call) = self.connection.data_mut(position) else { return (whole, None) };
        let own = bytes.get(..data.left).unwrap_or(bytes);
        match self.protocol.body(call, own, data.ends_frame) {
            Ok(None) => (whole, data.end.then(|| self.ended(position, EndedBy::Data, out))),
            Ok(Some(taken)) => {
                let status = self.protocol.status(call);
                data.left = data.left.saturating_sub(taken);
                (self.hold(data, taken), Some(Progress::Message { position, status }))
            }
            Err(wrong) => (whole, Some(self.fail(position, wrong, out))),
        }
    }

    /// Remembers the rest behind a message of `taken` bytes. Returns how many bytes are taken with it.
    #[cold]
    fn hold(&mut self, mut data: PendingMessage, taken: usize) -> usize {
        if data.left > 0 {
            self.held = Some(data);
            return taken;
        }
        let whole = taken + data.behind;
        if !data.end {
            return whole;
        }
        // The answer ends with the same byte, which is taken next.
        data.behind = 1;
        self.held = Some(data);
        whole.saturating_sub(1)
    }

    /// Reads the bytes behind a message that were left with the caller.
    #[cold]
    fn read_held(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Option<Progress>) {
        let Some(data) = self.held.take() else { return (0, None) };
        match self.connection.place(data.stream) {
            Some(position) if data.left > 0 => self.read(data, position, bytes, out),
            Some(position) => (data.behind, data.end.then(|| self.ended(position, EndedBy::Data, out))),
            // The call was given up since.
            None => (data.left + data.behind, None),
        }
    }
}

impl<P: StreamProtocol, S: Streams<P::Call>> Client for StreamClient<P, S> {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        self.protocol.open(alpn)?;
        self.connection.open(out);
        Ok(Opening::Exchange)
    }

    fn capacity(&self) -> usize {
        self.connection.capacity().min(self.limit)
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let started = self.protocol.start(message, &mut self.connection, out);
        if self.is_early {
            self.early_through = self.connection.len().checked_sub(1).and_then(|last| self.connection.id(last));
        }
        started
    }

    fn sends_early(&mut self, is_early: bool) {
        self.is_early = is_early;
    }

    fn send_message(&mut self, position: usize, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
        self.protocol.send_message(message, &mut self.connection, position, out)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if let Some(keep_alive) = &mut self.keep_alive {
            (keep_alive.silent, keep_alive.pinged) = (0, None);
        }
        let mut taken = 0;
        if self.held.is_some() {
            let (count, progress) = self.read_held(bytes, out);
            taken = count;
            if let Some(progress) = progress {
                return Ok((taken, progress));
            }
        }
        while let Some(rest) = bytes.get(taken..)
            && !rest.is_empty()
        {
            let received = self.connection.receive(rest, out);
            let (count, event) = match received {
                Ok(received) => received,
                Err(Broken::Violation(violation)) => return Err(self.protocol.malformed(violation)),
                Err(Broken::Closed(code)) => {
                    let reason = format!("the peer closed the connection: {code}");
                    return Ok((bytes.len(), Progress::Closing(reason.into())));
                }
            };
            taken += count;
            if let Event::GoAway { code, .. } = event
                && !self.connection.is_open()
            {
                let goodbye = self.goodbye(code);
                return Err(Malformed(
                    format!("the peer gave the connection up before its SETTINGS: {goodbye}").into(),
                ));
            }
            let progress = if let Event::Data { position, bytes: data, behind, ends_frame, end } = event {
                let stream = self.connection.id(position).unwrap_or_default();
                let data = PendingMessage { stream, left: data.len(), behind, ends_frame, end };
                let from = taken - data.left - behind;
                let (count, progress) = self.read(data, position, bytes.get(from..).unwrap_or(&[]), out);
                taken = from + count;
                progress
            } else {
                self.meaning(event, bytes.get(taken..).unwrap_or(&[]), out)
            };
            if let Some(progress) = progress {
                return Ok((taken, progress));
            }
        }
        Ok((taken, Progress::ControlFrame))
    }

    fn close_reason(&self) -> Option<Cow<'static, str>> {
        Some(self.goodbye(self.closing?).into())
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        let call = self.connection.cancel(position, out);
        call.map(|call| self.protocol.left(call)).is_some()
    }

    fn is_framed(&self) -> bool {
        true
    }

    fn pending(&self) -> Pending {
        if self.connection.is_blocked() {
            Pending::HeldBack
        } else if self.connection.has_more() {
            Pending::Now
        } else {
            Pending::Nothing
        }
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

    fn beat(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let Some(KeepAlive { every, silent, pinged }) = &mut self.keep_alive else { return Ok(()) };
        *silent += 1;
        match pinged {
            Some(PING_WAITS_S..) => return Err(Malformed::because("no answer to a ping within 20 s")),
            Some(waits) => *waits += 1,
            None if *silent >= *every => {
                *pinged = Some(0);
                self.connection.ping(out);
            }
            None => {}
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.connection.close(out);
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        let counters = self.connection.note_events(note);
        if std::mem::take(&mut self.closing_uncounted)
            && let Some(code) = self.closing
        {
            note(&self.goodbye(code), 1);
        }
        self.protocol.take_events(&counters, note);
    }

    fn request_sample(&mut self) -> bool {
        self.protocol.look(&self.connection)
    }

    fn take_sample(&self) -> Option<AnswerSample<'_>> {
        self.protocol.looked()
    }

    fn parts(&self) -> AnswerParts<'_> {
        self.protocol.parts()
    }

    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        self.protocol.hand_over(kept);
    }
}
