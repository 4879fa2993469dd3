//! What makes the calls that a network carries, as the network knows it.

use brunt_protocol::Client;
use brunt_protocol::user::{Message, Refusal};
use brunt_record::messages::{self, MessageArrival};
use brunt_record::outcome::Failure;

use super::Network;
use super::call::{Call, End};
use super::calls::CallId;
use super::recorder::Recorder;
use crate::transport::Driver;

/// What makes the calls that a network carries, and hears what comes of them.
///
/// The network calls back within its own methods, with itself lent along. An implementation may begin, send and complete calls
/// and open connections from there.
pub(crate) trait Load<D: Driver>: Sized {
    /// What the load knows its calls by.
    type Tag: Copy + std::fmt::Debug + Send + 'static;

    /// What a call sends. Asked again for a call that is sent again.
    ///
    /// # Errors
    /// When there is no such call: it ends as [`End::Withdrawn`], or as [`End::Unsent`] if it counts already, and the load
    /// remembers why.
    fn message(&mut self, tag: Self::Tag) -> Result<Message<'_>, Refusal>;

    /// How long a call may take, in nanoseconds, if not as long as the plan says.
    fn timeout_ns(&self, _tag: Self::Tag) -> Option<u64> {
        None
    }

    /// Whether a call may be answered with this status, which is no success otherwise.
    fn excuses(&self, _tag: Self::Tag, _status: u16) -> bool {
        false
    }

    /// The name of a call's request, where calls have names.
    fn request_name(&self, _tag: Self::Tag) -> Option<&str> {
        None
    }

    /// The id of a call's trace, if it has one.
    fn trace_id(&self, _tag: Self::Tag) -> Option<String> {
        None
    }

    /// The call that follows one whose message said so ([`Message::more`]), on the same connection.
    fn next_of_batch(&mut self, _call: &Call<Self::Tag>) -> Option<Call<Self::Tag>> {
        None
    }

    /// A call in flight was answered: whether that is its end.
    fn judge(&mut self, _network: &mut Network<D, Self::Tag>, _answer: &AnswerOf<Self::Tag>) -> Judgement {
        Judgement::Ended
    }

    /// A message of a call has come, and was recorded. The connection's client has it until it is given more bytes.
    fn streamed(&mut self, _network: &mut Network<D, Self::Tag>, _message: &MessageOf<Self::Tag>) {}

    /// A call whose answer comes as messages has ended, and counts; [`Load::ended`] follows.
    fn stream_ended(&mut self, _recorder: &mut Recorder, _call: &Call<Self::Tag>, _ended: &messages::StreamEnd) {}

    /// A call has ended and was recorded. `token` is the connection that it was on, whose client still has the answer's
    /// parts.
    fn ended(&mut self, network: &mut Network<D, Self::Tag>, call: &Call<Self::Tag>, end: End<'_>, now: u64);

    /// The connection may have room for a call, or have nothing to do: it is open, or idle after its backoff.
    fn next_calls(&mut self, network: &mut Network<D, Self::Tag>, token: usize, now: u64);

    /// An attempt to connect has failed at `now`; calls that waited for that connection have failed with it. True if it cost
    /// others.
    fn connect_failed(
        &mut self,
        _network: &mut Network<D, Self::Tag>,
        _attempt: &FailedAttempt<'_>,
        _now: u64,
    ) -> bool {
        false
    }

    /// The peer takes no more calls on the connection; it ends once those on it have. Told once for each connection.
    fn draining(&mut self, network: &mut Network<D, Self::Tag>, token: usize, now: u64);

    /// The peer has not processed these calls, and takes no more on their connection: they are to be sent again elsewhere.
    fn turned_away(&mut self, network: &mut Network<D, Self::Tag>, calls: Vec<CallId>, now: u64);

    /// The connection is gone, and no call waits for another in its place.
    fn gone(&mut self, network: &mut Network<D, Self::Tag>, gone: Gone<'_>, now: u64);
}

/// An answer that a [`Load`] may judge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerOf<T> {
    /// The connection that it came on.
    pub(crate) token: usize,
    /// The call's.
    pub(crate) tag: T,
    /// The protocol's own status.
    pub(crate) status: u16,
    /// When it was complete.
    pub(crate) now: u64,
}

/// What a [`Load`] says of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is the last of its call.
    Ended,
    /// The call takes another one; its load has begun to ask for that ([`Network::ask_on`]).
    GoesOn {
        /// The status with which the call ends once what it asks for is sent, if it waits for no other answer.
        ends_sent: Option<u16>,
    },
    /// It is the wrong one, for this reason. Its connection can carry other calls, or not.
    Wrong {
        /// Why.
        reason: String,
        /// Whether the connection goes on.
        reusable: bool,
    },
}

/// An attempt to connect that has failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedAttempt<'a> {
    /// Where it was to go, by the worker's number for it.
    pub(crate) origin: usize,
    /// How it ended.
    pub(crate) failure: Failure,
    /// Why.
    pub(crate) reason: &'a str,
    /// How long it took, in nanoseconds.
    pub(crate) took_ns: u64,
}

/// A connection that is gone.
pub(crate) struct Gone<'a> {
    /// Its number, which is free once the load says so ([`Network::vacate`]).
    pub(crate) token: usize,
    /// The protocol's state of it, with what had come.
    pub(crate) client: Box<dyn Client>,
    /// How it ended.
    pub(crate) failure: Failure,
    /// Why.
    pub(crate) reason: &'a str,
    /// Whether the peer had said before that it takes no more calls on it ([`Load::draining`]).
    pub(crate) drained: bool,
    /// Whether it could carry calls.
    pub(crate) was_ready: bool,
}

/// A message that a [`Load`] hears of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageOf<T> {
    /// The connection that it came on, whose client has it.
    pub(crate) token: usize,
    /// The call's name.
    pub(crate) id: CallId,
    /// The call's.
    pub(crate) tag: T,
    /// The status so far.
    pub(crate) status: u16,
    /// How long it took.
    pub(crate) came: MessageArrival,
    /// Whether it is written down.
    pub(crate) counts: bool,
    /// When it was read.
    pub(crate) now: u64,
}
