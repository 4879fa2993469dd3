//! The offset of another machine's clock, measured by notes that go there and back (NTP's method, RFC 5905 §8).
//!
//! Both clocks are monotonic and count from the start of their processes. The time of day on either machine does not
//! matter.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The number of notes that are remembered: the quickest of them is the most exact.
const REMEMBERED: usize = 16;

/// How far the other clock is ahead, and how wrong that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// The other clock's time less this one's, in nanoseconds.
    pub ns: i64,
    /// Its uncertainty, in nanoseconds: half of the note's round trip.
    pub uncertainty_ns: u64,
}

impl Offset {
    /// The other clock's time when this clock is at `here_ns`.
    pub(crate) fn there(self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.ns)
    }

    /// This clock's time when the other one is at `there_ns`.
    pub(crate) fn here(self, there_ns: u64) -> u64 {
        there_ns.saturating_add_signed(self.ns.saturating_neg())
    }
}

/// The times of a note, each on the clock of the side that took it, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    /// Sent here, received there, answered there, back here.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) answered: u64,
    pub(crate) back: u64,
}

impl Exchange {
    fn offset(self) -> Option<Offset> {
        let there = self.answered.checked_sub(self.received)?;
        let underway = self.back.checked_sub(self.sent)?.checked_sub(there)?;
        let ahead =
            i128::from(self.received) - i128::from(self.sent) + i128::from(self.answered) - i128::from(self.back);
        Some(Offset { ns: i64::try_from(ahead / 2).ok()?, uncertainty_ns: underway.div_ceil(2) })
    }
}

/// Knowledge about another clock.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    latest: VecDeque<Offset>,
}

impl Comparison {
    /// Takes a note that came back. A note with impossible times is ignored.
    pub(crate) fn add(&mut self, exchange: Exchange) {
        if let Some(offset) = exchange.offset() {
            if self.latest.len() == REMEMBERED {
                self.latest.pop_front();
            }
            self.latest.push_back(offset);
        }
    }

    /// How many notes are remembered.
    pub(crate) fn count(&self) -> usize {
        self.latest.len()
    }

    /// The best estimate: by the quickest of the latest notes.
    pub(crate) fn offset(&self) -> Option<Offset> {
        self.latest.iter().min_by_key(|offset| offset.uncertainty_ns).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            ahead in -(1_i64 << 50)..1 << 50,
            begin in (1_u64 << 51)..1 << 52,
            delays in prop::collection::vec((0_u64..1 << 33, 0_u64..1 << 30, 0_u64..1 << 33), 1..40),
        ) {
            let mut comparison = Comparison::default();
            let mut now = begin;
            for (there, stay, back) in delays {
                let sent = now;
                let received = (sent + there).saturating_add_signed(ahead);
                let answered = received + stay;
                now = sent + there + stay + back;
                comparison.add(Exchange { sent, received, answered, back: now });
            }
            let offset = comparison.offset().unwrap();
            prop_assert!(offset.ns.abs_diff(ahead) <= offset.uncertainty_ns + 1, "{offset:?} {ahead}");
            prop_assert_eq!(offset.here(offset.there(begin)), begin);
        }
    }

    #[test]
    fn times_that_cannot_be_say_nothing() {
        let mut comparison = Comparison::default();
        comparison.add(Exchange { sent: 10, received: 5, answered: 4, back: 20 });
        comparison.add(Exchange { sent: 10, received: 5, answered: 50, back: 20 });
        comparison.add(Exchange { sent: 10, received: 0, answered: 0, back: 9 });
        assert_eq!((comparison.count(), comparison.offset()), (0, None));
    }
}
