//! Figures that a script declares for itself: counters, rates, trends, gauges.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::FigureByName;
use crate::histogram::{AtLeast, Censored, Histogram, Percentile};
use crate::redaction::Secrets;

/// Values are kept as whole millionths of their unit, so that sums do not depend on the order of merging.
const PARTS: f64 = 1e6;
/// The longest unit, in bytes.
pub const LONGEST_UNIT: usize = 30;

/// The kind of a script's own figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnKind {
    /// A sum.
    #[default]
    Counter,
    /// The share of times that a condition was true.
    Rate,
    /// A distribution of values.
    Trend,
    /// A value that changes: the last, the least and the greatest count.
    Gauge,
}

impl OwnKind {
    /// All kinds, by their names in scripts.
    pub const NAMED: [(&'static str, Self); 4] =
        [("counter", Self::Counter), ("rate", Self::Rate), ("trend", Self::Trend), ("gauge", Self::Gauge)];

    /// The kind of this name in scripts.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Its name in scripts.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A value of a gauge, with the time at which it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Reading {
    /// In nanoseconds of the run's clock.
    at: u64,
    /// In millionths.
    pub(super) value: i64,
}

/// The values of one figure of a script's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnFigures {
    /// Its kind.
    pub kind: OwnKind,
    /// The unit of its values, as the script gives it: `eur`; empty for plain numbers.
    pub unit: String,
    /// How often something was recorded.
    pub count: u64,
    /// The sum of a counter, in millionths; for a rate, how often it was true.
    pub(super) sum: i64,
    /// The values of a trend, in millionths.
    pub(super) values: Histogram,
    /// Lower bounds of values of a trend that nobody has seen, in millionths.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub(super) bounds: Histogram,
    pub(super) last: Option<Reading>,
    /// The least and the greatest value of a gauge, in millionths.
    ends: Option<(i64, i64)>,
}

/// How many nanoseconds a unit of time is; `None` for another unit.
pub fn time_unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1e9),
        "ms" => Some(1e6),
        "us" | "µs" => Some(1e3),
        _ => None,
    }
}

/// A value in millionths; values beyond the range count as its limit.
fn parts(value: f64) -> i64 {
    (value * PARTS).round() as i64
}

pub(super) fn whole(parts: i64) -> f64 {
    parts as f64 / PARTS
}

/// The values of a histogram as they were recorded.
pub(super) fn of_parts(parts: AtLeast<u64>) -> AtLeast<f64> {
    parts.map(|parts| parts as f64 / PARTS)
}

impl OwnFigures {
    /// A figure without values.
    pub fn new(kind: OwnKind, unit: &str) -> Self {
        Self { kind, unit: unit.to_owned(), ..Self::default() }
    }

    /// Records a value at `now` (nanoseconds). For a rate, any value but 0 is true; a trend takes none below 0.
    pub fn record(&mut self, value: f64, now: u64) {
        let value = if self.kind == OwnKind::Rate { f64::from(u8::from(value != 0.0)) } else { value };
        self.record_times(value, 1, now);
    }

    /// The same, `times` times over. For a rate the value is how often it was true, and `times` how often it could have been.
    pub fn record_times(&mut self, value: f64, times: u64, now: u64) {
        self.count += times;
        match self.kind {
            OwnKind::Counter => self.sum = self.sum.saturating_add(parts(value * times as f64)),
            OwnKind::Rate => self.sum = self.sum.saturating_add(value as i64),
            OwnKind::Trend => self.values.record_n(parts(value).max(0).cast_unsigned(), times),
            OwnKind::Gauge => {
                let value = parts(value);
                self.last = self.last.max(Some(Reading { at: now, value }));
                let (least, greatest) = self.ends.unwrap_or((value, value));
                self.ends = Some((least.min(value), greatest.max(value)));
            }
        }
    }

    /// Records for a trend that there would have been a value of at least `least`: a call was cut off before it had its own.
    pub fn record_bound(&mut self, least: f64) {
        if self.kind == OwnKind::Trend {
            self.count += 1;
            self.bounds.record(parts(least).max(0).cast_unsigned());
        }
    }

    /// How many nanoseconds its unit is, if its values are times.
    pub fn unit_ns(&self) -> Option<f64> {
        time_unit_ns(&self.unit)
    }

    /// The sum of a counter.
    pub fn sum(&self) -> Option<f64> {
        (self.kind == OwnKind::Counter).then(|| whole(self.sum))
    }

    /// The share of times that a rate was true; `None` before anything was recorded.
    pub fn share(&self) -> Option<f64> {
        (self.kind == OwnKind::Rate && self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The last value of a gauge.
    pub fn last(&self) -> Option<f64> {
        self.last.map(|reading| whole(reading.value))
    }

    /// The least value of a trend or gauge.
    pub fn min(&self) -> Option<f64> {
        self.ends.map(|(least, _)| whole(least)).or_else(|| self.values.min().map(|least| least as f64 / PARTS))
    }

    /// The greatest value of a trend or gauge; a value that is known from below counts as its bound.
    pub fn max(&self) -> Option<AtLeast<f64>> {
        let of_trend = || {
            let most = self.values.max().max(self.bounds.max())?;
            Some(self.bounded(most as f64 / PARTS))
        };
        self.ends.map(|(_, greatest)| AtLeast::exactly(whole(greatest))).or_else(of_trend)
    }

    /// The mean of a trend; a lower bound where some values are.
    pub fn mean(&self) -> Option<AtLeast<f64>> {
        self.histogram().mean().map(|mean| self.bounded(mean / PARTS))
    }

    /// The standard deviation of a trend, which lower bounds make uncertain.
    pub fn stdev(&self) -> Option<AtLeast<f64>> {
        self.histogram().stdev().map(|stdev| self.bounded(stdev / PARTS))
    }

    /// The same without the values that are lower bounds.
    #[must_use]
    pub fn known(&self) -> Self {
        Self { bounds: Histogram::default(), ..self.clone() }
    }

    /// Whether some values are lower bounds.
    pub fn has_bounds(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The number of values that are lower bounds.
    pub fn bounds(&self) -> u64 {
        self.bounds.count()
    }

    fn bounded(&self, value: f64) -> AtLeast<f64> {
        AtLeast { value, at_least: self.has_bounds() }
    }

    /// The value below which a share `q` of a trend's values lies, to 1 in 1024, with bounds as
    /// [`Censored::quantiles`] has them.
    pub fn quantile(&self, q: f64) -> Option<AtLeast<f64>> {
        let [value] = self.at([q]);
        value
    }

    fn at<const N: usize>(&self, quantiles: [f64; N]) -> [Option<AtLeast<f64>>; N] {
        let values = if self.has_bounds() {
            let all = Censored { known: self.values.clone(), bounds: self.bounds.clone(), ..Censored::default() };
            all.quantiles(quantiles)
        } else {
            quantiles.map(|q| self.values.quantile(q).map(AtLeast::exactly))
        };
        values.map(|value| value.map(of_parts))
    }

    /// How many values of a trend are surely greater than `limit`.
    pub fn above(&self, limit: f64) -> u64 {
        let limit = parts(limit).max(0).cast_unsigned();
        self.values.count_above(limit) + self.bounds.count_above(limit)
    }

    /// The percentiles of a trend that reports show.
    pub fn percentiles(&self) -> Vec<(Percentile, AtLeast<f64>)> {
        let values = self.at(Percentile::ALL.map(Percentile::share));
        Percentile::ALL.into_iter().zip(values).filter_map(|(of, value)| Some((of, value?))).collect()
    }

    /// The values of a trend in full, in millionths of its unit; bounds as themselves.
    pub fn histogram(&self) -> Cow<'_, Histogram> {
        if !self.has_bounds() {
            return Cow::Borrowed(&self.values);
        }
        let mut all = self.values.clone();
        all.merge(&self.bounds);
        Cow::Owned(all)
    }
}

impl FigureByName for OwnFigures {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            self.kind = other.kind;
            self.unit.clone_from(&other.unit);
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.values.merge(&other.values);
        self.bounds.merge(&other.bounds);
        self.last = self.last.max(other.last);
        self.ends = match (self.ends, other.ends) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }

    fn hide(&mut self, secrets: &Secrets) {
        secrets.hide_in(&mut self.unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_merge_to_the_whole_in_any_order(
            values in prop::collection::vec((0usize..4, -1e6..1e6f64, 0u64..1000), 1..200),
            at in 0usize..200,
        ) {
            for (_, kind) in OwnKind::NAMED {
                let mut all = OwnFigures::new(kind, "eur");
                let mut parts: Vec<_> = (0..4).map(|_| OwnFigures::new(kind, "eur")).collect();
                for (part, value, now) in &values {
                    all.record(*value, *now);
                    parts[*part].record(*value, *now);
                }
                parts.rotate_left(at % 4);
                let mut merged = OwnFigures::default();
                for part in &parts {
                    merged.merge(part);
                }
                prop_assert_eq!(&merged, &all);
                let bytes = crate::bytes::to_bytes(&all);
                prop_assert_eq!(crate::bytes::from_bytes::<OwnFigures>(&bytes).unwrap(), all);
            }
        }
    }

    #[test]
    fn each_kind_says_what_it_is_asked() {
        let recorded = |kind, values: &[f64]| {
            let mut own = OwnFigures::new(kind, "");
            values.iter().enumerate().for_each(|(at, value)| own.record(*value, at as u64));
            own
        };
        assert_eq!(recorded(OwnKind::Counter, &[0.1, 0.2, -0.05]).sum(), Some(0.25));
        assert_eq!(recorded(OwnKind::Rate, &[1.0, 0.0, 1.0, 1.0]).share(), Some(0.75));
        let gauge = recorded(OwnKind::Gauge, &[5.0, -2.5, 3.0]);
        let exactly = |value| Some(AtLeast::exactly(value));
        assert_eq!((gauge.last(), gauge.min(), gauge.max()), (Some(3.0), Some(-2.5), exactly(5.0)));
        let trend = recorded(OwnKind::Trend, &[1.5, 2.5, 80.0]);
        assert_eq!((trend.min(), trend.max(), trend.mean()), (Some(1.5), exactly(80.0), exactly(28.0)));
        assert!((trend.quantile(0.5).unwrap().value / 2.5 - 1.0).abs() < 0.001);
        assert_eq!((trend.sum(), trend.share(), trend.last()), (None, None, None));
    }

    #[test]
    fn values_that_nobody_saw_are_at_least_as_long_as_they_were_waited_for() {
        let mut trend = OwnFigures::new(OwnKind::Trend, "ms");
        (1..=90).for_each(|ms| trend.record(f64::from(ms), 0));
        // Ten were given up after 50 ms: they take longer than that, and the p99 is not known.
        (0..10).for_each(|_| trend.record_bound(50.0));
        assert_eq!((trend.count, trend.has_bounds()), (100, true));
        assert!(trend.quantile(0.3).is_some_and(|p30| (p30.value / 30.0 - 1.0).abs() < 0.001 && !p30.at_least));
        let p99 = trend.quantile(0.99).unwrap();
        assert!(p99.at_least && p99.value > 85.0, "{p99:?}");
        assert!(trend.mean().unwrap().at_least && trend.max().unwrap().at_least);
        assert_eq!((trend.above(49.0), trend.histogram().count()), (41 + 10, 100));
        let mut others = OwnFigures::new(OwnKind::Trend, "ms");
        others.record_bound(60.0);
        trend.merge(&others);
        assert_eq!((trend.count, trend.histogram().max()), (101, Some(90_000_000)));
        let bytes = crate::bytes::to_bytes(&trend);
        assert_eq!(crate::bytes::from_bytes::<OwnFigures>(&bytes).unwrap(), trend);
    }
}
