//! The limit on the rate of users' calls.

use brunt_plan::profile::Profile;
use brunt_plan::share::Share;
use brunt_plan::timetable::Timetable;
use brunt_record::change::{Action, Change};
use brunt_record::time::Tick;

/// Limits the rate of calls.
#[derive(Debug)]
pub(super) struct Throttle {
    planned: Timetable,
    profile: Profile,
    /// The number of workers, which share the rate.
    workers: f64,
    began: Tick,
    /// The number of calls released by all workers together, as if each released as many as this one.
    calls: f64,
    hint: usize,
}

impl Throttle {
    /// One worker's share of the rate.
    pub(super) fn new(profile: Profile, share: Share) -> Self {
        Self {
            planned: Timetable::new(profile.clone()),
            profile,
            workers: share.count() as f64,
            began: Tick::EPOCH,
            calls: share.index() as f64,
            hint: 0,
        }
    }

    pub(super) fn begin(&mut self, began: Tick) {
        self.began = began;
    }

    /// Applies changes of the rate. Pauses need no handling here: users make no calls during them.
    pub(super) fn change(&mut self, changes: &[Change]) {
        let rates = changes.iter().filter(|change| matches!(change.action, Action::Rate(_)));
        self.profile = self.planned.with(&rates.cloned().collect::<Vec<_>>(), 0);
        self.hint = 0;
    }

    /// The time at which a call requested at `now` may be made.
    pub(super) fn release(&mut self, now: Tick) -> Tick {
        let elapsed = now.since(self.began) as f64 / 1e9;
        // An unused part of the rate is not made up for later.
        self.calls = self.calls.max(self.profile.calls_held_until(elapsed) - self.workers);
        let at = self.profile.time_held_of(self.calls, &mut self.hint);
        self.calls += self.workers;
        self.began + (at * 1e9) as u64
    }
}
