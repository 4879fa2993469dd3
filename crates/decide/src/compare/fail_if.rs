//! Conditions that fail a comparison, judged.
//!
//! A condition is true where the 95% interval lies wholly on that side of the limit, so that noise does not make it true.
//! It is also true where the figure could not be compared, since an unknown figure must not pass. Where the interval
//! reaches over the limit, the condition is neither shown nor ruled out ([`FailIfResult::undecided`]): the result names
//! the difference that would have been seen.

use brunt_plan::difference::DifferenceLimit;
use serde::{Deserialize, Serialize};

use super::{Comparison, FailIf, LEAST_BEYOND, LeftOutCause, Metric};

/// A condition and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailIfResult {
    /// The condition.
    pub condition: FailIf,
    /// The figure that was found, for people.
    pub got: String,
    /// Whether the condition is true, or cannot be judged: the comparison has failed then.
    pub failed: bool,
    /// Whether it cannot be judged, since its figure is unknown. Left out where it can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unjudged: bool,
    /// Where it is neither true nor ruled out: the value from which on it would have been seen in 80% of cases, for
    /// people.
    pub undecided: Option<String>,
}

/// Why a metric is not compared: the words, and the cause if it is known.
fn why_not(comparison: &Comparison, metric: Metric) -> (String, Option<LeftOutCause>) {
    let left_out = comparison.left_out.iter().find(|left_out| left_out.metric == metric);
    let unknown = || if metric.is_of_messages() { "no messages came" } else { "it was not compared" }.to_owned();
    left_out.map_or_else(|| (unknown(), None), |left_out| (left_out.why.clone(), left_out.cause))
}

/// What to do where a figure could not be compared.
const fn remedy(cause: Option<LeftOutCause>) -> &'static str {
    match cause {
        Some(LeftOutCause::TooFewCalls | LeftOutCause::TooFewMessages) => "; try a longer -d",
        _ => "",
    }
}

/// The fewest calls of a run with which `condition` can be judged, as enough lie beyond its percentile; `None` where it has none,
/// or is on messages.
pub fn fewest_calls(condition: &FailIf) -> Option<u64> {
    let (metric, _) = condition.limit_ratio().filter(|(metric, _)| !metric.is_of_messages())?;
    Some((LEAST_BEYOND / (1.0 - metric.percentile()?.share())).round() as u64)
}

impl Comparison {
    /// Judges the comparison by `condition`.
    pub fn judge(&self, condition: &FailIf) -> FailIfResult {
        let (found, limit) = match condition.limit() {
            DifferenceLimit::Ratio(metric, limit) => {
                let found = self.difference(metric);
                let found = found.map(|d| (d.ratio, d.low_ratio, d.high_ratio));
                (found.ok_or_else(|| why_not(self, metric)), limit)
            }
            // Without any error the difference is 0.
            DifferenceLimit::Errors(limit) => {
                let found = self.errors.as_ref().map(|e| (e.difference, e.low, e.high));
                (Ok(found.unwrap_or((0.0, 0.0, 0.0))), limit)
            }
        };
        let (value, low, high) = match found {
            Ok(found) => found,
            Err((why, cause)) => return cannot_judge(condition, &why, cause),
        };
        let failed = if condition.is_above() { low > limit } else { high < limit };
        let is_ruled_out = if condition.is_above() { high <= limit } else { low >= limit };
        FailIfResult {
            condition: condition.clone(),
            got: show(condition, value, low, high),
            failed,
            unjudged: false,
            undecided: (!failed && !is_ruled_out).then(|| detectable(condition, limit, low, high)),
        }
    }
}

/// The true value from which on the condition would be seen in 80% of cases: the limit, and beyond it half the
/// width of the interval times (1.96 + 0.84) / 1.96 (H. S. Bloom, "Minimum detectable effects", Evaluation Review
/// 19, 1995).
fn detectable(condition: &FailIf, limit: f64, low: f64, high: f64) -> String {
    const POWERED: f64 = (1.96 + 0.84) / 1.96;
    let sign = if condition.is_above() { 1.0 } else { -1.0 };
    match condition.limit() {
        DifferenceLimit::Ratio(..) => {
            let half = (high.ln() - low.ln()) / 2.0;
            format!("{:.3}x", limit * (sign * POWERED * half).exp())
        }
        DifferenceLimit::Errors(_) => format!("{:+.3}%", (limit + sign * POWERED * (high - low) / 2.0) * 100.0),
    }
}

/// The result where the figure is unknown: the condition counts as true.
pub(super) fn cannot_judge(condition: &FailIf, why: &str, cause: Option<LeftOutCause>) -> FailIfResult {
    FailIfResult {
        condition: condition.clone(),
        got: format!("cannot be judged: {why}{}", remedy(cause)),
        failed: true,
        unjudged: true,
        undecided: None,
    }
}

fn show(condition: &FailIf, value: f64, low: f64, high: f64) -> String {
    match condition.limit() {
        DifferenceLimit::Ratio(..) => format!("{value:.3}x [{low:.3}, {high:.3}]"),
        DifferenceLimit::Errors(_) => {
            format!("{:+.3}% [{:+.3}, {:+.3}]", value * 100.0, low * 100.0, high * 100.0)
        }
    }
}
