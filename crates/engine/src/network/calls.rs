//! The calls of a worker that have begun and not ended, by slot and generation.
//!
//! A call leaves them only by [`Calls::remove`], which only [`Network::complete`](super::Network::complete) calls, with
//! the [`End`](super::call::End) that it then records: no call can be lost on the way.

use brunt_record::time::Tick;

use super::call::{Call, Stream};
use super::deadlines::Deadlines;
use crate::slots::{Recycle, Slots};

/// Name of a call while it lives: its slot, and a number that tells the slot's calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallId {
    slot: u32,
    generation: u32,
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

    /// A call has ended.
    #[inline]
    pub(super) fn remove(&mut self, id: CallId) -> Option<Call<T>> {
        let call = *self.slots.of(id.slot, id.generation)?;
        self.slots.free(id.slot);
        self.under_way -= u64::from(call.measured);
        Some(call)
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
    use super::super::call::Counted;
    use super::*;

    fn call(due: Tick) -> Call<u32> {
        Call::new(7, due, true, Counted::AtOnce)
    }

    #[test]
    fn a_name_outlives_its_call_and_means_no_other() {
        let mut calls = Calls::default();
        let first = calls.insert(call(Tick::from_ns(1)));
        assert_eq!(calls.remove(first).map(|call| call.due), Some(Tick::from_ns(1)));
        let second = calls.insert(call(Tick::from_ns(2)));
        assert_eq!((second.slot, calls.get(first).is_none()), (first.slot, true), "the slot is used again");
        assert!(calls.remove(first).is_none() && calls.get(second).is_some());
        assert_eq!(calls.under_way(), 1);
        calls.remove(second);
        assert_eq!(calls.under_way(), 0);
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
        calls.remove(fast);
        // The next call in the slot of the fast one has its own, later one.
        let next = begin(&mut calls, Tick::from_ns(20), 500);
        assert_eq!((calls.overdue(Tick::from_ns(500)), calls.overdue(Tick::from_ns(520))), (None, Some(next)));
        calls.remove(next);
        assert_eq!(calls.overdue(Tick::from_ns(5000)), Some(slow));
        calls.remove(slow);
        assert_eq!(calls.overdue(Tick::LAST), None);
    }

    #[test]
    #[should_panic(expected = "1 calls were dropped without an end")]
    fn a_call_without_an_end_is_a_defect() {
        let mut calls = Calls::default();
        calls.insert(call(Tick::from_ns(1)));
    }
}
