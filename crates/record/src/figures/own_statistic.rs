//! What is shown and compared of a figure of a script's or a protocol's own.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::own::{OwnFigures, OwnKind};
use super::own_point::OwnPoint;
use crate::histogram::{AtLeast, Percentile};

/// A statistic of an own figure, by the name that thresholds have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OwnStatistic {
    /// The median of a trend.
    P50,
    /// The 99th percentile of a trend.
    P99,
    /// The sum of a counter, for each second.
    Rate,
    /// The share of a rate.
    Share,
    /// The last value of a gauge.
    Last,
}

impl OwnStatistic {
    /// Those of figures of this kind.
    pub const fn of_kind(kind: OwnKind) -> &'static [Self] {
        match kind {
            OwnKind::Trend => &[Self::P50, Self::P99],
            OwnKind::Counter => &[Self::Rate],
            OwnKind::Rate => &[Self::Share],
            OwnKind::Gauge => &[Self::Last],
        }
    }

    /// As thresholds call it: `p50`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Rate => "rate",
            Self::Share => "share",
            Self::Last => "last",
        }
    }

    /// As people read it with the name of its figure: `ttft p99`, `output_tokens/s`, `attainment`.
    pub fn of_figure(self, name: &str) -> String {
        match self {
            Self::P50 | Self::P99 => format!("{name} {self}"),
            Self::Rate => format!("{name}/s"),
            Self::Share | Self::Last => name.to_owned(),
        }
    }

    /// The percentile of a trend, if it is one.
    pub const fn percentile(self) -> Option<Percentile> {
        match self {
            Self::P50 => Some(Percentile::P50),
            Self::P99 => Some(Percentile::P99),
            Self::Rate | Self::Share | Self::Last => None,
        }
    }

    /// The value in a point, or several, that are `length_ns` long.
    pub fn in_point(self, point: &OwnPoint, length_ns: u64) -> Option<AtLeast<f64>> {
        if let Some(percentile) = self.percentile() {
            let [value] = point.quantiles([percentile.share()]);
            return value;
        }
        let value = match self {
            Self::Rate => point.sum().filter(|_| length_ns > 0).map(|sum| sum * 1e9 / length_ns as f64),
            Self::Share => point.share(),
            _ => point.last(),
        };
        value.map(AtLeast::exactly)
    }

    /// The value in all of a run, in which a counter's sum is `per_s` for each second.
    pub fn in_run(self, figures: &OwnFigures, per_s: Option<f64>) -> Option<AtLeast<f64>> {
        if let Some(percentile) = self.percentile() {
            return figures.quantile(percentile.share());
        }
        let value = match self {
            Self::Rate => per_s,
            Self::Share => figures.share(),
            _ => figures.last(),
        };
        value.map(AtLeast::exactly)
    }
}

impl fmt::Display for OwnStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_of_thresholds() {
        for (_, kind) in OwnKind::NAMED {
            for statistic in OwnStatistic::of_kind(kind) {
                assert_eq!(serde_json::to_value(statistic).unwrap(), statistic.name());
            }
        }
    }
}
