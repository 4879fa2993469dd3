//! A figure of a script's or a protocol's own in one point of a series.

use serde::{Deserialize, Serialize};

use super::own::{OwnFigures, OwnKind, Reading, of_parts, whole};
use crate::histogram::AtLeast;
use crate::packed::{self, Fineness, Packed};

/// Values are packed coarser than the times of calls, since a protocol has many figures.
const FINENESS: Fineness = Fineness { distinct: 48, coarsest: 5 };

/// The values of one stretch. Its unit is that of the whole run's figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnPoint {
    /// Its kind.
    pub kind: OwnKind,
    /// How often something was recorded.
    pub count: u64,
    /// The sum of a counter, in millionths; for a rate, how often it was true.
    #[serde(default, skip_serializing_if = "is_zero")]
    sum: i64,
    /// The values of a trend, in millionths.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    values: Packed,
    /// Lower bounds of values of a trend, in millionths.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    bounds: Packed,
    /// Of a gauge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Reading>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes what it may leave out by reference")]
const fn is_zero(sum: &i64) -> bool {
    *sum == 0
}

impl From<&OwnFigures> for OwnPoint {
    fn from(figures: &OwnFigures) -> Self {
        Self {
            kind: figures.kind,
            count: figures.count,
            sum: figures.sum,
            values: Packed::within(FINENESS, &figures.values),
            bounds: Packed::within(FINENESS, &figures.bounds),
            last: figures.last,
        }
    }
}

impl OwnPoint {
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

    /// The values of a trend at each of `quantiles` (0 to 1), to 2%.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Option<AtLeast<f64>>; N] {
        let values = packed::quantiles(&self.values, &Packed::default(), &self.bounds, quantiles);
        values.map(|value| value.map(of_parts))
    }

    /// Adds the values of another stretch, or of another place in the same one.
    pub fn absorb(&mut self, other: &Self) {
        if self.count == 0 {
            self.kind = other.kind;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.values = self.values.merged_within(FINENESS, &other.values);
        self.bounds = self.bounds.merged_within(FINENESS, &other.bounds);
        self.last = self.last.max(other.last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::figures::FigureByName as _;

    proptest! {
        /// Points of agents and of seconds join to those of the whole.
        #[test]
        fn points_join_as_figures_do(
            values in prop::collection::vec((0usize..3, 1.0..1e5f64, prop::bool::ANY), 1..300),
        ) {
            for (_, kind) in OwnKind::NAMED {
                let mut parts: Vec<_> = (0..3).map(|_| OwnFigures::new(kind, "ms")).collect();
                let mut whole = OwnFigures::new(kind, "ms");
                for ((part, value, is_bound), at) in values.iter().zip(0..) {
                    if *is_bound {
                        parts[*part].record_bound(*value);
                    } else {
                        parts[*part].record(*value, at);
                    }
                }
                let mut joined = OwnPoint::default();
                for part in &parts {
                    whole.merge(part);
                    joined.absorb(&OwnPoint::from(part));
                }
                prop_assert_eq!(joined.count, whole.count);
                prop_assert_eq!((joined.sum(), joined.share(), joined.last()), (whole.sum(), whole.share(), whole.last()));
                let [p50, p99] = joined.quantiles([0.5, 0.99]);
                for (of_point, of_whole) in [(p50, whole.quantile(0.5)), (p99, whole.quantile(0.99))] {
                    prop_assert_eq!(of_point.is_some(), of_whole.is_some());
                    if let (Some(point), Some(whole), false) = (of_point, of_whole, whole.has_bounds()) {
                        prop_assert!((point.value / whole.value - 1.0).abs() < 0.02, "{point:?} {whole:?}");
                    }
                }
                let bytes = crate::bytes::to_bytes(&joined);
                prop_assert_eq!(crate::bytes::from_bytes::<OwnPoint>(&bytes).unwrap(), joined);
            }
        }
    }
}
