//! Conditions that fail a comparison: `figure op limit`, for example `p99 > 1.05x`, B's p99 more than 1.05 times that
//! of A.
//!
//! Figures are those of [`Metric`], each with a factor that ends in `x`, and `error_rate` with a difference such as
//! `+0.5%`. Operators are `<` and `>`.

use std::fmt;
use std::str::FromStr;

use brunt_record::histogram::Percentile;
use serde::{Deserialize, Serialize};

use crate::units;

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Calls answered a second with success.
    Rate,
    /// The mean response time.
    Mean,
    /// Its median.
    P50,
    /// Its 90th percentile.
    P90,
    /// Its 99th percentile.
    P99,
    /// Its 99.9th percentile.
    #[serde(rename = "p99.9")]
    P99_9,
    /// Messages a second, where answers come as messages.
    MessageRate,
    /// The median time from a call to its first message.
    #[serde(rename = "first_message.p50")]
    FirstMessageP50,
    /// Its 99th percentile.
    #[serde(rename = "first_message.p99")]
    FirstMessageP99,
    /// The 99th percentile of the time from one message of a call to the next.
    #[serde(rename = "message_gap.p99")]
    MessageGapP99,
}

impl Metric {
    /// Every one, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Rate,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P99_9,
        Self::MessageRate,
        Self::FirstMessageP50,
        Self::FirstMessageP99,
        Self::MessageGapP99,
    ];

    /// Its name in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::MessageRate => "message_rate",
            Self::FirstMessageP50 => "first_message.p50",
            Self::FirstMessageP99 => "first_message.p99",
            Self::MessageGapP99 => "message_gap.p99",
        }
    }

    /// Whether it is a number a second; the others are times.
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Rate | Self::MessageRate)
    }

    /// Whether it is about messages, which most answers do not have.
    pub const fn is_of_messages(self) -> bool {
        matches!(self, Self::MessageRate | Self::FirstMessageP50 | Self::FirstMessageP99 | Self::MessageGapP99)
    }

    /// The metric with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Its percentile, if the metric is one.
    pub const fn percentile(self) -> Option<Percentile> {
        match self {
            Self::Rate | Self::Mean | Self::MessageRate => None,
            Self::P50 | Self::FirstMessageP50 => Some(Percentile::P50),
            Self::P90 => Some(Percentile::P90),
            Self::P99 | Self::FirstMessageP99 | Self::MessageGapP99 => Some(Percentile::P99),
            Self::P99_9 => Some(Percentile::P99_9),
        }
    }
}

/// The limit of a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DifferenceLimit {
    /// Of a metric: B's over A's.
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
    limit: DifferenceLimit,
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
            DifferenceLimit::Errors(sign * units::parse_ratio(share).map_err(|e| error(&e.to_string()))?)
        } else {
            let metric = Metric::from_name(figure).ok_or_else(|| {
                let names = Metric::ALL.map(Metric::name).join(", ");
                error(&format!("'{figure}' is not a figure that is compared; there are {names} and error_rate"))
            })?;
            let factor = Some(right).filter(|right| right.ends_with('x'));
            let factor = factor.and_then(|factor| units::parse_factor(factor).ok());
            DifferenceLimit::Ratio(metric, factor.ok_or_else(|| error("expected a factor such as 1.05x"))?)
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
    /// The limit.
    pub const fn limit(&self) -> DifferenceLimit {
        self.limit
    }

    /// Whether it is true above its limit, and not below it.
    pub const fn is_above(&self) -> bool {
        self.above
    }

    /// The metric and the limit on B's figure over A's; `None` for a condition on failures.
    pub const fn limit_ratio(&self) -> Option<(Metric, f64)> {
        match self.limit {
            DifferenceLimit::Ratio(metric, ratio) => Some((metric, ratio)),
            DifferenceLimit::Errors(_) => None,
        }
    }
}
