//! A sparse histogram of durations with three significant digits.
//!
//! The layout is `HdrHistogram`'s (<https://hdrhistogram.org>): values under 2048 ns have a slot each, and each further
//! power of two is cut into 1024 slots, so a slot is never wider than 1/1024 of its value. Unlike the dense
//! original (270 KB at this resolution) slots live in pages of 64 that exist only once something falls into them:
//! a usual latency distribution takes some tens of KB, an empty histogram about one.

mod bytes;
mod censored;
mod percentile;
mod slots;
#[cfg(test)]
mod tests;
mod written;

use std::fmt;

pub(crate) use bytes::{MOST_VALUES, push_leb128, take_leb128};
pub use censored::{AtLeast, Censored};
pub use percentile::Percentile;
pub use slots::{MAX_VALUE_NS, bucket_of};

use bytes::{push_slot, slots_in};
use slots::{PAGE_BITS, PAGE_SLOTS, PAGES, highest_in, lowest_in, slot_of};

/// A mergeable distribution of durations in nanoseconds. See the module's text for its resolution and size.
#[derive(Clone)]
pub struct Histogram {
    /// For each page of slots its place in `pages` plus one, or 0 while the page is empty.
    directory: Vec<u16>,
    pages: Vec<[u64; PAGE_SLOTS]>,
    /// The slots as they came over the wire, as long as nothing was added; there are no pages then. Most such
    /// histograms are merged into others once, and their pages would be made in vain.
    packed: Box<[u8]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl PartialEq for Histogram {
    /// The same values with the same counts, whatever pages hold them.
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.min, self.max, self.sum) == (other.count, other.min, other.max, other.sum)
            && self.slots().eq(other.slots())
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram {{ count: {}, min: {:?}, max: {:?} }}", self.count, self.min(), self.max())
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self {
            directory: Vec::new(),
            pages: Vec::new(),
            packed: Box::default(),
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `n` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        let value = value_ns.min(MAX_VALUE_NS);
        self.add_to_slot(slot_of(value), n);
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[inline]
    fn add_to_slot(&mut self, slot: usize, n: u64) {
        let place = self.directory.get(slot >> PAGE_BITS).copied().unwrap_or(0);
        if let Some(page) = self.pages.get_mut(usize::from(place).wrapping_sub(1))
            && let Some(counter) = page.get_mut(slot & (PAGE_SLOTS - 1))
        {
            *counter += n;
        } else {
            self.add_to_new_page(slot, n);
        }
    }

    #[cold]
    fn add_to_new_page(&mut self, slot: usize, n: u64) {
        if !self.packed.is_empty() {
            self.unpack();
            return self.add_to_slot(slot, n);
        }
        self.add_page(slot >> PAGE_BITS, &[0; PAGE_SLOTS]);
        if slot >> PAGE_BITS < PAGES {
            self.add_to_slot(slot, n);
        }
    }

    /// Makes pages from the slots that came over the wire.
    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        // All pages are made at once: adding them one by one would copy each several times.
        let (mut pages, mut last) = (0, usize::MAX);
        for (slot, _) in slots_in(&packed) {
            pages += usize::from(slot >> PAGE_BITS != last);
            last = slot >> PAGE_BITS;
        }
        self.pages.reserve_exact(pages);
        self.add_slots(&packed);
    }

    /// Counts slots that came over the wire. They come in order, so that a page is looked up once.
    fn add_slots(&mut self, packed: &[u8]) {
        let (mut number, mut place) = (usize::MAX, 0);
        slots_in(packed).for_each(|(slot, n)| {
            if slot >> PAGE_BITS != number {
                number = slot >> PAGE_BITS;
                place = usize::from(self.directory.get(number).copied().unwrap_or(0));
                if place == 0 {
                    self.add_page(number, &[0; PAGE_SLOTS]);
                    place = self.pages.len();
                }
            }
            let page = self.pages.get_mut(place.wrapping_sub(1));
            if let Some(counter) = page.and_then(|page| page.get_mut(slot & (PAGE_SLOTS - 1))) {
                *counter += n;
            }
        });
    }

    /// Adds a page that does not exist yet.
    fn add_page(&mut self, number: usize, page: &[u64; PAGE_SLOTS]) {
        if self.directory.is_empty() {
            self.directory = vec![0; PAGES];
        }
        if let Some(entry) = self.directory.get_mut(number) {
            self.pages.push(*page);
            *entry = self.pages.len() as u16;
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, exact up to [`MAX_VALUE_NS`].
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The arithmetic mean, exact.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the population, from the middle of each slot.
    pub fn stdev(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self
            .slots()
            .map(|(slot, n)| {
                let middle = f64::midpoint(lowest_in(slot) as f64, highest_in(slot) as f64);
                (middle - mean).powi(2) * n as f64
            })
            .sum();
        Some((squares / self.count as f64).sqrt())
    }

    /// The share of values within `width` standard deviations of the mean, from 0 to 1 (wrk's "+/- Stdev").
    pub fn share_within_stdev(&self, width: f64) -> Option<f64> {
        let (mean, stdev) = (self.mean()?, self.stdev()?);
        let (low, high) = (mean - width * stdev, mean + width * stdev);
        let inside: u64 = self
            .slots()
            .filter(|&(slot, _)| lowest_in(slot) as f64 >= low.floor() && lowest_in(slot) as f64 <= high)
            .map(|(_, n)| n)
            .sum();
        Some(inside as f64 / self.count as f64)
    }

    /// The value at quantile `q` (0 to 1): the smallest recorded value, at this resolution, that at least a share
    /// `q` of all values does not exceed.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.value_at_rank(rank(q, self.count))
    }

    /// The value of the `rank`-th smallest, counting from 1; `None` if there are fewer.
    fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if rank > self.count {
            return None;
        }
        let mut seen = 0;
        for (slot, n) in slots_in(&self.packed) {
            seen += n;
            if seen >= rank {
                return Some(highest_in(slot).clamp(self.min, self.max));
            }
        }
        for (number, page) in self.pages_in_order() {
            let of_page: u64 = page.iter().sum();
            if seen + of_page < rank {
                seen += of_page;
                continue;
            }
            for (slot, n) in page.iter().enumerate() {
                seen += n;
                if seen >= rank {
                    let slot = (number << PAGE_BITS) + slot;
                    return Some(highest_in(slot).clamp(self.min, self.max));
                }
            }
        }
        self.max()
    }

    /// Its pages with their numbers, from low to high.
    fn pages_in_order(&self) -> impl Iterator<Item = (usize, &[u64; PAGE_SLOTS])> + '_ {
        let page =
            |(number, &place): (usize, &u16)| Some((number, self.pages.get(usize::from(place).wrapping_sub(1))?));
        self.directory.iter().enumerate().filter_map(page)
    }

    /// Slots that hold something, from low to high, with their counts.
    fn slots(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let paged = self.directory.iter().enumerate().flat_map(move |(page, &place)| {
            let counters = self.pages.get(usize::from(place).wrapping_sub(1)).map_or(&[][..], |page| &page[..]);
            counters.iter().enumerate().filter(|&(_, &n)| n > 0).map(move |(slot, &n)| ((page << PAGE_BITS) + slot, n))
        });
        slots_in(&self.packed).chain(paged)
    }

    /// Every distinct value, at this resolution, with its count, from low to high. A value is the largest of its
    /// slot, and recording it again falls into the same slot.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.slots().map(|(slot, n)| (highest_in(slot), n))
    }

    /// How many values were surely larger than `limit_ns`, at this resolution.
    pub fn count_above(&self, limit_ns: u64) -> u64 {
        self.slots().filter(|&(slot, _)| lowest_in(slot) > limit_ns).map(|(_, n)| n).sum()
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        // Page by page, or slot by slot as they came over the wire: a controller merges thousands of histograms a second.
        if !other.packed.is_empty() {
            if self.count == 0 && self.pages.is_empty() {
                self.packed.clone_from(&other.packed);
            } else {
                if !self.packed.is_empty() {
                    self.unpack();
                }
                self.add_slots(&other.packed);
            }
        } else if !other.pages.is_empty() && !self.packed.is_empty() {
            self.unpack();
        }
        for (number, theirs) in other.pages_in_order() {
            let place = self.directory.get(number).copied().unwrap_or(0);
            match self.pages.get_mut(usize::from(place).wrapping_sub(1)) {
                Some(page) => page.iter_mut().zip(theirs).for_each(|(counter, n)| *counter += n),
                None => self.add_page(number, theirs),
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// This histogram without the values of `other`, which are among its own. Values have this resolution; the sum is
    /// exact, and so are the extremes where they remain.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        // A controller does this for each second of thousands of agents: no pages are made.
        let (mut left, mut packed, mut next) = (Self::new(), Vec::new(), 0);
        let mut taken = other.slots().peekable();
        for (slot, n) in self.slots() {
            while taken.next_if(|(other, _)| *other < slot).is_some() {}
            let n = n.saturating_sub(taken.next_if(|(other, _)| *other == slot).map_or(0, |(_, n)| n));
            if n > 0 {
                push_slot(&mut packed, &mut next, slot, n);
                let value = highest_in(slot).clamp(self.min, self.max);
                left.count += n;
                (left.min, left.max) = (left.min.min(value), left.max.max(value));
            }
        }
        left.packed = packed.into();
        if left.count > 0 {
            left.sum = self.sum.saturating_sub(other.sum);
            // Values of one slot cannot be told apart; but the slot has the smallest of all unless `other` had it.
            if self.min != other.min && slot_of(left.min) == slot_of(self.min) {
                left.min = self.min;
            }
        }
        left
    }

    /// Forgets every value, keeps the memory.
    pub fn clear(&mut self) {
        for page in &mut self.pages {
            page.fill(0);
        }
        self.packed = Box::default();
        (self.count, self.min, self.max, self.sum) = (0, u64::MAX, 0, 0);
    }
}

/// The rank, counting from 1, that quantile `q` asks for among `count` values.
pub(crate) fn rank(q: f64, count: u64) -> u64 {
    // The small step back keeps 0.99 × 100 at 99 where the product's rounding error would make it 100.
    let exact = q.clamp(0.0, 1.0) * count as f64;
    ((exact - exact * 1e-12).ceil() as u64).clamp(1, count.max(1))
}

/// The fewest calls whose largest is beyond the quantile `q` of an endless run in 95% of cases: ln 0.05 / ln q. Of
/// fewer, nothing bounds it from above.
pub fn fewest_calls(q: f64) -> u64 {
    (0.05_f64.ln() / q.ln()).ceil() as u64
}
