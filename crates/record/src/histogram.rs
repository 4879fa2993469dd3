//! A sparse histogram of durations with three significant digits.
//!
//! The layout is `HdrHistogram`'s (<https://hdrhistogram.org>): values under 2048 ns have a slot each, and each further
//! power of two is cut into 1024 slots, so a slot is never wider than 1/1024 of its value. Unlike the dense
//! original (270 KB at this resolution) slots live in pages of 64 that exist only once something falls into them:
//! a usual latency distribution takes some tens of KB, an empty histogram about one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Slots of one power of two, as a power of two: 2^10 slots give three significant digits.
const PRECISION_BITS: u32 = 10;
/// Slots a page, as a power of two.
const PAGE_BITS: u32 = 6;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;
/// The largest value that is told apart, in nanoseconds: 2^44, four hours and 53 minutes. Larger ones count as it.
pub const MAX_VALUE_NS: u64 = (1 << 44) - 1;
const PAGES: usize = (slot_of(MAX_VALUE_NS) >> PAGE_BITS) + 1;

/// The slot that `value` falls into.
const fn slot_of(value: u64) -> usize {
    // log2 of the value, but at least PRECISION_BITS: the first two octaves share slots of width one.
    let octave = (value | (1 << PRECISION_BITS)).ilog2() - PRECISION_BITS;
    ((octave as usize) << PRECISION_BITS) + (value >> octave) as usize
}

/// The largest value that falls into `slot`.
const fn highest_in(slot: usize) -> u64 {
    if slot < 2 << PRECISION_BITS {
        return slot as u64;
    }
    let octave = (slot >> PRECISION_BITS) as u32 - 1;
    let lead = (slot - ((octave as usize) << PRECISION_BITS)) as u64;
    ((lead + 1) << octave) - 1
}

/// The smallest value that falls into `slot`.
const fn lowest_in(slot: usize) -> u64 {
    if slot < 2 << PRECISION_BITS {
        return slot as u64;
    }
    let octave = (slot >> PRECISION_BITS) as u32 - 1;
    ((slot - ((octave as usize) << PRECISION_BITS)) as u64) << octave
}

/// The values, in nanoseconds, that a [`Histogram`] does not tell from `value_ns`: its bucket. The last one has no end.
pub const fn bucket_of(value_ns: u64) -> RangeInclusive<u64> {
    if value_ns >= MAX_VALUE_NS {
        return lowest_in(slot_of(MAX_VALUE_NS))..=u64::MAX;
    }
    let slot = slot_of(value_ns);
    let highest = highest_in(slot);
    lowest_in(slot)..=if highest == MAX_VALUE_NS { u64::MAX } else { highest }
}

/// A mergeable distribution of durations in nanoseconds. See the module's text for its resolution and size.
#[derive(Clone)]
pub struct Histogram {
    /// For each page of slots its place in `pages` plus one, or 0 while nothing fell into it.
    directory: Vec<u16>,
    pages: Vec<[u64; PAGE_SLOTS]>,
    /// The slots as they came over the wire, while nothing was added to them; there are no pages then. Most histograms that come so are
    /// merged into others once, for which pages would be made and filled in vain.
    packed: Box<[u8]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl PartialEq for Histogram {
    /// The same values equally often, whatever pages there are for them.
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

    /// Makes pages of the slots that came over the wire.
    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        // All pages are made at once: growing them one by one would copy each several times.
        let (mut pages, mut last) = (0, usize::MAX);
        for (slot, _) in slots_in(&packed) {
            pages += usize::from(slot >> PAGE_BITS != last);
            last = slot >> PAGE_BITS;
        }
        self.pages.reserve_exact(pages);
        slots_in(&packed).for_each(|(slot, n)| self.add_to_slot(slot, n));
    }

    /// Adds a page that there is not yet.
    fn add_page(&mut self, number: usize, page: &[u64; PAGE_SLOTS]) {
        if self.directory.is_empty() {
            self.directory = vec![0; PAGES];
        }
        if let Some(entry) = self.directory.get_mut(number) {
            self.pages.push(*page);
            *entry = self.pages.len() as u16;
        }
    }

    /// A histogram as bytes, for who reads numbers faster than text: LEB128 numbers, the smallest and the largest value, the sum's
    /// two halves, and for each slot that holds something how many lie before it since the last, and its count. Nothing for an
    /// empty one.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.count > 0 {
            let halves = [self.sum as u64, (self.sum >> 64) as u64];
            [self.min, self.max].into_iter().chain(halves).for_each(|number| push_leb128(&mut bytes, number));
            let mut next = 0;
            for (slot, n) in self.slots() {
                push_leb128(&mut bytes, (slot - next) as u64);
                push_leb128(&mut bytes, n);
                next = slot + 1;
            }
        }
        bytes
    }

    /// The histogram of these bytes; none if they are not one's.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut histogram = Self::new();
        if bytes.is_empty() {
            return Some(histogram);
        }
        let mut rest = bytes;
        let mut number = || take_leb128(&mut rest);
        let (min, max, low, high) = (number()?, number()?, number()?, number()?);
        histogram.count = count_of(rest)?;
        histogram.packed = rest.into();
        histogram.min = min.min(MAX_VALUE_NS);
        histogram.max = max.clamp(histogram.min, MAX_VALUE_NS);
        histogram.sum = u128::from(low) | u128::from(high) << 64;
        (histogram.count > 0).then_some(histogram)
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

    /// The value of the `rank`-th smallest, counting from 1; none if there are fewer.
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
                slots_in(&other.packed).for_each(|(slot, n)| self.add_to_slot(slot, n));
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

    /// What is left of it without the values that `other` counted, which are among its own; each at this resolution, with the exact sum,
    /// and with the exact extremes where those are left.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let taken: BTreeMap<_, _> = other.slots().collect();
        let mut left = Self::new();
        for (slot, n) in self.slots() {
            let n = n.saturating_sub(taken.get(&slot).copied().unwrap_or(0));
            if n > 0 {
                left.record_n(highest_in(slot).clamp(self.min, self.max), n);
            }
        }
        if left.count > 0 {
            left.sum = self.sum.saturating_sub(other.sum);
            // Values of one slot cannot be told apart, but the smallest of all is in it unless the other had it.
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

/// Takes the next slot and its count off the front of a histogram's bytes; none if they are at their end, or not right.
fn take_slot(bytes: &mut &[u8], next: &mut usize) -> Option<(usize, u64)> {
    let slot = next.checked_add(usize::try_from(take_leb128(bytes)?).ok()?)?;
    let n = take_leb128(bytes)?;
    *next = slot.checked_add(1)?;
    (slot < PAGES << PAGE_BITS && n > 0).then_some((slot, n))
}

/// The slots in a histogram's bytes, from low to high, with their counts.
fn slots_in(mut bytes: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    let mut next = 0;
    std::iter::from_fn(move || take_slot(&mut bytes, &mut next))
}

/// How many values a histogram's bytes count; none if they are not right.
fn count_of(mut bytes: &[u8]) -> Option<u64> {
    let (mut next, mut count) = (0, 0_u64);
    while !bytes.is_empty() {
        count = count.checked_add(take_slot(&mut bytes, &mut next)?.1)?;
    }
    Some(count)
}

/// Appends a number, seven bits a byte, the lowest first.
pub(crate) fn push_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes such a number off the front; none if there is no whole one.
pub(crate) fn take_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The rank, counting from 1, that quantile `q` asks for among `count` values.
pub(crate) fn rank(q: f64, count: u64) -> u64 {
    // The small step back keeps 0.99 × 100 at 99 where the product's rounding error would make it 100.
    let exact = q.clamp(0.0, 1.0) * count as f64;
    ((exact - exact * 1e-12).ceil() as u64).clamp(1, count.max(1))
}

/// The quantiles that are reported, with their names.
pub const QUANTILES: [(&str, f64); 7] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A figure that may only be known from below.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AtLeast_{T}")]
pub struct AtLeast<T> {
    /// The value, or the lower bound.
    pub value: T,
    /// Whether the true value may be larger.
    pub at_least: bool,
}

impl<T> AtLeast<T> {
    /// A value that is known.
    pub const fn exactly(value: T) -> Self {
        Self { value, at_least: false }
    }

    /// The same kind of knowledge about another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> AtLeast<U> {
        AtLeast { value: f(self.value), at_least: self.at_least }
    }
}

/// Durations, some known only from below: calls that had not ended, or had not begun, when the run was over, and calls that failed,
/// which would have taken longer than they did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Censored {
    /// Durations of calls that ended; but for those in `failed`.
    pub known: Histogram,
    /// Durations of calls that ended without success, where these are told apart. They are derived, and not recorded as such.
    #[serde(skip)]
    pub failed: Histogram,
    /// Lower bounds of the durations of calls that did not end.
    pub bounds: Histogram,
}

impl From<Histogram> for Censored {
    /// Durations that are all known.
    fn from(known: Histogram) -> Self {
        Self { known, ..Self::default() }
    }
}

impl Censored {
    /// How many durations and bounds there are.
    pub fn count(&self) -> u64 {
        self.known.count() + self.failed.count() + self.bounds.count()
    }

    /// The mean; a call that failed counts with the time that it took, and a bound as itself.
    pub fn mean(&self) -> Option<AtLeast<f64>> {
        self.lower().mean().map(|value| AtLeast { value, at_least: !self.bounds.is_empty() })
    }

    /// The smallest of calls that ended.
    pub fn min(&self) -> Option<u64> {
        self.known.min().into_iter().chain(self.failed.min()).min()
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.known.merge(&other.known);
        self.failed.merge(&other.failed);
        self.bounds.merge(&other.bounds);
    }

    /// Pools failed calls with the others: each counts with the time that it took.
    #[must_use]
    pub fn pooled(mut self) -> Self {
        self.known.merge(&std::mem::take(&mut self.failed));
        self
    }

    /// All of it: calls that failed with the time that they took, bounds as themselves.
    pub fn lower(&self) -> Cow<'_, Histogram> {
        if self.failed.is_empty() && self.bounds.is_empty() {
            return Cow::Borrowed(&self.known);
        }
        let mut all = self.known.clone();
        all.merge(&self.failed);
        all.merge(&self.bounds);
        Cow::Owned(all)
    }

    /// The values at each of `quantiles` (0 to 1), by the product-limit estimate: of what would have taken longer than a time, or is
    /// known to have, a share takes as long as others did that took longer than that (E. L. Kaplan, P. Meier, "Nonparametric
    /// estimation from incomplete observations", Journal of the American Statistical Association 53, 1958). A bound that equals a
    /// known value counts as beyond it. Beyond the largest known value nothing tells how long the others would have taken: they stand
    /// for themselves, and the value is a lower bound. So it is wherever calls that did not end could move it, if they never did.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Option<AtLeast<u64>>; N] {
        if self.failed.is_empty() && self.bounds.is_empty() {
            return quantiles.map(|q| self.known.quantile(q).map(AtLeast::exactly));
        }
        let curve = self.survival(&self.bounds);
        let worst = if self.bounds.is_empty() { None } else { Some(self.survival(&Histogram::new())) };
        quantiles.map(|q| {
            // As in `rank`: a rounding error is no call.
            let rest = (1.0 - q.clamp(0.0, 1.0)) * (1.0 + 1e-9) + 1e-12;
            let reached =
                |curve: &[(AtLeast<u64>, f64)]| curve.iter().find(|(_, left)| *left <= rest).map(|(at, _)| *at);
            let AtLeast { value, at_least } = reached(&curve).or(curve.last().map(|(at, _)| *at))?;
            let can_move = worst.as_ref().is_some_and(|worst| reached(worst).is_none_or(|worst| worst.value > value));
            Some(AtLeast { value, at_least: at_least || can_move })
        })
    }

    /// The share that takes longer than a value, for each value at which it falls; falling. Calls that did not end are known to
    /// have taken longer than `bounds`; those that are not among them take longer than anything.
    fn survival(&self, bounds: &Histogram) -> Vec<(AtLeast<u64>, f64)> {
        let mut beyond = self.failed.clone();
        beyond.merge(bounds);
        let (least, most) = (beyond.min, beyond.max);
        let mut beyond = beyond.values().map(|(value, n)| (value.clamp(least, most), n)).peekable();
        let mut curve = Vec::new();
        let (mut left, mut survival) = (self.count(), 1.0);
        for (value, n) in self.known.values() {
            let value = value.clamp(self.known.min, self.known.max);
            while let Some((_, longer)) = beyond.next_if(|(bound, _)| *bound < value) {
                left -= longer;
            }
            survival *= (left - n) as f64 / left as f64;
            left -= n;
            curve.push((AtLeast::exactly(value), survival));
        }
        for (value, n) in beyond {
            survival *= (left - n) as f64 / left as f64;
            left -= n;
            curve.push((AtLeast { value, at_least: true }, survival));
        }
        curve
    }

    /// The value at one quantile (0 to 1).
    pub fn quantile(&self, q: f64) -> Option<AtLeast<u64>> {
        let [value] = self.quantiles([q]);
        value
    }
}

/// A distribution in full, at three significant digits: `[[value_ns, count], …]`, low to high, with exact extremes and sum.
/// Histograms merge by adding up the counts of equal values.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Histogram")]
struct Stored {
    /// The smallest value; `null` where there is none.
    min_ns: Option<u64>,
    /// The largest value; `null` where there is none.
    max_ns: Option<u64>,
    /// The sum of all values; in a series to three significant digits.
    #[schemars(with = "f64", range(min = 0.0))]
    sum_ns: Sum,
    /// Pairs of a value in nanoseconds, the largest of its slot, and its count; values grow.
    #[schemars(with = "Vec<(u64, u64)>")]
    counts: Counts,
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        Stored::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Stored::json_schema(generator)
    }
}

/// A sum, as the number that says it exactly: a float where that has enough digits, as results have had it from the
/// first, or else an integer. Beyond 2^64 (584 years) it is a float all the same.
struct Sum(u128);

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let float = self.0 as f64;
        match u64::try_from(self.0) {
            Ok(whole) if float as u128 != self.0 => serializer.serialize_u64(whole),
            _ => serializer.serialize_f64(float),
        }
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Sum;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sum in nanoseconds, not below 0")
            }
            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Sum, E> {
                Ok(Sum(u128::from(whole)))
            }
            fn visit_f64<E: de::Error>(self, float: f64) -> Result<Sum, E> {
                Ok(Sum(float.max(0.0) as u128))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

struct Counts(Vec<(u64, u64)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for pair in &self.0 {
            seq.serialize_element(pair)?;
        }
        seq.end()
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Counts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of [value_ns, count] pairs")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Counts, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = seq.next_element::<(u64, u64)>()? {
                    // There are only so many slots: a longer list is not one of ours.
                    if pairs.len() >= PAGES * PAGE_SLOTS {
                        return Err(de::Error::custom("more pairs than a histogram has slots"));
                    }
                    pairs.push(pair);
                }
                Ok(Counts(pairs))
            }
        }
        deserializer.deserialize_seq(Pairs)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.to_bytes());
        }
        Stored {
            min_ns: self.min(),
            max_ns: self.max(),
            sum_ns: Sum(self.sum),
            counts: Counts(self.values().collect()),
        }
        .serialize(serializer)
    }
}

/// Reads a histogram from bytes.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a histogram")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Histogram, E> {
        Histogram::from_bytes(bytes).ok_or_else(|| E::invalid_value(de::Unexpected::Bytes(bytes), &self))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_bytes(Bytes);
        }
        let stored = Stored::deserialize(deserializer)?;
        let mut histogram = Self::new();
        for (value, n) in stored.counts.0 {
            let Some(_) = histogram.count.checked_add(n) else {
                return Err(de::Error::custom("the counts of a histogram add up to more than 2^64"));
            };
            if n > 0 {
                histogram.record_n(value, n);
            }
        }
        if histogram.count > 0 {
            histogram.min = stored.min_ns.unwrap_or(histogram.min).min(MAX_VALUE_NS);
            histogram.max = stored.max_ns.unwrap_or(histogram.max).clamp(histogram.min, MAX_VALUE_NS);
            histogram.sum = stored.sum_ns.0;
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(value);
        }
        histogram
    }

    proptest! {
        #[test]
        fn bytes_keep_it(values in prop::collection::vec((any::<u64>(), 1_u64..1 << 40), 0..60)) {
            let mut histogram = Histogram::new();
            for (value, n) in &values {
                histogram.record_n(value >> (n % 64), *n);
            }
            let mut read = Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            prop_assert_eq!(&read, &histogram);
            prop_assert_eq!(read.pages.capacity(), 0);
            read.unpack();
            prop_assert_eq!(&read, &histogram);
            prop_assert_eq!(read.pages.capacity(), histogram.pages.len());
        }

        #[test]
        fn noise_is_no_histogram_or_a_sound_one(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(read) = Histogram::from_bytes(&bytes) {
                prop_assert_eq!(read.slots().map(|(_, n)| n).sum::<u64>(), read.count());
                prop_assert!(read.min() <= read.max());
            }
        }

        #[test]
        fn merging_pages_is_recording_both(
            one in prop::collection::vec(any::<u64>(), 0..60), other in prop::collection::vec(any::<u64>(), 0..60), shift in 0_u32..64,
            q in 0.0..1.0_f64,
        ) {
            let shifted = |values: &[u64]| histogram(&values.iter().map(|value| value >> shift).collect::<Vec<_>>());
            let both = shifted(&[one.as_slice(), &other].concat());
            // Each as it was recorded, and as it came over the wire.
            let packed = |histogram: &Histogram| Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            let (one, other) = (shifted(&one), shifted(&other));
            for (into, from) in [
                (one.clone(), other.clone()),
                (one.clone(), packed(&other)),
                (packed(&one), other.clone()),
                (packed(&one), packed(&other)),
            ] {
                prop_assert_eq!(from.quantile(q), other.quantile(q));
                let mut merged = into;
                merged.merge(&from);
                prop_assert_eq!(merged.quantile(q), both.quantile(q));
                prop_assert_eq!(&merged, &both);
                merged.record(17);
                prop_assert_eq!(merged.count(), both.count() + 1);
                merged.clear();
                prop_assert_eq!(merged, Histogram::new());
            }
        }
    }

    #[test]
    fn slots_tile_the_range_without_gap_or_overlap() {
        let mut expected = 0;
        for slot in 0..=slot_of(MAX_VALUE_NS) {
            assert_eq!(lowest_in(slot), expected, "slot {slot}");
            assert_eq!(slot_of(lowest_in(slot)), slot);
            assert_eq!(slot_of(highest_in(slot)), slot);
            expected = highest_in(slot) + 1;
        }
        assert_eq!(expected, MAX_VALUE_NS + 1);
    }

    #[test]
    fn a_bucket_has_the_values_that_count_as_one() {
        assert_eq!(bucket_of(2047), 2047..=2047);
        assert_eq!(bucket_of(4097), 4096..=4099);
        for value in [0, 1, 2048, 1_000_000, MAX_VALUE_NS, u64::MAX] {
            let bucket = bucket_of(value);
            assert!(bucket.contains(&value));
            assert_eq!(histogram(&[*bucket.start(), *bucket.end(), value]).values().count(), 1, "{value}");
            for outside in [bucket.start().checked_sub(1), bucket.end().checked_add(1)].into_iter().flatten() {
                assert_eq!(histogram(&[outside, value]).values().count(), 2, "{value} and {outside}");
            }
        }
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean(), empty.stdev()), (None, None, None, None));
        assert_eq!(empty.quantile(0.5), None);
    }

    #[test]
    fn a_value_beyond_the_range_counts_as_the_largest() {
        assert_eq!(histogram(&[u64::MAX]).max(), Some(MAX_VALUE_NS));
    }

    #[test]
    fn a_usual_distribution_stays_small() {
        let mut histogram = Histogram::new();
        // The quantiles of an exponential distribution.
        for i in 0..100_000_u32 {
            let rank = (f64::from(i) + 0.5) / 100_000.0;
            histogram.record((-rank.ln() * 300_000.0) as u64 + 50_000);
        }
        assert!(histogram.pages.len() * size_of::<[u64; PAGE_SLOTS]>() < 100_000, "{} pages", histogram.pages.len());
    }

    #[test]
    fn what_failed_fast_moves_nothing_and_what_failed_slowly_hides_nothing() {
        let mut fast = Censored { known: histogram(&[10; 97]), failed: histogram(&[1; 3]), ..Censored::default() };
        assert_eq!(fast.quantiles([0.5, 0.99]), [Some(AtLeast::exactly(10)); 2], "as of those that are known alone");
        fast.failed = histogram(&[1000; 3]);
        let slow = Some(AtLeast { value: 1000, at_least: true });
        assert_eq!(fast.quantiles([0.5, 0.97, 0.99]), [Some(AtLeast::exactly(10)), Some(AtLeast::exactly(10)), slow]);
        // The three failures end at different times: p98 is past the first one, p99 past the second.
        fast.failed = histogram(&[1000, 1500, 2000]);
        assert_eq!(fast.quantile(0.98), Some(AtLeast { value: 1000, at_least: true }));
        assert_eq!(fast.quantile(0.99), Some(AtLeast { value: 1500, at_least: true }));
        let nothing_known = Censored { failed: histogram(&[7; 2]), ..Censored::default() };
        assert_eq!(nothing_known.quantile(0.5), Some(AtLeast { value: 7, at_least: true }));
    }

    #[test]
    fn lower_bounds_mark_only_the_quantiles_they_can_move() {
        let mut censored = Censored::from(histogram(&[10; 90]));
        censored.bounds.record_n(5, 10);
        assert_eq!(
            censored.quantiles([0.5, 0.95]),
            [Some(AtLeast::exactly(10)), Some(AtLeast { value: 10, at_least: true })]
        );
        // What failed at once says nothing of them.
        censored.failed.record_n(1, 50);
        assert_eq!(censored.quantile(0.5), Some(AtLeast::exactly(10)));
    }

    /// B. Efron's construction ("The two sample problem with censored data", Proceedings of the Fifth Berkeley Symposium 4,
    /// 1967), which gives the same estimate another way: each observation has a share, and that of a bound is dealt out
    /// evenly to all that stand to its right.
    fn redistributed(known: &[u64], bounds: &[u64], q: f64) -> AtLeast<u64> {
        let mut all: Vec<_> = known.iter().map(|ns| (*ns, false)).chain(bounds.iter().map(|ns| (*ns, true))).collect();
        all.sort_unstable();
        let last_known = all.iter().rposition(|(_, is_bound)| !is_bound);
        let mut shares = vec![1.0 / all.len() as f64; all.len()];
        for at in 0..last_known.unwrap_or(0) {
            if all[at].1 {
                let each = std::mem::take(&mut shares[at]) / (all.len() - at - 1) as f64;
                shares[at + 1..].iter_mut().for_each(|share| *share += each);
            }
        }
        let mut sum = 0.0;
        let reached = all.iter().zip(&shares).position(|(_, share)| {
            sum += share;
            sum >= q - 1e-9
        });
        let (value, at_least) = all[reached.unwrap_or(all.len() - 1)];
        AtLeast { value, at_least }
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_kaplan_and_meier(
            known in prop::collection::vec(0_u64..60, 0..80), bounds in prop::collection::vec(0_u64..80, 1..40),
            q in prop::sample::select(vec![0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999]),
        ) {
            let expected = redistributed(&known, &bounds, q);
            let failed = Censored { known: histogram(&known), failed: histogram(&bounds), ..Censored::default() };
            prop_assert_eq!(failed.quantile(q), Some(expected));
            let unfinished = Censored { known: histogram(&known), bounds: histogram(&bounds), ..Censored::default() };
            prop_assert_eq!(unfinished.quantile(q).map(|at| at.value), Some(expected.value));
            let both = Censored { known: histogram(&known), failed: histogram(&bounds), bounds: histogram(&bounds) };
            prop_assert!(both.quantile(q).unwrap().value >= expected.value, "what did not end makes nothing shorter");
        }
    }

    proptest! {
        /// The reference implementation agrees on every quantile.
        #[test]
        fn agrees_with_the_hdrhistogram_crate(values in prop::collection::vec(0_u64..1 << 43, 1..300)) {
            let ours = histogram(&values);
            let mut reference = hdrhistogram::Histogram::<u64>::new_with_bounds(1, MAX_VALUE_NS, 3).unwrap();
            for &value in &values {
                reference.record(value).unwrap();
            }
            for q in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let expected = reference.value_at_quantile(q);
                let got = ours.quantile(q).unwrap();
                // The reference does not clamp to the exact extremes; a slot's width apart is the same answer.
                prop_assert!(reference.equivalent(expected, got), "q {q}: expected {expected}, got {got}");
            }
            prop_assert_eq!(ours.count(), reference.len());
            prop_assert!((ours.stdev().unwrap() - reference.stdev()).abs() <= ours.max().unwrap() as f64 / 1000.0 + 1.0);
        }

        #[test]
        fn merging_is_recording_everything_in_one(
            a in prop::collection::vec(0_u64..1 << 40, 0..100),
            b in prop::collection::vec(0_u64..1 << 40, 0..100),
        ) {
            let mut merged = histogram(&a);
            merged.merge(&histogram(&b));
            let whole = histogram(&[a, b].concat());
            prop_assert!(merged.values().eq(whole.values()));
            prop_assert_eq!((merged.min(), merged.max(), merged.mean()), (whole.min(), whole.max(), whole.mean()));
        }

        #[test]
        fn what_is_taken_out_is_no_longer_there(
            a in prop::collection::vec(0_u64..1 << 40, 0..100),
            b in prop::collection::vec(0_u64..1 << 40, 0..100),
        ) {
            let left = histogram(&[a.clone(), b.clone()].concat()).without(&histogram(&b));
            prop_assert!(left.values().eq(histogram(&a).values()));
            prop_assert_eq!(left.count(), a.len() as u64);
        }

        #[test]
        fn json_keeps_it(values in prop::collection::vec(0_u64..1 << 44, 0..100), times in 1_u64..10_000) {
            let mut histogram = histogram(&values);
            for value in &values {
                histogram.record_n(*value, times);
            }
            let json = serde_json::to_string(&histogram).unwrap();
            let back: Histogram = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(back, histogram);
        }
    }
}
