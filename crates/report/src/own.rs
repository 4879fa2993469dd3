//! Figures of a protocol's or a script's own over time: which of them charts have, and what is shown of each.

use brunt_judge::breakdown::OwnBreakdown;
use brunt_judge::summary::Summary;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::{OwnKind, OwnPoint, time_unit_ns};
use brunt_record::histogram::AtLeast;

use crate::numbers::{bound, clean, percent};

/// The most figures of a script that charts have.
const MOST_OF_SCRIPT: usize = 6;

/// What is shown of a figure in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    /// A percentile of a trend.
    Percentile(&'static str, f64),
    /// The sum of a counter, for each second.
    PerS,
    /// The share of a rate.
    Share,
    /// The last value of a gauge.
    Last,
}

impl Shown {
    /// What is shown of figures of this kind.
    pub(crate) const fn of(kind: OwnKind) -> &'static [Self] {
        match kind {
            OwnKind::Counter => &[Self::PerS],
            OwnKind::Rate => &[Self::Share],
            OwnKind::Trend => &[Self::Percentile("p50", 0.5), Self::Percentile("p99", 0.99)],
            OwnKind::Gauge => &[Self::Last],
        }
    }

    /// Its name behind that of the figure, as thresholds have it: `:p50`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Percentile(name, _) => name,
            Self::PerS => "rate",
            Self::Share => "share",
            Self::Last => "last",
        }
    }

    /// The value in a point, or several, that are `length_ns` long.
    pub(crate) fn value(self, point: &OwnPoint, length_ns: u64) -> Option<AtLeast<f64>> {
        match self {
            Self::Percentile(_, q) => {
                let [value] = point.quantiles([q]);
                value
            }
            Self::PerS => {
                let per_s = point.sum().filter(|_| length_ns > 0).map(|sum| sum * 1e9 / length_ns as f64);
                per_s.map(AtLeast::exactly)
            }
            Self::Share => point.share().map(AtLeast::exactly),
            Self::Last => point.last().map(AtLeast::exactly),
        }
    }

    /// The value of the whole run.
    pub(crate) fn whole(self, own: &OwnBreakdown) -> Option<AtLeast<f64>> {
        match self {
            Self::Percentile(_, q) => own.figures.quantile(q),
            Self::PerS => own.per_s.map(AtLeast::exactly),
            Self::Share => own.figures.share().map(AtLeast::exactly),
            Self::Last => own.figures.last().map(AtLeast::exactly),
        }
    }

    /// A value as people read it: `≥4.71ms`, `808/s`, `99%`, `12 eur`.
    pub(crate) fn text(self, unit: &str, value: AtLeast<f64>) -> String {
        let shown = match (self, time_unit_ns(unit)) {
            (Self::PerS, _) => format!("{}/s", Number(value.value)),
            (Self::Share, _) => percent(value.value),
            (_, Some(ns)) => Duration((value.value * ns).round().max(0.0) as u64).to_string(),
            (_, None) if unit.is_empty() => Number(value.value).to_string(),
            (_, None) => format!("{} {}", Number(value.value), clean(unit)),
        };
        format!("{}{shown}", bound(value.at_least))
    }
}

/// The figures that charts have: those that a protocol chose, or the first of a script. Older results have none by second.
pub(crate) fn drawn(summary: &Summary) -> Vec<&OwnBreakdown> {
    let points = summary.run.series.points();
    let own = summary.breakdown.own.iter().filter(|own| points.iter().any(|point| point.own.contains_key(&own.name)));
    if summary.plan.own.is_empty() {
        return own.take(MOST_OF_SCRIPT).collect();
    }
    own.filter(|own| own.is_drawn).collect()
}
