//! Which reads of a worker are timed, where some stand for the others.

use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

/// The most timed reads a second, where some stand for the others. Asking the kernel and recording its answer takes
/// about 1 µs, so this is a quarter of a hundredth of a CPU.
const TIMED_PER_S: u64 = 2_000;
/// Reads after which the share of timed ones is fitted to their number a second.
const FITTED_AFTER: u64 = 1024;
/// A call that takes this many times the usual is slow.
pub(super) const SLOW: u64 = 4;
/// The lowest share of timed reads: one in this many.
const MOST_SKIPPED: u64 = 4096;

/// Which reads may be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Timed {
    #[default]
    All,
    /// As many as cost little.
    Some,
    None,
}

/// Decides for each read whether it is timed. Ordinary calls are chosen by the number of reads and by chance, never by
/// when a read comes: reads after a pause would be chosen more often than those in a burst. Slow calls are few and make
/// up the high percentiles, so all of them are timed, and each stands only for itself (W. G. Cochran, "Sampling
/// Techniques", 1977, chapter 5: strata).
#[derive(Debug)]
pub(super) struct Sampler {
    pub(super) timed: Timed,
    /// The average interval between timed reads.
    pub(super) one_in: u32,
    /// Reads until the next timed one.
    pub(super) left: u32,
    /// Reads that were timed or passed over since `fitted_at`.
    pub(super) reads: u64,
    /// When `one_in` was fitted to the rate of reads.
    pub(super) fitted_at: Tick,
    /// The time in flight from which on a call is slow when its answer is read, in nanoseconds.
    pub(super) slow_from: u64,
    /// Whether the read under way is that of a slow call.
    pub(super) is_slow: bool,
    /// State of the random numbers (xorshift; G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003).
    /// They keep the choice from falling into step with the connections.
    pub(super) random: u32,
    /// Calls ended since the last one that was recorded with its arrival.
    pub(super) skipped: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        let random = 0x9e37_79b9;
        Self {
            timed: Timed::default(),
            one_in: 1,
            left: 0,
            reads: 0,
            fitted_at: Tick::EPOCH,
            slow_from: 0,
            is_slow: false,
            random,
            skipped: 0,
        }
    }
}

impl Sampler {
    /// Whether to time the next read of a connection whose oldest call has been in flight this long.
    #[inline]
    pub(super) fn next(&mut self, in_flight_ns: impl FnOnce() -> u64) -> bool {
        if self.timed != Timed::Some {
            return self.timed == Timed::All;
        }
        self.is_slow = self.one_in > 1 && in_flight_ns() > self.slow_from;
        if self.is_slow {
            return true;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = self.random % (2 * self.one_in - 1);
        self.reads += 1 + u64::from(self.left);
        true
    }

    /// A read was timed at `now`.
    pub(super) fn fit(&mut self, now: Tick) {
        if self.reads >= FITTED_AFTER {
            let per_s = self.reads * SECOND_NS / (now.since(self.fitted_at)).max(1);
            self.one_in = (per_s / TIMED_PER_S).clamp(1, MOST_SKIPPED) as u32;
            (self.reads, self.fitted_at) = (0, now);
        }
    }

    /// How many calls the one being recorded stands for, which took this long.
    pub(super) fn weight(&mut self, service_ns: u64) -> u64 {
        // Four times a moving mean, which no single call moves far.
        let most = self.slow_from.saturating_add(1000);
        let four_times = service_ns.saturating_mul(SLOW).min(most.saturating_mul(SLOW));
        self.slow_from = self.slow_from - self.slow_from / 64 + four_times / 64;
        if self.is_slow { 1 } else { 1 + std::mem::take(&mut self.skipped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of reads that come evenly, so many a second for two seconds, those that are timed in the second one.
    fn timed_in_a_second(per_s: u64) -> u64 {
        let mut sampler = Sampler { timed: Timed::Some, ..Sampler::default() };
        let mut timed = 0;
        for now in (0..2 * per_s).map(|read| read * SECOND_NS / per_s) {
            if sampler.next(|| 0) {
                sampler.fit(Tick::from_ns(now));
                timed += u64::from(now >= SECOND_NS);
            }
        }
        timed
    }

    #[test]
    fn reads_are_timed_as_often_as_costs_little() {
        assert_eq!([100, 1_000, 3_000].map(timed_in_a_second), [100, 1_000, 3_000]);
        for per_s in [20_000, 100_000, 1_000_000] {
            let timed = timed_in_a_second(per_s);
            assert!((TIMED_PER_S * 4 / 5..TIMED_PER_S * 7 / 5).contains(&timed), "{timed} of {per_s}");
        }
    }

    #[test]
    fn the_choice_fits_another_rate_within_moments() {
        let mut sampler = Sampler { timed: Timed::Some, ..Sampler::default() };
        let mut now = 0;
        let mut timed = [0; 2];
        for read in 0..200_000 {
            // A target that was slow for 10 s, and is fast then.
            now += if read < 1_000 { 10_000_000 } else { 1_000 };
            if sampler.next(|| 0) {
                sampler.fit(Tick::from_ns(now));
                timed[usize::from(read >= 1_000)] += 1;
            }
        }
        assert!(timed[0] == 1_000 && timed[1] < 5_000, "{timed:?}");
    }

    #[test]
    fn slow_calls_are_all_timed_and_stand_for_themselves() {
        let mut sampler = Sampler { timed: Timed::Some, ..Sampler::default() };
        let (mut weights, mut slow) = (0, 0);
        for read in 0..100_000_u64 {
            // One call in 10,000 takes a second; the others take 100 µs.
            let takes = if read % 10_000 == 9_999 { SECOND_NS } else { 100_000 };
            if sampler.next(|| takes) {
                sampler.fit(Tick::from_ns(read * 10_000));
                let weight = sampler.weight(takes);
                weights += weight;
                if takes == SECOND_NS {
                    assert_eq!(weight, 1);
                    slow += 1;
                }
            } else {
                sampler.skipped += 1;
            }
        }
        assert_eq!((weights + sampler.skipped, slow), (100_000, 10));
    }
}
