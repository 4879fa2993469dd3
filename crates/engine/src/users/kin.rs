//! Tasks, which run beside a user's own function. A task has a slot among the users, so that it waits, calls and is
//! resumed as they are. Its connections are its user's, and it ends with its user's iteration.

use super::ids::UserId;

/// How a user and its tasks belong together.
#[derive(Debug, Default)]
pub(super) struct Kin {
    /// The user whose task it is, if it is one.
    home: Option<UserId>,
    /// Its tasks.
    tasks: Vec<UserId>,
    /// Whether it is a cancelled task.
    is_cancelled: bool,
}

impl Kin {
    #[inline]
    pub(super) fn home(&self) -> Option<UserId> {
        self.home
    }

    pub(super) fn is_task(&self) -> bool {
        self.home.is_some()
    }

    /// It is a task of this user from now on.
    pub(super) fn becomes_task_of(&mut self, home: UserId) {
        self.home = Some(home);
    }

    pub(super) fn tasks(&self) -> &[UserId] {
        &self.tasks
    }

    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub(super) fn add_task(&mut self, task: UserId) {
        self.tasks.push(task);
    }

    /// A task of it has ended.
    pub(super) fn forget_task(&mut self, task: UserId) {
        self.tasks.retain(|known| *known != task);
    }

    /// Cancels it. False if it is no task, or cancelled already.
    pub(super) fn cancel(&mut self) -> bool {
        let is_new = self.is_task() && !self.is_cancelled;
        self.is_cancelled |= is_new;
        is_new
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// Forgets all of it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        (self.home, self.is_cancelled) = (None, false);
        self.tasks.clear();
    }
}
