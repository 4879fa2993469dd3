//! Calls whose answers come as messages: when each came, and whether the next is late.

use brunt_model::messages::{Came, Ended};
use brunt_model::outcome::Failure;

use super::call::{Call, CallId, End, Place};
use super::deadlines::NEVER;
use super::{Load, Network};
use crate::transport::Driver;

/// Why a call has failed whose next message did not come within the longest gap.
pub(super) const STALLED: &str = "no message within the longest gap allowed";
/// Why a call that its user left has failed, if nothing of it had come.
const LEFT: &str = "its user left the stream before its first message";
/// What becomes of a connection on which a stream goes on that nobody reads.
const CUT: &str = "the user of a stream left it before its end";

/// What is known of the messages of a call. Times are nanoseconds on the run's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// The longest gap that is allowed.
    stall_ns: u64,
    /// When the call as a whole has taken too long.
    limit: u64,
    messages: u64,
    first: u64,
    last: u64,
    /// Which read the last message came with.
    read: u64,
    /// The status so far.
    status: u16,
    is_left: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self::new(u64::MAX, NEVER)
    }
}

impl Stream {
    /// The stream of a call before its first message. The call times out at `limit`; both times are nanoseconds.
    pub(super) fn new(stall_ns: u64, limit: u64) -> Self {
        Self { stall_ns, limit, messages: 0, first: 0, last: 0, read: 0, status: 0, is_left: false }
    }

    /// A message has come at `at`, with the bytes of this read.
    fn came<T>(&mut self, call: &mut Call<T>, at: u64, read: u64, status: u16) -> Came {
        let before = if self.messages == 0 { call.sent } else { self.last };
        let at = at.max(before);
        let is_first = self.messages == 0;
        let is_together = !is_first && self.read == read;
        self.messages += 1;
        self.first = if is_first { at } else { self.first };
        (self.last, self.read, self.status) = (at, read, status);
        call.expires = self.limit.min(at.saturating_add(self.stall_ns));
        Came { after_ns: at - before, is_first, is_together }
    }

    /// Whether the call is late for want of its next message alone, and why it fails then.
    pub(super) fn lateness<T>(&self, call: &Call<T>) -> Option<(Failure, &'static str)> {
        (call.streams && call.expires < self.limit).then_some((Failure::Stalled, STALLED))
    }

    /// What there is to say of its messages, of a call that ends so at `at`.
    pub(super) fn ended<T>(&self, call: &Call<T>, end: End<'_>, at: u64) -> Ended {
        let waits_in_vain = matches!(end, End::Unfinished | End::Failed(Failure::Timeout | Failure::Stalled, _));
        let before = if self.messages == 0 { call.sent } else { self.last };
        Ended {
            messages: self.messages,
            last_ns: self.last.saturating_sub(call.sent),
            between_ns: self.last.saturating_sub(self.first),
            waited_ns: (waits_in_vain && call.was_sent()).then(|| at.saturating_sub(before)),
            is_answered: matches!(end, End::Answered(_)),
            is_left: self.is_left,
        }
    }
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A message of the call in flight at this position has come, which was read at `now`. False if the connection is gone.
    pub(super) fn message_came<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        position: usize,
        status: u16,
        now: u64,
    ) -> bool {
        let connection = &mut self.connections[token];
        connection.has_served();
        let generation = connection.generation;
        let found = connection.calls.get(position).copied();
        let (at, read) = (self.recorder.arrival(now), self.recorder.reads_so_far());
        let Some((id, (call, stream))) = found.and_then(|id| Some((id, self.calls.streaming(id)?))) else {
            self.broken(load, token, Failure::Protocol, "a message of no stream in flight", now);
            return false;
        };
        call.receive(now);
        let came = stream.came(call, at, read, status);
        let (tag, expires) = (call.tag, call.expires);
        let counts = self.recorder.counts(call);
        self.calls.watch(id, expires);
        if counts {
            self.recorder.snapshot.messages.came(&came);
        }
        load.streamed(self, &MessageOf { token, id, tag, status, came, counts, now });
        self.connections[token].generation == generation
    }

    /// What becomes of a call that is late: it has stalled, or taken too long as a whole.
    pub(super) fn lateness(&self, id: CallId) -> (Failure, &'static str) {
        let streaming = self.calls.get(id).filter(|call| call.streams).zip(self.calls.stream(id));
        streaming.and_then(|(call, stream)| stream.lateness(call)).unwrap_or((Failure::Timeout, super::expiring::LATE))
    }

    /// The user of a call wants no more of its answer. With a reason, the call fails for it. Without one, it counts as answered, by the
    /// status that its last message came with; if no message has come, it fails. The connection is closed, unless the protocol can
    /// cancel a single call.
    pub(crate) fn leave<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        id: CallId,
        reason: Option<(Failure, &str)>,
        now: u64,
    ) {
        let Some(place) = self.calls.get(id).map(|call| call.place) else { return };
        let end = match (reason, self.calls.streaming(id)) {
            (Some((failure, reason)), _) => End::Failed(failure, reason),
            (None, Some((_, stream))) if stream.messages > 0 => {
                stream.is_left = true;
                End::Answered(stream.status)
            }
            _ => End::Failed(Failure::Closed, LEFT),
        };
        match place {
            Place::Waiting => self.complete(load, id, end, now),
            Place::Queued(token) => {
                self.connections[token].queue.retain(|queued| *queued != id);
                self.complete(load, id, end, now);
            }
            Place::InFlight(token) => self.leave_in_flight(load, token, id, end, now),
        }
    }

    fn leave_in_flight<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, id: CallId, end: End<'_>, now: u64) {
        let Some(call) = self.calls.get(id).copied() else { return };
        let connection = &mut self.connections[token];
        let sent = connection.has_sent(&call);
        let Some(position) = connection.calls.iter().position(|known| *known == id) else { return };
        let goes_on = sent && connection.client.give_up(position, &mut self.outgoing);
        connection.calls.remove(position);
        if goes_on {
            self.flush_aside(token);
            self.complete(load, id, end, now);
            self.freed.push((token, now));
        } else {
            self.outgoing.clear();
            let generation = connection.generation;
            self.complete(load, id, end, now);
            if self.connections[token].generation == generation {
                self.lost(load, token, Failure::Closed, CUT, now);
            }
        }
    }
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
    pub(crate) came: Came,
    /// Whether it is written down.
    pub(crate) counts: bool,
    /// When it was read.
    pub(crate) now: u64,
}
