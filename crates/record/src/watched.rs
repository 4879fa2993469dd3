//! Figures watched beside a run, which the target, or a watcher of it, reports once a second.
//!
//! A second's [`Snapshot`](crate::snapshot::Snapshot) has each watched figure by its name, so that seconds, windows and
//! whole runs merge as all other figures do. A second without a value counts as missed, with the reason; it is never 0.

use serde::{Deserialize, Serialize};

use crate::figures::{FigureByName, NamedFigures};
use crate::redaction::Secrets;

/// The longest reason that is kept, in characters.
const LONGEST_PROBLEM: usize = 200;

/// Watched figures by name, in the order in which they were asked for.
pub type Watched = NamedFigures<WatchedFigure>;

/// The unit of a watched figure's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WatchedUnit {
    /// A plain number.
    #[default]
    Number,
    /// Something a second.
    PerS,
    /// CPU time for each second: 1 is one core in full.
    Cores,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerS,
    /// Seconds.
    Seconds,
}

/// The values of one watched figure over some time: at most one for each second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedFigure {
    /// The unit of its values.
    pub unit: WatchedUnit,
    /// Seconds that have a value.
    pub seconds: u64,
    /// Seconds without a value.
    pub missed: u64,
    /// The reason of the last missed value; empty if none was missed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    sum: f64,
    min: f64,
    max: f64,
    last: f64,
}

impl WatchedFigure {
    /// One second's value.
    ///
    /// Infinity and NaN count as a missed value.
    pub fn value(unit: WatchedUnit, value: f64) -> Self {
        if !value.is_finite() {
            return Self::missed(unit, &format!("the value is {value}"));
        }
        Self { unit, seconds: 1, sum: value, min: value, max: value, last: value, ..Self::default() }
    }

    /// One second without a value, for this reason.
    pub fn missed(unit: WatchedUnit, problem: &str) -> Self {
        let mut problem = problem.to_owned();
        if let Some((end, _)) = problem.char_indices().nth(LONGEST_PROBLEM) {
            problem.truncate(end);
            problem.push('…');
        }
        Self { unit, missed: 1, problem, ..Self::default() }
    }

    /// A figure without values.
    pub fn of_unit(unit: WatchedUnit) -> Self {
        Self { unit, ..Self::default() }
    }

    fn known(&self, value: f64) -> Option<f64> {
        (self.seconds > 0).then_some(value)
    }

    /// The mean of its values; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        self.known(self.sum / self.seconds as f64)
    }

    /// The least value.
    pub fn min(&self) -> Option<f64> {
        self.known(self.min)
    }

    /// The greatest value.
    pub fn max(&self) -> Option<f64> {
        self.known(self.max)
    }

    /// The last value.
    pub fn last(&self) -> Option<f64> {
        self.known(self.last)
    }
}

impl FigureByName for WatchedFigure {
    fn is_empty(&self) -> bool {
        self.seconds == 0 && self.missed == 0
    }

    /// Adds later values.
    fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        if other.missed > 0 {
            self.missed += other.missed;
            self.problem.clone_from(&other.problem);
        }
        if self.seconds == 0 {
            (self.min, self.max) = (other.min, other.max);
        } else if other.seconds > 0 {
            (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        }
        if other.seconds > 0 {
            self.last = other.last;
        }
        self.sum += other.sum;
        self.seconds += other.seconds;
    }

    fn hide(&mut self, secrets: &Secrets) {
        secrets.hide_in(&mut self.problem);
    }
}

/// A watched figure in one point of a series, by which it has a mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedPoint {
    sum: f64,
    seconds: u64,
}

impl WatchedPoint {
    /// The mean of its values; `None` without any.
    pub fn mean(self) -> Option<f64> {
        (self.seconds > 0).then(|| self.sum / self.seconds as f64)
    }

    /// Adds the values of another stretch.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.sum += other.sum;
        self.seconds += other.seconds;
    }
}

impl From<&WatchedFigure> for WatchedPoint {
    fn from(figure: &WatchedFigure) -> Self {
        Self { sum: figure.sum, seconds: figure.seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_a_value_is_no_zero() {
        let mut figure = WatchedFigure::missed(WatchedUnit::Cores, "no answer in 1s");
        assert_eq!((figure.mean(), figure.min(), figure.last()), (None, None, None));
        for value in [0.5, 0.9, 0.7] {
            figure.merge(&WatchedFigure::value(WatchedUnit::Cores, value));
        }
        figure.merge(&WatchedFigure::missed(WatchedUnit::Cores, "refused"));
        assert_eq!((figure.min(), figure.max(), figure.last()), (Some(0.5), Some(0.9), Some(0.7)));
        assert!((figure.mean().unwrap() - 0.7).abs() < 1e-9);
        assert_eq!((figure.seconds, figure.missed, figure.problem.as_str()), (3, 2, "refused"));
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let figure = WatchedFigure::value(WatchedUnit::Number, value);
            assert_eq!((figure.seconds, figure.missed), (0, 1));
            assert!(figure.problem.starts_with("the value is "), "{}", figure.problem);
        }
    }

    #[test]
    fn a_reason_is_bounded_and_its_secrets_are_hidden() {
        let mut figure = WatchedFigure::missed(WatchedUnit::Number, &"é".repeat(500));
        assert!(figure.problem.chars().count() == LONGEST_PROBLEM + 1 && figure.problem.ends_with('…'));
        figure = WatchedFigure::missed(WatchedUnit::Number, "401 for hunter2");
        figure.hide(&Secrets::new(["hunter2".to_owned()]));
        assert!(!figure.problem.contains("hunter2"));
    }

    #[test]
    fn points_fold_to_the_mean_of_the_values_they_have() {
        let of = |value: f64| WatchedPoint::from(&WatchedFigure::value(WatchedUnit::Bytes, value));
        let mut point = WatchedPoint::default();
        assert_eq!(point.mean(), None);
        point.absorb(of(2.0));
        point.absorb(WatchedPoint::default());
        point.absorb(of(4.0));
        assert_eq!(point.mean(), Some(3.0));
    }
}
