//! Distributions in exponential buckets, as in OpenTelemetry and in Prometheus' native histograms.
//!
//! At scale `s` bucket `i` holds the values in `(base^i, base^(i+1)]`, `base = 2^(2^-s)` (OpenTelemetry, "Metrics Data
//! Model", `ExponentialHistogram`). Two distributions add up, whatever their scales: buckets of the finer one are
//! merged in pairs.
//!
//! brunt's own slots are never wider than 1/1024 of their value, which is finer than any scale here. A slot goes into
//! the bucket that holds its largest value, and brunt's percentiles name that value. So the bucket in which a
//! percentile falls holds brunt's percentile.

use brunt_record::histogram::Histogram;

/// The most buckets: the most that OpenTelemetry's SDKs keep, and so a number that every backend takes.
pub const MOST_BUCKETS: usize = 160;
/// The finest scale: buckets 1.1% wide, where the values lie within two and a half octaves.
pub const FINEST: i32 = 6;
/// The coarsest scale, at which two buckets would hold all values.
const COARSEST: i32 = -4;

/// A distribution in exponential buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Exponential {
    /// The scale, which says how fine the buckets are.
    pub scale: i32,
    /// The number of values of 0.
    pub zeros: u64,
    /// The index of the first bucket.
    pub offset: i32,
    /// Counts of the buckets from `offset` on; the first and the last are not 0.
    pub counts: Vec<u64>,
    /// The number of all values.
    pub count: u64,
    /// The sum of all values, in the metric's unit.
    pub sum: f64,
    /// The smallest value, in the metric's unit; `None` without values.
    pub min: Option<f64>,
    /// The largest value, in the metric's unit; `None` without values.
    pub max: Option<f64>,
}

impl Exponential {
    /// The distribution of the values multiplied by `factor`, at the finest scale at which it has at most
    /// [`MOST_BUCKETS`].
    pub fn new(histogram: &Histogram, factor: f64) -> Self {
        let (least, most) = (histogram.min().unwrap_or(0), histogram.max().unwrap_or(0));
        // The largest value of a slot stands for it, clamped to the values that were recorded.
        let values = || histogram.values().map(|(value, n)| (value.clamp(least, most), n));
        let positive = || values().filter(|(value, _)| *value > 0);
        let ends = positive().next().zip(positive().last()).map(|((first, _), (last, _))| (first, last));
        let span = |scale| ends.map_or(0, |(first, last)| index(last, factor, scale) - index(first, factor, scale));
        let scale = (COARSEST..=FINEST).rev().find(|scale| (span(*scale) as usize) < MOST_BUCKETS).unwrap_or(COARSEST);
        let offset = ends.map_or(0, |(first, _)| index(first, factor, scale));
        let mut counts = vec![0; if ends.is_some() { span(scale) as usize + 1 } else { 0 }];
        for (value, n) in positive() {
            if let Some(count) = counts.get_mut((index(value, factor, scale) - offset) as usize) {
                *count += n;
            }
        }
        let shown = |value: Option<u64>| value.map(|value| value as f64 * factor);
        Self {
            scale,
            zeros: values().filter(|(value, _)| *value == 0).map(|(_, n)| n).sum(),
            offset,
            counts,
            count: histogram.count(),
            sum: histogram.mean().unwrap_or(0.0) * histogram.count() as f64 * factor,
            min: shown(histogram.min()),
            max: shown(histogram.max()),
        }
    }

    /// The bounds of bucket `index` at a scale; the lower one is not in the bucket.
    pub fn bounds(index: i32, scale: i32) -> (f64, f64) {
        let width = f64::from(-scale).exp2();
        ((f64::from(index) * width).exp2(), ((f64::from(index) + 1.0) * width).exp2())
    }
}

/// The index of the bucket that holds a value above 0.
fn index(value: u64, factor: f64, scale: i32) -> i32 {
    let exact = (value as f64 * factor).log2() * f64::from(scale).exp2();
    exact.ceil() as i32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    /// The bounds of the bucket in which the value of this rank falls; `None` for 0.
    fn bucket_of_rank(buckets: &Exponential, rank: u64) -> Option<(f64, f64)> {
        let mut seen = buckets.zeros;
        if rank <= seen {
            return None;
        }
        for (place, n) in buckets.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Some(Exponential::bounds(buckets.offset + place as i32, buckets.scale));
            }
        }
        panic!("{buckets:?} has fewer than {rank}");
    }

    #[test]
    fn nothing_has_no_buckets() {
        let none = Exponential::new(&Histogram::new(), 1e-9);
        assert_eq!((none.count, none.zeros, none.counts.len(), none.min), (0, 0, 0, None));
    }

    #[test]
    fn zero_is_in_no_bucket() {
        let some = Exponential::new(&histogram(&[0, 0, 1000]), 1e-9);
        assert_eq!((some.count, some.zeros, some.counts.as_slice(), some.min), (3, 2, &[1][..], Some(0.0)));
    }

    #[test]
    fn powers_of_the_base_belong_to_the_lower_bucket() {
        for (value, scale, expected) in [(1, 0, -1), (2, 0, 0), (3, 0, 1), (4, 0, 1), (4, 3, 15), (5, -1, 1)] {
            assert_eq!(index(value, 1.0, scale), expected, "{value} at scale {scale}");
        }
    }

    proptest! {
        /// brunt's percentile lies within the bounds of the bucket in which the percentile falls, and no value is lost.
        #[test]
        fn percentiles_fall_where_brunts_do(
            values in prop::collection::vec((0_u64..1 << 44, 0_u32..44).prop_map(|(value, shift)| value >> shift), 1..300),
            q in prop::sample::select(vec![0.01, 0.5, 0.9, 0.99, 0.999, 1.0]),
        ) {
            let histogram = histogram(&values);
            let buckets = Exponential::new(&histogram, 1e-9);
            prop_assert!(buckets.counts.len() <= MOST_BUCKETS);
            prop_assert_eq!(buckets.zeros + buckets.counts.iter().sum::<u64>(), values.len() as u64);
            let rank = ((q * values.len() as f64).ceil() as u64).max(1);
            let ours = histogram.quantile(q).unwrap() as f64 * 1e-9;
            match bucket_of_rank(&buckets, rank) {
                None => prop_assert_eq!(ours, 0.0),
                Some((low, high)) => {
                    prop_assert!(low * (1.0 - 1e-9) < ours && ours <= high * (1.0 + 1e-9), "{} in ({}, {}]", ours, low, high);
                }
            }
        }

        /// Each bucket of a coarser scale has the sum of a pair of the finer one's.
        #[test]
        fn scales_nest(value in 1_u64..1 << 44, scale in COARSEST + 1..=FINEST) {
            prop_assert_eq!(index(value, 1e-9, scale) >> 1, index(value, 1e-9, scale - 1));
        }
    }
}
