//! A virtual user: who it is, what it does, and what it waits for.

use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::begun::Begun;
use super::ids::{UserId, WaitId};
use super::kin::Kin;
use super::links::Links;
use super::presence::Presence;
use crate::slots::{Recycle, Slots};

/// How an iteration has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its function has returned. The next iteration begins `pacing_ns` after this one began. `ok`: whether all of its
    /// calls were ok.
    Returned { pacing_ns: u64, ok: bool },
    /// An error ended it. The next iteration begins `pacing_ns` after this one began.
    Failed { pacing_ns: u64 },
    /// The user ended itself.
    Left,
}

/// What a user waits for: one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing, or the end of a pause.
    Nothing,
    /// The end of the call in this slot.
    Call(u32),
    /// The ends of all calls that it has begun.
    AllCalls,
    /// Other users.
    Others(WaitId),
    /// The next message of the stream in this slot.
    Message(u32),
}

/// A run of a user's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) began: Tick,
    /// How it has ended, while calls that it began, or its tasks, have not.
    outcome: Option<Outcome>,
}

/// The current activity of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurrentActivity {
    /// It stands between two iterations, or has not begun the first.
    Nothing,
    /// An iteration.
    Iteration(Activity),
    /// Its iterations are over, and it runs its script's last function, or is about to.
    Last(Activity),
}

impl CurrentActivity {
    /// An iteration that begins.
    pub(super) fn iteration(began: Tick) -> Self {
        Self::Iteration(Activity { began, outcome: None })
    }

    /// The last function, which begins.
    pub(super) fn last(began: Tick) -> Self {
        Self::Last(Activity { began, outcome: None })
    }

    fn activity(&mut self) -> Option<&mut Activity> {
        match self {
            Self::Nothing => None,
            Self::Iteration(activity) | Self::Last(activity) => Some(activity),
        }
    }
}

/// Who a user is. Its tasks are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserIdentity {
    /// Its number among all users of the run, from 1.
    pub(super) id: u64,
    /// Its population, and the place of its scenario in the script.
    pub(super) population: usize,
    pub(super) place: u32,
    /// The name by which its scenario is counted.
    pub(super) scenario: NameId,
}

/// A virtual user.
#[derive(Debug)]
pub(super) struct VirtualUser {
    pub(super) who: UserIdentity,
    pub(super) activity: CurrentActivity,
    pub(super) wait: Wait,
    /// When it arrived, until its first call is made.
    pub(super) arrived: Option<Tick>,
    /// The number of its iteration, from 1.
    pub(super) iteration: u64,
    /// The number of iterations left, if they are counted.
    pub(super) iterations: Option<u64>,
    /// Whether its last call could not connect.
    pub(super) found_nobody: bool,
    /// Its time, and how much of that it had no server.
    pub(super) presence: Presence,
    pub(super) begun: Begun,
    pub(super) links: Links,
    pub(super) kin: Kin,
}

impl VirtualUser {
    /// A user who has done nothing so far.
    fn new(who: UserIdentity) -> Self {
        Self {
            who,
            activity: CurrentActivity::Nothing,
            wait: Wait::Nothing,
            arrived: None,
            iteration: 0,
            iterations: None,
            found_nobody: false,
            presence: Presence::new(false),
            begun: Begun::default(),
            links: Links::default(),
            kin: Kin::default(),
        }
    }

    /// The call that it waits for.
    pub(super) fn awaited(&self) -> Option<u32> {
        match self.wait {
            Wait::Call(slot) => Some(slot),
            Wait::Nothing | Wait::AllCalls | Wait::Others(_) | Wait::Message(_) => None,
        }
    }

    /// Its current activity is over like this, but for calls and tasks that it began.
    pub(super) fn ends_with(&mut self, outcome: Outcome) {
        if let Some(activity) = self.activity.activity() {
            activity.outcome = Some(outcome);
        }
    }

    /// Whether its current activity is over, but for calls and tasks that it began.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.activity, CurrentActivity::Iteration(activity) | CurrentActivity::Last(activity) if activity.outcome.is_some())
    }

    /// How its current activity has ended, after calls and tasks that it began have.
    pub(super) fn take_outcome(&mut self) -> Option<Outcome> {
        self.activity.activity()?.outcome.take()
    }

    /// Whether nothing that it began is under way.
    pub(super) fn has_nothing_left(&self) -> bool {
        !self.begun.is_under_way() && !self.kin.has_tasks()
    }
}

impl Recycle for VirtualUser {
    fn recycle(&mut self) {
        self.begun.clear();
        self.links.clear();
        self.kin.clear();
        *self = Self {
            begun: std::mem::take(&mut self.begun),
            links: std::mem::take(&mut self.links),
            kin: std::mem::take(&mut self.kin),
            ..Self::new(self.who)
        };
    }
}

/// The users of a worker and their tasks.
#[derive(Debug, Default)]
pub(super) struct Users(Slots<VirtualUser>);

impl Users {
    /// Takes a slot for a user or a task.
    pub(super) fn settle(&mut self, who: UserIdentity) -> UserId {
        let slot = self.0.take(|| VirtualUser::new(who));
        if let Some(user) = self.0.get_mut(slot) {
            user.who = who;
        }
        UserId::in_slot(slot)
    }

    /// The user is gone.
    pub(super) fn free(&mut self, user: UserId) {
        self.0.free(user.slot());
    }

    #[inline]
    pub(super) fn get(&self, user: UserId) -> Option<&VirtualUser> {
        self.0.get(user.slot())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, user: UserId) -> Option<&mut VirtualUser> {
        self.0.get_mut(user.slot())
    }

    /// Tells users of one slot apart.
    #[inline]
    pub(super) fn generation(&self, user: UserId) -> u32 {
        self.0.generation(user.slot())
    }

    /// Whether the user of this generation is there.
    #[inline]
    pub(super) fn is_alive(&self, user: UserId, generation: u32) -> bool {
        self.0.of(user.slot(), generation).is_some()
    }

    /// The user whose connections and iteration `user` shares: itself, or the user whose task it is.
    #[inline]
    pub(super) fn home(&self, user: UserId) -> UserId {
        self.get(user).and_then(|of| of.kin.home()).unwrap_or(user)
    }

    /// The slots of all users, some of whom may be gone.
    pub(super) fn ids(&self) -> impl Iterator<Item = UserId> + use<> {
        (0..self.0.len() as u32).map(UserId::in_slot)
    }

    /// All of them.
    #[cfg(feature = "simulation")]
    pub(super) fn iter(&self) -> impl Iterator<Item = &VirtualUser> {
        self.0.iter().map(|(_, user)| user)
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut VirtualUser> {
        self.0.iter_mut()
    }
}
