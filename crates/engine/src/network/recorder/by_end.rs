//! Calls and messages by when they ended: the throughput, apart from everything by due.

use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::Recorder;

/// The most ends that wait for their second. Beyond that they count in the second before it.
const MOST_EARLY: usize = 100_000;

/// The calls that a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Core {
    /// All.
    All,
    /// Those with a name.
    Request(NameId),
    /// Those with a tag.
    Tag(NameId),
    /// Those that a threshold selects.
    Selected(NameId),
}

/// The time in which ends count: within a phase, by second. All times are of the run's clock.
#[derive(Debug, Default)]
pub(super) struct ByEnd {
    /// When the phase began. What arrived before counted there.
    from: Tick,
    /// When the second that is written down ends.
    until: Tick,
    /// When the measured time ends: what arrives then or later is in no throughput.
    stop: Tick,
    /// Ends that came after the open second, while a late worker had not closed it.
    early: Vec<(Tick, Core, Counter, u64)>,
}

impl ByEnd {
    /// When the second that is written down ends.
    pub(super) const fn until(&self) -> Tick {
        self.until
    }
}

impl Recorder {
    /// A phase began at `from`, in which ends count before `stop`; its second under way lasts until `until`.
    pub(crate) fn begin_ends(&mut self, from: Tick, until: Tick, stop: Tick) {
        self.by_end.from = from;
        self.by_end.stop = stop;
        self.open_second(until);
    }

    /// The measured time ends at `stop`, earlier than planned.
    pub(crate) fn stop_ends(&mut self, stop: Tick) {
        self.end_tick();
        self.by_end.stop = self.by_end.stop.min(stop);
        self.by_end.until = self.by_end.until.min(stop);
        // No tick goes beyond it.
        self.in_tick.ends = self.in_tick.ends.min(stop);
    }

    /// The second that ends at `until` is under way.
    pub(crate) fn open_second(&mut self, until: Tick) {
        self.by_end.until = until.min(self.by_end.stop);
        for (at, core, counter, n) in std::mem::take(&mut self.by_end.early) {
            self.count_end(core, counter, at, n);
        }
    }

    /// Calls that ended at `at`.
    #[inline]
    pub(super) fn count_end(&mut self, core: Core, counter: Counter, at: Tick, n: u64) {
        if at >= self.by_end.from && at < self.by_end.until {
            self.numbers_of(core).add(counter, n);
        } else {
            self.count_elsewhere(core, counter, at, n);
        }
    }

    #[inline]
    fn numbers_of(&mut self, core: Core) -> &mut Numbers {
        let snapshot = &mut self.snapshot;
        match core {
            Core::All => &mut snapshot.numbers,
            Core::Request(id) => &mut snapshot.figures.requests.at(id).numbers,
            Core::Tag(id) => &mut snapshot.figures.tags.at(id).numbers,
            Core::Selected(id) => &mut snapshot.figures.selected.at(id).numbers,
        }
    }

    #[cold]
    fn count_elsewhere(&mut self, core: Core, counter: Counter, at: Tick, n: u64) {
        let ByEnd { from, stop, early, .. } = &mut self.by_end;
        if at < *from || at >= *stop {
            return;
        }
        if early.len() < MOST_EARLY {
            early.push((at, core, counter, n));
        } else {
            self.numbers_of(core).add(counter, n);
        }
    }

    /// Whether what arrived at `at` is in the throughput.
    pub(crate) fn is_within(&self, at: Tick) -> bool {
        at >= self.by_end.from && at < self.by_end.stop
    }

    /// A call of `core` was answered at `at`, with success or not.
    #[inline]
    pub(crate) fn answered_by_end(&mut self, core: Core, at: Tick, is_ok: bool) {
        self.count_end(core, Counter::EndedAnswered, at, 1);
        if is_ok {
            self.count_end(core, Counter::EndedOk, at, 1);
        }
    }

    /// A message of a call of `core` came at `at`.
    #[inline]
    pub(crate) fn message_by_end(&mut self, core: Core, at: Tick) {
        self.count_end(core, Counter::EndedMessages, at, 1);
    }

    /// A check failed a call of `core` that had ended at `at` with success.
    pub(crate) fn revoke_end(&mut self, core: Core, at: Tick) {
        self.count_end(core, Counter::EndedRevoked, at, 1);
    }

    /// A call of `core` that ended at `at` without success counts as one all the same.
    pub(crate) fn excuse_end(&mut self, core: Core, at: Tick) {
        self.count_end(core, Counter::EndedOk, at, 1);
    }

    /// The measured time is over with so many calls of the warm-up under way.
    pub(crate) fn carried_under_way(&mut self, calls: u64) {
        self.snapshot.numbers.add(Counter::CarriedUnderWay, calls);
    }

    /// Whether anything has ended since the last report.
    pub(crate) fn has_ends(&self) -> bool {
        let numbers = &self.snapshot.numbers;
        [Counter::EndedAnswered, Counter::EndedMessages].iter().any(|counter| numbers.get(*counter) > 0)
    }
}
