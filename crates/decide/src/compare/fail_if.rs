//! Conditions that fail a comparison: `figure op limit`, for example `p99 > 1.05x`, B's p99 more than 1.05 times that
//! of A.
//!
//! Figures are those of [`Metric`], each with a factor that ends in `x`, and `error_rate` with a difference such as
//! `+0.5%`. Operators are `<` and `>`. A condition is true where the 95% interval lies wholly on that side of the
//! limit, so that noise does not make it true. It is also true where the figure could not be compared, since an unknown
//! figure must not pass. Where the interval reaches over the limit, the condition is neither shown nor ruled out
//! ([`FailIfResult::undecided`]): the result names the difference that would have been seen.

use std::fmt;
use std::str::FromStr;

use brunt_plan::units;
use serde::{Deserialize, Serialize};

use super::{Comparison, LEAST_BEYOND, LeftOutCause, Metric};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    Ratio(Metric, f64),
    /// Of the share of errors: B's less A's.
    Errors(f64),
}

/// One condition; a file has it as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailIf {
    text: String,
    limit: Limit,
    above: bool,
}

/// A condition that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a condition such as 'p99 > 1.05x', 'rate < 0.95x' or 'error_rate > +0.5%', got '{text}': {problem}")]
pub struct FailIfError {
    /// The condition as written.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

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

impl FromStr for FailIf {
    type Err = FailIfError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: &str| FailIfError { text: text.to_owned(), problem: problem.to_owned() };
        let (figure, right, above) = match (text.split_once('>'), text.split_once('<')) {
            (Some((left, right)), None) => (left.trim(), right.trim(), true),
            (None, Some((left, right))) => (left.trim(), right.trim(), false),
            _ => return Err(error("there must be one of < and > in it")),
        };
        if right.starts_with('=') {
            return Err(error("there is < and >, and an interval knows no equal"));
        }
        let limit = if figure == "error_rate" {
            let (sign, share) = match right.strip_prefix('-') {
                Some(share) => (-1.0, share),
                None => (1.0, right.strip_prefix('+').unwrap_or(right)),
            };
            Limit::Errors(sign * units::parse_ratio(share).map_err(|e| error(&e.to_string()))?)
        } else {
            let metric = Metric::from_name(figure).ok_or_else(|| {
                let names = Metric::ALL.map(Metric::name).join(", ");
                error(&format!("'{figure}' is not a figure that is compared; there are {names} and error_rate"))
            })?;
            let factor = right.strip_suffix('x').and_then(|factor| units::parse_number(factor).ok());
            let factor = factor.filter(|factor| *factor > 0.0);
            Limit::Ratio(metric, factor.ok_or_else(|| error("expected a factor such as 1.05x"))?)
        };
        Ok(Self { text: text.trim().to_owned(), limit, above })
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for FailIf {
    type Error = FailIfError;

    fn try_from(text: String) -> Result<Self, FailIfError> {
        text.parse()
    }
}

impl From<FailIf> for String {
    fn from(condition: FailIf) -> Self {
        condition.text
    }
}

impl FailIf {
    /// The metric and the limit on B's figure over A's; `None` for a condition on failures.
    pub const fn limit_ratio(&self) -> Option<(Metric, f64)> {
        match self.limit {
            Limit::Ratio(metric, ratio) => Some((metric, ratio)),
            Limit::Errors(_) => None,
        }
    }

    /// The fewest calls of a run with which it can be judged, as enough lie beyond its percentile; `None` where it has none, or is
    /// on messages.
    pub fn fewest_calls(&self) -> Option<u64> {
        let (metric, _) = self.limit_ratio().filter(|(metric, _)| !metric.is_of_messages())?;
        Some((LEAST_BEYOND / (1.0 - metric.quantile()?)).round() as u64)
    }

    /// Judges `comparison` by this condition.
    pub fn judge(&self, comparison: &Comparison) -> FailIfResult {
        let (found, limit) = match self.limit {
            Limit::Ratio(metric, limit) => {
                let found = comparison.difference(metric);
                let found = found.map(|d| (d.ratio, d.low_ratio, d.high_ratio));
                (found.ok_or_else(|| why_not(comparison, metric)), limit)
            }
            // Without any error the difference is 0.
            Limit::Errors(limit) => {
                let found = comparison.errors.as_ref().map(|e| (e.difference, e.low, e.high));
                (Ok(found.unwrap_or((0.0, 0.0, 0.0))), limit)
            }
        };
        let (value, low, high) = match found {
            Ok(found) => found,
            Err((why, cause)) => return self.cannot_judge(&why, cause),
        };
        let failed = if self.above { low > limit } else { high < limit };
        let is_ruled_out = if self.above { high <= limit } else { low >= limit };
        FailIfResult {
            condition: self.clone(),
            got: self.show(value, low, high),
            failed,
            unjudged: false,
            undecided: (!failed && !is_ruled_out).then(|| self.detectable(limit, low, high)),
        }
    }

    /// The true value from which on the condition would be seen in 80% of cases: the limit, and beyond it half the
    /// width of the interval times (1.96 + 0.84) / 1.96 (H. S. Bloom, "Minimum detectable effects", Evaluation Review
    /// 19, 1995).
    fn detectable(&self, limit: f64, low: f64, high: f64) -> String {
        const POWERED: f64 = (1.96 + 0.84) / 1.96;
        let sign = if self.above { 1.0 } else { -1.0 };
        match self.limit {
            Limit::Ratio(..) => {
                let half = (high.ln() - low.ln()) / 2.0;
                format!("{:.3}x", limit * (sign * POWERED * half).exp())
            }
            Limit::Errors(_) => format!("{:+.3}%", (limit + sign * POWERED * (high - low) / 2.0) * 100.0),
        }
    }

    /// The result where the figure is unknown: the condition counts as true.
    pub(super) fn cannot_judge(&self, why: &str, cause: Option<LeftOutCause>) -> FailIfResult {
        FailIfResult {
            condition: self.clone(),
            got: format!("cannot be judged: {why}{}", remedy(cause)),
            failed: true,
            unjudged: true,
            undecided: None,
        }
    }

    fn show(&self, value: f64, low: f64, high: f64) -> String {
        match self.limit {
            Limit::Ratio(..) => format!("{value:.3}x [{low:.3}, {high:.3}]"),
            Limit::Errors(_) => {
                format!("{:+.3}% [{:+.3}, {:+.3}]", value * 100.0, low * 100.0, high * 100.0)
            }
        }
    }
}
