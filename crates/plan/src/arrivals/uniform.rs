//! Evenly spread arrivals: the k-th is due where the integral of the profile reaches k.

use super::{Arrival, nanoseconds};
use crate::profile::Profile;
use crate::share::Share;

/// One share's position in its evenly spread arrivals.
#[derive(Debug, Clone)]
pub(super) struct Uniform {
    share: Share,
    /// How many of the share's arrivals are past.
    drawn: u64,
    /// The most arrivals of the share.
    limit: u64,
    /// The place of the last one in the profile.
    hint: usize,
}

impl Uniform {
    pub(super) fn new(share: Share, requests: Option<u64>) -> Self {
        Self { share, drawn: 0, limit: requests.map_or(u64::MAX, |requests| share.part_of(requests)), hint: 0 }
    }

    #[inline]
    pub(super) fn next(&mut self, profile: &Profile) -> Option<Arrival> {
        if self.drawn >= self.limit {
            return None;
        }
        let index = self.share.number(self.drawn)?;
        let seconds = profile.time_of(index as f64, &mut self.hint)?;
        self.drawn += 1;
        Some(Arrival { due_ns: nanoseconds(seconds), index })
    }

    /// The profile has changed: calls due before the change keep their times.
    pub(super) fn change(&mut self) {
        self.hint = 0;
    }

    /// Takes back the last arrival, which is then the next one again.
    pub(super) fn give_back(&mut self) {
        self.drawn = self.drawn.saturating_sub(1);
    }

    /// Passes the calls due before `until_ns`, by the profile's integral. The few arrivals near that time are checked
    /// one by one: [`Profile::calls_until`] and [`Profile::time_of`] are inverse to each other except for rounding.
    pub(super) fn pass(&mut self, profile: &Profile, until_ns: u64) -> u64 {
        let calls = profile.calls_until(until_ns as f64 / 1e9);
        let own = ((calls - self.share.index() as f64) / self.share.count() as f64).ceil().max(0.0) as u64;
        let mut drawn = own.min(self.limit).max(self.drawn);
        while drawn > self.drawn && !self.is_due(profile, drawn - 1, until_ns) {
            drawn -= 1;
        }
        while drawn < self.limit && self.is_due(profile, drawn, until_ns) {
            drawn += 1;
        }
        let passed = drawn - self.drawn;
        self.drawn = drawn;
        passed
    }

    fn is_due(&self, profile: &Profile, nth: u64, until_ns: u64) -> bool {
        let mut hint = self.hint;
        let seconds = self.share.number(nth).and_then(|index| profile.time_of(index as f64, &mut hint));
        seconds.is_some_and(|seconds| nanoseconds(seconds) < until_ns)
    }
}
