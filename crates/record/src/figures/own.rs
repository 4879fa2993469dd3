//! Figures that a script declares for itself: counters, rates, trends, gauges.

use serde::{Deserialize, Serialize};

use super::FigureByName;
use crate::histogram::{Histogram, Percentile};
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
struct Reading {
    /// In nanoseconds of the run's clock.
    at: u64,
    /// In millionths.
    value: i64,
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
    sum: i64,
    /// The values of a trend, in millionths.
    values: Histogram,
    last: Option<Reading>,
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

fn whole(parts: i64) -> f64 {
    parts as f64 / PARTS
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

    /// The greatest value of a trend or gauge.
    pub fn max(&self) -> Option<f64> {
        self.ends.map(|(_, greatest)| whole(greatest)).or_else(|| self.values.max().map(|most| most as f64 / PARTS))
    }

    /// The mean of a trend.
    pub fn mean(&self) -> Option<f64> {
        self.values.mean().map(|mean| mean / PARTS)
    }

    /// The standard deviation of a trend.
    pub fn stdev(&self) -> Option<f64> {
        self.values.stdev().map(|stdev| stdev / PARTS)
    }

    /// The value below which a share `q` of a trend's values lies, to 1 in 1024.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.values.quantile(q).map(|value| value as f64 / PARTS)
    }

    /// How many values of a trend are surely greater than `limit`.
    pub fn above(&self, limit: f64) -> u64 {
        self.values.count_above(parts(limit).max(0).cast_unsigned())
    }

    /// The percentiles of a trend that reports show.
    pub fn percentiles(&self) -> Vec<(Percentile, f64)> {
        Percentile::ALL.into_iter().filter_map(|of| Some((of, self.quantile(of.share())?))).collect()
    }

    /// The values of a trend in full, in millionths of its unit.
    pub fn histogram(&self) -> &Histogram {
        &self.values
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
                let bytes = rmp_serde::to_vec_named(&all).unwrap();
                prop_assert_eq!(rmp_serde::from_slice::<OwnFigures>(&bytes).unwrap(), all);
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
        assert_eq!((gauge.last(), gauge.min(), gauge.max()), (Some(3.0), Some(-2.5), Some(5.0)));
        let trend = recorded(OwnKind::Trend, &[1.5, 2.5, 80.0]);
        assert_eq!((trend.min(), trend.max(), trend.mean()), (Some(1.5), Some(80.0), Some(28.0)));
        assert!((trend.quantile(0.5).unwrap() / 2.5 - 1.0).abs() < 0.001);
        assert_eq!((trend.sum(), trend.share(), trend.last()), (None, None, None));
    }
}
