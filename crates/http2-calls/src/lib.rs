//! Calls on streams of HTTP/2 and HTTP/3: the common part of brunt's protocols over streams.
//!
//! [`StreamClient`] is a [`Client`](brunt_protocol::Client) that gives each call a stream of its own. It translates the
//! peer's actions on streams and on the connection into the contract's terms: refused and reset streams, GOAWAY,
//! answers that come as messages, events for the report. A protocol adds its own part by [`StreamProtocol`]: how a request
//! becomes a header block and data, and what an answer's head, body and trailers mean.
//!
//! The smallest protocol on it is gRPC: `GrpcStreams` in `crates/protocols/grpc`.
//!
//! Dispatch is static, so a call pays nothing for the seam.

mod client;
mod streams;

use std::borrow::Cow;

use brunt_http2::{Counters, Violation};
use brunt_protocol::source::Message;
use brunt_protocol::{AnswerParts, KeptAnswer, Malformed, Started};
use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;

pub use self::client::StreamClient;
pub use self::streams::{Broken, Sections, Streams};

/// Limit on the kept part of an answer, in bytes.
pub const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// With which frame a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The head: there is no body.
    Head,
    /// Data.
    Data,
    /// Trailers.
    Trailers,
}

/// Why a call fails whose connection goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The kind of failure.
    pub failure: Failure,
    /// The reason: the same text for the same cause, so that reasons can be counted.
    pub reason: Cow<'static, str>,
}

impl CallError {
    /// An answer that breaks the protocol, for this reason.
    pub fn protocol(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { failure: Failure::Protocol, reason: reason.into() }
    }
}

/// A protocol whose calls are streams, as the state of one connection.
///
/// A call begins with [`start`](Self::start). Of its answer, [`head`](Self::head) comes first, then
/// [`body`](Self::body) for each part of the data, and [`ended`](Self::ended) last. A call that ends in another way is
/// dropped, except one that its user leaves: [`left`](Self::left).
pub trait StreamProtocol: Send {
    /// Data of a call, as long as its stream lasts.
    type Call: Send;

    /// Checks the protocol that the TLS handshake chose by ALPN; `None` without TLS, or if it chose none.
    ///
    /// # Errors
    /// When this version of HTTP cannot be spoken on such a connection.
    fn open(&mut self, alpn: Option<&[u8]>) -> Result<(), Malformed>;

    /// Starts a call: opens a stream and sends the request.
    fn start(&mut self, message: &Message<'_>, streams: &mut impl Streams<Self::Call>, out: &mut Vec<u8>) -> Started;

    /// Sends a further message on the call at this position, as [`Client::send_message`](brunt_protocol::Client::send_message) does.
    ///
    /// # Errors
    /// When the call takes no further message: the call fails.
    fn send_message(
        &mut self,
        _message: &Message<'_>,
        _streams: &mut impl Streams<Self::Call>,
        _position: usize,
        _out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        Err("this protocol's calls say all when they begin")
    }

    /// The final head of an answer has come; its fields are [`Streams::fields`].
    ///
    /// # Errors
    /// When it is not the head of an answer of this protocol: the call fails.
    fn head(
        &mut self,
        streams: &mut impl Streams<Self::Call>,
        position: usize,
        status: u16,
        end: bool,
    ) -> Result<(), CallError>;

    /// Takes bytes of an answer's body. For a [`Started::Streamed`] call it returns how many bytes it took, up to the
    /// end of a message; the rest comes again. `None` if it took all bytes without completing a message. `ends_frame`
    /// says that a DATA frame ends with the last of them.
    ///
    /// # Errors
    /// When they are not part of an answer: the call fails.
    fn body(&mut self, call: &mut Self::Call, bytes: &[u8], ends_frame: bool) -> Result<Option<usize>, CallError>;

    /// The status of a call so far, while its messages come.
    fn status(&self, call: &Self::Call) -> u16;

    /// Handles a complete answer and returns its status. The fields of its trailers, or of a head that ends it, are in
    /// `streams`.
    ///
    /// # Errors
    /// When it is not an answer of this protocol: the call fails.
    fn ended(&mut self, call: Self::Call, by: EndedBy, streams: &impl Streams<Self::Call>) -> Result<u16, CallError>;

    /// Nobody waits for a call's answer any more. Its kept part may still be asked for.
    fn left(&mut self, _call: Self::Call) {}

    /// Why a violation of HTTP/2 ends the connection, in this protocol's words.
    fn malformed(&self, violation: Violation) -> Malformed {
        Malformed::because(violation.reason)
    }

    /// Reports events besides those of HTTP/2 itself, as [`Client::take_events`](brunt_protocol::Client::take_events)
    /// does.
    fn take_events(&mut self, _counters: &Counters, _note: &mut dyn FnMut(&str, u64)) {}

    /// As [`Client::request_sample`](brunt_protocol::Client::request_sample).
    fn look(&mut self, _streams: &impl Streams<Self::Call>) -> bool {
        false
    }

    /// As [`Client::take_sample`](brunt_protocol::Client::take_sample).
    fn looked(&self) -> Option<AnswerSample<'_>> {
        None
    }

    /// As [`Client::parts`](brunt_protocol::Client::parts).
    fn parts(&self) -> AnswerParts<'_>;

    /// As [`Client::take_answer`](brunt_protocol::Client::take_answer).
    fn hand_over(&mut self, kept: &mut KeptAnswer);
}
