//! Seconds that some workers have yet to report.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use brunt_record::SECOND_NS;
use brunt_record::interval::Interval;
use brunt_record::live::AgentSecond;
use brunt_record::snapshot::{Phase, Snapshot};

/// A second's place in the run: its phase, and its number in that.
pub(super) type Key = (Phase, u64);

/// A second, as far as it was reported.
#[derive(Default)]
pub(super) struct Second {
    pub(super) length_ns: u64,
    pub(super) snapshot: Snapshot,
    pub(super) open_connections: u64,
    pub(super) in_flight: u64,
    pub(super) oldest_ns: u64,
    /// Each agent's part, by its number, where agents report.
    pub(super) agents: Vec<Option<AgentSecond>>,
}

/// The seconds of a run from the first report of each until it is passed on.
#[derive(Default)]
pub(super) struct Seconds {
    open: BTreeMap<Key, Second>,
    /// The last second that was passed on.
    passed: Option<Key>,
    /// How much of the measured part was reported, in nanoseconds.
    reported_ns: u64,
}

impl Seconds {
    /// Adds what a worker has reported to its second. What comes for a second that was passed on counts in the next one.
    pub(super) fn add(&mut self, interval: Interval) -> &mut Second {
        let mut key = (interval.phase, interval.second);
        if let Some((phase, passed)) = self.passed.filter(|passed| key <= *passed && interval.phase == passed.0) {
            key = (phase, passed + 1);
        }
        if interval.phase == Phase::Measured {
            let end = interval.second * SECOND_NS + interval.length_ns;
            self.reported_ns = self.reported_ns.max(end);
        }
        let second = match self.open.entry(key) {
            Entry::Vacant(place) => place.insert(Second { snapshot: interval.snapshot, ..Second::default() }),
            Entry::Occupied(place) => {
                let second = place.into_mut();
                second.snapshot.merge(&interval.snapshot);
                second
            }
        };
        second.length_ns = second.length_ns.max(interval.length_ns);
        second
    }

    /// Passes the earliest second on, if `is_complete` says so of it.
    pub(super) fn pass(&mut self, is_complete: impl FnOnce(Key) -> bool) -> Option<(Key, Second)> {
        let entry = self.open.first_entry()?;
        if !is_complete(*entry.key()) {
            return None;
        }
        let (key, second) = entry.remove_entry();
        self.passed = self.passed.max(Some(key));
        Some((key, second))
    }

    /// How much of the measured part was reported, in nanoseconds.
    pub(super) fn reported_ns(&self) -> u64 {
        self.reported_ns
    }
}
