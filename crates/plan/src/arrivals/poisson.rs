//! Arrivals of a Poisson process, in blocks that each worker knows without the others.

use std::sync::Arc;

use super::{Arrival, nanoseconds};
use crate::profile::Profile;
use crate::random::{Random, unit_of};
use crate::share::Share;

/// The length of a block: the expected number of its calls. Large enough that passing over a block costs far less than
/// its calls, small enough that laying one out (a sort of its own calls) delays none by more than some microseconds.
const BLOCK: f64 = 256.0;
/// Keeps the streams of blocks apart from the other random numbers of a run.
const STREAMS: u64 = 0xa441_7a15_0000_0000;
/// Far more than rounding moves a due time by, in nanoseconds.
const ROUNDING_NS: u64 = 1000;

/// One share's position in the arrivals of a Poisson process.
///
/// In unit time, in which one call is expected per unit, the process is cut into blocks of length [`BLOCK`]. Each block
/// has its own random stream, derived from the run's seed and the block's number. The stream's first number decides the
/// number of calls of all workers in the block, by the Poisson distribution; each other number is the position of one
/// call, uniform over the block. Counts of separate blocks are independent, and given its count the positions in a
/// block are independent and uniform: that is a Poisson process (Kingman, "Poisson Processes", 1993, §2.1 and §2.4;
/// Devroye, "Non-Uniform Random Variate Generation", 1986, chapter VI.1). The inverse integral of the profile takes
/// unit time to seconds (the mapping theorem, Kingman §2.3).
/// seconds (the mapping theorem, Kingman §2.3).
///
/// A share draws the counts of all blocks, and of the places only its own: the calls of all blocks are numbered in
/// sequence, those within a block in the order in which they are drawn, and a share owns the numbers of [`Share`]. So the
/// union over any number of shares is the same calls, bit for bit, and passing over a block costs one random number.
#[derive(Debug, Clone)]
pub(super) struct Poisson {
    share: Share,
    seed: u64,
    /// The most calls, over all shares.
    limit: u64,
    /// The expected number of calls by the planned profile, and the number of blocks with them. The last may be
    /// shorter. Where the profile has changed since, further blocks follow.
    planned: f64,
    blocks: u64,
    /// Calls expected in all: the length of the process in unit time.
    length: f64,
    counts: Arc<PoissonCount>,
    counts_of_last: Arc<PoissonCount>,
    /// How many of the share's calls are past.
    drawn: u64,
    block: Block,
    /// Where in the profile the block lies.
    hint: usize,
}

/// The block under way.
#[derive(Debug, Clone, Default)]
struct Block {
    number: u64,
    /// The number of its first call among all calls.
    first: u64,
    /// The number of its calls, of all shares.
    count: u64,
    /// This share's calls in it, and how many of them have passed.
    own: u64,
    passed: u64,
    /// The due times of the share's calls, in order, in nanoseconds; computed when they are needed.
    due: Vec<u64>,
    laid_out: bool,
}

impl Poisson {
    pub(super) fn new(profile: &Profile, share: Share, seed: u64, requests: Option<u64>) -> Self {
        let length = profile.calls();
        let blocks = (length / BLOCK).ceil();
        let counts = Arc::new(PoissonCount::new(BLOCK));
        let counts_of_last = if length.is_finite() {
            Arc::new(PoissonCount::new(length - (blocks - 1.0) * BLOCK))
        } else {
            Arc::clone(&counts)
        };
        let mut poisson = Self {
            share,
            seed: seed ^ STREAMS,
            limit: requests.unwrap_or(u64::MAX),
            planned: length,
            blocks: blocks as u64,
            length,
            counts,
            counts_of_last,
            drawn: 0,
            block: Block::default(),
            hint: 0,
        };
        poisson.enter(0, 0);
        poisson
    }

    /// Enters block `number`, whose first call has number `first` among all.
    fn enter(&mut self, number: u64, first: u64) {
        let counts = if number + 1 == self.blocks { &self.counts_of_last } else { &self.counts };
        let count = counts.at(unit_of(Random::new(self.seed, number).nth_u64(0)));
        let end = first.saturating_add(count).min(self.limit);
        let block = &mut self.block;
        (block.number, block.first, block.count) = (number, first, count);
        block.own = self.share.part_of(end).saturating_sub(self.share.part_of(first));
        (block.passed, block.laid_out) = (0, false);
    }

    fn is_over(&self) -> bool {
        self.start_of(self.block.number) >= self.length || self.block.first >= self.limit
    }

    /// Where a block begins in unit time.
    fn start_of(&self, number: u64) -> f64 {
        match number.checked_sub(self.blocks) {
            None => number as f64 * BLOCK,
            Some(beyond) => self.planned + beyond as f64 * BLOCK,
        }
    }

    /// The profile has changed. Calls due before the change keep their times; positions in unit time stay the same.
    pub(super) fn change(&mut self, profile: &Profile) {
        (self.length, self.hint, self.block.laid_out) = (profile.calls(), 0, false);
    }

    /// Takes back the last arrival, which is then the next one again.
    pub(super) fn give_back(&mut self) {
        self.drawn = self.drawn.saturating_sub(1);
        self.block.passed = self.block.passed.saturating_sub(1);
    }

    fn leave(&mut self) {
        self.enter(self.block.number + 1, self.block.first.saturating_add(self.block.count));
    }

    /// Works out when the share's calls of the block are due.
    fn lay_out(&mut self, profile: &Profile) {
        let (start, end) = (self.start_of(self.block.number), self.start_of(self.block.number + 1));
        let end = if self.block.number < self.blocks { end.min(self.planned) } else { end };
        let (length, last) = ((end - start).min(BLOCK), end.next_down());
        let block = &mut self.block;
        let stream = Random::new(self.seed, block.number);
        let (of, index) = (self.share.count(), self.share.index());
        // The last calls before the limit are the earliest of their block: to find them takes the calls of all shares.
        let kept = block.count.min(self.limit - block.first);
        let truncated = kept < block.count;
        let to_own = (index + of - block.first % of) % of;
        let (from, step) = if truncated { (0, 1) } else { (to_own, of) };
        let places = std::iter::successors(Some(from), |call| call.checked_add(step));
        block.due.clear();
        block.due.extend(places.take_while(|call| *call < block.count).map(|call| stream.nth_u64(call + 1)));
        block.due.sort_unstable();
        if truncated {
            block.due.truncate(kept as usize);
            let mut rank = 0;
            block.due.retain(|_| {
                rank += 1;
                (rank - 1) % of == to_own
            });
        }
        for due in &mut block.due {
            let unit_time = (start + length * unit_of(*due)).min(last);
            *due = profile.time_of(unit_time, &mut self.hint).map_or(u64::MAX, nanoseconds);
        }
        // Rounding may have swapped two that are next to each other.
        if !block.due.is_sorted() {
            block.due.sort_unstable();
        }
        block.laid_out = true;
    }

    #[inline]
    pub(super) fn next(&mut self, profile: &Profile) -> Option<Arrival> {
        while self.block.passed >= self.block.own || !self.block.laid_out {
            if self.is_over() {
                return None;
            }
            if self.block.passed < self.block.own {
                self.lay_out(profile);
            } else {
                self.leave();
            }
        }
        // Calls beyond the profile's end are never due.
        let due_ns = *self.block.due.get(self.block.passed as usize).filter(|due| **due != u64::MAX)?;
        let index = self.share.number(self.drawn)?;
        self.block.passed += 1;
        self.drawn += 1;
        Some(Arrival { due_ns, index })
    }

    /// Passes up to `count` calls of the block; how many there were.
    fn pass_in_block(&mut self, count: u64) -> u64 {
        let passed = count.min(self.block.own - self.block.passed);
        self.block.passed += passed;
        self.drawn += passed;
        passed
    }

    /// Passes the calls due before `until_ns`: whole blocks by their counts, and the block of that time call by call.
    pub(super) fn pass(&mut self, profile: &Profile, until_ns: u64) -> u64 {
        let unit_time = profile.calls_until(until_ns as f64 / 1e9);
        let mut passed = 0;
        while !self.is_over() {
            let left = self.block.own - self.block.passed;
            if left > 0 && (self.block.laid_out || !self.is_before(profile, until_ns, unit_time)) {
                if !self.block.laid_out {
                    self.lay_out(profile);
                }
                let due = self.block.due.partition_point(|due| *due < until_ns) as u64;
                passed += self.pass_in_block(due.saturating_sub(self.block.passed));
                if self.block.passed < self.block.own {
                    break;
                }
            } else {
                passed += self.pass_in_block(left);
            }
            self.leave();
        }
        passed
    }

    /// Whether all of the block is surely due before `until_ns`, by which `unit_time` calls are expected.
    fn is_before(&self, profile: &Profile, until_ns: u64, unit_time: f64) -> bool {
        let end = self.start_of(self.block.number + 1);
        if end + BLOCK <= unit_time {
            return true;
        }
        let mut hint = self.hint;
        end <= unit_time
            && profile
                .time_of(end, &mut hint)
                .is_some_and(|seconds| nanoseconds(seconds).saturating_add(ROUNDING_NS) < until_ns)
    }
}

/// The Poisson distribution with one mean, for drawing from it by inversion: the smallest n whose cumulative probability
/// reaches a uniform random number (Devroye, chapter III.2.1). The mean is [`BLOCK`] at most, so that e^−mean is a
/// normal number and its multiples carry rounding errors of some 1e-13 at most.
#[derive(Debug)]
struct PoissonCount {
    least: u64,
    /// The probability of at most `least + i`.
    cumulative: Vec<f64>,
}

impl PoissonCount {
    fn new(mean: f64) -> Self {
        // Counts less likely than a step of the random numbers are never drawn.
        const NEGLIGIBLE: f64 = 1e-17;
        let (mut probability, mut sum) = ((-mean).exp(), 0.0);
        let (mut n, mut least, mut cumulative) = (0_u64, 0, Vec::new());
        while n as f64 <= mean || probability > NEGLIGIBLE {
            sum += probability;
            if sum < NEGLIGIBLE {
                least = n + 1;
            } else {
                cumulative.push(sum);
            }
            n += 1;
            probability *= mean / n as f64;
        }
        Self { least, cumulative }
    }

    fn at(&self, unit: f64) -> u64 {
        self.least + self.cumulative.partition_point(|sum| *sum < unit) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_mean_and_variance_of_a_poisson_distribution() {
        let n = 200_000_u64;
        for mean in [0.3, 1.0, 40.0, BLOCK] {
            let counts = PoissonCount::new(mean);
            let mut random = Random::new(11, 0);
            let drawn: Vec<_> = (0..n).map(|_| counts.at(random.unit()) as f64).collect();
            let average = drawn.iter().sum::<f64>() / n as f64;
            let variance = drawn.iter().map(|count| (count - average).powi(2)).sum::<f64>() / (n - 1) as f64;
            // Five standard errors; that of the variance is √((2·mean² + mean)/n).
            assert!((average - mean).abs() < 5.0 * (mean / n as f64).sqrt(), "mean {mean}: {average}");
            let error = ((2.0 * mean * mean + mean) / n as f64).sqrt();
            assert!((variance - mean).abs() < 5.0 * error, "mean {mean}: variance {variance}");
        }
    }

    #[test]
    fn probabilities_are_those_of_the_formula() {
        let counts = PoissonCount::new(2.0);
        let expected = [0.135_335_283_236_612_7, 0.406_005_849_709_838_1, 0.676_676_416_183_063_4];
        for (n, sum) in expected.into_iter().enumerate() {
            assert!((counts.cumulative[n] - sum).abs() < 1e-15);
            assert_eq!(counts.at(sum - 1e-9), n as u64);
            assert_eq!(counts.at(sum + 1e-9), n as u64 + 1);
        }
        assert!((PoissonCount::new(BLOCK).cumulative.last().unwrap() - 1.0).abs() < 1e-12);
    }
}
