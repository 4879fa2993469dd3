//! Durations of which some are known only from below, with quantiles by the product-limit estimate.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Histogram;

/// A figure that may only be known from below.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AtLeast_{T}"))]
pub struct AtLeast<T> {
    /// The value, or the lower bound.
    pub value: T,
    /// Whether the true value may be larger.
    pub at_least: bool,
}

impl<T> AtLeast<T> {
    /// A known value.
    pub const fn exactly(value: T) -> Self {
        Self { value, at_least: false }
    }

    /// Another value that is known in the same way.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> AtLeast<U> {
        AtLeast { value: f(self.value), at_least: self.at_least }
    }
}

/// Durations, some known only from below: of calls that had not ended, or not begun, when the run was over; and of
/// calls that failed, which would have taken longer than they did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Censored {
    /// Durations of calls that ended, except those in `failed`.
    pub known: Histogram,
    /// Durations of calls that ended without success, where these are told apart. They are derived, not recorded.
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
    /// The number of durations and bounds.
    pub fn count(&self) -> u64 {
        self.known.count() + self.failed.count() + self.bounds.count()
    }

    /// The mean. A failed call counts with its duration, a bound as itself.
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

    /// Pools failed calls with the others: each counts with its duration.
    #[must_use]
    pub fn pooled(mut self) -> Self {
        self.known.merge(&std::mem::take(&mut self.failed));
        self
    }

    /// All durations: failed calls with theirs, bounds as themselves.
    pub fn lower(&self) -> Cow<'_, Histogram> {
        if self.failed.is_empty() && self.bounds.is_empty() {
            return Cow::Borrowed(&self.known);
        }
        let mut all = self.known.clone();
        all.merge(&self.failed);
        all.merge(&self.bounds);
        Cow::Owned(all)
    }

    /// The values at each of `quantiles` (0 to 1), by the product-limit estimate: calls that are known only to take
    /// longer than some time are assumed to go on as the others did that took longer than that (E. L. Kaplan, P. Meier,
    /// "Nonparametric estimation from incomplete observations", Journal of the American Statistical Association 53,
    /// 1958). A bound that equals a known value counts as beyond it. Beyond the largest known value nothing tells how
    /// long the rest would have taken: they stand for themselves, and the value is a lower bound. It is also one
    /// wherever calls that did not end could move it, if they never ended.
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

    /// The share of calls that take longer than a value, for each value at which it falls; falling. Calls that did not
    /// end took longer than their `bounds`; calls that are not among them take longer than anything.
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
