//! Runs that are kept, as lists show them.

use serde::{Serialize, Serializer};

use crate::decision::Decision;
use crate::plan::Plan;
use crate::summary::Summary;

/// The kind of a single run.
pub const RUN: &str = "run";

/// What a user calls a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Its name; of several with one name the newest is meant.
    pub name: Option<String>,
    /// Keys and values.
    #[serde(serialize_with = "as_object")]
    pub tags: Vec<(String, String)>,
}

fn as_object<S: Serializer>(tags: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tags.iter().map(|(key, value)| (key, value)))
}

/// What is known of a kept run, or of a decision, without reading it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its number.
    pub number: i64,
    /// `run`; or `sweep`, `capacity` or `comparison` of what was decided over several.
    pub kind: String,
    /// The number of the decision that rests on it, if one does.
    pub part_of: Option<i64>,
    /// What its user calls it.
    #[serde(flatten)]
    pub label: Label,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Its target.
    pub url: String,
    /// The script that it ran, if it ran one, by its file's name.
    pub script: Option<String>,
    /// Whether its figures can be believed.
    pub verdict: String,
    /// How long its measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Calls that were due.
    pub due: u64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Calls that were not ok over those that were due.
    pub error_ratio: f64,
    /// Half of the calls' response times were no longer, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % of the calls' response times were no longer, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Whether the p99 is a lower bound.
    pub at_least: bool,
    /// How many thresholds there were.
    pub thresholds: u64,
    /// How many of them failed.
    pub thresholds_failed: u64,
    /// The room that it takes, in bytes.
    pub content_bytes: u64,
}

impl Entry {
    /// The entry of a run that is about to be kept; it has no number yet.
    pub fn of(summary: &Summary, label: &Label) -> Self {
        let quantiles = summary.times.response.as_ref().map(|times| times.quantiles);
        let [p50, .., p99, _, _] = quantiles.map_or([None; 7], |all| all.map(Some));
        Self {
            number: 0,
            kind: RUN.to_owned(),
            part_of: None,
            label: label.clone(),
            started_unix_ms: summary.run.started_unix_ms,
            url: summary.run.plan.target.url(),
            script: summary.run.plan.script_name().map(str::to_owned),
            verdict: summary.verdict.sentence(),
            measured_ns: summary.run.measured_ns,
            due: summary.total.due,
            answered_per_s: summary.rates.answered_per_s,
            error_ratio: summary.error_rate,
            p50_ns: p50.map(|value| value.value),
            p99_ns: p99.map(|value| value.value),
            at_least: p99.is_some_and(|value| value.at_least),
            thresholds: summary.thresholds.len() as u64,
            thresholds_failed: summary.thresholds.iter().filter(|threshold| !threshold.held).count() as u64,
            content_bytes: 0,
        }
    }

    /// The entry of a decision that is about to be kept, with its conclusion in words; it has no number yet.
    pub fn of_decision(decision: Decision<'_>, conclusion: String, label: &Label) -> Self {
        let runs = decision.runs();
        let (due, failed) = runs.iter().fold((0, 0), |(due, failed), run| (due + run.due, failed + run.failed));
        let of_plan = |plan: &Plan| (plan.target.url(), plan.script_name().map(str::to_owned));
        let (kind, (url, script)) = match decision {
            Decision::Sweep(plan, _) => ("sweep", of_plan(plan)),
            Decision::Capacity(plan, _) => ("capacity", of_plan(plan)),
            Decision::Comparison(compared) => ("comparison", (format!("{} and {}", compared.a, compared.b), None)),
        };
        Self {
            number: 0,
            kind: kind.to_owned(),
            part_of: None,
            label: label.clone(),
            started_unix_ms: runs.iter().map(|run| run.started_unix_ms).min().unwrap_or(0),
            url,
            script,
            verdict: conclusion,
            measured_ns: runs.iter().map(|run| run.measured_ns).sum(),
            due,
            answered_per_s: 0.0,
            error_ratio: if due > 0 { failed as f64 / due as f64 } else { 0.0 },
            p50_ns: None,
            p99_ns: None,
            at_least: false,
            thresholds: 0,
            thresholds_failed: 0,
            content_bytes: 0,
        }
    }
}
