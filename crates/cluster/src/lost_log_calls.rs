//! The calls of a log that fall due on an agent, as its controller reads them, compared with those that the agent
//! reports.

use std::collections::VecDeque;

use crate::rules::{Rule, is_broken};

/// How finely due times are kept, in nanoseconds.
const TICK_NS: u64 = 100_000_000;

/// Calls of a log that are due on an agent and not reported, by due time.
///
/// An agent reports its calls in the order of their due times, so that their number tells which they are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Unreported {
    /// Calls due in each tick that has some; the earliest first.
    ticks: VecDeque<(u64, u64)>,
    /// Calls that were reported before they were read here.
    ahead: u64,
    /// The due time of the last one, in nanoseconds of the measured part.
    last_ns: Option<u64>,
}

impl Unreported {
    /// A call is due at this time, and no later one is due before it.
    pub(crate) fn due(&mut self, due_ns: u64) {
        if self.ahead > 0 {
            self.ahead -= 1;
            return;
        }
        self.last_ns = Some(due_ns);
        let tick = due_ns / TICK_NS;
        match self.ticks.back_mut() {
            Some((last, count)) if *last == tick => *count += 1,
            _ => self.ticks.push_back((tick, 1)),
        }
    }

    /// The agent has reported this many more calls.
    pub(crate) fn reported(&mut self, mut calls: u64) {
        while calls > 0 {
            let Some((_, count)) = self.ticks.front_mut() else { break };
            let taken = calls.min(*count);
            *count -= taken;
            calls -= taken;
            if *count == 0 {
                self.ticks.pop_front();
            }
        }
        self.ahead = self.ahead.saturating_add(calls);
    }

    /// Takes out the calls due before `end_ns`: their approximate due times and numbers.
    fn take_until(&mut self, end_ns: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        while let Some((tick, count)) = self.ticks.front().copied().filter(|(tick, _)| tick * TICK_NS < end_ns) {
            self.ticks.pop_front();
            taken.push((tick * TICK_NS, count));
        }
        taken
    }
}

/// The fate of a lost agent's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may have been sent.
    Unknown,
    /// It was not sent.
    Unsent,
}

/// The calls of a log that a lost agent has not reported.
#[derive(Debug, Default)]
pub(crate) struct LostCalls {
    unreported: Unreported,
    /// Calls that were counted as due: their approximate due times and numbers.
    counted: Vec<(u64, u64)>,
    /// How many of them, from the first, the agent has reported since.
    pub(crate) told: u64,
}

impl LostCalls {
    pub(crate) fn new(unreported: Unreported) -> Self {
        Self { unreported, counted: Vec::new(), told: 0 }
    }

    /// Another call is due at this time.
    pub(crate) fn due(&mut self, due_ns: u64) {
        self.unreported.due(due_ns);
    }

    /// The number of further calls that come due before `end_ns` of the measured part.
    pub(crate) fn come_due(&mut self, end_ns: u64) -> u64 {
        let taken = self.unreported.take_until(end_ns);
        let calls = taken.iter().map(|(_, count)| count).sum();
        self.counted.extend(taken);
        calls
    }

    /// The end of the last call that was read, in nanoseconds of the measured part.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        self.unreported.last_ns.map(|last_ns| last_ns + 1)
    }

    /// The fates of counted calls that the agent has not reported; it made no call due at `horizon_ns` or later.
    /// Returns approximate due times, numbers and fates.
    pub(crate) fn fates(&self, horizon_ns: u64) -> Vec<(u64, u64, Fate)> {
        let mut told = self.told;
        let fates = self.counted.iter().filter_map(|(at, count)| {
            let known = told.min(*count);
            told -= known;
            let is_before = *at < horizon_ns && !is_broken(Rule::LoggedBeforeTheHorizonIsUnknown);
            let fate = if is_before { Fate::Unknown } else { Fate::Unsent };
            (*count > known).then_some((*at, *count - known, fate))
        });
        fates.collect()
    }

    /// The number of uncounted calls due before the horizon: it may have sent them after the run's end.
    pub(crate) fn beyond(&mut self, horizon_ns: u64) -> u64 {
        self.unreported.take_until(horizon_ns).iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_an_agent_has_not_reported_is_unknown_up_to_its_horizon() {
        let mut unreported = Unreported::default();
        // It reports what was not read here yet.
        unreported.reported(3);
        (0..10).for_each(|nth| unreported.due(nth * 300 * MS));
        unreported.reported(2);
        let mut lost = LostCalls::new(unreported);
        // Left are those from 1.5 s on.
        assert_eq!((lost.come_due(2_000 * MS), lost.come_due(2_000 * MS)), (2, 0));
        lost.due(3_000 * MS);
        assert_eq!((lost.come_due(2_900 * MS), lost.end_ns()), (3, Some(3_000 * MS + 1)));
        lost.told = 1;
        let fates = lost.fates(2_400 * MS);
        let expected = [
            (1_800 * MS, 1, Fate::Unknown),
            (2_100 * MS, 1, Fate::Unknown),
            (2_400 * MS, 1, Fate::Unsent),
            (2_700 * MS, 1, Fate::Unsent),
        ];
        assert_eq!(fates, expected);
        assert_eq!((lost.beyond(3_500 * MS), lost.beyond(3_500 * MS)), (1, 0));
    }

    proptest! {
        #[test]
        fn every_call_is_reported_or_has_a_fate(
            gaps in prop::collection::vec(0..400_u64, 0..100), reports in prop::collection::vec((0..10_usize, 0..10_u64), 0..20),
            late in 0..20_u64, horizon in 0..20_000_u64,
        ) {
            let (mut at, mut unreported, mut reported) = (0, Unreported::default(), 0);
            let total = gaps.len() as u64;
            let mut reports = reports.into_iter();
            let mut wait = 0;
            for gap in gaps {
                at += gap;
                unreported.due(at * MS);
                if wait == 0 {
                    let (next, calls) = reports.next().unwrap_or((usize::MAX, 0));
                    wait = next;
                    let calls = calls.min(total - reported);
                    unreported.reported(calls);
                    reported += calls;
                } else {
                    wait -= 1;
                }
            }
            let mut lost = LostCalls::new(unreported);
            let due: u64 = (0..50).map(|second| lost.come_due(second * 1000 * MS)).sum();
            prop_assert_eq!(due, total - reported);
            lost.told = late.min(due);
            let fates = lost.fates(horizon * MS);
            prop_assert_eq!(fates.iter().map(|(_, count, _)| count).sum::<u64>(), due - lost.told);
            prop_assert!(fates.iter().all(|(at, _, fate)| (*fate == Fate::Unsent) == (*at >= horizon * MS)));
        }
    }
}
