//! How often a worker tries to connect while its target takes no connection.

use brunt_plan::random::mix;
use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

/// The most attempts to connect a second after one that found no server, over all workers of a run.
pub(crate) const MOST_PER_S: u64 = 1_000;
/// The most of these attempts at once, over all workers.
const BURST: u64 = 100;
/// The average wait of a place after an attempt that failed, in nanoseconds. Each waits between half of it and half as
/// much again, so that places do not retry in step.
const APART_NS: u64 = 100_000_000;

/// One worker's share of the attempts.
///
/// Attempts are spaced as cells are by the generic cell rate algorithm (ITU-T I.371, annex A): `next` is when the next one would come if
/// all came evenly.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// The interval of evenly spaced attempts, in nanoseconds.
    interval_ns: u64,
    /// How far ahead of even spacing they may be, in nanoseconds.
    ahead_ns: u64,
    next: Tick,
    /// The latest time at which a place was told to try again.
    last_retry: Tick,
}

impl Attempts {
    /// The share of one of `workers`, over all machines.
    pub(crate) fn new(workers: u64) -> Self {
        let interval_ns = SECOND_NS / MOST_PER_S * workers.max(1);
        let burst = (BURST / workers.max(1)).max(1);
        Self { interval_ns, ahead_ns: interval_ns * (burst - 1), next: Tick::EPOCH, last_retry: Tick::EPOCH }
    }

    /// Whether another attempt may begin at `now`. If so, it counts.
    pub(crate) fn take(&mut self, now: Tick) -> bool {
        let may = self.free_at() <= now;
        if may {
            self.next = self.next.max(now) + self.interval_ns;
        }
        may
    }

    /// When another attempt may begin.
    pub(crate) fn free_at(&self) -> Tick {
        self.next.before(self.ahead_ns)
    }

    /// When a place tries again whose attempt failed at `now`. `place` makes the time differ from place to place.
    pub(crate) fn retry_at(&mut self, place: usize, now: Tick) -> Tick {
        let jitter = mix(now.ns() ^ (place as u64) << 32) % APART_NS;
        let at = (now + APART_NS / 2 + jitter).max(self.last_retry + self.interval_ns);
        self.last_retry = self.last_retry.max(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_burst_then_a_thousand_a_second_over_all_workers() {
        for workers in [1, 4] {
            let mut attempts = Attempts::new(workers);
            let mut took = |from: u64, to: u64| {
                (from..to).filter(|at| attempts.take(Tick::from_ns(SECOND_NS + at * MS / 10))).count()
            };
            let at_once = took(0, 1);
            assert_eq!(at_once, 1);
            let first = took(1, 10_000) as u64;
            assert!((1_000 / workers..=1_100 / workers + 1).contains(&first), "{first}");
            let second = took(10_000, 20_000) as u64;
            assert!(second.abs_diff(1_000 / workers) <= 1, "{second}");
        }
    }

    #[test]
    fn places_come_back_apart() {
        let mut attempts = Attempts::new(1);
        let alone = attempts.retry_at(3, Tick::from_ns(SECOND_NS)) - Tick::from_ns(SECOND_NS);
        assert!((50 * MS..150 * MS).contains(&alone), "{alone}");
        let mut times: Vec<_> =
            (0..2_000).map(|place| attempts.retry_at(place, Tick::from_ns(2 * SECOND_NS))).collect();
        times.sort_unstable();
        assert!(times.windows(2).all(|two| two[1] - two[0] >= MS) && times[1_999] >= Tick::from_ns(4 * SECOND_NS));
    }
}
