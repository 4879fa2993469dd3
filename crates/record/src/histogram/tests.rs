//! Histograms against their definition and the reference implementation, and quantiles of censored times.

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
    fn noise_is_no_histogram_or_a_sound_one(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..8, 1_u8..3], 0..80)) {
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
    fn bytes_of_more_values_than_a_run_has_are_refused(n in 1_u64..1 << 50) {
        let mut histogram = Histogram::new();
        histogram.record_n(7, n);
        prop_assert_eq!(Histogram::from_bytes(&histogram.to_bytes()).is_some(), n <= MOST_VALUES);
    }
}
