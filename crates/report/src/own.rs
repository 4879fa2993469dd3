//! Figures of a protocol's or a script's own over time: which of them charts have, and their values as text.

use brunt_judge::breakdown::OwnBreakdown;
use brunt_judge::summary::Summary;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::{OwnStatistic, time_unit_ns};
use brunt_record::histogram::AtLeast;

use crate::numbers::{bound, clean, percent};

/// The most figures of a script that charts have.
const MOST_OF_SCRIPT: usize = 6;

/// A value as people read it: `≥4.71ms`, `808/s`, `99%`, `12 eur`.
pub(crate) fn text(statistic: OwnStatistic, unit: &str, value: AtLeast<f64>) -> String {
    let shown = match (statistic, time_unit_ns(unit)) {
        (OwnStatistic::Rate, _) => format!("{}/s", Number(value.value)),
        (OwnStatistic::Share, _) => percent(value.value),
        (_, Some(ns)) => Duration((value.value * ns).round().max(0.0) as u64).to_string(),
        (_, None) if unit.is_empty() => Number(value.value).to_string(),
        (_, None) => format!("{} {}", Number(value.value), clean(unit)),
    };
    format!("{}{shown}", bound(value.at_least))
}

/// The figures with a chart: those that the protocol chose, or a script's first six.
pub(crate) fn drawn(summary: &Summary) -> Vec<&OwnBreakdown> {
    let points = summary.run.series.points();
    let own = summary.breakdown.own.iter().filter(|own| points.iter().any(|point| point.own.contains_key(&own.name)));
    if summary.plan.own.is_empty() {
        return own.take(MOST_OF_SCRIPT).collect();
    }
    own.filter(|own| own.is_drawn).collect()
}
