//! What users are resumed for, now and later.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use brunt_record::time::Tick;

use super::ids::{UserId, WaitId};
use super::user::Users;

/// Why a user is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// An iteration begins.
    Begin,
    /// Its pause is over.
    Go,
    /// The call in this slot has ended.
    Ended(u32),
    /// All calls that it had begun have ended.
    AllEnded,
    /// The call in this slot may be made now, under the throttle.
    Release(u32),
    /// The stream in this slot has a message, or has ended.
    Streamed(u32),
    /// The stream that it waited for was left by another task of its user.
    StreamOver,
    /// Its iterations are over, and it runs its last function; `true` if it stands between two iterations.
    Stop(bool),
    /// This wait, for a message of the stream in this slot, has timed out.
    Late(u32, WaitId),
}

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimedWake {
    Begin,
    Go,
    Release(u32),
    /// This wait for other users has timed out.
    Joined(WaitId),
    /// This wait for a message has timed out.
    Late {
        slot: u32,
        wait: WaitId,
    },
}

/// An event that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Tick,
    /// Orders timers of the same time.
    number: u64,
    user: UserId,
    /// The generation of the user: its slot may have become another user's.
    generation: u32,
    wake: TimedWake,
}

/// The events of users, in their order. Those of users who are gone are passed over.
pub(super) struct Agenda {
    ready: VecDeque<(UserId, u32, Wake)>,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    last_wait: WaitId,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { ready: VecDeque::new(), timers: BinaryHeap::new(), timers_set: 0, last_wait: WaitId::NONE }
    }
}

impl Agenda {
    /// Resumes `user` in its turn.
    #[inline]
    pub(super) fn wake(&mut self, users: &Users, user: UserId, wake: Wake) {
        self.ready.push_back((user, users.generation(user), wake));
    }

    /// Sets a timer of `user`.
    pub(super) fn set_timer(&mut self, users: &Users, at: Tick, user: UserId, wake: TimedWake) {
        self.timers_set += 1;
        let generation = users.generation(user);
        self.timers.push(Reverse(Timer { at, number: self.timers_set, user, generation, wake }));
    }

    /// A wait that begins.
    pub(super) fn new_wait(&mut self) -> WaitId {
        self.last_wait = self.last_wait.next();
        self.last_wait
    }

    /// The next timer that is due by `now`, with its time.
    pub(super) fn due(&mut self, users: &Users, now: Tick) -> Option<(Tick, UserId, TimedWake)> {
        while let Some(Reverse(timer)) = self.timers.peek().copied()
            && timer.at <= now
        {
            self.timers.pop();
            if users.is_alive(timer.user, timer.generation) {
                return Some((timer.at, timer.user, timer.wake));
            }
        }
        None
    }

    /// The next user to be resumed, and why.
    #[inline]
    pub(super) fn next(&mut self, users: &Users) -> Option<(UserId, Wake)> {
        std::iter::from_fn(|| self.ready.pop_front())
            .find(|(user, generation, _)| users.is_alive(*user, *generation))
            .map(|(user, _, wake)| (user, wake))
    }

    /// Whether no user is to be resumed before a timer.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.ready.is_empty()
    }

    /// When the next timer is due; [`Tick::NEVER`] if none is set.
    pub(super) fn next_timer(&self) -> Tick {
        self.timers.peek().map_or(Tick::NEVER, |Reverse(timer)| timer.at)
    }

    /// Forgets everything: nobody is resumed any more.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
        self.timers.clear();
    }
}
