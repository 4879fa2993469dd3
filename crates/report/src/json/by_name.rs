//! The document's figures by name.

use std::collections::BTreeMap;

use brunt_judge::breakdown::{self, CheckBreakdown, GroupBreakdown, MessageBreakdown, ScenarioBreakdown};
use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_record::catalogue::Counter;
use brunt_record::figures::{CallFigures, NamedFigures};
use brunt_record::histogram::AtLeast;
use serde::Serialize;

use super::Status;

/// Figures by name; only of runs with scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Names<'a> {
    /// The most virtual users alive at any time.
    pub most_users: u64,
    /// Answers that failed a check, by status. Those with a status that is ok count in `not_ok` because of it.
    pub failed_check: Vec<Status>,
    /// Calls that count as ok against their status, as their call (`ok =`) or the script (`answer:pass`) said, by status; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<Status>,
    /// Calls by name.
    pub requests: Vec<NamedCalls<'a>>,
    /// Calls by tag, `key=value`.
    pub tags: Vec<NamedCalls<'a>>,
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

/// Calls with one name or tag: `due = answered + failed + unfinished + unsent`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedCalls<'a> {
    /// Their name or tag.
    pub name: &'a str,
    /// Calls that were due.
    pub due: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were due and never sent.
    pub unsent: u64,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// `not_ok` over `due`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub error_ratio: f64,
    /// Answers a second, over the measured part.
    pub answered_per_s: f64,
    /// Bytes of answers, after decryption.
    pub clear_in_bytes: u64,
    /// Bytes of calls, before encryption.
    pub clear_out_bytes: u64,
    /// Answers by status.
    pub statuses: Vec<Status>,
    /// Names of statuses, where the protocol has some.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: &'a BTreeMap<u16, String>,
    /// Failures by name.
    pub failures: Vec<NamedFailures>,
    /// From due to end.
    pub response: Option<&'a Distribution>,
    /// From sent to end.
    pub service: Option<&'a Distribution>,
    /// From due to end, of answers whose status is ok; only where there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ok: Option<&'a Distribution>,
    /// From due to end, of calls that failed, were answered with a status that is not ok, or had not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_not_ok: Option<&'a Distribution>,
    /// Messages; missing where no answer came as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<&'a MessageBreakdown>,
}

/// Failures of one name; their reasons are kept once, over all calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedFailures {
    /// The failure.
    pub failure: &'static str,
    /// How many.
    pub count: u64,
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
    /// Values of a trend that are known from below alone, of calls that were cut off; left out if there are none. `max` and `mean` are
    /// lower bounds then.
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
    pub name: &'static str,
    /// The value below which that share lies.
    pub value: f64,
    /// Whether the true value may be larger; left out where it is not.
    #[serde(skip_serializing_if = "is_not")]
    pub at_least: bool,
}

impl<'a> OwnFigure<'a> {
    fn from_breakdown(own: &'a breakdown::OwnBreakdown) -> Self {
        let figures = &own.figures;
        let quantiles = figures.quantiles();
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
    fn new(name: &'static str, value: AtLeast<f64>) -> Self {
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
            failed_check: Status::all(&summary.total.failed_check),
            excused: Status::all(&summary.total.excused),
            requests: NamedCalls::all(&names.requests, &figures.requests),
            tags: NamedCalls::all(&names.tags, &figures.tags),
            groups: &names.groups,
            checks: &names.checks,
            scenarios: &names.scenarios,
            own: names.own.iter().map(OwnFigure::from_breakdown).collect(),
            crowded: &names.crowded,
        })
    }
}

impl<'a> NamedCalls<'a> {
    fn all(derived: &'a [breakdown::CallBreakdown], recorded: &'a NamedFigures<CallFigures>) -> Vec<Self> {
        let calls = derived.iter().filter_map(|calls| {
            let figures = recorded.get(&calls.name)?;
            let failures = figures.failures.counted();
            Some(Self {
                name: &calls.name,
                due: calls.due,
                answered: calls.answered,
                failed: calls.failed,
                unfinished: figures.numbers.get(Counter::Unfinished),
                unsent: figures.numbers.get(Counter::Unsent),
                not_ok: calls.not_ok,
                error_ratio: calls.error_rate,
                answered_per_s: calls.answered_per_s,
                clear_in_bytes: calls.bytes_in,
                clear_out_bytes: calls.bytes_out,
                statuses: Status::all(&figures.statuses),
                status_names: &figures.status_names,
                failures: failures.map(|(failure, count)| NamedFailures { failure: failure.name(), count }).collect(),
                response: calls.response.as_ref(),
                service: calls.service.as_ref(),
                response_ok: calls.response_ok.as_ref(),
                response_not_ok: calls.response_not_ok.as_ref(),
                messages: calls.messages.as_deref(),
            })
        });
        calls.collect()
    }
}
