//! Tasks, which run beside a user's own function, and meetings of users.
//!
//! A task has a slot among the users, so that it waits, calls and is resumed as they are. Its connections are its
//! user's, and it ends with its user's iteration.

use std::collections::VecDeque;
use std::sync::Arc;

use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::{Doing, Outcome, State, TimedWake, UsersNetwork, VirtualUser, VirtualUsers, Wait, Wake};
use crate::tally::Tally;
use crate::transport::Driver;
use brunt_script::{Operation, Resumption};

/// Users of this worker who wait for others.
#[derive(Debug)]
pub(super) struct Meeting {
    name: String,
    users: u64,
    /// The number of users who have come, all workers together.
    came: Arc<Tally>,
    /// The users who wait here, and the count that each waits for.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    until: u64,
    user: u32,
    joins: u32,
}

impl VirtualUsers {
    /// The user whose connections and iteration `user` shares: itself, or the user whose task it is.
    #[inline]
    pub(super) fn home(&self, user: u32) -> u32 {
        self.users.get(user).and_then(|of| of.home).unwrap_or(user)
    }

    /// Performs an operation on tasks or on other users. Returns the next operation, if the user goes on at once.
    pub(super) fn perform_with_others<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        operation: Operation,
        now: Tick,
    ) -> Option<Operation> {
        match operation {
            Operation::Spawn => {
                let task = self.begin_task(user)?;
                Some(self.go(user, now, Resumption::Number(task)))
            }
            Operation::Join(most_ns) => {
                self.forget_answers(user);
                self.pause(network, user, now);
                self.join(user, most_ns, now);
                None
            }
            Operation::Cancel(task) => {
                if self.home(task) == self.home(user) && task != user {
                    self.cancel_task(network, task, now);
                }
                Some(self.go(user, now, Resumption::Nothing))
            }
            Operation::TaskEnded => {
                self.end_task(network, user, now);
                None
            }
            Operation::Meet { name, users, most_ns } => {
                self.forget_answers(user);
                self.user(user)?.arrived = None;
                self.pause(network, user, now);
                self.meet(user, &name, users, most_ns, now);
                None
            }
            _ => Some(self.go(user, now, Resumption::Nothing)),
        }
    }

    /// Takes a slot for a user or a task.
    pub(super) fn settle(&mut self, id: u64, crowd: usize, place: u32, scenario: NameId) -> u32 {
        let slot = self.users.take(|| VirtualUser::new(id, crowd, place, scenario));
        if let Some(user) = self.users.get_mut(slot) {
            (user.id, user.crowd, user.place, user.scenario) = (id, crowd, place, scenario);
        }
        slot
    }

    /// Begins a task of `user`. Returns its slot.
    pub(super) fn begin_task(&mut self, user: u32) -> Option<u32> {
        let home = self.home(user);
        let of = self.user(home)?;
        let (id, crowd, place, scenario, began) = (of.id, of.crowd, of.place, of.scenario, of.began);
        let presence = of.presence.of_task();
        let slot = self.settle(id, crowd, place, scenario);
        if let Some(task) = self.user(slot) {
            (task.home, task.began, task.doing, task.presence) = (Some(home), began, Doing::Iteration, presence);
        }
        self.user(home)?.tasks.push(slot);
        self.make_ready(slot, Wake::Go);
        Some(slot)
    }

    /// Lets `user` wait for the end of any task, or until the time is up.
    pub(super) fn join(&mut self, user: u32, most_ns: Option<u64>, now: Tick) {
        let Some(joins) = self.wait_to_join(user) else { return };
        if let Some(most) = most_ns {
            self.set_timer(now.saturating_add(most), user, TimedWake::Joined(joins));
        }
    }

    /// Lets `user` wait for others. Returns the number of the wait, which tells it from all others of this worker.
    fn wait_to_join(&mut self, user: u32) -> Option<u32> {
        self.joins = self.joins.wrapping_add(1).max(1);
        let joins = self.joins;
        self.user(user)?.wait = Wait::Others(joins);
        Some(joins)
    }

    /// Resumes `user` if it is still in the wait with this number.
    pub(super) fn joined(&mut self, user: u32, joins: u32) {
        if let Some(of) = self.user(user).filter(|of| of.wait == Wait::Others(joins)) {
            of.wait = Wait::Nothing;
            self.make_ready(user, Wake::Go);
        }
    }

    /// Ends the tasks of a user whose iteration has ended.
    pub(super) fn cancel_tasks<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, now: Tick) {
        let tasks = self.user(user).map(|of| of.tasks.clone()).unwrap_or_default();
        for task in tasks {
            self.cancel_task(network, task, now);
        }
    }

    /// Ends a task where it stands: at once, or when its calls under way have ended. An optional call is withdrawn.
    pub(super) fn cancel_task<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: u32, now: Tick) {
        let Some(of) = self.user(task).filter(|of| of.home.is_some() && !of.cancelled) else { return };
        of.cancelled = true;
        let awaited = of.awaited();
        if let Wait::Others(joins) = of.wait {
            of.wait = Wait::Nothing;
            self.leave_meeting(joins);
        }
        self.drop_throttled(task);
        if let Some(call) = awaited.and_then(|slot| self.calls.get(slot)) {
            match (call.state, call.optional, call.id) {
                (State::UnderWay, true, Some(id)) => network.give_up(self, id, now),
                (State::Throttled, ..) => {
                    if let Some(slot) = awaited {
                        self.calls.free(slot);
                    }
                }
                _ => {}
            }
        }
        self.end_if_cancelled(network, task, now);
    }

    /// Forgets the calls of a task that the throttle still holds back: nobody would release them, and the task would
    /// never end.
    fn drop_throttled(&mut self, task: u32) {
        let Some(of) = self.users.get_mut(task) else { return };
        let is_held_back = |slot: u32| self.calls.get(slot).is_some_and(|call| call.state == State::Throttled);
        let (held_back, begun): (Vec<u32>, Vec<u32>) = of.started.iter().partition(|slot| is_held_back(**slot));
        of.started = begun;
        of.pending = of.pending.saturating_sub(held_back.len());
        for slot in held_back {
            self.calls.free(slot);
        }
    }

    /// Ends a cancelled task, if no call of it is under way. Returns whether it was cancelled.
    pub(super) fn end_if_cancelled<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: u32, now: Tick) -> bool {
        let Some(of) = self.users.get(task).filter(|of| of.cancelled) else { return false };
        let under_way = |slot: u32| self.calls.get(slot).is_some_and(|call| call.state == State::UnderWay);
        if of.pending > 0 {
            // The user or task that waits for its calls ends it.
            if let Some(of) = self.user(task) {
                of.outcome = Some(Outcome::Left);
            }
        } else if !of.awaited().is_some_and(under_way) {
            self.end_task(network, task, now);
        }
        true
    }

    /// Ends a task and resumes whoever waits for its end.
    pub(super) fn end_task<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: u32, now: Tick) {
        self.leave_streams(network, task, now);
        self.forget_wait(task);
        self.forget_answers(task);
        for (id, with, without) in self.library.leave_groups(task, now) {
            network.recorder.snapshot.figures.groups.at(NameId::from_number(id)).unfinished(with, without);
        }
        self.library.forget(task, false);
        self.pause(network, task, now);
        let Some(of) = self.user(task) else { return };
        let (home, started, awaited) = (of.home.take(), std::mem::take(&mut of.started), of.awaited());
        for slot in started.into_iter().chain(awaited) {
            self.calls.free(slot);
        }
        self.users.free(task);
        let Some(home) = home else { return };
        let Some(of) = self.user(home) else { return };
        of.tasks.retain(|known| *known != task);
        let ends = of.outcome.is_some() && of.tasks.is_empty() && of.pending == 0;
        let family: Vec<u32> = of.tasks.iter().copied().chain([home]).collect();
        for member in family {
            if let Some(Wait::Others(joins)) = self.user(member).map(|of| of.wait) {
                self.joined(member, joins);
            }
        }
        if ends {
            self.make_ready(home, Wake::AllEnded);
        }
    }

    /// Lets `user` wait until `users` have come to the meeting of this name, or the time is up.
    pub(super) fn meet(&mut self, user: u32, name: &str, users: u64, most_ns: u64, now: Tick) {
        // A user who goes through a scenario alone, for `--once`, waits for nobody.
        let users = if self.trace.is_some() { 1 } else { users.max(1) };
        let Some(joins) = self.wait_to_join(user) else { return };
        let known = self.meetings.iter().position(|meeting| meeting.users == users && meeting.name == name);
        let at = known.unwrap_or_else(|| {
            let came = self.among.meeting(name, users);
            self.meetings.push(Meeting { name: name.to_owned(), users, came, waiting: VecDeque::new() });
            self.meetings.len() - 1
        });
        let Some(meeting) = self.meetings.get_mut(at) else { return };
        let before = meeting.came.add_one();
        let until = (before / users + 1).saturating_mul(users);
        meeting.waiting.push_back(Waiting { until, user, joins });
        self.set_timer(now.saturating_add(most_ns), user, TimedWake::Joined(joins));
        self.look_at_meetings();
    }

    /// Resumes the users for whom enough have come.
    pub(super) fn look_at_meetings(&mut self) {
        let mut met = Vec::new();
        for meeting in &mut self.meetings {
            let came = meeting.came.total();
            while meeting.waiting.front().is_some_and(|waiting| waiting.until <= came) {
                met.extend(meeting.waiting.pop_front());
            }
        }
        for Waiting { user, joins, .. } in met {
            self.joined(user, joins);
        }
    }

    /// Removes the wait of this number, which has timed out, from its meeting.
    pub(super) fn leave_meeting(&mut self, joins: u32) {
        for meeting in &mut self.meetings {
            meeting.waiting.retain(|waiting| waiting.joins != joins);
        }
    }

    /// Whether a user here waits for users who may come on another worker.
    pub(super) fn somebody_waits(&self) -> bool {
        self.meetings.iter().any(|meeting| !meeting.waiting.is_empty())
    }
}
