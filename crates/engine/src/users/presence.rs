//! The time of users who are there at all times: how much of it is no pause, and in how much of that there was no server
//! for them.
//!
//! A user has no server from a failed attempt (refused, not made in time, ended before the first byte of an answer, or timed out
//! before it) to the next first byte that reaches it. Its pauses are in neither time.

use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use crate::network::{Call, End};

/// A user's clock for both times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presence {
    /// From when on its time is yet to be counted; [`Tick::NEVER`] while it pauses.
    since: Tick,
    /// Whether its last attempt failed.
    is_without: bool,
    /// Whether its time counts. That of users who come at a rate does not: their calls fail at the rate at which they
    /// were due, and the error rate tells of it.
    counts: bool,
}

impl Presence {
    pub(super) const fn new(counts: bool) -> Self {
        Self { since: Tick::NEVER, is_without: false, counts }
    }

    /// The presence of a task of this user.
    pub(super) const fn of_task(self) -> Self {
        Self { since: Tick::NEVER, ..self }
    }

    /// Counts its time up to `now`.
    pub(super) fn count(&mut self, numbers: &mut Numbers, now: Tick) {
        if self.since >= now {
            return;
        }
        let passed = now - self.since;
        numbers.add(Counter::UsersBusy, passed);
        if self.is_without {
            numbers.add(Counter::WithoutServer, passed);
        }
        self.since = now;
    }

    /// A pause ends at `now`, if it was in one.
    pub(super) fn goes_on(&mut self, now: Tick) {
        if self.counts {
            self.since = self.since.min(now);
        }
    }

    /// A pause begins at `now`.
    pub(super) fn pauses(&mut self, numbers: &mut Numbers, now: Tick) {
        self.count(numbers, now);
        self.since = Tick::NEVER;
    }

    /// A call of it failed at `now`.
    pub(super) fn failed<T>(&mut self, numbers: &mut Numbers, call: &Call<T>, end: End<'_>, now: Tick) {
        self.answered(numbers, call, now);
        let is_absent = end.is_absence() || matches!(end, End::Failed(Failure::Timeout, _));
        if !call.first_byte.is_set() && is_absent {
            self.count(numbers, now);
            self.is_without = true;
        }
    }

    /// A call of it ended at `now`: if a byte of an answer came, there is a server.
    pub(super) fn answered<T>(&mut self, numbers: &mut Numbers, call: &Call<T>, now: Tick) {
        if call.first_byte.is_set() {
            self.reached(numbers, call.first_byte.min(now));
        }
    }

    /// A byte of an answer reached it at `now`.
    pub(super) fn reached(&mut self, numbers: &mut Numbers, now: Tick) {
        if self.is_without {
            self.count(numbers, now);
            self.is_without = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Counted;

    #[test]
    fn time_counts_but_for_pauses_and_is_without_a_server_from_a_failure_to_a_first_byte() {
        let at = Tick::from_ns;
        let mut numbers = Numbers::default();
        let told = |numbers: &Numbers| (numbers.get(Counter::UsersBusy), numbers.get(Counter::WithoutServer));
        let mut user = Presence::new(true);
        user.count(&mut numbers, at(50));
        assert_eq!(told(&numbers), (0, 0), "it has not come yet");
        user.goes_on(at(100));
        let call = |first_byte| Call { first_byte, ..Call::new(0_u32, at(100), true, Counted::AtOnce) };
        user.failed(&mut numbers, &call(Tick::NEVER), End::Failed(Failure::Connect, "refused"), at(130));
        assert_eq!(told(&numbers), (30, 0));
        user.pauses(&mut numbers, at(140));
        user.count(&mut numbers, at(200));
        user.goes_on(at(240));
        user.goes_on(at(250));
        // One that this machine could not make says nothing about whether a server is there.
        user.failed(&mut numbers, &call(Tick::NEVER), End::Failed(Failure::Ports, "none is free"), at(260));
        assert_eq!(told(&numbers), (40, 10));
        user.count(&mut numbers, at(280));
        assert_eq!(told(&numbers), (80, 50));
        user.failed(&mut numbers, &call(at(300)), End::Failed(Failure::Closed, "before its end"), at(320));
        user.count(&mut numbers, at(330));
        assert_eq!(told(&numbers), (130, 70));
        // A timeout without a byte counts as a failed attempt; one in the midst of an answer does not.
        user.failed(&mut numbers, &call(at(340)), End::Failed(Failure::Timeout, "late"), at(350));
        user.failed(&mut numbers, &call(Tick::NEVER), End::Failed(Failure::Timeout, "late"), at(370));
        user.answered(&mut numbers, &call(at(400)), at(410));
        user.count(&mut numbers, at(420));
        assert_eq!(told(&numbers), (220, 100));
    }

    #[test]
    fn users_who_come_at_a_rate_have_no_time_of_their_own() {
        let at = Tick::from_ns;
        let mut numbers = Numbers::default();
        let mut user = Presence::new(false);
        user.goes_on(at(100));
        user.pauses(&mut numbers, at(500));
        assert_eq!(numbers.get(Counter::UsersBusy), 0);
    }
}
