//! A call's life, from when it is due to its one end.
//!
//! ```text
//! due ─▶ waiting ─▶ sent ─▶ (first byte …) ─▶ ended
//!            └──────── unsent / withdrawn ──────┘
//! ```
//!
//! Times only grow along the line, since each transition takes the later of its own time and the one before.

use crate::transport::ConnectionId;
use brunt_record::messages::{MessageArrival, StreamEnd};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

/// Why a call has failed that took too long.
pub(super) const LATE: &str = "no complete answer within the timeout";
/// The reason of a call whose next message did not come within the longest gap.
pub(super) const STALLED: &str = "no message within the longest gap allowed";

/// When a call is added to the calls that were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Counted already: the schedule of the open model counts arrivals by itself, so that the sum of outcomes can be
    /// checked against it.
    Already,
    /// Counted when it begins.
    AtOnce,
    /// Counted when it is sent, or ends before that: a connection of the closed model waits for its call to be made,
    /// and the user may then have no call.
    OnceSent,
    /// Counted when it ends with an outcome: its answer need not come.
    OnceEnded,
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// With its load: it has no connection yet.
    Waiting,
    /// In the queue of this connection, until that is ready.
    Queued(ConnectionId),
    /// It was sent on this connection.
    InFlight(ConnectionId),
}

/// Whether a call may be sent again when its connection ended while its bytes were on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resend {
    /// No: it is not idempotent.
    Never,
    /// Once.
    Once,
    /// It has been sent again.
    Done,
}

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End<'a> {
    /// With this status.
    Answered(u16),
    /// Without a good answer, for this reason.
    Failed(Failure, &'a str),
    /// In flight when the drain ended.
    Unfinished,
    /// Due and never sent.
    Unsent,
    /// Never a call after all, so that nothing is counted: its user had none, or its answer was optional.
    Withdrawn,
}

/// A call that has begun. `T` is its load's key for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<T> {
    /// Its load's key for it.
    pub(crate) tag: T,
    /// When it was due, in nanoseconds on the run's clock, like all times here.
    pub(crate) due: Tick,
    /// When it was sent; [`Tick::NEVER`] before.
    pub(crate) sent: Tick,
    /// The generator's own delay, in nanoseconds: from when the call was due and had a connection to when it was sent.
    pub(crate) late: u64,
    /// For how much of that the target may have had other calls, in nanoseconds.
    pub(crate) exposed: u64,
    /// When the first byte of its answer came; [`Tick::NEVER`] before.
    pub(crate) first_byte: Tick,
    /// When it times out; [`Tick::NEVER`] before it is sent.
    pub(crate) expires: Tick,
    /// Bytes given to its connection before the first of its own.
    pub(crate) first_byte_out: u64,
    /// Bytes given to its connection, up to the last of its own.
    pub(crate) last_byte: u64,
    /// Its place.
    pub(crate) place: Place,
    /// When it is counted as due.
    pub(crate) counted: Counted,
    /// Whether it belongs to the measured part.
    pub(crate) measured: bool,
    /// Whether it may be sent again.
    pub(crate) resend: Resend,
    /// Whether no other call was on its connection when it was sent.
    pub(crate) alone: bool,
    /// Whether its answer comes as messages: [`Calls`](super::calls::Calls) has a [`Stream`] for it.
    pub(crate) streams: bool,
    /// How often a peer has refused it unprocessed.
    pub(crate) turned_away: u8,
    /// The status with which it ends once its bytes are sent, if it needs no answer.
    pub(crate) ends_sent: Option<u16>,
}

impl<T> Call<T> {
    /// A call due at `due`.
    pub(crate) fn new(tag: T, due: Tick, measured: bool, counted: Counted) -> Self {
        Self {
            tag,
            due,
            sent: Tick::NEVER,
            late: 0,
            exposed: 0,
            first_byte: Tick::NEVER,
            expires: Tick::NEVER,
            first_byte_out: 0,
            last_byte: 0,
            place: Place::Waiting,
            counted,
            measured,
            resend: Resend::Never,
            alone: false,
            streams: false,
            turned_away: 0,
            ends_sent: None,
        }
    }

    /// Whether it was ever sent.
    #[inline]
    pub(crate) fn was_sent(&self) -> bool {
        self.sent.is_set()
    }

    /// The connection that it was sent on.
    #[inline]
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        match self.place {
            Place::InFlight(token) => Some(token),
            Place::Waiting | Place::Queued(_) => None,
        }
    }

    /// Whether its answer need not come.
    pub(crate) fn is_optional(&self) -> bool {
        self.counted == Counted::OnceEnded
    }

    /// Sends it at `now`, with `timeout_ns` to end. A call that is sent again keeps its first time and its timeout.
    #[inline]
    pub(crate) fn send(&mut self, now: Tick, timeout_ns: u64) {
        if !self.sent.is_set() {
            self.sent = now.max(self.due);
            self.expires = self.sent.saturating_add(timeout_ns);
        }
    }

    /// Notes that a part of its answer came at `now`; the first part counts.
    #[inline]
    pub(crate) fn receive(&mut self, now: Tick) {
        if !self.first_byte.is_set() {
            self.first_byte = if self.sent.is_set() { now.max(self.sent) } else { now };
        }
    }

    /// From when it was due to `end`, in nanoseconds.
    #[inline]
    pub(crate) fn response_ns(&self, end: Tick) -> u64 {
        end.since(self.due)
    }

    /// From when it was sent to `end`, in nanoseconds; 0 if it never was.
    #[inline]
    pub(crate) fn service_ns(&self, end: Tick) -> u64 {
        end.since(self.sent)
    }
}

/// The messages of a streaming call. Times are nanoseconds on the run's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// The longest gap that is allowed.
    stall_ns: u64,
    /// When the call as a whole has taken too long.
    limit: Tick,
    messages: u64,
    first: Tick,
    last: Tick,
    /// The read that brought the last message.
    read: u64,
    /// The status so far.
    status: u16,
    is_left: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self::new(u64::MAX, Tick::NEVER)
    }
}

impl Stream {
    /// The stream of a call before its first message. The call times out at `limit`; both parameters are nanoseconds.
    pub(super) fn new(stall_ns: u64, limit: Tick) -> Self {
        Self { stall_ns, limit, messages: 0, first: Tick::EPOCH, last: Tick::EPOCH, read: 0, status: 0, is_left: false }
    }

    /// Notes a message that came at `at`, with the bytes of this read.
    pub(super) fn came<T>(&mut self, call: &mut Call<T>, at: Tick, read: u64, status: u16) -> MessageArrival {
        let before = if self.messages == 0 { call.sent } else { self.last };
        let at = at.max(before);
        let is_first = self.messages == 0;
        let is_together = !is_first && self.read == read;
        self.messages += 1;
        self.first = if is_first { at } else { self.first };
        (self.last, self.read, self.status) = (at, read, status);
        call.expires = self.limit.min(at.saturating_add(self.stall_ns));
        MessageArrival { after_ns: at - before, is_first, is_together }
    }

    /// When its last message came, if one has.
    pub(super) fn last_message(&self) -> Option<Tick> {
        (self.messages > 0).then_some(self.last)
    }

    /// Its user leaves it. Returns the status so far, if a message has come.
    pub(super) fn leave(&mut self) -> Option<u16> {
        if self.messages == 0 {
            return None;
        }
        self.is_left = true;
        Some(self.status)
    }

    /// The failure and its reason, where the call is late only because its next message is.
    pub(super) fn lateness<T>(&self, call: &Call<T>) -> Option<(Failure, &'static str)> {
        (call.streams && call.expires < self.limit).then_some((Failure::Stalled, STALLED))
    }

    /// The account of its messages, for a call that ends like this at `at`.
    pub(super) fn ended<T>(&self, call: &Call<T>, end: End<'_>, at: Tick) -> StreamEnd {
        let waits_in_vain = matches!(end, End::Unfinished | End::Failed(Failure::Timeout | Failure::Stalled, _));
        let before = if self.messages == 0 { call.sent } else { self.last };
        StreamEnd {
            messages: self.messages,
            last_ns: self.last.since(call.sent),
            between_ns: self.last.since(self.first),
            waited_ns: (waits_in_vain && call.was_sent()).then(|| at.since(before)),
            is_answered: matches!(end, End::Answered(_)),
            is_left: self.is_left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(due: Tick) -> Call<u32> {
        Call::new(7, due, true, Counted::AtOnce)
    }

    #[test]
    fn times_only_grow() {
        let mut early = call(Tick::from_ns(100));
        early.send(Tick::from_ns(90), 50);
        assert_eq!((early.sent, early.expires), (Tick::from_ns(100), Tick::from_ns(150)));
        early.receive(Tick::from_ns(80));
        early.receive(Tick::from_ns(200));
        assert_eq!(early.first_byte, Tick::from_ns(100));
        assert_eq!(
            (
                early.response_ns(Tick::from_ns(60)),
                early.service_ns(Tick::from_ns(60)),
                early.service_ns(Tick::from_ns(130))
            ),
            (0, 0, 30)
        );
        assert_eq!(call(Tick::from_ns(100)).service_ns(Tick::from_ns(300)), 0, "never sent");
    }
}
