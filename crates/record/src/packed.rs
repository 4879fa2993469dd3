//! Packed times of one stretch of a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::{AtLeast, Censored, Histogram, push_leb128, rank, take_leb128};

/// A histogram at rest: a few bytes for each distinct value, instead of pages.
///
/// Stored as LEB128 numbers: the difference to the previous value, then the count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packed {
    bytes: Box<[u8]>,
    count: u64,
    min: u64,
    max: u64,
}

impl Packed {
    /// Packs a histogram. The exact sum is lost here; the total keeps it.
    pub fn from_histogram(histogram: &Histogram) -> Self {
        Self {
            bytes: packed(histogram.values()),
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
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        let (mut ours, mut theirs) = (self.slots().peekable(), other.slots().peekable());
        let both = std::iter::from_fn(|| match (ours.peek(), theirs.peek()) {
            (Some(&(value, n)), Some(&(other, more))) if value == other => {
                ours.next();
                theirs.next();
                Some((value, n + more))
            }
            (Some(one), Some(another)) if one.0 > another.0 => theirs.next(),
            (None, _) => theirs.next(),
            _ => ours.next(),
        });
        let bytes = packed(both);
        Self { bytes, count: self.count + other.count, min: self.min.min(other.min), max: self.max.max(other.max) }
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

    /// Every distinct value, at the histogram's resolution, with its count, from low to high.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.slots().map(|(value, n)| (value.clamp(self.min, self.max), n))
    }

    /// The largest value of each slot that holds something, with its count.
    fn slots(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut rest = &*self.bytes;
        let mut value = 0;
        std::iter::from_fn(move || {
            let (step, n) = (take_leb128(&mut rest)?, take_leb128(&mut rest)?);
            value += step;
            Some((value, n))
        })
    }

    /// The value at one quantile (0 to 1), as the histogram has it, without unpacking it.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = rank(q, self.count);
        let mut seen = 0;
        let reached = self.values().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        reached.map(|(value, _)| value)
    }
}

/// Values from low to high with their counts, as bytes.
fn packed(values: impl Iterator<Item = (u64, u64)>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    let mut previous = 0;
    for (value, n) in values {
        push_leb128(&mut bytes, value - previous);
        push_leb128(&mut bytes, n);
        previous = value;
    }
    bytes.into_boxed_slice()
}

/// Response times, with failed calls apart. `ended` are all calls that ended, `failing` the failed ones among them,
/// `bounds` the lower bounds of calls that did not end.
pub fn censored(ended: &Packed, failing: &Packed, bounds: &Packed) -> Censored {
    if failing.is_empty() {
        return Censored { known: ended.unpack(), bounds: bounds.unpack(), ..Censored::default() };
    }
    let failed = failing.unpack();
    Censored { known: ended.unpack().without(&failed), failed, bounds: bounds.unpack() }
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
        self.unpack().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Histogram::deserialize(deserializer).map(|histogram| Self::from_histogram(&histogram))
    }
}
