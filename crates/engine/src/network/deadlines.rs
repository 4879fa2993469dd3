//! A heap of deadlines, most of which are cancelled before they pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use brunt_record::time::Tick;

/// The number of stale alarms in the heap up to which it is not worth rebuilding.
const TOLERATED_STALE: usize = 64;

/// Deadlines of numbered owners, such as slots: one alarm each.
///
/// A deadline that moves to a later time, as that of a slot does with each call, costs only a comparison: the alarm
/// stays, and the caller that it rings for sets it anew ([`Deadlines::arm`]). A deadline that moves to an earlier time
/// gets another alarm, and the old one goes stale. Stale alarms never outnumber the owners.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// When each owner's alarm rings; [`Tick::NEVER`] where none is set.
    alarms: Vec<Tick>,
    heap: BinaryHeap<Reverse<(Tick, u32)>>,
}

impl Deadlines {
    /// `owner` has to be looked at by `at`.
    #[inline]
    pub(super) fn arm(&mut self, owner: u32, at: Tick) {
        if self.alarms.get(owner as usize).is_none_or(|alarm| *alarm > at) {
            self.set(owner, at);
        }
    }

    #[cold]
    fn set(&mut self, owner: u32, at: Tick) {
        let place = owner as usize;
        if place >= self.alarms.len() {
            self.alarms.resize(place + 1, Tick::NEVER);
        }
        if let Some(alarm) = self.alarms.get_mut(place) {
            *alarm = at;
        }
        self.heap.push(Reverse((at, owner)));
        if self.heap.len() > 2 * self.alarms.len() + TOLERATED_STALE {
            let set = self.alarms.iter().zip(0..).filter(|(alarm, _)| alarm.is_set());
            self.heap = set.map(|(alarm, owner)| Reverse((*alarm, owner))).collect();
        }
    }

    /// An owner whose alarm rings at `now`; the alarm is then unset.
    pub(super) fn due(&mut self, now: Tick) -> Option<u32> {
        while let Some(Reverse((at, owner))) = self.heap.peek().copied()
            && at <= now
        {
            self.heap.pop();
            if let Some(alarm) = self.alarms.get_mut(owner as usize)
                && *alarm == at
            {
                *alarm = Tick::NEVER;
                return Some(owner);
            }
        }
        None
    }

    /// When the alarm of this owner rings; [`Tick::NEVER`] if none is set.
    #[cfg(feature = "simulation")]
    pub(super) fn alarm(&self, owner: usize) -> Tick {
        self.alarms.get(owner).copied().unwrap_or(Tick::NEVER)
    }

    /// When an alarm rings next; it may be a stale one.
    #[inline]
    pub(super) fn next(&self) -> Tick {
        self.heap.peek().map_or(Tick::NEVER, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the plain way: every owner has one deadline, and each is reported at the first look at or after it.
        #[test]
        fn every_deadline_is_seen_in_time(
            steps in prop::collection::vec((0..8_u32, prop::option::of(1..200_u64), 0..30_u64), 1..300),
        ) {
            let mut deadlines = Deadlines::default();
            let mut expected = [Tick::NEVER; 8];
            let mut now = Tick::EPOCH;
            for (owner, after, passes) in steps {
                expected[owner as usize] = after.map_or(Tick::NEVER, |after| now + after);
                if let Some(after) = after {
                    deadlines.arm(owner, now + after);
                }
                now += passes;
                let mut seen = Vec::new();
                while let Some(owner) = deadlines.due(now) {
                    let own = &mut expected[owner as usize];
                    if *own <= now {
                        seen.push(owner);
                        *own = Tick::NEVER;
                    } else if own.is_set() {
                        deadlines.arm(owner, *own);
                    }
                }
                prop_assert!(expected.iter().all(|own| *own > now), "{:?} at {:?}, seen {:?}", expected, now, seen);
                prop_assert!(deadlines.next() > now);
                prop_assert!(deadlines.heap.len() <= 2 * 8 + TOLERATED_STALE + 1);
            }
        }
    }

    #[test]
    fn stale_alarms_are_forgotten() {
        let mut deadlines = Deadlines::default();
        for turn in 0..10_000_u64 {
            // A long deadline, then a short one, again and again.
            deadlines.arm(0, Tick::from_ns(turn * 10 + 1_000_000));
            deadlines.arm(0, Tick::from_ns(turn * 10 + 5));
            while deadlines.due(Tick::from_ns(turn * 10 + 9)).is_some() {}
        }
        assert!(deadlines.heap.len() <= 2 + TOLERATED_STALE + 1, "{}", deadlines.heap.len());
    }
}
