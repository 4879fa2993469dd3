//! Packed times of one stretch of a run.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::{AtLeast, Censored, Histogram, MAX_VALUE_NS, MOST_VALUES, push_leb128, rank, take_leb128};

/// How fine packed values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fineness {
    /// The distinct values from which on they become coarser.
    pub(crate) distinct: usize,
    /// How many of their significant bits are dropped at most, up to [`COARSEST`].
    pub(crate) coarsest: u8,
}

/// Of the times of calls: the seconds of ten minutes stay under a megabyte, and a value is within 0.8% of what was measured.
const USUAL: Fineness = Fineness { distinct: 96, coarsest: 4 };
/// The significant bits of a histogram's values.
const FINEST_BITS: u32 = 11;
/// How many of them are dropped at most, of any packed values.
const COARSEST: u8 = 5;

/// A histogram at rest: a few bytes for each distinct value, instead of pages.
///
/// It keeps the resolution of [`Histogram`] while it has few distinct values; with many, its fineness says how much is dropped. The extremes
/// are exact. Merging is commutative and associative: how coarse a whole is depends on its values alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packed {
    /// LEB128 numbers: the difference to the previous value, then the count.
    bytes: Box<[u8]>,
    /// Bits dropped from each value.
    coarse: u8,
    count: u64,
    min: u64,
    max: u64,
}

impl Packed {
    /// Packs a histogram. The exact sum is lost here; the total keeps it.
    pub fn from_histogram(histogram: &Histogram) -> Self {
        Self::within(USUAL, histogram)
    }

    /// Packs a histogram with this fineness.
    pub(crate) fn within(fineness: Fineness, histogram: &Histogram) -> Self {
        let (bytes, coarse) = fitting(fineness, 0, || histogram.values());
        Self {
            bytes,
            coarse,
            count: histogram.count(),
            min: histogram.min().unwrap_or(0),
            max: histogram.max().unwrap_or(0),
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

    /// The values of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        self.merged_within(USUAL, other)
    }

    /// Merges two histograms packed with this fineness.
    #[must_use]
    pub(crate) fn merged_within(&self, fineness: Fineness, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        let both = || {
            let (mut ours, mut theirs) = (self.slots().peekable(), other.slots().peekable());
            std::iter::from_fn(move || match (ours.peek(), theirs.peek()) {
                (Some(one), Some(another)) if one.0 > another.0 => theirs.next(),
                (None, _) => theirs.next(),
                _ => ours.next(),
            })
        };
        let (bytes, coarse) = fitting(fineness, self.coarse.max(other.coarse), both);
        let (min, max) = (self.min.min(other.min), self.max.max(other.max));
        Self { bytes, coarse, count: self.count + other.count, min, max }
    }

    /// The values without those of `part`, which are among them.
    fn without(&self, part: &Self) -> Self {
        let mut taken = part.slots().map(|(value, n)| (rounded(value, self.coarse), n)).peekable();
        let mut count = 0;
        let mut left = Vec::new();
        for (value, mut n) in self.slots() {
            while let Some((_, less)) = taken.next_if(|(taken, _)| *taken <= value) {
                n = n.saturating_sub(less);
            }
            if n > 0 {
                left.push((value, n));
                count += n;
            }
        }
        let end = |at: Option<&(u64, u64)>, own: u64, taken: u64| {
            let value = at.map_or(0, |(value, _)| *value);
            // Of values in one slot it is not known which are left; but the slot has the extreme unless `part` had it.
            let is_own = own != taken && rounded(own, self.coarse) == rounded(value, self.coarse);
            if is_own { own } else { value.clamp(self.min, self.max) }
        };
        Self {
            min: end(left.first(), self.min, part.min),
            max: end(left.last(), self.max, part.max),
            bytes: packed(left.into_iter(), USUAL.distinct, self.coarse),
            coarse: self.coarse,
            count,
        }
    }

    /// The histogram again, without its exact sum.
    pub fn unpack(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (value, n) in self.slots() {
            // The extremes are known exactly, and lie in the first and the last slot.
            let is_first = histogram.is_empty();
            let is_last = histogram.count() + n == self.count;
            let ends = u64::from(is_first) + u64::from(is_last);
            histogram.record_n(value.clamp(self.min, self.max), n.saturating_sub(ends));
            if is_first {
                histogram.record_n(self.min, 1);
            }
            if is_last && histogram.count() < self.count {
                histogram.record_n(self.max, 1);
            }
        }
        histogram
    }

    /// Every distinct value, at this resolution, with its count, from low to high.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.slots().map(|(value, n)| (value.clamp(self.min, self.max), n))
    }

    /// A value of each slot that holds something, with its count.
    fn slots(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        slots_in(&self.bytes)
    }

    /// The value at one quantile (0 to 1), as the histogram has it, without unpacking it.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = rank(q, self.count);
        if rank >= self.count {
            return (!self.is_empty()).then_some(self.max);
        }
        let mut seen = 0;
        let reached = self.values().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        reached.map(|(value, _)| value)
    }

    /// As it is written: nothing for an empty one; otherwise how coarse it is, its extremes, and its values.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.is_empty() {
            bytes.push(self.coarse);
            push_leb128(&mut bytes, self.min);
            push_leb128(&mut bytes, self.max);
            bytes.extend_from_slice(&self.bytes);
        }
        bytes
    }

    /// What [`Packed::to_bytes`] wrote; `None` if the bytes are not valid.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let Some((&coarse, mut rest)) = bytes.split_first() else { return Some(Self::default()) };
        let min = take_leb128(&mut rest)?.min(MAX_VALUE_NS);
        let max = take_leb128(&mut rest)?.clamp(min, MAX_VALUE_NS);
        let (mut values, mut value, mut count) = (rest, 0_u64, 0_u64);
        while !values.is_empty() {
            let (step, n) = (take_leb128(&mut values)?, take_leb128(&mut values)?);
            if n == 0 || (count > 0 && step == 0) {
                return None;
            }
            value = value.checked_add(step).filter(|value| *value <= MAX_VALUE_NS)?;
            count = count.checked_add(n).filter(|count| *count <= MOST_VALUES)?;
        }
        (count > 0 && coarse <= COARSEST).then(|| Self { bytes: rest.into(), coarse, count, min, max })
    }
}

/// The slots in the bytes of packed values.
fn slots_in(mut bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut value = 0;
    std::iter::from_fn(move || {
        let (step, n) = (take_leb128(&mut bytes)?, take_leb128(&mut bytes)?);
        value += step;
        Some((value, n))
    })
}

/// The middle of the values that share the first bits of `value`, of which `coarse` are dropped.
const fn rounded(value: u64, coarse: u8) -> u64 {
    let dropped = dropped_of(value, coarse);
    if dropped == 0 { value } else { (value >> dropped << dropped) + (1 << (dropped - 1)) }
}

/// The bits of `value` that do not count.
const fn dropped_of(value: u64, coarse: u8) -> u32 {
    let length = u64::BITS - value.leading_zeros();
    if coarse == 0 { 0 } else { length.saturating_sub(FINEST_BITS - coarse as u32) }
}

/// The largest value that is [`rounded`] as `value` is.
const fn last_alike(value: u64, coarse: u8) -> u64 {
    value | ((1 << dropped_of(value, coarse)) - 1)
}

/// Values from low to high with their counts, as bytes, at least as coarse as `coarse`, and coarser where they are many.
///
/// A controller packs thousands of histograms a second. So values are looked at twice, and not remembered, and from within
/// their iterator (`for_each`), since it is a chain of several.
fn fitting<I: Iterator<Item = (u64, u64)>>(fineness: Fineness, coarse: u8, values: impl Fn() -> I) -> (Box<[u8]>, u8) {
    let coarse = coarse_enough(fineness, coarse.min(fineness.coarsest), values());
    (packed(values(), fineness.distinct, coarse), coarse)
}

/// How coarse values have to be, at least `coarse`, so that few enough of them are distinct. `values` go from low to high.
fn coarse_enough(fineness: Fineness, coarse: u8, mut values: impl Iterator<Item = (u64, u64)>) -> u8 {
    let Fineness { distinct: enough, coarsest } = fineness;
    if coarse == coarsest {
        return coarse;
    }
    let mut levels = [(0_usize, None); COARSEST as usize];
    let mut best = coarse;
    values.any(|(value, _)| {
        for (level, (distinct, last)) in (0..coarsest).zip(&mut levels).skip(usize::from(best)) {
            let value = Some(rounded(value, level));
            // What is one value here is one at each coarser level.
            if *last == value {
                break;
            }
            *last = value;
            *distinct += 1;
            if *distinct > enough {
                best = level + 1;
            }
        }
        // Then the rest says nothing more.
        best == coarsest
    });
    best
}

/// Values from low to high with their counts, as bytes.
fn packed(values: impl Iterator<Item = (u64, u64)>, distinct: usize, coarse: u8) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(4 * distinct);
    let (mut previous, mut current, mut last, mut count) = (0, 0, 0, 0);
    let mut put = |value: u64, n: u64| {
        push_leb128(&mut bytes, value - previous);
        push_leb128(&mut bytes, n);
        previous = value;
    };
    values.for_each(|(value, n)| {
        if count > 0 && value > last {
            put(current, count);
            count = 0;
        }
        if count == 0 {
            (current, last) = (rounded(value, coarse), last_alike(value, coarse));
        }
        count += n;
    });
    if count > 0 {
        put(current, count);
    }
    bytes.into_boxed_slice()
}

/// Response times, with failed calls apart. `ended` are all calls that ended, `failing` the failed ones among them,
/// `bounds` the lower bounds of calls that did not end.
pub fn censored(ended: &Packed, failing: &Packed, bounds: &Packed) -> Censored {
    let known = if failing.is_empty() { ended.unpack() } else { ended.without(failing).unpack() };
    Censored { known, failed: failing.unpack(), bounds: bounds.unpack() }
}

/// The values of [`censored`] at each of `quantiles` (0 to 1), without unpacking anything where every time is known.
pub fn quantiles<const N: usize>(
    ended: &Packed,
    failing: &Packed,
    bounds: &Packed,
    quantiles: [f64; N],
) -> [Option<AtLeast<u64>>; N] {
    if failing.is_empty() && bounds.is_empty() {
        return quantiles.map(|q| ended.quantile(q).map(AtLeast::exactly));
    }
    censored(ended, failing, bounds).quantiles(quantiles)
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

/// Reads packed times from bytes.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Packed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of packed times")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Packed, E> {
        Packed::from_bytes(bytes).ok_or_else(|| E::invalid_value(de::Unexpected::Bytes(bytes), &self))
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    fn packed_of(values: &[u64]) -> Packed {
        Packed::from_histogram(&histogram(values))
    }

    /// Values of which some are alike.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![0_u64..5000, 900_000_u64..1_000_000, 0_u64..1 << 43];
        prop::collection::vec(value, 0..300)
    }

    proptest! {
        #[test]
        fn a_few_values_keep_the_resolution_of_a_histogram(values in prop::collection::vec(0_u64..1 << 43, 0..USUAL.distinct)) {
            let whole = histogram(&values);
            let packed = packed_of(&values);
            prop_assert!(packed.unpack().values().eq(whole.values()));
            for q in [0.0, 0.001, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(packed.quantile(q), whole.quantile(q));
                prop_assert_eq!(packed.unpack().quantile(q), whole.quantile(q));
            }
        }

        #[test]
        fn it_is_as_fine_as_few_enough_values_allow(values in values(), shift in 0_u32..40) {
            let whole = histogram(&values.iter().map(|value| value >> shift).collect::<Vec<_>>());
            let at = |level: u8| {
                let mut counts = BTreeMap::new();
                whole.values().for_each(|(value, n)| *counts.entry(rounded(value, level)).or_insert(0) += n);
                counts
            };
            let packed = Packed::from_histogram(&whole);
            let finest = (0..USUAL.coarsest).find(|level| at(*level).len() <= USUAL.distinct).unwrap_or(USUAL.coarsest);
            prop_assert_eq!(packed.coarse, finest);
            prop_assert!(packed.slots().eq(at(finest)));
        }

        #[test]
        fn many_values_are_within_a_hundredth_and_all_counted(values in values()) {
            let whole = histogram(&values);
            let packed = packed_of(&values);
            prop_assert_eq!(packed.count(), whole.count());
            prop_assert_eq!((packed.quantile(1.0), packed.unpack().min()), (whole.max(), whole.min()));
            for q in [0.0, 0.1, 0.5, 0.9, 0.99] {
                let (coarse, fine) = (packed.quantile(q), whole.quantile(q));
                let is_near = |(a, b): (u64, u64)| (a as f64 - b as f64).abs() <= b as f64 * 0.009 + 1.0;
                prop_assert!(coarse.zip(fine).is_none_or(is_near), "{coarse:?} {fine:?}");
            }
        }

        #[test]
        fn merging_does_not_depend_on_the_order(a in values(), b in values(), c in values()) {
            let [a, b, c] = [a, b, c].map(|values| packed_of(&values));
            prop_assert_eq!(a.merged(&b), b.merged(&a));
            prop_assert_eq!(a.merged(&b).merged(&c), a.merged(&b.merged(&c)));
        }

        #[test]
        fn those_that_failed_can_be_taken_out(ok in values(), failed in values()) {
            let all = packed_of(&[ok.clone(), failed.clone()].concat());
            let apart = censored(&all, &packed_of(&failed), &Packed::default());
            prop_assert_eq!((apart.known.count(), apart.failed.count()), (ok.len() as u64, failed.len() as u64));
        }

        #[test]
        fn they_are_read_as_they_were_written(values in values(), flipped in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let packed = packed_of(&values);
            let mut bytes = packed.to_bytes();
            prop_assert_eq!(Packed::from_bytes(&bytes), Some(packed));
            if !bytes.is_empty() {
                let at = flipped.index(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1_u8 << bit;
                }
                // Whatever it is now: it is read or refused, and what is read can be used.
                if let Some(other) = Packed::from_bytes(&bytes) {
                    let _ = (other.unpack(), other.merged(&other), other.quantile(0.5));
                }
            }
        }
    }

    #[test]
    fn a_count_beyond_what_a_run_has_is_refused() {
        let written = |n: u64| {
            let mut bytes = vec![0, 5, 5, 5];
            push_leb128(&mut bytes, n);
            Packed::from_bytes(&bytes)
        };
        assert_eq!(written(MOST_VALUES).unwrap().count(), MOST_VALUES);
        assert!(written(MOST_VALUES + 1).is_none() && written(0).is_none());
    }
}
