//! The figures that thresholds can be about.

use super::subject::NoSuchFigure;
use crate::figures::{OwnFigures, OwnKind};
use crate::histogram::{AtLeast, Censored};
use crate::outcome::Failure;
use crate::units;

/// A time that calls, groups or iterations have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// None was named: the response time of calls, a group's time without pauses, an iteration's.
    Usual,
    Response,
    Service,
    FirstByte,
    Connect,
    Tls,
    Handshake,
    Lag,
    Failed,
    FirstMessage,
    MessageGap,
    LastMessage,
    EachMessage,
    WithPauses,
    WithoutPauses,
    Iteration,
}

impl Time {
    const NAMED: [(&'static str, Self); 15] = [
        ("response", Self::Response),
        ("service", Self::Service),
        ("first_byte", Self::FirstByte),
        ("connect", Self::Connect),
        ("tls", Self::Tls),
        ("handshake", Self::Handshake),
        ("lag", Self::Lag),
        ("failed", Self::Failed),
        ("first_message", Self::FirstMessage),
        ("message_gap", Self::MessageGap),
        ("last_message", Self::LastMessage),
        ("each_message", Self::EachMessage),
        ("with_pauses", Self::WithPauses),
        ("without_pauses", Self::WithoutPauses),
        ("iteration", Self::Iteration),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Statistic {
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

    /// Its value, in nanoseconds.
    pub(super) fn of(self, times: &Censored) -> Option<AtLeast<f64>> {
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

/// Something that is counted, and only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Due,
    Unsent,
    Unfinished,
    Messages,
    Failure(Failure),
    Passes,
    Fails,
    Users,
    UsersStarted,
    NotAdmitted,
    Iterations,
    ScriptErrors,
}

impl Count {
    const NAMED: [(&'static str, Self); 11] = [
        ("due", Self::Due),
        ("unsent", Self::Unsent),
        ("unfinished", Self::Unfinished),
        ("messages", Self::Messages),
        ("passes", Self::Passes),
        ("fails", Self::Fails),
        ("users", Self::Users),
        ("users_started", Self::UsersStarted),
        ("not_admitted", Self::NotAdmitted),
        ("iterations", Self::Iterations),
        ("script_errors", Self::ScriptErrors),
    ];
}

/// What is asked of a figure of a script's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OfOwn {
    /// Of a trend; the least and the greatest of a gauge too.
    Statistic(Statistic),
    /// Of a counter.
    Sum,
    /// Of a counter, a second.
    Rate,
    /// Of a rate.
    Share,
    /// Of a gauge.
    Last,
    /// How often something was recorded.
    Count,
}

impl OfOwn {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "sum" => Some(Self::Sum),
            "rate" => Some(Self::Rate),
            "share" => Some(Self::Share),
            "last" => Some(Self::Last),
            "count" => Some(Self::Count),
            _ => Statistic::parse(text).map(Self::Statistic),
        }
    }

    /// Its value, in the figure's own unit; none if nothing was recorded.
    ///
    /// # Errors
    /// When figures of this kind have none.
    pub(super) fn of(self, own: &OwnFigures, measured_s: f64) -> Result<Option<f64>, NoSuchFigure> {
        let there = |value: Option<f64>, is_of: bool| if is_of { Ok(value) } else { Err(NoSuchFigure) };
        let (is_trend, is_gauge) = (own.kind == OwnKind::Trend, own.kind == OwnKind::Gauge);
        match self {
            Self::Count => Ok(Some(own.count as f64)),
            Self::Sum => there(own.sum(), own.kind == OwnKind::Counter),
            Self::Rate => {
                let rate = own.sum().filter(|_| measured_s > 0.0).map(|sum| sum / measured_s);
                there(rate, own.kind == OwnKind::Counter)
            }
            Self::Share => there(own.share(), own.kind == OwnKind::Rate),
            Self::Last => there(own.last(), is_gauge),
            Self::Statistic(Statistic::Min) => there(own.min(), is_trend || is_gauge),
            Self::Statistic(Statistic::Max) => there(own.max(), is_trend || is_gauge),
            Self::Statistic(Statistic::Mean) => there(own.mean(), is_trend),
            Self::Statistic(Statistic::Stdev) => there(own.stdev(), is_trend),
            Self::Statistic(Statistic::Quantile(q)) => there(own.quantile(q), is_trend),
        }
    }
}

/// What a threshold limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Figure {
    Time(Time, Statistic),
    /// What is not ok over all.
    ErrorRate,
    /// Checks that held over all checks.
    Checks,
    /// Answers, groups or iterations a second.
    Rate,
    /// Messages a second.
    MessageRate,
    BytesIn,
    BytesOut,
    Count(Count),
    /// Of a figure of a script's own.
    Own(OfOwn),
}

/// How a figure's value is written.
pub(super) enum Unit {
    Duration,
    Ratio,
    Number,
    Size,
    Count,
    Plain,
}

/// What figures are called by other tools.
const OTHER_TOOLS: [(&str, &str); 15] = [
    ("rps", "rate"),
    ("qps", "rate"),
    ("throughput", "rate"),
    ("errors", "error_rate"),
    ("http_req_failed", "error_rate"),
    ("avg", "mean"),
    ("average", "mean"),
    ("median", "p50"),
    ("med", "p50"),
    ("latency", "p99"),
    ("http_req_duration", "p99"),
    ("ttfb", "first_byte.p99"),
    ("ttft", "first_message.p99"),
    ("itl", "message_gap.p99"),
    ("tpot", "each_message.p99"),
];

impl Figure {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain = match text {
            "error_rate" => Some(Self::ErrorRate),
            "checks" => Some(Self::Checks),
            "rate" => Some(Self::Rate),
            "message_rate" => Some(Self::MessageRate),
            "bytes_in" => Some(Self::BytesIn),
            "bytes_out" => Some(Self::BytesOut),
            _ => {
                let count = Count::NAMED.iter().find(|(name, _)| *name == text).map(|(_, count)| *count);
                count.or_else(|| Failure::from_name(text).map(Count::Failure)).map(Self::Count)
            }
        };
        plain.or_else(|| {
            // A percentile has a point of its own: p99.9.
            let (time, statistic) = match text.split_once('.') {
                Some((name, rest)) if Statistic::parse(text).is_none() => {
                    (Time::NAMED.iter().find(|(known, _)| *known == name)?.1, rest)
                }
                _ => (Time::Usual, text),
            };
            Some(Self::Time(time, Statistic::parse(statistic)?))
        })
    }

    /// What may have been meant by an unknown name, for people: the nearest, or else all there are.
    pub(super) fn meant(unknown: &str) -> String {
        let unknown = unknown.trim().to_lowercase();
        let other = OTHER_TOOLS.iter().find(|(name, _)| *name == unknown).map(|(_, ours)| *ours);
        let (time, statistic) = match unknown.split_once('.') {
            Some((time, rest)) if !rest.bytes().all(|b| b.is_ascii_digit()) => (Some(time), rest),
            _ => (None, unknown.as_str()),
        };
        let near = |word: &str, known: Vec<&'static str>| {
            let most = (word.chars().count() / 3).clamp(1, 3);
            let slips = known.into_iter().map(|name| (strsim::damerau_levenshtein(word, name), name));
            slips.filter(|(slips, _)| *slips <= most).min().map(|(_, name)| name)
        };
        let statistics = || ["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "mean", "stdev", "min", "max"];
        let nearest = match (other, time) {
            (Some(ours), _) => Some(ours.to_owned()),
            (None, Some(time)) => {
                let times = Time::NAMED.iter().map(|(name, _)| *name).collect();
                let both = near(time, times).zip(near(statistic, statistics().to_vec()));
                both.map(|(time, statistic)| format!("{time}.{statistic}"))
            }
            (None, None) => {
                let counts = Count::NAMED.iter().map(|(name, _)| *name);
                let failures = Failure::ALL.into_iter().map(Failure::name);
                let others = ["error_rate", "checks", "rate", "message_rate", "bytes_in", "bytes_out"];
                let known = statistics().into_iter().chain(others).chain(counts).chain(failures).collect();
                near(statistic, known).map(str::to_owned)
            }
        };
        match nearest {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("there are {}", Self::known()),
        }
    }

    /// All there are, for people.
    fn known() -> String {
        let times: Vec<_> = Time::NAMED.iter().map(|(name, _)| format!("{name}.")).collect();
        let counts = Count::NAMED.iter().map(|(name, _)| *name);
        let failures = Failure::ALL.iter().map(|failure| failure.name());
        format!(
            "p50 … p99.99, mean, stdev, min, max (with {} before them for other times), error_rate, checks, rate, \
             message_rate, bytes_in, bytes_out, {}",
            times.join(" "),
            counts.chain(failures).collect::<Vec<_>>().join(", ")
        )
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Time(..) => Unit::Duration,
            Self::ErrorRate | Self::Checks | Self::Own(OfOwn::Share) => Unit::Ratio,
            Self::Rate | Self::MessageRate => Unit::Number,
            Self::BytesIn | Self::BytesOut => Unit::Size,
            Self::Count(_) => Unit::Count,
            Self::Own(_) => Unit::Plain,
        }
    }
}

impl Unit {
    pub(super) fn parse(&self, text: &str) -> Result<f64, units::UnitError> {
        match self {
            Self::Duration if text.trim().parse::<f64>().is_ok_and(|bare| bare != 0.0) => {
                Err(units::UnitError { expected: "a duration with its unit, such as 50ms", got: text.to_owned() })
            }
            Self::Duration => units::parse_duration(text).map(|ns| ns as f64),
            Self::Ratio => units::parse_ratio(text),
            Self::Number | Self::Count => units::parse_number(text),
            // A gauge may be below 0.
            Self::Plain => match text.trim().strip_prefix('-') {
                Some(below) => units::parse_number(below).map(|number| -number),
                None => units::parse_number(text),
            },
            Self::Size => units::parse_size(text).map(|bytes| bytes as f64),
        }
    }

    pub(super) fn show(&self, value: f64) -> String {
        match self {
            Self::Duration => units::Duration(value as u64).to_string(),
            Self::Ratio => format!("{}%", (value * 1e8).round() / 1e6),
            Self::Number => format!("{}/s", units::Number(value)),
            Self::Count => format!("{value}"),
            Self::Plain => units::Number(value).to_string(),
            Self::Size => format!("{}/s", units::Size(value)),
        }
    }
}
