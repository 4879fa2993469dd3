//! Whether users make calls: while the load is on, up to the horizon, outside pauses, and until a script ends it.

use brunt_record::change::Change;
use brunt_record::recording::Stop;
use brunt_record::time::Tick;

use crate::control::{AppliedChanges, Control};
use crate::gate::{DispatchWindow, GrantedUntil};
use crate::network::LoadEnd;

/// The load of a worker's users.
#[derive(Default)]
pub(super) struct Loading {
    is_on: bool,
    reach: DispatchWindow,
    /// Changes made to the run, and when its measured part began on its clock.
    heard: AppliedChanges,
    began: Tick,
    /// Why the load ends, if a script has ended it.
    load_end: Option<LoadEnd>,
}

impl Loading {
    /// The same, up to this horizon.
    pub(super) fn within(self, horizon: GrantedUntil) -> Self {
        Self { reach: horizon.into(), ..self }
    }

    /// The same in a run that `control` changes.
    pub(super) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    pub(super) fn begin(&mut self, began: Tick) {
        (self.is_on, self.began) = (true, began);
    }

    pub(super) fn end(&mut self) {
        self.is_on = false;
    }

    /// Whether the load is on. It goes on for a moment after a script has ended it.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether calls are made.
    #[inline]
    pub(super) fn makes_calls(&self) -> bool {
        self.is_on && self.load_end.is_none()
    }

    /// A script ends the load. Users who end it again while it is ending can only add that it has failed.
    pub(super) fn stop(&mut self, stop: Stop) {
        let before = match self.load_end.take() {
            None => None,
            Some(LoadEnd::Stopped(before)) => Some(before),
            other => return self.load_end = other,
        };
        self.load_end = Stop::first_of(before, Some(stop)).map(LoadEnd::Stopped);
    }

    /// A script that is wrong ends the load, for this reason.
    pub(super) fn fail(&mut self, problem: String) {
        self.load_end = Some(LoadEnd::Failed(problem));
    }

    pub(super) fn load_end(&self) -> Option<LoadEnd> {
        self.load_end.clone()
    }

    /// Looks for changes of the run. Pauses hold from here on. Returns whether there are new ones.
    #[inline]
    pub(super) fn hear(&mut self) -> bool {
        let are_new = self.heard.look();
        if are_new {
            self.reach.pause(self.heard.pauses(self.began));
        }
        are_new
    }

    pub(super) fn changes(&self) -> &[Change] {
        self.heard.changes()
    }

    /// The changed numbers of users, each with the time from which it holds.
    pub(super) fn changed_users(&self) -> Vec<(Tick, u64)> {
        self.heard.users(self.began)
    }

    /// Whether a call of this due time must wait. Remembers that one waits.
    #[inline]
    pub(super) fn holds_back(&mut self, due: Tick) -> bool {
        self.reach.holds_back(due)
    }

    /// Whether calls have waited, and those of this due time may be made now. True once for each wait.
    #[inline]
    pub(super) fn lets_go(&mut self, due: Tick) -> bool {
        self.reach.lets_go(due)
    }

    /// Whether no call of this due time may be made.
    #[inline]
    pub(super) fn ends_before(&self, due: Tick) -> bool {
        self.reach.ends_before(due)
    }

    pub(super) fn is_paused(&self, at: Tick) -> bool {
        self.reach.is_paused(at)
    }

    /// When the pause at `now` ends: [`Tick::NEVER`] without a pause, or if its end is not known.
    pub(super) fn resumes(&self, now: Tick) -> Tick {
        self.reach.resumes(now)
    }
}
