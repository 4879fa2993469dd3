//! The source of a worker's calls: the one seam between a worker, its network and what makes calls.
//!
//! There are three: a flood, virtual users, and a replay. A worker takes its workload through the phases of the run; the
//! network asks it for a call's bytes, and tells it how calls and connections end.

use brunt_protocol::Client;
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::messages::{self, MessageArrival};
use brunt_record::outcome::Failure;
use brunt_record::recording::Stop;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::Network;
use super::calls::{Call, CallId, End};
use super::origins::OriginId;
use super::recorder::Recorder;
use crate::transport::{ConnectionId, Driver};

/// What a workload is from its beginning to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nature {
    /// It calls its target from the beginning on, at its own pace. A run of it that makes no connection has not reached
    /// its target, and one whose target refuses every connection is given up soon. A script may wait for its target to
    /// start.
    pub(crate) calls_at_once: bool,
    /// A script's function may never return, so that its worker is left behind.
    pub(crate) may_hang: bool,
}

/// The source of the calls that a network carries.
///
/// A worker calls, in this order: [`prepare`](Self::prepare) until it is ready; then for each phase
/// [`begin`](Self::begin), any number of turns, and [`end_load`](Self::end_load); then
/// [`end_drain`](Self::end_drain). A turn is [`tick`](Self::tick), what the network reads, and [`turn`](Self::turn).
///
/// The network calls back from within its own methods, and lends itself. An implementation may begin, send and complete
/// calls and open connections from there. Every call that it begins ends once, in [`ended`](Self::ended), whatever
/// becomes of the run.
pub(crate) trait Workload<D: Driver>: Sized {
    /// The workload's key for a call.
    type Tag: Copy + std::fmt::Debug + Send + 'static;

    /// What it is. Asked at any time, and always the same.
    fn nature(&self) -> Nature;

    // The phases of a run.

    /// Prepares the load. Returns until when it waits for something to happen, or `None` once it is ready. Called again
    /// until then.
    fn prepare(&mut self, _network: &mut Network<D, Self::Tag>, _now: Tick) -> Option<Tick> {
        None
    }

    /// The warm-up or the measured part began at `began` and lasts until `until`, or [`Tick::NEVER`]. A part that takes
    /// over from another begins later than `began`, at the network's time.
    fn begin(&mut self, network: &mut Network<D, Self::Tag>, phase: Phase, began: Tick, until: Tick);

    /// Does everything that is due by time.
    fn tick(&mut self, network: &mut Network<D, Self::Tag>, now: Tick);

    /// Everything that had come was read: makes the next calls.
    fn turn(&mut self, network: &mut Network<D, Self::Tag>);

    /// The next time at which something is due.
    fn next_wake(&self, now: Tick) -> Tick;

    /// When the next call that has not begun is due; [`Tick::NEVER`] if there is none, or none is known.
    fn next_due(&self) -> Tick {
        Tick::NEVER
    }

    /// Whether answers may wait a moment for others, to be read and followed by new calls together.
    fn gathers(&self) -> bool {
        false
    }

    /// Whether nothing is left to do before the planned end.
    fn is_over(&self, network: &Network<D, Self::Tag>, now: Tick) -> bool;

    /// Why it ends by itself, if it does.
    fn load_end(&self) -> Option<LoadEnd>;

    /// The recorder is about to report everything until `until`.
    fn hand_over(&mut self, network: &mut Network<D, Self::Tag>, until: Tick);

    /// The approximate time that scripts were busy since the last call, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64;

    /// The user ends the run at `end`, just before [`end_load`](Self::end_load): due calls that wait may still be sent
    /// in the drain, as far as there are connections for them.
    fn interrupted(&mut self, _network: &mut Network<D, Self::Tag>, _end: Tick) {}

    /// The warm-up or the measured part ended at `end`: no new calls are made, and due calls that were not sent never
    /// will be.
    fn end_load(&mut self, network: &mut Network<D, Self::Tag>, end: Tick);

    /// The drain ended, and every call with it.
    fn end_drain(&mut self, _network: &mut Network<D, Self::Tag>, _now: Tick) {}

    /// Checks its own and its network's invariants between two steps.
    #[cfg(feature = "simulation")]
    fn audit(&self, network: &Network<D, Self::Tag>, _now: Tick) {
        network.audit(None::<&Vec<_>>, None);
    }

    // The life of a call.

    /// The bytes of a call. Asked again for a call that is sent again.
    ///
    /// # Errors
    /// When there is no such call: it ends as [`End::Withdrawn`], or as [`End::Unsent`] if it counts already, and the
    /// workload remembers why. A call that was sent before has failed.
    fn message(&mut self, tag: Self::Tag) -> Result<Message<'_>, SourceEnd>;

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

    /// The name of a call's request, where calls have names. `connection` is the number of the call's connection among those that
    /// the worker began to make, from 1; 0 without one.
    fn request_name(&self, _tag: Self::Tag, _connection: u64) -> Option<&str> {
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

    /// A call whose answer comes as messages has ended, and counts; [`Workload::ended`] follows.
    fn stream_ended(&mut self, _recorder: &mut Recorder, _call: &Call<Self::Tag>, _ended: &messages::StreamEnd) {}

    /// A call has ended and was recorded. The client of the connection that it was on ([`Call::connection`]) still has the
    /// answer's parts.
    fn ended(&mut self, network: &mut Network<D, Self::Tag>, call: &Call<Self::Tag>, end: End<'_>, now: Tick);

    // The life of a connection.

    /// The connection may have room for a call, or nothing to do: it is open, idle after its backoff, or its pause is over.
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
    fn connection_leaves(&mut self, network: &mut Network<D, Self::Tag>, token: ConnectionId, now: Tick);

    /// The peer takes no more calls on the connection of these, and has not processed them, or they were never sent: they have
    /// to be sent elsewhere.
    fn refused_unprocessed(&mut self, network: &mut Network<D, Self::Tag>, calls: Vec<CallId>, now: Tick);

    /// The connection is gone, and calls do not wait for another in its slot; those of one that was leaving follow in
    /// [`refused_unprocessed`](Self::refused_unprocessed). Not called for one that its load closed itself ([`Network::close`]).
    fn gone(&mut self, network: &mut Network<D, Self::Tag>, gone: Gone<'_>, now: Tick);
}

/// The reason for which a workload ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadEnd {
    /// It has no more calls on this worker.
    Done,
    /// Its script ends the whole run.
    Stopped(Stop),
    /// It failed, for this reason, and the whole run ends.
    Failed(String),
}

/// An answer that a [`Workload`] may judge.
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

/// A [`Workload`]'s judgement on an answer.
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
    /// How a later call on it would end.
    pub(crate) end: End<'a>,
    /// Whether the peer had announced that it takes no more calls on it ([`Workload::connection_leaves`]).
    pub(crate) has_left: bool,
    /// Whether it could carry calls.
    pub(crate) was_ready: bool,
}

/// A message that a [`Workload`] hears of.
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
