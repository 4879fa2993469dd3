//! A log's lines in the order of their times: sorted within a window, with stamps of whole seconds spread.
//!
//! Pure. Entries go in as they stand in the log and come out by time.
//!
//! 1. **Window.** A line comes out once another is read that is later by the window. A line that is earlier than those
//!    that have come out by then is skipped ([`Skip::TooLate`]).
//! 2. **Whole seconds.** The `k`-th of `n` lines of a second, from 0, is due at `k / n` of it, in their order.

use std::collections::VecDeque;

use crate::entry::{Entry, Skip, Skips};
use crate::neighbours::are_near;
use crate::queue::Queue;

const SECOND_NS: i64 = 1_000_000_000;

/// The longest window in which lines are sorted, in nanoseconds: a day.
const MOST_WINDOW_NS: i64 = 24 * 3600 * SECOND_NS;
/// The most bytes of lines held back to be sorted.
pub const MOST_HELD_BYTES: usize = 64 << 20;
/// The most lines held back to be sorted; beyond it the earliest come out early.
pub const MOST_HELD: usize = 1 << 18;

/// An entry with the time at which it is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// Nanoseconds since 1970-01-01 UTC.
    pub ns: i64,
    /// The entry from the log.
    pub entry: Entry,
}

/// An entry that is held back. Of entries at the same time, the one read first comes first.
#[derive(Debug)]
struct Held {
    key: (i64, u64),
    is_whole: bool,
    entry: Entry,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Sorts entries; see the module's documentation.
#[derive(Debug)]
pub struct Sorter {
    window_ns: i64,
    held: Queue<Held>,
    held_bytes: usize,
    read: u64,
    /// The latest time since the last gap, and the earliest time that may still come out.
    latest: Option<i64>,
    from: i64,
    /// The entries of the whole second that is being gathered.
    second: Vec<Timed>,
    second_bytes: usize,
    out: VecDeque<Timed>,
}

impl Sorter {
    /// Sorts within `window_ns` nanoseconds, but at least a second, so that whole seconds are complete.
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns: i64::try_from(window_ns).unwrap_or(i64::MAX).clamp(SECOND_NS, MOST_WINDOW_NS),
            held: Queue::default(),
            held_bytes: 0,
            read: 0,
            latest: None,
            from: i64::MIN,
            second: Vec::new(),
            second_bytes: 0,
            out: VecDeque::new(),
        }
    }

    /// Takes the next line of the log. A line without a time is skipped.
    pub fn push(&mut self, entry: Entry, skips: &mut Skips) {
        let Some(at) = entry.at else { return skips.add(Skip::NoTime) };
        let ns = at.ns;
        // A gap may lead back in time, too: time goes on from there.
        let latest = self.latest.filter(|latest| are_near(ns, *latest)).map_or(ns, |latest| latest.max(ns));
        self.latest = Some(latest);
        if ns < self.from {
            return skips.add(Skip::TooLate);
        }
        self.read += 1;
        self.held_bytes += entry.weight();
        self.held.push(Held { key: (ns, self.read), is_whole: at.is_whole, entry });
        let until = latest.saturating_sub(self.window_ns);
        while self.held.len() > MOST_HELD
            || self.held_bytes > MOST_HELD_BYTES
            || self.held.peek().is_some_and(|first| first.key.0 <= until)
        {
            let Some(first) = self.held.pop() else { return };
            self.release(first);
        }
    }

    fn release(&mut self, first: Held) {
        let ns = first.key.0;
        self.held_bytes = self.held_bytes.saturating_sub(first.entry.weight());
        self.from = self.from.max(ns);
        if self.second.first().is_some_and(|gathered| gathered.ns != ns) {
            self.spread();
        }
        let timed = Timed { ns, entry: first.entry };
        if first.is_whole {
            self.second.push(timed);
            self.second_bytes += self.second.last().map_or(0, |timed| timed.entry.weight());
            if self.second.len() >= MOST_HELD || self.second_bytes > MOST_HELD_BYTES {
                self.spread();
                // Further entries of this second would come after it.
                self.from = ns + 1;
            }
        } else {
            self.out.push_back(timed);
        }
    }

    /// Spreads the lines of a whole second over it.
    fn spread(&mut self) {
        self.second_bytes = 0;
        let count = self.second.len() as i64;
        let spread = self
            .second
            .drain(..)
            .zip(0_i64..)
            .map(|(timed, place)| Timed { ns: timed.ns + place * SECOND_NS / count.max(1), ..timed });
        self.out.extend(spread);
    }

    /// The next entry that no later line can precede. Entries come out in the order of their times.
    pub fn pop(&mut self) -> Option<Timed> {
        self.out.pop_front()
    }

    /// Ends the log: all remaining entries come out.
    pub fn finish(&mut self) {
        while let Some(first) = self.held.pop() {
            self.release(first);
        }
        self.spread();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::Stamp;

    const MS: i64 = 1_000_000;
    /// 2026-01-01 00:00:00 UTC.
    const BEGIN: i64 = 1_767_225_600 * SECOND_NS;

    fn entry(ns: i64, url: &str) -> Entry {
        let at = Stamp { ns: BEGIN + ns, is_whole: ns % SECOND_NS == 0, offset_s: 0 };
        Entry { at: Some(at), url: url.to_owned(), ..Entry::default() }
    }

    fn sorted(window_ns: i64, lines: &[(i64, &str)]) -> (Vec<(i64, String)>, Skips) {
        let (mut sorter, mut skips) = (Sorter::new(window_ns as u64), Skips::default());
        let mut out = Vec::new();
        for (ns, url) in lines {
            sorter.push(entry(*ns, url), &mut skips);
            out.extend(std::iter::from_fn(|| sorter.pop()));
        }
        sorter.finish();
        out.extend(std::iter::from_fn(|| sorter.pop()));
        (out.into_iter().map(|timed| (timed.ns - BEGIN, timed.entry.url)).collect(), skips)
    }

    #[test]
    fn whole_seconds_are_spread_in_their_order() {
        let (out, _) = sorted(SECOND_NS, &[(0, "a"), (0, "b"), (0, "c"), (0, "d"), (SECOND_NS, "e")]);
        let expected = [(0, "a"), (250 * MS, "b"), (500 * MS, "c"), (750 * MS, "d"), (SECOND_NS, "e")];
        assert_eq!(out, expected.map(|(ns, url)| (ns, url.to_owned())));
    }

    #[test]
    fn lines_are_sorted_within_the_window_and_later_ones_counted() {
        let lines =
            [(1, "a"), (4 * SECOND_NS + 1, "b"), (3 * SECOND_NS + 1, "c"), (9 * SECOND_NS + 1, "d"), (2, "late")];
        let (out, skips) = sorted(2 * SECOND_NS, &lines);
        let urls: String = out.iter().map(|(_, url)| url.as_str()).collect();
        assert_eq!((urls.as_str(), skips.count(Skip::TooLate), skips.total()), ("acbd", 1, 1));
    }

    #[test]
    fn lines_hours_apart_come_out_in_their_order() {
        let hour = 3600 * SECOND_NS;
        let (out, skips) = sorted(SECOND_NS, &[(1, "a"), (9 * hour, "b"), (9 * hour + 1, "c"), (30 * hour, "d")]);
        let urls: String = out.iter().map(|(_, url)| url.as_str()).collect();
        assert_eq!((urls.as_str(), skips.total()), ("abcd", 0));
    }

    proptest! {
        #[test]
        fn nothing_vanishes_and_times_do_not_fall(
            lines in prop::collection::vec((0..20_i64, prop::bool::ANY, 0..SECOND_NS), 0..200),
        ) {
            let lines: Vec<_> = lines.into_iter()
                .map(|(second, is_whole, part)| (second * SECOND_NS + if is_whole { 0 } else { part }, "u"))
                .collect();
            let (out, skips) = sorted(3 * SECOND_NS, &lines);
            prop_assert_eq!(out.len() as u64 + skips.total(), lines.len() as u64);
            // Whole seconds are spread over themselves: a line is never moved out of its second.
            prop_assert!(out.windows(2).all(|pair| pair[0].0 / SECOND_NS <= pair[1].0 / SECOND_NS));
        }
    }
}
