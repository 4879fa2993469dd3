//! Figures of a distribution of times, with their uncertainty.

use brunt_record::histogram::{AtLeast, Censored, Histogram, Percentile, fewest_calls};
use brunt_record::instrument::Bracket;
use serde::Serialize;

use crate::sampling::Sampling;
use crate::uncertainty::{ConfidenceInterval, Intervals};

/// Figures of a distribution of times, in nanoseconds. A figure is a lower bound where calls whose time is known only
/// from below can move it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Times, and lower bounds of times.
    pub count: u64,
    /// The arithmetic mean.
    #[serde(rename = "mean_ns")]
    pub mean: AtLeast<f64>,
    /// The uncertainty of the mean; missing where it is not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<ConfidenceInterval>,
    /// The standard deviation.
    #[serde(rename = "stdev_ns")]
    pub stdev: AtLeast<f64>,
    /// The smallest.
    #[serde(rename = "min_ns")]
    pub min: u64,
    /// The largest.
    #[serde(rename = "max_ns")]
    pub max: AtLeast<u64>,
    /// The times that shares of the calls did not exceed, in growing order.
    pub quantiles: Vec<Quantile>,
}

/// The time that a share of all calls did not exceed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantile {
    /// Its name, such as `p99`.
    pub name: Percentile,
    /// The share of calls, 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub share_ratio: f64,
    /// The time, or its lower bound.
    pub value_ns: u64,
    /// Whether the true time may be larger.
    pub at_least: bool,
    /// The uncertainty of the time; missing where it is not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<ConfidenceInterval>,
}

/// A figure of a [`Distribution`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFigure {
    /// The arithmetic mean.
    Mean,
    /// The standard deviation.
    Stdev,
    /// The smallest.
    Min,
    /// The value at a percentile.
    At(Percentile),
    /// The largest.
    Max,
}

impl TimeFigure {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Stdev => "stdev",
            Self::Min => "min",
            Self::At(percentile) => percentile.name(),
            Self::Max => "max",
        }
    }
}

impl Quantile {
    /// The time, in nanoseconds.
    pub fn value(&self) -> AtLeast<u64> {
        AtLeast { value: self.value_ns, at_least: self.at_least }
    }

    /// Whether the generator's own delays spoil the time.
    pub fn is_spoiled(&self) -> bool {
        self.interval.is_some_and(|interval| interval.is_spoiled)
    }
}

impl Distribution {
    /// The figures of `durations`; `None` if it is empty.
    pub fn from_durations(durations: &Censored) -> Option<Self> {
        let lower = durations.lower();
        let at_least = !durations.bounds.is_empty();
        let values = durations.quantiles(Percentile::ALL.map(Percentile::share));
        let quantile = |(name, value): (Percentile, Option<AtLeast<u64>>)| {
            let AtLeast { value: value_ns, at_least } = value?;
            Some(Quantile { name, share_ratio: name.share(), value_ns, at_least, interval: None })
        };
        Some(Self {
            count: lower.count(),
            mean: AtLeast { value: lower.mean()?, at_least },
            mean_interval: None,
            stdev: AtLeast { value: lower.stdev()?, at_least },
            // The time for which an unended call has waited is not a response time.
            min: durations.min().or(lower.min())?,
            max: AtLeast { value: lower.max()?, at_least },
            quantiles: Percentile::ALL.into_iter().zip(values).map(quantile).collect::<Option<_>>()?,
        })
    }

    /// The figures of the values shown in `bracket`, with their uncertainty; see [`Intervals::new`].
    pub fn of_bracket(bracket: &Bracket, lag: &Histogram, sampling: Option<&Sampling<'_>>) -> Option<Self> {
        let mut of = Self::from_durations(&bracket.value)?;
        if let Some(intervals) = Intervals::new(bracket, lag, sampling) {
            of.mean_interval = Some(intervals.mean);
            let calls = of.count;
            for (quantile, interval) in of.quantiles.iter_mut().zip(intervals.quantiles) {
                let is_open = quantile.at_least || calls < fewest_calls(quantile.share_ratio);
                quantile.interval = Some(if is_open { interval.open_above() } else { interval });
            }
        }
        Some(of)
    }

    /// Widens what is known from below, since `unknown` of the calls, which stand in `bracket` for as long as they waited for brunt, may
    /// have been the quickest of all had they been sent.
    pub(crate) fn doubt(&mut self, bracket: &Bracket, unknown: u64) {
        if unknown == 0 {
            return;
        }
        let share = unknown as f64 / self.count.max(1) as f64;
        for quantile in &mut self.quantiles {
            let rank = quantile.share_ratio - share;
            let low = if rank > 0.0 { bracket.low.quantile(rank).map_or(0, |low| low.value) } else { 0 };
            if let Some(interval) = &mut quantile.interval {
                interval.widen_below(low, quantile.value_ns);
            }
        }
        if let Some(mean) = &mut self.mean_interval {
            let low = mean.instrument_low_ns as f64 * (1.0 - share).max(0.0);
            mean.widen_below(low as u64, self.mean.value as u64);
        }
    }

    /// The quantile at a percentile.
    pub fn at(&self, percentile: Percentile) -> Option<&Quantile> {
        self.quantiles.iter().find(|quantile| quantile.name == percentile)
    }

    /// The values at [`Percentile::ALL`], in nanoseconds; lower bounds are as good as others here.
    pub(crate) fn values(&self) -> [u64; Percentile::ALL.len()] {
        let mut values = [0; Percentile::ALL.len()];
        values.iter_mut().zip(&self.quantiles).for_each(|(value, quantile)| *value = quantile.value_ns);
        values
    }

    /// The value at a percentile.
    pub fn quantile(&self, percentile: Percentile) -> Option<AtLeast<u64>> {
        Some(self.at(percentile)?.value())
    }

    /// One of its figures in whole nanoseconds, with its uncertainty.
    pub fn figure(&self, figure: TimeFigure) -> Option<(AtLeast<u64>, Option<&ConfidenceInterval>)> {
        let rounded = |value: AtLeast<f64>| value.map(|ns| ns.round() as u64);
        Some(match figure {
            TimeFigure::Mean => (rounded(self.mean), self.mean_interval.as_ref()),
            TimeFigure::Stdev => (rounded(self.stdev), None),
            TimeFigure::Min => (AtLeast::exactly(self.min), None),
            TimeFigure::At(percentile) => {
                let quantile = self.at(percentile)?;
                (quantile.value(), quantile.interval.as_ref())
            }
            TimeFigure::Max => (self.max, None),
        })
    }

    /// The figures of durations that are all known.
    pub fn of_known(durations: &Histogram) -> Option<Self> {
        Self::from_durations(&durations.clone().into())
    }
}
