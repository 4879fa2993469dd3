//! The document's figures by name.

use brunt_judge::breakdown::{
    CallBreakdown, CheckBreakdown, GroupBreakdown, OwnBreakdown, ScenarioBreakdown, StatusCount,
};
use brunt_judge::summary::Summary;
use brunt_record::histogram::{AtLeast, Percentile};
use serde::Serialize;

/// Figures by name; only of runs with scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Names<'a> {
    /// The most virtual users alive at any time.
    pub most_users: u64,
    /// Answers that failed a check, by status. Those with a status that is ok count in `not_ok` because of it.
    pub failed_check: Vec<StatusCount>,
    /// Calls that count as ok against their status, as their call (`ok =`) or the script (`answer:pass`) said, by status; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<StatusCount>,
    /// Calls by name.
    pub requests: &'a [CallBreakdown],
    /// Calls by tag, `key=value`.
    pub tags: &'a [CallBreakdown],
    /// Groups.
    pub groups: &'a [GroupBreakdown],
    /// Checks.
    pub checks: &'a [CheckBreakdown],
    /// Scenarios.
    pub scenarios: &'a [ScenarioBreakdown],
    /// Figures of the script's own.
    pub own: Vec<OwnFigure<'a>>,
    /// The kinds with more distinct names than are told apart; further names count as `(others)`.
    pub crowded: &'a [&'static str],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_not(is_so: &bool) -> bool {
    !*is_so
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

/// A figure of the script's own, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Own"))]
pub struct OwnFigure<'a> {
    /// Its name.
    pub name: &'a str,
    /// `counter`, `rate`, `trend` or `gauge`.
    pub kind: &'static str,
    /// The unit of its values; empty for plain numbers.
    pub unit: &'a str,
    /// How often something was recorded.
    pub count: u64,
    /// Of a counter.
    pub sum: Option<f64>,
    /// The sum of a counter for each second of the measured part.
    pub sum_per_s: Option<f64>,
    /// The share of times that a rate was true.
    pub ratio: Option<f64>,
    /// Of a gauge, the value that was set last.
    pub last: Option<f64>,
    /// Of a trend or gauge.
    pub min: Option<f64>,
    /// Of a trend or gauge.
    pub max: Option<f64>,
    /// Of a trend.
    pub mean: Option<f64>,
    /// How many values of a trend are lower bounds, since their calls were cut off; left out if there are none. `max` and `mean` are
    /// lower bounds, too, then.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub bounds: u64,
    /// Of a trend.
    pub quantiles: Vec<OwnQuantile>,
}

/// A quantile of a trend.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnQuantile {
    /// Such as `p50`.
    pub name: Percentile,
    /// The value below which that share lies.
    pub value: f64,
    /// Whether the true value may be larger; left out where it is not.
    #[serde(skip_serializing_if = "is_not")]
    pub at_least: bool,
}

impl<'a> OwnFigure<'a> {
    fn from_breakdown(own: &'a OwnBreakdown) -> Self {
        let figures = &own.figures;
        let quantiles = figures.percentiles();
        Self {
            name: &own.name,
            kind: figures.kind.name(),
            unit: &figures.unit,
            count: figures.count,
            sum: figures.sum(),
            sum_per_s: own.per_s,
            ratio: figures.share(),
            last: figures.last(),
            min: figures.min(),
            max: figures.max().map(|most| most.value),
            mean: figures.mean().map(|mean| mean.value),
            bounds: figures.bounds(),
            quantiles: quantiles.into_iter().map(|(name, value)| OwnQuantile::new(name, value)).collect(),
        }
    }
}

impl OwnQuantile {
    fn new(name: Percentile, value: AtLeast<f64>) -> Self {
        Self { name, value: value.value, at_least: value.at_least }
    }
}

impl<'a> Names<'a> {
    /// The names of a summary, if it has any.
    pub(crate) fn from_summary(summary: &'a Summary) -> Option<Self> {
        let (names, figures) = (&summary.breakdown, &summary.total.figures);
        if figures.is_empty() {
            return None;
        }
        Some(Self {
            most_users: summary.run.series.most_users(),
            failed_check: StatusCount::all(&summary.total.failed_check),
            excused: StatusCount::all(&summary.total.excused),
            requests: &names.requests,
            tags: &names.tags,
            groups: &names.groups,
            checks: &names.checks,
            scenarios: &names.scenarios,
            own: names.own.iter().map(OwnFigure::from_breakdown).collect(),
            crowded: &names.crowded,
        })
    }
}
