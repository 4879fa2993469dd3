//! An agent's ledger: merges the seconds of its parts of one run, so that its controller gets each second once.

use std::collections::BTreeMap;

use brunt_record::interval::Interval;
use brunt_record::snapshot::Phase;

/// A second's place in a run.
type Key = (Phase, u64);

/// The parts that an agent carries out at the same time: its own from the beginning, and takeovers. A second is over
/// once every part has reported all of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The last second that each part has reported, by the part's number.
    parts: BTreeMap<u32, Option<Key>>,
    seconds: BTreeMap<Key, Interval>,
    /// The last second that was over.
    told: Option<Key>,
}

impl Ledger {
    /// A part begins. One that takes over reports nothing before second `from` of the measured part.
    pub(crate) fn begin(&mut self, part: u32, from: Option<u64>) {
        let reported =
            from.map(|from| from.checked_sub(1).map_or((Phase::Warmup, u64::MAX), |before| (Phase::Measured, before)));
        self.parts.insert(part, reported);
    }

    /// Whether no part is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    /// A part reports a second. Returns the seconds that are over now.
    pub(crate) fn add(&mut self, part: u32, mut interval: Interval) -> Vec<Interval> {
        let key = (interval.phase, interval.second);
        if let Some(reported) = self.parts.get_mut(&part) {
            *reported = Some(key);
        }
        if let Some((phase, told)) = self.told.filter(|told| key <= *told && interval.phase == told.0) {
            // A part that began late reports seconds that are over for the others: they count in the next one, without
            // making it longer.
            (interval.phase, interval.second, interval.length_ns) = (phase, told + 1, 0);
        }
        match self.seconds.get_mut(&(interval.phase, interval.second)) {
            None => drop(self.seconds.insert((interval.phase, interval.second), interval)),
            Some(second) => {
                second.length_ns = second.length_ns.max(interval.length_ns);
                second.snapshot.merge(&interval.snapshot);
                second.open_connections += interval.open_connections;
                second.in_flight += interval.in_flight;
                second.oldest_ns = second.oldest_ns.max(interval.oldest_ns);
            }
        }
        self.over()
    }

    /// A part has ended: gives the seconds that are over now.
    pub(crate) fn end(&mut self, part: u32) -> Vec<Interval> {
        self.parts.remove(&part);
        self.over()
    }

    fn over(&mut self) -> Vec<Interval> {
        let mut over = Vec::new();
        while let Some(entry) = self.seconds.first_entry() {
            let key = *entry.key();
            if self.parts.values().any(|reported| *reported < Some(key)) {
                break;
            }
            self.told = self.told.max(Some(key));
            over.push(entry.remove());
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::SECOND_NS;
    use brunt_record::snapshot::Snapshot;
    use proptest::prelude::*;

    use super::*;
    use brunt_record::catalogue::Counter;

    fn second(phase: Phase, second: u64, due: u64) -> Interval {
        Interval {
            worker: 0,
            phase,
            second,
            length_ns: SECOND_NS,
            snapshot: Snapshot::with_numbers([(Counter::Due, due)]),
            open_connections: 1,
            in_flight: 0,
            oldest_ns: 0,
        }
    }

    fn told(seconds: &[Interval]) -> Vec<(Phase, u64, u64)> {
        seconds.iter().map(|one| (one.phase, one.second, one.snapshot.numbers.get(Counter::Due))).collect()
    }

    #[test]
    fn a_second_waits_for_the_part_that_was_taken_over() {
        let mut ledger = Ledger::default();
        ledger.begin(0, None);
        assert_eq!(told(&ledger.add(0, second(Phase::Measured, 0, 5))), [(Phase::Measured, 0, 5)]);
        ledger.begin(1, Some(2));
        // The part that was taken over has nothing to say about second 1.
        assert_eq!(told(&ledger.add(0, second(Phase::Measured, 1, 5))), [(Phase::Measured, 1, 5)]);
        assert_eq!(told(&ledger.add(0, second(Phase::Measured, 2, 5))), []);
        assert_eq!(told(&ledger.add(1, second(Phase::Measured, 2, 3))), [(Phase::Measured, 2, 8)]);
        assert_eq!(told(&ledger.add(0, second(Phase::Drain, 0, 0))), []);
        assert_eq!(told(&ledger.end(0)), []);
        assert_eq!(told(&ledger.end(1)), [(Phase::Drain, 0, 0)]);
        assert!(ledger.is_idle());
    }

    #[test]
    fn a_second_that_comes_late_makes_no_other_longer() {
        let mut ledger = Ledger::default();
        ledger.begin(0, None);
        assert_eq!(told(&ledger.add(0, second(Phase::Measured, 0, 5))).len(), 1);
        ledger.begin(1, Some(0));
        assert_eq!(told(&ledger.add(1, second(Phase::Measured, 0, 3))), []);
        let last = Interval { length_ns: SECOND_NS / 2, ..second(Phase::Measured, 1, 2) };
        let mut seconds = ledger.add(0, last);
        seconds.extend(ledger.end(1));
        assert_eq!((told(&seconds), seconds[0].length_ns), (vec![(Phase::Measured, 1, 5)], SECOND_NS / 2));
    }

    proptest! {
        /// However late parts begin and report: nothing is lost, nothing told twice, and seconds come in their order.
        #[test]
        fn everything_is_told_once_and_in_order(
            parts in prop::collection::vec((0_u64..6, 1_u64..6, 0_usize..9), 1..5), order in prop::collection::vec(0_usize..5, 0..60),
        ) {
            let mut ledger = Ledger::default();
            let mut left: Vec<_> = parts.iter().map(|(from, count, late)| (*late, *from..from + count)).collect();
            let mut seen = Vec::new();
            let mut expected = 0;
            let mut begun = vec![false; parts.len()];
            for turn in order.into_iter().chain((0..200).map(|turn| turn % 5)) {
                let Some((late, seconds)) = left.get_mut(turn) else { continue };
                if *late > 0 {
                    *late -= 1;
                    continue;
                }
                if !std::mem::replace(&mut begun[turn], true) {
                    ledger.begin(turn as u32, (turn > 0).then_some(seconds.start));
                }
                match seconds.next() {
                    Some(number) => {
                        expected += 1;
                        seen.extend(ledger.add(turn as u32, second(Phase::Measured, number, 1)));
                    }
                    None => seen.extend(ledger.end(turn as u32)),
                }
            }
            prop_assert!(ledger.is_idle());
            prop_assert_eq!(seen.iter().map(|one| one.snapshot.numbers.get(Counter::Due)).sum::<u64>(), expected);
            prop_assert!(seen.is_sorted_by(|one, next| one.second < next.second), "{:?}", told(&seen));
        }
    }
}
