//! Figures by name as the page shows them: without their histograms.

use std::collections::BTreeMap;

use brunt_judge::breakdown::{CheckBreakdown, GroupBreakdown};
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::Distribution;
use crate::json;

/// Figures by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Names<'a> {
    most_users: u64,
    requests: Vec<Calls<'a>>,
    tags: Vec<Calls<'a>>,
    groups: Vec<Group<'a>>,
    checks: &'a [CheckBreakdown],
    scenarios: Vec<Scenario<'a>>,
    own: Vec<OwnFigure<'a>>,
    crowded: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
struct Calls<'a> {
    name: &'a str,
    due: u64,
    answered: u64,
    answered_per_s: f64,
    failed: u64,
    unfinished: u64,
    unsent: u64,
    not_ok: u64,
    error_ratio: f64,
    clear_in_bytes: u64,
    clear_out_bytes: u64,
    statuses: Vec<NamedStatus<'a>>,
    failures: &'a [json::Failures],
    response: Option<Distribution>,
    /// Of answers whose status is ok, where there are others.
    response_ok: Option<Distribution>,
    /// Of calls that failed, were answered with another status, or had not ended.
    response_not_ok: Option<Distribution>,
}

/// Answers with one status, and what that is called.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub(super) struct NamedStatus<'a> {
    #[serde(flatten)]
    answers: json::Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> NamedStatus<'a> {
    pub(super) fn all(statuses: &[json::Status], names: &'a BTreeMap<u16, String>) -> Vec<Self> {
        let named = |&answers: &json::Status| Self { answers, name: names.get(&answers.status).map(String::as_str) };
        statuses.iter().map(named).collect()
    }

    pub(super) fn status(&self) -> u16 {
        self.answers.status
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Group<'a> {
    name: &'a str,
    count: u64,
    failed: u64,
    unfinished: u64,
    with_pauses: Option<Distribution>,
    without_pauses: Option<Distribution>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Scenario<'a> {
    name: &'a str,
    users_before: u64,
    users_started: u64,
    users_ended: u64,
    not_admitted: u64,
    out_of_rows: u64,
    iterations: u64,
    unfinished: u64,
    errors: u64,
    iteration: Option<Distribution>,
    tracebacks: &'a [json::Traceback],
}

/// A figure of the script's own.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Own")]
struct OwnFigure<'a> {
    name: &'a str,
    kind: &'a str,
    unit: &'a str,
    count: u64,
    sum: Option<f64>,
    sum_per_s: Option<f64>,
    ratio: Option<f64>,
    last: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    quantiles: &'a [json::OwnQuantile],
}

impl<'a> OwnFigure<'a> {
    fn from_json(own: &'a json::OwnFigure) -> Self {
        Self {
            name: &own.name,
            kind: &own.kind,
            unit: &own.unit,
            count: own.count,
            sum: own.sum,
            sum_per_s: own.sum_per_s,
            ratio: own.ratio,
            last: own.last,
            min: own.min,
            max: own.max,
            mean: own.mean,
            quantiles: &own.quantiles,
        }
    }
}

impl<'a> Names<'a> {
    pub(super) fn from_json(names: &'a json::Names) -> Self {
        Self {
            most_users: names.most_users,
            requests: names.requests.iter().map(Calls::from_json).collect(),
            tags: names.tags.iter().map(Calls::from_json).collect(),
            groups: names.groups.iter().map(|group| Group::from_breakdown(&group.derived)).collect(),
            checks: &names.checks,
            scenarios: names.scenarios.iter().map(Scenario::from_json).collect(),
            own: names.own.iter().map(OwnFigure::from_json).collect(),
            crowded: &names.crowded,
        }
    }
}

impl<'a> Calls<'a> {
    fn from_json(calls: &'a json::Calls) -> Self {
        Self {
            name: &calls.name,
            due: calls.due,
            answered: calls.answered,
            answered_per_s: calls.answered_per_s,
            failed: calls.failed,
            unfinished: calls.unfinished,
            unsent: calls.unsent,
            not_ok: calls.not_ok,
            error_ratio: calls.error_ratio,
            clear_in_bytes: calls.clear_in_bytes,
            clear_out_bytes: calls.clear_out_bytes,
            statuses: NamedStatus::all(&calls.statuses, &calls.status_names),
            failures: &calls.failures,
            response: calls.response.as_ref().map(Distribution::from_distribution),
            response_ok: calls.response_ok.as_ref().map(Distribution::from_distribution),
            response_not_ok: calls.response_not_ok.as_ref().map(Distribution::from_distribution),
        }
    }
}

impl<'a> Group<'a> {
    fn from_breakdown(group: &'a GroupBreakdown) -> Self {
        Self {
            name: &group.name,
            count: group.count,
            failed: group.failed,
            unfinished: group.unfinished,
            with_pauses: group.with_pauses.as_ref().map(Distribution::from_distribution),
            without_pauses: group.without_pauses.as_ref().map(Distribution::from_distribution),
        }
    }
}

impl<'a> Scenario<'a> {
    fn from_json(scenario: &'a json::Scenario) -> Self {
        Self {
            name: &scenario.name,
            users_before: scenario.users_before,
            users_started: scenario.users_started,
            users_ended: scenario.users_ended,
            not_admitted: scenario.not_admitted,
            out_of_rows: scenario.out_of_rows,
            iterations: scenario.iterations,
            unfinished: scenario.unfinished,
            errors: scenario.errors,
            iteration: scenario.iteration.as_ref().map(Distribution::from_distribution),
            tracebacks: &scenario.tracebacks,
        }
    }
}
