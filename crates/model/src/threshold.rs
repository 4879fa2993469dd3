//! What must hold at the end of a run: `[name:]figure op value`, for example `p99 < 50ms`.
//!
//! Figures: `p50` … `p99.99` (any `p` with a number under 100), `mean`, `stdev`, `min`, `max` of the response time, or
//! with `service.`, `first_byte.`, `connect.`, `tls.`, `lag.` or `failed.` before them of another time; `error_rate`;
//! `rate` (answers a second); `bytes_in`, `bytes_out` (a second); `due`, `unsent`, `unfinished`; and each failure by its
//! name. Operators: `<`, `<=`, `>`, `>=`, `==`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::histogram::{AtLeast, Censored, Histogram};
use crate::outcome::Failure;
use crate::summary::Summary;
use crate::units;

/// A time that calls have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    Response,
    Service,
    FirstByte,
    Connect,
    Tls,
    Handshake,
    Lag,
    Failed,
}

impl Time {
    const NAMED: [(&'static str, Self); 8] = [
        ("response", Self::Response),
        ("service", Self::Service),
        ("first_byte", Self::FirstByte),
        ("connect", Self::Connect),
        ("tls", Self::Tls),
        ("handshake", Self::Handshake),
        ("lag", Self::Lag),
        ("failed", Self::Failed),
    ];

    fn of(self, summary: &Summary) -> Censored {
        let known = |histogram: &Histogram| Censored { known: histogram.clone(), bounds: Histogram::new() };
        let total = &summary.total;
        match self {
            Self::Response => total.response.clone(),
            Self::Service => total.service.clone(),
            Self::FirstByte => known(&total.first_byte),
            Self::Connect => known(&total.connect),
            Self::Tls => known(&total.tls),
            Self::Handshake => known(&total.handshake),
            Self::Lag => known(&total.lag),
            Self::Failed => known(&total.failed),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Quantile(f64),
    Mean,
    Stdev,
    Min,
    Max,
}

impl Statistic {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" => Some(Self::Mean),
            "stdev" => Some(Self::Stdev),
            "min" => Some(Self::Min),
            "max" => Some(Self::Max),
            _ => {
                let digits = text.strip_prefix('p')?;
                let plain = digits.starts_with(|c: char| c.is_ascii_digit());
                let percent: f64 = digits.parse().ok()?;
                (plain && percent > 0.0 && percent < 100.0).then_some(Self::Quantile(percent / 100.0))
            }
        }
    }

    fn of(self, times: &Censored) -> Option<AtLeast<f64>> {
        let lower = times.lower();
        let bounded = |value: f64| AtLeast { value, at_least: !times.bounds.is_empty() };
        match self {
            Self::Quantile(q) => times.quantile(q).map(|value| value.map(|ns| ns as f64)),
            Self::Mean => lower.mean().map(bounded),
            Self::Stdev => lower.stdev().map(bounded),
            Self::Min => lower.min().map(|ns| AtLeast::exactly(ns as f64)),
            Self::Max => lower.max().map(|ns| bounded(ns as f64)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Time(Time, Statistic),
    ErrorRate,
    Rate,
    BytesIn,
    BytesOut,
    Due,
    Unsent,
    Unfinished,
    Failure(Failure),
}

/// How a figure's value is written.
enum Unit {
    Duration,
    Ratio,
    Number,
    Size,
    Count,
}

impl Figure {
    fn parse(text: &str) -> Option<Self> {
        let plain = match text {
            "error_rate" => Some(Self::ErrorRate),
            "rate" => Some(Self::Rate),
            "bytes_in" => Some(Self::BytesIn),
            "bytes_out" => Some(Self::BytesOut),
            "due" => Some(Self::Due),
            "unsent" => Some(Self::Unsent),
            "unfinished" => Some(Self::Unfinished),
            _ => Failure::from_name(text).map(Self::Failure),
        };
        plain.or_else(|| {
            // A percentile has a point of its own: p99.9.
            let (time, statistic) = match text.split_once('.') {
                Some((name, rest)) if !name.starts_with('p') => {
                    (Time::NAMED.iter().find(|(known, _)| *known == name)?.1, rest)
                }
                _ => (Time::Response, text),
            };
            Some(Self::Time(time, Statistic::parse(statistic)?))
        })
    }

    fn unit(self) -> Unit {
        match self {
            Self::Time(..) => Unit::Duration,
            Self::ErrorRate => Unit::Ratio,
            Self::Rate => Unit::Number,
            Self::BytesIn | Self::BytesOut => Unit::Size,
            Self::Due | Self::Unsent | Self::Unfinished | Self::Failure(_) => Unit::Count,
        }
    }

    fn of(self, summary: &Summary) -> Option<AtLeast<f64>> {
        let exactly = |value: f64| Some(AtLeast::exactly(value));
        match self {
            // How soon calls failed is no answer to how soon they are answered.
            Self::Time(Time::Response | Time::Service, _) if !summary.answered() => None,
            Self::Time(time, statistic) => statistic.of(&time.of(summary)),
            // With nothing due there is no share of it.
            Self::ErrorRate => (summary.total.due > 0).then(|| AtLeast::exactly(summary.error_rate)),
            Self::Rate => exactly(summary.rates.answered_per_s),
            Self::BytesIn => exactly(summary.rates.wire_in_per_s),
            Self::BytesOut => exactly(summary.rates.wire_out_per_s),
            Self::Due => exactly(summary.total.due as f64),
            Self::Unsent => exactly(summary.total.unsent as f64),
            Self::Unfinished => exactly(summary.total.unfinished as f64),
            Self::Failure(failure) => exactly(summary.failures(failure) as f64),
        }
    }
}

impl Unit {
    fn parse(&self, text: &str) -> Result<f64, units::UnitError> {
        match self {
            Self::Duration if text.trim().parse::<f64>().is_ok_and(|bare| bare != 0.0) => {
                Err(units::UnitError { expected: "a duration with its unit, such as 50ms", got: text.to_owned() })
            }
            Self::Duration => units::parse_duration(text).map(|ns| ns as f64),
            Self::Ratio => units::parse_ratio(text),
            Self::Number | Self::Count => units::parse_number(text),
            Self::Size => units::parse_size(text).map(|bytes| bytes as f64),
        }
    }

    fn show(&self, value: f64) -> String {
        match self {
            Self::Duration => units::Duration(value as u64).to_string(),
            Self::Ratio => format!("{}%", (value * 1e8).round() / 1e6),
            Self::Number => format!("{}/s", units::Number(value)),
            Self::Count => format!("{value}"),
            Self::Size => format!("{}/s", units::Size(value)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

impl Operator {
    const WRITTEN: [(&'static str, Self); 5] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("==", Self::Equal), ("<", Self::Below), (">", Self::Above)];

    /// Whether it surely holds for a value that may only be known from below.
    fn holds(self, got: AtLeast<f64>, limit: f64) -> bool {
        match self {
            Self::Below => !got.at_least && got.value < limit,
            Self::AtMost => !got.at_least && got.value <= limit,
            Self::Above => got.value > limit,
            Self::AtLeast => got.value >= limit,
            Self::Equal => !got.at_least && got.value.total_cmp(&limit).is_eq(),
        }
    }
}

/// One condition on a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// As written.
    text: String,
    /// The request name, tag or group it is about; none for all calls.
    name: Option<String>,
    figure: Figure,
    operator: Operator,
    limit: f64,
}

/// A threshold that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a threshold such as 'p99<50ms', 'error_rate<0.1%' or 'rate>10k', got '{text}': {problem}")]
pub struct ThresholdError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| ThresholdError { text: text.to_owned(), problem };
        let (at, (sign, operator)) = Operator::WRITTEN
            .iter()
            .filter_map(|entry| Some((text.find(entry.0)?, entry)))
            .min_by_key(|(at, (sign, _))| (*at, std::cmp::Reverse(sign.len())))
            .ok_or_else(|| error("there is none of < <= > >= == in it".to_owned()))?;
        let (left, right) = (text.get(..at).unwrap_or(""), text.get(at + sign.len()..).unwrap_or(""));
        let (name, figure) = match left.rsplit_once(':') {
            Some((name, figure)) => (Some(name.trim().to_owned()), figure),
            None => (None, left),
        };
        let figure = figure.trim();
        let figure = Figure::parse(figure).ok_or_else(|| {
            let failures: Vec<_> = Failure::ALL.iter().map(|failure| failure.name()).collect();
            error(format!(
                "'{figure}' is no figure; there are p50 … p99.99, mean, stdev, min, max (with service., first_byte., \
                 connect., tls., lag. or failed. before them for other times), error_rate, rate, bytes_in, bytes_out, \
                 due, unsent, unfinished, {}",
                failures.join(", ")
            ))
        })?;
        let limit = figure.unit().parse(right).map_err(|e| error(e.to_string()))?;
        Ok(Self { text: text.to_owned(), name, figure, operator: *operator, limit })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.text
    }
}

/// A threshold and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The threshold as written.
    pub threshold: String,
    /// The figure as it came out, for people; with ≥ where only that is known.
    pub got: String,
    /// Whether it held. A threshold on something that was not measured, or that can only be bounded from below and
    /// might lie beyond, does not.
    pub held: bool,
}

impl Threshold {
    /// The request name, tag or group it is about; none for all calls.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it holds for `summary`.
    pub fn judge(&self, summary: &Summary) -> ThresholdResult {
        let value = if self.name.is_some() { None } else { self.figure.of(summary) };
        let got = match (value, &self.name) {
            (Some(value), _) => {
                format!("{}{}", if value.at_least { "≥" } else { "" }, self.figure.unit().show(value.value))
            }
            (None, Some(name)) => format!("no call has the name '{name}'"),
            (None, None) => "nothing measured".to_owned(),
        };
        let held = value.is_some_and(|value| self.operator.holds(value, self.limit));
        ThresholdResult { threshold: self.text.clone(), got, held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::run;

    fn judge(text: &str) -> (String, bool) {
        let result = text.parse::<Threshold>().unwrap().judge(&Summary::of(run()));
        (result.got, result.held)
    }

    #[test]
    fn figures_are_judged_in_their_units() {
        for (text, got, held) in [
            ("p99 < 50ms", "1.00ms", true),
            ("p99.99<50ms", "2.00s", false),
            ("service.min<=900us", "900.0us", true),
            ("max>1s", "2.00s", true),
            ("error_rate<=0.1%", "0.1%", true),
            ("error_rate < 0.05%", "0.1%", false),
            ("rate >= 990", "999.5/s", true),
            ("timeout==1", "1", true),
            ("closed<1", "0", true),
            ("unsent==0", "0", true),
            ("tls.p99<1s", "nothing measured", false),
            ("home:p99<1s", "no call has the name 'home'", false),
        ] {
            assert_eq!(judge(text), (got.to_owned(), held), "{text}");
        }
    }

    #[test]
    fn a_bound_from_below_holds_nothing_up() {
        let mut run = run();
        run.drained.unfinished = 100;
        run.drained.response.bounds.record_n(10_000, 100);
        let summary = Summary::of(run);
        let held = |text: &str| text.parse::<Threshold>().unwrap().judge(&summary);
        assert!(!held("p99<50ms").held);
        assert!(held("p99<50ms").got.starts_with('≥'));
        assert!(held("p50<50ms").held);
    }

    #[test]
    fn a_latency_does_not_hold_when_nothing_was_answered() {
        let mut run = run();
        run.measured = crate::snapshot::Snapshot { due: 1, ..Default::default() };
        run.measured.failures.record(Failure::Connect, "connection refused");
        run.measured.response.known.record(30_000);
        let result = "p99<50ms".parse::<Threshold>().unwrap().judge(&Summary::of(run));
        assert_eq!((result.got.as_str(), result.held), ("nothing measured", false));
    }

    #[test]
    fn nonsense_is_refused_with_a_way_out() {
        for (text, expected) in [
            ("p99", "there is none of < <= > >= =="),
            ("p100<1s", "'p100' is no figure"),
            ("px<1s", "'px' is no figure"),
            ("p99<fast", "expected a duration"),
            ("p99<50", "expected a duration with its unit"),
            ("error_rate<5ms", "expected a share"),
            ("<5ms", "'' is no figure"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
