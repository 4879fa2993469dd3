//! Times in which this program itself stood still, and deadlines that they put off.

use std::collections::VecDeque;

use brunt_record::time::Tick;

/// The shortest delay that is noted, in nanoseconds.
pub(super) const SHORTEST_NS: u64 = 1_000_000;
/// The most stops that are remembered: together they are longer than a quarter of a second.
const MOST: usize = 256;

/// Times in which a worker was late to look at its connections, the oldest first.
///
/// While it stands still a peer's window fills, and requests of which a part is unsent do not go on. So a time limit
/// counts only the time in which the worker ran.
#[derive(Debug)]
pub(super) struct Stops {
    /// Until when the worker last waited, if nothing came: later than that, it notices events late.
    waited_until: Tick,
    stops: VecDeque<(Tick, Tick)>,
}

impl Default for Stops {
    fn default() -> Self {
        Self { waited_until: Tick::NEVER, stops: VecDeque::new() }
    }
}

impl Stops {
    /// The worker waits until `until`, if nothing comes.
    #[inline]
    pub(super) fn waits(&mut self, until: Tick) {
        self.waited_until = until;
    }

    /// How much later than that it is, in nanoseconds.
    #[inline]
    pub(super) fn behind(&self, now: Tick) -> u64 {
        now.since(self.waited_until)
    }

    /// It stood still for so long since then, in nanoseconds.
    pub(super) fn stood_still(&mut self, ns: u64) {
        self.add(self.waited_until, self.waited_until.saturating_add(ns));
    }

    /// The worker stood still from `from` until `until`.
    fn add(&mut self, from: Tick, until: Tick) {
        if until.since(from) < SHORTEST_NS {
            return;
        }
        if self.stops.len() >= MOST {
            self.stops.pop_front();
        }
        self.stops.push_back((from, until));
    }

    /// The end of a time limit that began at `since` and would end at `until` without stops.
    pub(super) fn put_off(&self, since: Tick, until: Tick) -> Tick {
        let begins = self.stops.partition_point(|(_, end)| *end <= since);
        let during = self.stops.range(begins..).map(|(from, end)| ((*from).max(since), *end));
        during.fold(until, |until, (from, end)| if from < until { until.saturating_add(end - from) } else { until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_limit_counts_the_time_between_stops() {
        let mut stops = Stops::default();
        for (from, until) in [(10, 20), (30, 90), (100, 101), (500, 900)] {
            stops.add(Tick::from_ns(from * MS), Tick::from_ns(until * MS));
        }
        let at = |ms: u64| Tick::from_ns(ms * MS);
        let put_off = |since, until| stops.put_off(at(since), at(until)).ns() / MS;
        assert_eq!(put_off(0, 5), 5, "over before the first stop");
        assert_eq!(put_off(0, 15), 25, "10 of the first stop");
        assert_eq!(put_off(0, 25), 95, "10 of the first, and then 60 of the second: the limit was put off into it");
        assert_eq!(put_off(15, 25), 30, "half of the first stop was before the limit began");
        assert_eq!(put_off(20, 29), 29);
        assert_eq!(put_off(95, 200), 201);
        assert_eq!(put_off(901, 1_000), 1_000);
    }

    #[test]
    fn short_delays_are_no_stops_and_memory_is_bounded() {
        let mut stops = Stops::default();
        for n in 0..10_000 {
            stops.add(Tick::from_ns(n * 10 * MS), Tick::from_ns(n * 10 * MS + MS - 1));
        }
        assert_eq!(stops.put_off(Tick::EPOCH, Tick::LAST), Tick::LAST);
        for n in 0..10_000 {
            stops.add(Tick::from_ns(n * 10 * MS), Tick::from_ns(n * 10 * MS + MS));
        }
        assert_eq!(stops.stops.len(), MOST);
    }
}
