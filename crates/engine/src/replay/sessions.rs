//! Sessions of a log: the calls of each. Its connection is the network's, by the session's slot.

use std::collections::VecDeque;
use std::mem;

use brunt_plan::random::ByNumber;
use brunt_protocol::replay::LoggedCall;
use brunt_record::time::Tick;

use crate::network::CallId;
use crate::slots::{Recycle, Slots};

/// A session, or a place for calls without one, which carries them one after the other.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The session's key; `None` for a place.
    key: Option<u64>,
    /// Its calls that have begun and wait for their turn.
    pub(super) queue: VecDeque<CallId>,
    /// Its call that is on a connection, or waits for one to be made.
    pub(super) current: Option<u64>,
    /// Since when it could carry a call, and how much earlier that would have been had the worker been on time.
    pub(super) ready_since: Tick,
    pub(super) held_up: u64,
    /// With `--think`: its calls that are due by the log, the last one that began, when that ended, and whether the
    /// next one's time is set.
    pub(super) planned: VecDeque<LoggedCall>,
    pub(super) last: Option<LoggedCall>,
    pub(super) ended_at: Option<Tick>,
    pub(super) is_thinking: bool,
    /// Whether its next call waits for a connection, as others have them all.
    pub(super) is_starved: bool,
    /// The number of times that it has rested: an entry of the list of resting sessions with another number is
    /// outdated.
    rests: u32,
    is_resting: bool,
}

impl Session {
    /// Whether one of its calls has begun and not ended.
    pub(super) fn is_busy(&self) -> bool {
        self.current.is_some() || !self.queue.is_empty()
    }

    /// Records that a call has ended.
    pub(super) fn ended(&mut self, now: Tick) {
        self.ready_since = now;
        self.ended_at = Some(now);
    }

    /// How long its user thought before this call, according to the log.
    pub(super) fn thought_ns(&self, call: &LoggedCall) -> u64 {
        self.last.map_or(0, |last| call.due_ns.saturating_sub(last.due_ns.saturating_add(last.logged_ns)))
    }

    /// Whether it may be forgotten: it has no call under way, planned or being thought about.
    fn is_done(&self) -> bool {
        !self.is_busy() && self.planned.is_empty() && !self.is_thinking
    }
}

impl Recycle for Session {
    /// Forgets the session. What its slot counts goes on, and its lists keep their memory.
    fn recycle(&mut self) {
        self.queue.clear();
        self.planned.clear();
        let (queue, planned) = (mem::take(&mut self.queue), mem::take(&mut self.planned));
        *self = Self { queue, planned, rests: self.rests, ..Self::default() };
    }
}

/// The sessions of a worker.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Slots<Session>,
    by_key: ByNumber<u32>,
    /// Free places for calls without a session.
    free: Vec<u32>,
    /// Idle sessions, the longest idle first; some have begun again since.
    resting: VecDeque<(Tick, u32, u32)>,
}

impl Sessions {
    /// The slot of a session, or of a place that is free.
    pub(super) fn slot_of(&mut self, key: Option<u64>) -> u32 {
        let known = match key {
            Some(key) => self.by_key.get(&key).copied(),
            None => self.free.pop(),
        };
        if let Some(slot) = known {
            if let Some(session) = self.get(slot) {
                session.is_resting = false;
            }
            return slot;
        }
        let slot = self.slots.take(Session::default);
        if let Some(session) = self.slots.get_mut(slot) {
            session.key = key;
        }
        if let Some(key) = key {
            self.by_key.insert(key, slot);
        }
        slot
    }

    /// The session in a slot.
    pub(super) fn get(&mut self, slot: u32) -> Option<&mut Session> {
        self.slots.get_mut(slot)
    }

    /// The calls that wait for their turn in a session.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting(&self) -> impl Iterator<Item = &CallId> {
        self.slots.iter().flat_map(|(_, session)| &session.queue)
    }

    /// All sessions.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut()
    }

    /// Adds a session to the idle ones, if it has nothing to do.
    pub(super) fn rest(&mut self, slot: u32, now: Tick) {
        let Some(session) = self.slots.get_mut(slot).filter(|session| session.is_done()) else { return };
        if session.is_resting {
            return;
        }
        session.is_resting = true;
        session.rests = session.rests.wrapping_add(1);
        self.resting.push_back((now, slot, session.rests));
        if session.key.is_none() {
            self.free.push(slot);
        }
    }

    /// Since when the first session of the list of idle ones has been idle.
    pub(super) fn rested_since(&self) -> Option<Tick> {
        self.resting.front().map(|(since, ..)| *since)
    }

    /// Forgets the session that has been idle for longest, since `since` or before. Returns the slot that it had.
    pub(super) fn take_idle(&mut self, since: Tick) -> Option<u32> {
        while let Some((rested, slot, rests)) = self.resting.front().copied().filter(|(rested, ..)| *rested <= since) {
            self.resting.pop_front();
            let Some(session) = self.slots.get_mut(slot) else { continue };
            if !session.is_resting || session.rests != rests {
                continue;
            }
            debug_assert!(session.is_done(), "a session that rests since {rested:?} has nothing to do");
            session.is_resting = false;
            match session.key.take() {
                Some(key) => drop(self.by_key.remove(&key)),
                None => self.free.retain(|free| *free != slot),
            }
            self.slots.free(slot);
            return Some(slot);
        }
        None
    }
}
