//! The state of a protocol on one connection: encodes calls and reads answers.

use std::borrow::Cow;

use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;

use crate::message::Message;

/// The way that bytes take on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the target.
    Sent,
    /// From the target.
    Received,
}

/// What a fresh connection needs before calls can be sent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Nothing: calls can start at once.
    Ready,
    /// An exchange of the protocol's own, such as a handshake or a login. It ends with [`Progress::Opened`], within the
    /// connect timeout, which began with the connection. How long it took is a figure of its own.
    Exchange,
}

/// What a call waits for once it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// Its answer.
    Awaited,
    /// Its answer as messages, a stream: each is announced by [`Progress::Message`] and timed.
    Streamed {
        /// The longest wait for the next message once one has come, in nanoseconds; [`u64::MAX`] for no limit but the
        /// call's timeout. A longer gap ends the call as [`Failure::Stalled`].
        stall_ns: u64,
    },
    /// No answer: what the peer had sent before cannot be one, for this reason. The call fails, and its connection ends.
    Malformed(&'static str),
    /// Nothing: the call ends with this status once the operating system has taken its bytes. It ends at once if it
    /// appended none, because the message that it asks for had come before. It has no position among the calls in
    /// flight.
    Sent(u16),
}

/// What is left to send of calls that were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Nothing.
    Nothing,
    /// Bytes that can be sent now.
    Now,
    /// Bytes that the peer does not allow yet: its flow control holds all of them back. The report has how long this
    /// lasts.
    HeldBack,
}

/// What bytes from a connection meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The bytes belong to the answer of the oldest call in flight, or to the opening exchange, and do not complete it.
    More,
    /// The bytes belong to the answer of the call at this position, and do not complete it.
    Part {
        /// The call's position among those in flight: 0 is the oldest.
        position: usize,
    },
    /// The bytes belong to no call: a ping, or a part of a message that nobody asked for.
    ControlFrame,
    /// The opening exchange is over, and calls can be sent.
    Opened,
    /// A message of a [`Started::Streamed`] call is complete, and the answer goes on. Where answers are kept,
    /// [`Client::parts`] has the message until the next bytes come.
    ///
    /// All messages count that are announced while the bytes of one read are taken. Those after the first arrived
    /// together with it, as far as anybody can tell.
    Message {
        /// The call's position among those in flight: 0 is the oldest.
        position: usize,
        /// The protocol's status so far: that of the call if its user leaves the stream here.
        status: u16,
    },
    /// A call's answer is complete.
    Answered(Answer),
    /// A call has ended without an answer of its own.
    Failed(FailedCall),
    /// The peer has not processed the call at this position, and goes on with others. The client forgets the call,
    /// which is sent again.
    Refused {
        /// The call's position among those in flight: 0 is the oldest.
        position: usize,
        /// The reason with which the call ends if it is refused again and again.
        reason: &'static str,
    },
    /// A message that no call asked for is complete.
    Unsolicited,
    /// The peer takes no more calls on this connection, which ends once those in flight have ended. It has not
    /// processed the calls from position `unprocessed` on, and will not: the client forgets them, and they are sent
    /// again on another connection.
    Draining {
        /// Position of the first call that was not processed (0 is the oldest); the number of calls in flight if all
        /// were.
        unprocessed: usize,
    },
    /// The peer announces, in the protocol's own way and for this reason, that it ends the connection. Calls in flight
    /// fail as [`Failure::Closed`], an opening exchange as [`Failure::Handshake`].
    Closing(Cow<'static, str>),
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The call's position among those in flight on the connection: 0 is the oldest.
    pub position: usize,
    /// The protocol's own status.
    pub status: u16,
    /// Whether the connection can carry another call.
    pub reusable: bool,
}

/// The end of a call that got no answer, or the wrong one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// The call's position among those in flight on the connection: 0 is the oldest.
    pub position: usize,
    /// The kind of failure that it counts as.
    pub failure: Failure,
    /// The reason: the same text for the same cause, whatever bytes came, so that reasons can be counted.
    pub reason: Cow<'static, str>,
    /// Whether the connection can carry another call.
    pub reusable: bool,
}

/// An answer that was kept, in the protocol's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerParts<'a> {
    /// The bytes before the body, as received.
    pub head: &'a [u8],
    /// The body, decoded as far as the protocol itself goes.
    pub body: &'a [u8],
}

/// An answer that was taken out of its connection's client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The bytes before the body, as received.
    pub head: Vec<u8>,
    /// The body, decoded as far as the protocol itself goes.
    pub body: Vec<u8>,
}

impl KeptAnswer {
    /// The answer as borrowed parts.
    pub fn parts(&self) -> AnswerParts<'_> {
        AnswerParts { head: &self.head, body: &self.body }
    }
}

/// Bytes that break the protocol's grammar or its limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub Cow<'static, str>);

impl Malformed {
    /// An error with a fixed reason: the same text whatever bytes came, so that reasons can be counted.
    pub const fn because(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }
}

/// One connection's state of a protocol. Pure: it only sees bytes.
///
/// **Order.** [`open`](Self::open) once, first; then [`start`](Self::start) and [`receive`](Self::receive) in any order, the
/// former only once the connection is open; [`closed`](Self::closed) or [`close`](Self::close) at most once, last. Bytes
/// appended to `out` are sent in that order.
///
/// **Errors.** Any error ends the connection: the oldest call in flight gets it as its outcome, and the others fail as
/// [`Failure::Closed`]. Before the connection is open, those that wait for it fail with it.
///
/// **Timeouts and cancellation.** A call that takes longer than the plan's timeout ends as [`Failure::Timeout`]. Its
/// connection ends with it, since a late answer could not be told from another's, unless the client says by
/// [`cancel`](Self::cancel) that it can. A connection that ends so is dropped without a goodbye, as it is whenever a
/// socket fails. When the run ends, [`close`](Self::close) is asked for a goodbye.
///
/// **Byte counts** are the worker's: what `out` gets is counted as sent, what `receive` is given as received.
///
/// **Memory.** A client holds what it needs to go on, within limits of its own, and nothing for its history; there may be
/// tens of thousands of them. What a peer can make it keep or append has a bound.
///
/// **Answers that are owed.** The answer to one call is never taken for that of another. A call that fails while its
/// answer may still come ends its connection ([`FailedCall::reusable`] is false).
///
/// # Example
///
/// A protocol whose calls and answers are lines, answered in the order of the calls:
///
/// ```
/// use brunt_protocol::source::Message;
/// use brunt_protocol::{Answer, Client, Malformed, Progress, Started};
///
/// /// The longest line that is taken, in bytes.
/// const MOST_BYTES: usize = 1024;
///
/// #[derive(Default)]
/// struct Lines {
///     in_flight: u32,
///     /// A line that is not all there.
///     partial: Vec<u8>,
/// }
///
/// impl Client for Lines {
///     fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
///         out.extend_from_slice(message.bytes);
///         self.in_flight += 1;
///         Started::Awaited
///     }
///
///     fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
///         let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
///             self.partial.extend_from_slice(bytes);
///             if self.partial.len() > MOST_BYTES {
///                 return Err(Malformed::because("a line of more than 1024 bytes"));
///             }
///             return Ok((bytes.len(), Progress::More));
///         };
///         self.partial.clear();
///         let Some(left) = self.in_flight.checked_sub(1) else { return Ok((end + 1, Progress::Unsolicited)) };
///         self.in_flight = left;
///         Ok((end + 1, Progress::Answered(Answer { position: 0, status: 0, reusable: true })))
///     }
/// }
///
/// let (mut client, mut out) = (Lines::default(), Vec::new());
/// client.start(&Message { bytes: b"PING\n", ..Message::default() }, &mut out);
/// // Answers come in whatever pieces; what is behind one is given again.
/// assert_eq!(client.receive(b"PO", &mut out), Ok((2, Progress::More)));
/// let answered = Progress::Answered(Answer { position: 0, status: 0, reusable: true });
/// assert_eq!(client.receive(b"NG\nmore\n", &mut out), Ok((3, answered)));
/// assert_eq!(client.receive(b"more\n", &mut out), Ok((5, Progress::Unsolicited)));
/// ```
pub trait Client: Send {
    /// A fresh connection is established, with TLS where the scheme wants it. Appends the opening bytes to `out`.
    /// `alpn` is the name that the peer chose in the TLS handshake from those that
    /// [`Prepared::alpn`](crate::Prepared::alpn) offers; `None` without TLS, or if the peer chose none.
    ///
    /// # Errors
    /// When this protocol cannot be spoken on such a connection: connecting has then failed, as [`Failure::Handshake`].
    fn open(&mut self, _alpn: Option<&[u8]>, _out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        Ok(Opening::Ready)
    }

    /// The most calls that may be in flight on the connection now, by the rules of the protocol and its peer. It may
    /// change with each [`receive`](Self::receive); calls beyond it wait. The plan may ask for fewer.
    fn capacity(&self) -> usize {
        usize::MAX
    }

    /// Appends the bytes of `message` to `out`. Calls may be started while others are in flight, up to the plan's
    /// `pipeline`.
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started;

    /// Appends to `out` a further message that the user sends on a call in flight: the [`Started::Streamed`] call at
    /// this position (0 is the oldest).
    ///
    /// # Errors
    /// When the call takes no further message, with the reason: the call has failed.
    fn send_message(
        &mut self,
        _position: usize,
        _message: &Message<'_>,
        _out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        Err("this protocol's calls say all when they begin")
    }

    /// Takes bytes that arrived, in pieces of any size. Returns how many it took, at least one, and what they meant. It
    /// is called again with the rest until everything is taken. With a [`Progress::Message`] it may take none, where a
    /// message and its answer end with the same byte. Bytes that it appends to `out` are sent at once: the answer to a
    /// ping, the next step of the opening exchange.
    ///
    /// # Errors
    /// When the bytes break the grammar or a limit, or when there is no call that they could answer.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed>;

    /// Returns an earlier call's answer that the last [`start`](Self::start) superseded: that call waits no longer. Polled
    /// after each `start` that goes on with a call, until `None`.
    fn take_superseded(&mut self) -> Option<Answer> {
        None
    }

    /// The peer closed its side. Returns what is complete only by that: the answer of a call in flight, or its failure. It has not processed
    /// the calls behind that one.
    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        None
    }

    /// Whether a call on this connection has asked the peer to close it, as `Connection: close` does: that it then ends
    /// is nobody's fault.
    fn has_asked_to_close(&self) -> bool {
        false
    }

    /// The error for which the peer ends the connection, such as `GOAWAY with INTERNAL_ERROR`, if it announced one by a
    /// [`Progress::Draining`]. Bytes that it sent before are still read; calls without an answer then fail as
    /// [`Failure::Closed`], with this error in their reason.
    fn close_reason(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// The call in flight at this position (0 is the oldest) has timed out. True if the client forgets it and the
    /// connection goes on: positions no longer count it, and an answer to it that still comes belongs to no call. A
    /// notice to the peer may be appended to `out`. False ends the connection.
    fn cancel(&mut self, _position: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Whether each call is framed by itself, so that an unsent rest of one harms no other. Such a client sends the
    /// tail of a message ([`Message::tail`]) itself, in [`start`](Self::start), and its connection goes on where an
    /// answer comes before its call was sent in full. For other clients a call's bytes and its tail are sent as they
    /// are, before those of the next call.
    fn is_framed(&self) -> bool {
        false
    }

    /// What is left to send of calls that were started: parts of bodies, which a client that [frames](Self::is_framed) its calls
    /// appends little by little.
    fn pending(&self) -> Pending {
        Pending::Nothing
    }

    /// The operating system has taken all appended bytes, and [`pending`](Self::pending) is [`Pending::Now`]. Appends
    /// more of them.
    fn more(&mut self, _out: &mut Vec<u8>) {}

    /// The operating system takes no more bytes for now: those appended to `out` wait. Until [`resumed`](Self::resumed)
    /// a client appends nothing that a newer message of the same kind would replace, such as the answer to a ping, so
    /// that a peer that asks and never reads cannot make bytes pile up.
    fn stalled(&mut self) {}

    /// The operating system has taken all bytes that waited. Appends to `out` the bytes held back since
    /// [`stalled`](Self::stalled).
    fn resumed(&mut self, _out: &mut Vec<u8>) {}

    /// Passes events since the last time to `note`, by name and count: the report shows them beside calls. Names are
    /// few, and the same in every run. Called once a second and when the connection ends.
    fn take_events(&mut self, _note: &mut dyn FnMut(&str, u64)) {}

    /// Whether the client says nothing more on this connection: its sending side is closed once all bytes have gone.
    /// Asked after each call that ends once it is sent.
    fn has_finished(&self) -> bool {
        false
    }

    /// Keeps an open connection alive, or sees that it no longer is: called once a second. Appends a ping to `out` where
    /// one is due.
    ///
    /// # Errors
    /// When the peer has left a ping unanswered for too long: the connection has failed, as [`Failure::Read`].
    fn beat(&mut self, _out: &mut Vec<u8>) -> Result<(), Malformed> {
        Ok(())
    }

    /// Calls that are started go as early data of TLS (0-RTT) from now on, or no more. A peer that takes none is asked again.
    fn sends_early(&mut self, _is_early: bool) {}

    /// The run ends, and the connection with it. Appends a goodbye to `out`; nobody waits for the peer's answer to it.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// The answer that was completed last, if answers are kept; valid until the next bytes come or the next call
    /// starts.
    fn parts(&self) -> AnswerParts<'_> {
        AnswerParts::default()
    }

    /// The body of an answer, or a piece of it, within the bytes that ended it; empty where that is nothing to read. It is asked for a few answers
    /// that are no success, to show what they say.
    fn excerpt<'a>(&self, _came: &'a [u8]) -> &'a [u8] {
        &[]
    }

    /// Requests a sample of the next answer; false while one is in progress. Called for few answers, so it may cost more than
    /// an answer does.
    fn request_sample(&mut self) -> bool {
        false
    }

    /// The sample of the last completed answer, if it was sampled.
    fn take_sample(&self) -> Option<AnswerSample<'_>> {
        None
    }

    /// Moves the last answer ([`Self::parts`]) into `kept`, and reuses its allocation.
    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        let parts = self.parts();
        kept.head.clear();
        kept.head.extend_from_slice(parts.head);
        kept.body.clear();
        kept.body.extend_from_slice(parts.body);
    }
}
