//! Meetings of users: each goes on once enough have come, on all workers of all machines together.

use std::collections::VecDeque;
use std::sync::Arc;

use super::among_workers::AmongWorkers;
use super::ids::{UserId, WaitId};
use crate::shared_counters::SharedCounter;

/// Users of this worker who wait for others.
#[derive(Debug)]
struct Rendezvous {
    name: String,
    users: u64,
    /// The number of users who have come, all workers together.
    came: Arc<SharedCounter>,
    /// The users who wait here, and the count that each waits for.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    until: u64,
    user: UserId,
    wait: WaitId,
}

/// The meetings that users of this worker have come to.
#[derive(Debug)]
pub(super) struct RendezvousPoints {
    list: Vec<Rendezvous>,
    among: AmongWorkers,
}

impl RendezvousPoints {
    /// None yet; `among` counts those of all workers who come.
    pub(super) fn new(among: AmongWorkers) -> Self {
        Self { list: Vec::new(), among }
    }

    /// `user` comes to the meeting of this name for `users`, and waits.
    pub(super) fn come(&mut self, name: &str, users: u64, user: UserId, wait: WaitId) {
        let known = self.list.iter().position(|meeting| meeting.users == users && meeting.name == name);
        let at = known.unwrap_or_else(|| {
            let came = self.among.meeting(name, users);
            self.list.push(Rendezvous { name: name.to_owned(), users, came, waiting: VecDeque::new() });
            self.list.len() - 1
        });
        let Some(meeting) = self.list.get_mut(at) else { return };
        let before = meeting.came.add_one();
        let until = (before / users + 1).saturating_mul(users);
        meeting.waiting.push_back(Waiting { until, user, wait });
    }

    /// The users for whom enough have come.
    pub(super) fn take_met(&mut self) -> Vec<(UserId, WaitId)> {
        let mut met = Vec::new();
        for meeting in &mut self.list {
            let came = meeting.came.total();
            while meeting.waiting.front().is_some_and(|waiting| waiting.until <= came) {
                met.extend(meeting.waiting.pop_front().map(|waiting| (waiting.user, waiting.wait)));
            }
        }
        met
    }

    /// Removes a wait, which is over, from its meeting.
    pub(super) fn leave(&mut self, wait: WaitId) {
        for meeting in &mut self.list {
            meeting.waiting.retain(|waiting| waiting.wait != wait);
        }
    }

    /// Whether a user here waits for users who may come on another worker.
    pub(super) fn somebody_waits(&self) -> bool {
        self.list.iter().any(|meeting| !meeting.waiting.is_empty())
    }
}
