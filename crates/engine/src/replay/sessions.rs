//! Sessions of a log: what each has to do, and its connection.

use std::collections::VecDeque;

use brunt_plan::random::ByNumber;
use brunt_protocol::replay::LoggedCall;

use crate::network::CallId;

/// A session, or a place for calls without one, which carries one after the other.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Which it is; none of a place.
    key: Option<u64>,
    /// Its connection.
    pub(super) connection: Option<usize>,
    /// Its calls that have begun and wait for their turn.
    pub(super) queue: VecDeque<CallId>,
    /// Its call that is on a connection, or waits for one to be made.
    pub(super) current: Option<u64>,
    /// Since when it could carry a call, and how much earlier that would have been had the worker been in time.
    pub(super) ready_since: u64,
    pub(super) held_up: u64,
    /// With `--think`: its calls that are due by the log, the last one that began, when it ended, and whether the next one's time is set.
    pub(super) planned: VecDeque<LoggedCall>,
    pub(super) last: Option<LoggedCall>,
    pub(super) ended_at: Option<u64>,
    pub(super) is_thinking: bool,
    /// Grows each time it rests, so that an older entry of the list of those that do is known as old.
    rests: u32,
    is_resting: bool,
}

impl Session {
    /// Whether a call of it has begun and not ended.
    pub(super) fn is_busy(&self) -> bool {
        self.current.is_some() || !self.queue.is_empty()
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, now: u64) {
        self.ready_since = now;
        self.ended_at = Some(now);
    }

    /// How long its user thought before this call, as the log has it.
    pub(super) fn thought_ns(&self, call: &LoggedCall) -> u64 {
        self.last.map_or(0, |last| call.due_ns.saturating_sub(last.due_ns.saturating_add(last.logged_ns)))
    }

    /// Whether nothing is known of it that is needed.
    fn is_done(&self) -> bool {
        !self.is_busy() && self.planned.is_empty() && !self.is_thinking
    }
}

/// The sessions of a worker.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Vec<Session>,
    vacant: Vec<u32>,
    by_key: ByNumber<u32>,
    /// Places for calls without a session that have none.
    free: Vec<u32>,
    /// Sessions that do nothing, those that have for longest first; some have begun again since.
    resting: VecDeque<(u64, u32, u32)>,
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
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Session::default());
            (self.slots.len() - 1) as u32
        });
        if let Some(session) = self.slots.get_mut(slot as usize) {
            *session = Session { key, rests: session.rests, ..Session::default() };
        }
        if let Some(key) = key {
            self.by_key.insert(key, slot);
        }
        slot
    }

    /// The session in a slot.
    pub(super) fn get(&mut self, slot: u32) -> Option<&mut Session> {
        self.slots.get_mut(slot as usize)
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut()
    }

    /// Notes that a session has nothing to do, if that is so.
    pub(super) fn rest(&mut self, slot: u32, now: u64) {
        let Some(session) = self.slots.get_mut(slot as usize).filter(|session| session.is_done()) else { return };
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

    /// Since when the one has rested that has for longest, as far as the list tells.
    pub(super) fn rested_since(&self) -> Option<u64> {
        self.resting.front().map(|(since, ..)| *since)
    }

    /// Takes the connection of the session that has rested for longest, since `since` or before, and forgets the session.
    pub(super) fn take_idle(&mut self, since: u64) -> Option<usize> {
        while let Some((rested, slot, rests)) = self.resting.front().copied().filter(|(rested, ..)| *rested <= since) {
            self.resting.pop_front();
            let Some(session) = self.slots.get_mut(slot as usize) else { continue };
            if !session.is_resting || session.rests != rests {
                continue;
            }
            debug_assert!(session.is_done(), "a session that rests since {rested} has nothing to do");
            session.is_resting = false;
            let connection = session.connection.take();
            match session.key.take() {
                Some(key) => drop(self.by_key.remove(&key)),
                None => self.free.retain(|free| *free != slot),
            }
            self.vacant.push(slot);
            if connection.is_some() {
                return connection;
            }
        }
        None
    }
}
