//! The source of the calls that a network carries, as the network knows it.

use brunt_protocol::Client;
use brunt_protocol::user::{Message, Refusal};
use brunt_record::messages::{self, MessageArrival};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::Network;
use super::call::{Call, End};
use super::calls::CallId;
use super::origins::OriginId;
use super::recorder::Recorder;
use crate::transport::{ConnectionId, Driver};

/// The source of the calls that a network carries; it is told how they end.
///
/// The network calls back from within its own methods, and lends itself. An implementation may begin, send and complete
/// calls and open connections from there.
pub(crate) trait Load<D: Driver>: Sized {
    /// The load's key for a call.
    type Tag: Copy + std::fmt::Debug + Send + 'static;

    /// The bytes of a call. Asked again for a call that is sent again.
    ///
    /// # Errors
    /// When there is no such call: it ends as [`End::Withdrawn`], or as [`End::Unsent`] if it counts already, and the load
    /// remembers why.
    fn message(&mut self, tag: Self::Tag) -> Result<Message<'_>, Refusal>;

    /// A call's timeout, in nanoseconds, if it differs from the plan's.
    fn timeout_ns(&self, _tag: Self::Tag) -> Option<u64> {
        None
    }

    /// Whether the call has a meaning only on the connection that it was given to.
    fn keeps_to_connection(&self, _tag: Self::Tag) -> bool {
        false
    }

    /// Whether this status, otherwise no success, is one for this call.
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

    /// A call in flight was answered: does it end with that?
    fn judge(&mut self, _network: &mut Network<D, Self::Tag>, _answer: &AnswerOf<Self::Tag>) -> Judgement {
        Judgement::Ended
    }

    /// A message of a call has come and was recorded. The connection's client keeps it until it gets more bytes.
    fn streamed(&mut self, _network: &mut Network<D, Self::Tag>, _message: &MessageOf<Self::Tag>) {}

    /// A call whose answer comes as messages has ended, and counts; [`Load::ended`] follows.
    fn stream_ended(&mut self, _recorder: &mut Recorder, _call: &Call<Self::Tag>, _ended: &messages::StreamEnd) {}

    /// A call has ended and was recorded. `token` is the connection that it was on, whose client still has the answer's
    /// parts.
    fn ended(&mut self, network: &mut Network<D, Self::Tag>, call: &Call<Self::Tag>, end: End<'_>, now: Tick);

    /// The connection may have room for a call, or nothing to do: it is open, or idle after its backoff.
    fn next_calls(&mut self, network: &mut Network<D, Self::Tag>, token: ConnectionId, now: Tick);

    /// An attempt to connect has failed at `now`, and with it the calls that waited for that connection. Returns true
    /// if other calls failed, too.
    fn connect_failed(
        &mut self,
        _network: &mut Network<D, Self::Tag>,
        _attempt: &FailedAttempt<'_>,
        _now: Tick,
    ) -> bool {
        false
    }

    /// The peer takes no more calls on the connection, which ends once the calls on it have. Called once a connection.
    fn draining(&mut self, network: &mut Network<D, Self::Tag>, token: ConnectionId, now: Tick);

    /// The peer has not processed these calls, and takes no more on their connection: they have to be sent again
    /// elsewhere.
    fn turned_away(&mut self, network: &mut Network<D, Self::Tag>, calls: Vec<CallId>, now: Tick);

    /// The connection is gone, and no call waits for another in its place.
    fn gone(&mut self, network: &mut Network<D, Self::Tag>, gone: Gone<'_>, now: Tick);
}

/// An answer that a [`Load`] may judge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerOf<T> {
    /// The connection that it came on.
    pub(crate) token: ConnectionId,
    /// The call's.
    pub(crate) tag: T,
    /// The protocol's own status.
    pub(crate) status: u16,
    /// When it was complete.
    pub(crate) now: Tick,
}

/// A [`Load`]'s judgement on an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The answer is the last of its call.
    Ended,
    /// The call waits for another answer; its load has begun to ask for it ([`Network::ask_on`]).
    GoesOn {
        /// The status with which the call ends once that request is sent, if it needs no further answer.
        ends_sent: Option<u16>,
    },
    /// The answer is the wrong one.
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
    /// Its destination, by the worker's number for it.
    pub(crate) origin: OriginId,
    /// How it ended.
    pub(crate) failure: Failure,
    /// Why.
    pub(crate) reason: &'a str,
    /// How long it took, in nanoseconds.
    pub(crate) took_ns: u64,
}

/// A connection that is gone.
pub(crate) struct Gone<'a> {
    /// Its number, which is free once its load gives it up ([`Network::vacate`]).
    pub(crate) token: ConnectionId,
    /// The protocol's state, with the bytes that had come.
    pub(crate) client: Box<dyn Client>,
    /// How it ended.
    pub(crate) failure: Failure,
    /// Why.
    pub(crate) reason: &'a str,
    /// Whether the peer had announced that it takes no more calls on it ([`Load::draining`]).
    pub(crate) drained: bool,
    /// Whether it could carry calls.
    pub(crate) was_ready: bool,
}

/// A message that a [`Load`] hears of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageOf<T> {
    /// The connection that it came on, whose client has it.
    pub(crate) token: ConnectionId,
    /// The call's name.
    pub(crate) id: CallId,
    /// The call's.
    pub(crate) tag: T,
    /// The status so far.
    pub(crate) status: u16,
    /// Its times.
    pub(crate) came: MessageArrival,
    /// When it came.
    pub(crate) at: Tick,
    /// Whether it is recorded.
    pub(crate) counts: bool,
    /// When it was read.
    pub(crate) now: Tick,
}
