//! The calls of a worker that have begun and not ended, by slot and generation.
//!
//! A call leaves them only by [`Calls::remove`], which only [`Network::complete`](super::Network::complete) calls, with
//! the [`End`](End) that it then records: no call can be lost on the way.

use brunt_record::messages::{MessageArrival, StreamEnd};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::deadlines::Deadlines;
use crate::slots::{Recycle, Slots};
use crate::transport::ConnectionId;

/// The reason of a call whose next message did not come within the longest gap.
const STALLED: &str = "no message within the longest gap allowed";

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
    /// In the queue of this connection, until that is ready and has room.
    Queued(ConnectionId),
    /// It was sent on this connection.
    InFlight(ConnectionId),
}

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End<'a> {
    /// With this status.
    Answered(u16),
    /// Without a good answer, for this reason.
    Failed(Failure, &'a str),
    /// By what its peer said of it, or of its connection: a server was there.
    ToldByPeer(Failure, &'a str),
    /// Without an answer, since its connection had ended for something else, or nobody waited any more: no server was missing
    /// for it.
    GivenUp(Failure, &'a str),
    /// In flight when the drain ended, or when its user was cut off.
    Unfinished,
    /// Due and never sent.
    Unsent,
    /// Never a call after all, so that nothing is counted: its user had none, or its answer was optional.
    Withdrawn,
}

impl<'a> End<'a> {
    /// Its failure and the reason, if it is one.
    #[inline]
    pub(crate) fn failure(self) -> Option<(Failure, &'a str)> {
        match self {
            Self::Failed(failure, reason) | Self::ToldByPeer(failure, reason) | Self::GivenUp(failure, reason) => {
                Some((failure, reason))
            }
            Self::Answered(_) | Self::Unfinished | Self::Unsent | Self::Withdrawn => None,
        }
    }

    /// Whether the call had no connection, or lost the one that it had, without brunt's own doing or a word of its peer: no
    /// server was there for it.
    pub(crate) fn is_absence(self) -> bool {
        matches!(self, Self::Failed(failure, _) if failure.is_unreached())
    }
}

/// A call that has begun. `T` is its load's key for it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all of them occur together")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<T> {
    /// Its load's key for it.
    pub(crate) tag: T,
    /// When it was due, in nanoseconds on the run's clock, like all times here.
    pub(crate) due: Tick,
    /// When it was sent; [`Tick::NEVER`] before.
    pub(crate) sent: Tick,
    /// The generator's own delay, in nanoseconds: from when the call was due and had a connection to when it was sent.
    pub(crate) own_delay_ns: u64,
    /// For how much of that the target may have had other calls, in nanoseconds.
    pub(crate) exposed_ns: u64,
    /// When the first byte of its answer came; [`Tick::NEVER`] before.
    pub(crate) first_byte: Tick,
    /// When it times out; [`Tick::NEVER`] until it is sent, or waits for room on a connection.
    pub(crate) expires: Tick,
    /// Bytes received on its connection before it was sent there; 0 of the first call on it.
    pub(crate) bytes_in_before: u64,
    /// Bytes given to its connection before the first of its own.
    pub(crate) bytes_out_before: u64,
    /// Bytes given to its connection, up to the last of its own.
    pub(crate) bytes_out_through: u64,
    /// Its place.
    pub(crate) place: Place,
    /// When it is counted as due.
    pub(crate) counted: Counted,
    /// Whether it belongs to the measured part.
    pub(crate) measured: bool,
    /// Whether it may be sent again although its peer may have processed it.
    pub(crate) idempotent: bool,
    /// Whether it was sent again because its connection had ended while its bytes were on the way, which happens once. To be sent
    /// again since its peer has not processed it is counted by `refusals`.
    pub(crate) has_had_its_retry: bool,
    /// Whether no other call was on its connection when it was sent.
    pub(crate) alone: bool,
    /// Whether its answer comes as messages: [`Calls`](super::calls::Calls) has a [`Stream`] for it.
    pub(crate) streams: bool,
    /// How often a peer has refused it unprocessed.
    pub(crate) refusals: u8,
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
            own_delay_ns: 0,
            exposed_ns: 0,
            first_byte: Tick::NEVER,
            expires: Tick::NEVER,
            bytes_in_before: 0,
            bytes_out_before: 0,
            bytes_out_through: 0,
            place: Place::Waiting,
            counted,
            measured,
            idempotent: false,
            has_had_its_retry: false,
            alone: false,
            streams: false,
            refusals: 0,
            ends_sent: None,
        }
    }

    /// Its load could not make it before `until`, for which its target is not to blame: it is due then.
    #[inline]
    pub(crate) fn put_off(&mut self, until: Tick) {
        self.due = until;
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

    /// The connection that it is on, or waits for.
    pub(crate) fn token(&self) -> Option<ConnectionId> {
        match self.place {
            Place::InFlight(token) | Place::Queued(token) => Some(token),
            Place::Waiting => None,
        }
    }

    /// Whether its answer need not come.
    pub(crate) fn is_optional(&self) -> bool {
        self.counted == Counted::OnceEnded
    }

    /// Its end where the run ends, or its user is cut off, before it.
    pub(crate) fn cut_short(&self) -> End<'static> {
        match self.place {
            // Without an answer it counts for nothing.
            _ if self.is_optional() => End::Withdrawn,
            // A call that waits for its connection waits for the target.
            Place::Queued(_) => End::Unfinished,
            _ if self.was_sent() => End::Unfinished,
            _ => End::Unsent,
        }
    }

    /// Its end once its time is up, wherever it is.
    pub(crate) fn end_of_time<'a>(&self, failure: Failure, reason: &'a str) -> End<'a> {
        if self.is_optional() { End::Withdrawn } else { End::Failed(failure, reason) }
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

/// Name of a call while it lives: its slot, and a number that tells the slot's calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallId {
    slot: u32,
    generation: u32,
}

impl CallId {
    /// One number for it.
    pub(super) const fn number(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }
}

#[cfg(test)]
impl CallId {
    /// A name for tests of lists.
    pub(crate) fn numbered(slot: u32) -> Self {
        Self { slot, generation: 0 }
    }
}

/// The calls of a worker that have begun and not ended.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    slots: Slots<Call<T>>,
    deadlines: Deadlines,
    under_way: u64,
    /// The messages of calls, by the calls' slots, once any call had some.
    streams: Vec<Stream>,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { slots: Slots::default(), deadlines: Deadlines::default(), under_way: 0, streams: Vec::new() }
    }
}

impl<T> Recycle for Call<T> {
    /// A call holds no memory, and the next one in its slot is written over it.
    fn recycle(&mut self) {}
}

impl<T: Copy> Calls<T> {
    /// A call begins.
    #[inline]
    pub(super) fn insert(&mut self, call: Call<T>) -> CallId {
        self.under_way += u64::from(call.measured);
        let (slot, generation) = self.slots.insert(call);
        CallId { slot, generation }
    }

    /// The call with this name, unless it has ended.
    #[inline]
    pub(crate) fn get(&self, id: CallId) -> Option<&Call<T>> {
        self.slots.of(id.slot, id.generation)
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut Call<T>> {
        self.slots.of_mut(id.slot, id.generation)
    }

    /// A call has ended; `call` is a copy of it, made just now.
    #[inline]
    pub(super) fn remove(&mut self, id: CallId, call: &Call<T>) {
        debug_assert!(self.get(id).is_some(), "its slot may hold another call by now");
        if self.slots.free(id.slot) {
            self.under_way -= u64::from(call.measured);
        }
    }

    /// Notes that a call's [`Call::expires`] was set, so that [`Calls::overdue`] finds it. A slot whose earlier call
    /// had an earlier deadline has its alarm set already, so that this costs a flood one comparison.
    #[inline]
    pub(super) fn watch(&mut self, id: CallId, expires: Tick) {
        self.deadlines.arm(id.slot, expires);
    }

    /// The call's answer comes as messages, at most `stall_ns` apart.
    pub(super) fn begin_stream(&mut self, id: CallId, stall_ns: u64) {
        let Some(call) = self.get_mut(id) else { return };
        call.streams = true;
        let expires = call.expires;
        let slot = id.slot as usize;
        if slot >= self.streams.len() {
            self.streams.resize(slot + 1, Stream::default());
        }
        if let Some(stream) = self.streams.get_mut(slot) {
            *stream = Stream::new(stall_ns, expires);
        }
    }

    /// The messages of a call that streams, or did until it was removed a moment ago.
    pub(super) fn stream(&self, id: CallId) -> Option<&Stream> {
        self.streams.get(id.slot as usize)
    }

    /// When the last message of a call came, if one has.
    pub(super) fn last_message(&self, id: CallId) -> Option<Tick> {
        self.get(id).filter(|call| call.streams)?;
        self.stream(id)?.last_message()
    }

    /// A call with its messages, to change both.
    pub(super) fn streaming(&mut self, id: CallId) -> Option<(&mut Call<T>, &mut Stream)> {
        let call = self.slots.of_mut(id.slot, id.generation).filter(|call| call.streams)?;
        Some((call, self.streams.get_mut(id.slot as usize)?))
    }

    /// When the oldest call was due that has not ended, leaving out optional answers.
    pub(crate) fn oldest_due(&self) -> Option<Tick> {
        self.slots.iter().map(|(_, call)| call).filter(|call| !call.is_optional()).map(|call| call.due).min()
    }

    /// A call that has timed out at `now`. Each is returned once.
    pub(super) fn overdue(&mut self, now: Tick) -> Option<CallId> {
        while let Some(slot) = self.deadlines.due(now) {
            let Some(expires) = self.slots.get(slot).map(|call| call.expires) else { continue };
            if expires <= now {
                return Some(CallId { slot, generation: self.slots.generation(slot) });
            }
            if expires.is_set() {
                self.deadlines.arm(slot, expires);
            }
        }
        None
    }

    /// Whether the call's deadline, if it has one, will be looked at in time.
    #[cfg(feature = "simulation")]
    pub(super) fn is_watched(&self, id: CallId, ends: Tick) -> bool {
        self.get(id).is_none_or(|call| self.deadlines.alarm(id.slot as usize) <= call.expires.max(ends))
    }

    /// When to ask for [`Calls::overdue`] next, at the latest.
    pub(super) fn next_deadline(&self) -> Tick {
        self.deadlines.next()
    }

    /// Calls that have not ended.
    pub(super) fn alive(&self) -> u64 {
        self.slots.taken() as u64
    }

    /// Measured calls that have not ended.
    pub(crate) fn under_way(&self) -> u64 {
        self.under_way
    }

    /// The calls that have begun and not ended, in no order.
    pub(super) fn ids(&self) -> Vec<CallId> {
        self.slots.iter().map(|(slot, _)| CallId { slot, generation: self.slots.generation(slot) }).collect()
    }
}

impl<T> Drop for Calls<T> {
    /// Dropping a call without an end is a defect.
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !std::thread::panicking() {
            let left = self.slots.taken();
            assert!(left == 0, "{left} calls were dropped without an end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counted;
    use super::*;

    fn call(due: Tick) -> Call<u32> {
        Call::new(7, due, true, Counted::AtOnce)
    }

    /// Ends a call. Returns when it was due.
    fn end(calls: &mut Calls<u32>, id: CallId) -> Option<Tick> {
        let call = *calls.get(id)?;
        calls.remove(id, &call);
        Some(call.due)
    }

    #[test]
    fn a_name_outlives_its_call_and_means_no_other() {
        let mut calls = Calls::default();
        let first = calls.insert(call(Tick::from_ns(1)));
        assert_eq!(end(&mut calls, first), Some(Tick::from_ns(1)));
        let second = calls.insert(call(Tick::from_ns(2)));
        assert_eq!((second.slot, calls.get(first).is_none()), (first.slot, true), "the slot is used again");
        assert!(end(&mut calls, first).is_none() && calls.get(second).is_some());
        assert_eq!(calls.under_way(), 1);
        end(&mut calls, second);
        assert_eq!(calls.under_way(), 0);
    }

    #[test]
    fn an_optional_call_without_an_answer_counts_for_nothing_wherever_it_waits() {
        for place in [Place::Waiting, Place::Queued(ConnectionId::at(0)), Place::InFlight(ConnectionId::at(0))] {
            let optional = Call { place, ..Call::new(7_u32, Tick::EPOCH, true, Counted::OnceEnded) };
            let late = optional.end_of_time(Failure::Timeout, "late");
            assert_eq!((late, optional.cut_short()), (End::Withdrawn, End::Withdrawn), "{place:?}");
        }
        assert_eq!(call(Tick::EPOCH).end_of_time(Failure::Timeout, "late"), End::Failed(Failure::Timeout, "late"));
    }

    #[test]
    fn a_deadline_is_the_calls_own() {
        let mut calls = Calls::default();
        let begin = |calls: &mut Calls<u32>, now: Tick, timeout: u64| {
            let mut sent = call(now);
            sent.send(now, timeout);
            let expires = sent.expires;
            let id = calls.insert(sent);
            calls.watch(id, expires);
            id
        };
        let slow = begin(&mut calls, Tick::EPOCH, 1000);
        let fast = begin(&mut calls, Tick::EPOCH, 10);
        assert_eq!((calls.overdue(Tick::from_ns(9)), calls.next_deadline()), (None, Tick::from_ns(10)));
        assert_eq!(calls.overdue(Tick::from_ns(10)), Some(fast));
        end(&mut calls, fast);
        // The next call in the slot of the fast one has its own, later one.
        let next = begin(&mut calls, Tick::from_ns(20), 500);
        assert_eq!((calls.overdue(Tick::from_ns(500)), calls.overdue(Tick::from_ns(520))), (None, Some(next)));
        end(&mut calls, next);
        assert_eq!(calls.overdue(Tick::from_ns(5000)), Some(slow));
        end(&mut calls, slow);
        assert_eq!(calls.overdue(Tick::LAST), None);
    }

    #[test]
    #[should_panic(expected = "1 calls were dropped without an end")]
    fn a_call_without_an_end_is_a_defect() {
        let mut calls = Calls::default();
        calls.insert(call(Tick::from_ns(1)));
    }
}
