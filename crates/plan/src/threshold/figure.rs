//! The figures that thresholds can be about.

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::OwnKind;
use brunt_record::outcome::Failure;

use crate::units;

/// A time that calls, groups or iterations have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Not named: the response time of calls, a group's time without pauses, an iteration's duration.
    Usual,
    /// A time of the catalogue.
    Recorded(Timing),
    /// The response time of successes alone.
    Ok,
    /// The response time of all calls that ended, each with its duration.
    Ended,
    /// A group's, from beginning to end.
    WithPauses,
    /// A group's, without its pauses.
    WithoutPauses,
    /// How long iterations took.
    Iteration,
    /// How long a group or an iteration itself took.
    Duration,
}

impl Time {
    /// Times that the catalogue does not have.
    const NAMED: [(&'static str, Self); 6] = [
        ("ok", Self::Ok),
        ("all", Self::Ended),
        ("with_pauses", Self::WithPauses),
        ("without_pauses", Self::WithoutPauses),
        ("iteration", Self::Iteration),
        ("duration", Self::Duration),
    ];

    fn named() -> impl Iterator<Item = (&'static str, Self)> {
        let recorded = Timing::ALL.into_iter().filter(|timing| timing.has_threshold());
        recorded.map(|timing| (timing.key(), Self::Recorded(timing))).chain(Self::NAMED)
    }
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The value that this share of all (0 to 1) does not exceed.
    Quantile(f64),
    /// The arithmetic mean.
    Mean,
    /// The standard deviation.
    Stdev,
    /// The smallest value.
    Min,
    /// The largest value.
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
}

/// A count that only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A number of the catalogue.
    Recorded(Counter),
    /// Calls that failed so.
    Failure(Failure),
    /// Checks that held.
    Passes,
    /// Checks that did not.
    Fails,
    /// The most virtual users alive at any time.
    Users,
    /// Virtual users that were started.
    UsersStarted,
    /// Virtual users that arrived and found no place.
    NotAdmitted,
    /// Iterations that finished, or that an error ended.
    Iterations,
    /// Iterations in which a call was not ok, or that an error ended.
    FailedIterations,
    /// Iterations that an error ended.
    ScriptErrors,
}

impl Count {
    /// Counts that are not of calls.
    const NAMED: [(&'static str, Self); 8] = [
        ("passes", Self::Passes),
        ("fails", Self::Fails),
        ("users", Self::Users),
        ("users_started", Self::UsersStarted),
        ("not_admitted", Self::NotAdmitted),
        ("iterations", Self::Iterations),
        ("failed_iterations", Self::FailedIterations),
        ("script_errors", Self::ScriptErrors),
    ];

    fn named() -> impl Iterator<Item = (&'static str, Self)> {
        let recorded = Counter::ALL.into_iter().filter(|counter| counter.has_threshold());
        recorded.map(|counter| (counter.key(), Self::Recorded(counter))).chain(Self::NAMED)
    }
}

/// The value of a script's own figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OfOwn {
    /// Of a trend; of a gauge, also the least and the greatest.
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
    /// Whether figures of this kind have it.
    pub fn is_of(self, kind: OwnKind) -> bool {
        match self {
            Self::Count => true,
            Self::Sum | Self::Rate => kind == OwnKind::Counter,
            Self::Share => kind == OwnKind::Rate,
            Self::Last => kind == OwnKind::Gauge,
            Self::Statistic(Statistic::Min | Statistic::Max) => matches!(kind, OwnKind::Trend | OwnKind::Gauge),
            Self::Statistic(Statistic::Mean | Statistic::Stdev | Statistic::Quantile(_)) => kind == OwnKind::Trend,
        }
    }

    /// The figures of this kind, for people.
    pub(super) const fn names(kind: OwnKind) -> &'static str {
        match kind {
            OwnKind::Counter => "sum, rate and count",
            OwnKind::Rate => "share and count",
            OwnKind::Trend => "p50 … p99.99, mean, stdev, min, max and count",
            OwnKind::Gauge => "last, min, max and count",
        }
    }

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
}

/// The value of a watched figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfWatched {
    /// The mean of its values, the default.
    Mean,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The last value.
    Last,
}

impl OfWatched {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" => Some(Self::Mean),
            "min" => Some(Self::Min),
            "max" => Some(Self::Max),
            "last" => Some(Self::Last),
            _ => None,
        }
    }
}

/// The figure that a threshold limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// A statistic of a time.
    Time(Time, Statistic),
    /// Calls answered with success within this time after they were due, in nanoseconds, over all that were due.
    Within(u64),
    /// Calls that are not ok over all calls that were due.
    ErrorRate,
    /// The share of the measured time for which connections of a closed flood, or users who are there at all times, had a
    /// server.
    Availability,
    /// Iterations that an error ended over all.
    ScriptErrorRate,
    /// Checks that held over all checks.
    Checks,
    /// Answers, groups or iterations a second.
    Rate,
    /// Calls that were due, a second.
    DueRate,
    /// Messages a second.
    MessageRate,
    /// Bytes received a second.
    BytesIn,
    /// Bytes sent a second.
    BytesOut,
    /// How often something happened.
    Count(Count),
    /// Of a figure of a script's own.
    Own(OfOwn),
    /// A watched figure.
    Watched(OfWatched),
}

/// How a figure's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Nanoseconds, as `5.16ms`.
    Duration,
    /// A share from 0 to 1, as `0.1%`.
    Ratio,
    /// Something a second, as `10k/s`.
    Number,
    /// Bytes a second, as `1.5MB/s`.
    Size,
    /// A whole number.
    Count,
    /// Any number.
    Plain,
    /// The unit of a watched figure: a share of a core, bytes, seconds or any number.
    Watched,
}

/// Names of figures in other tools.
const OTHER_TOOLS: [(&str, &str); 20] = [
    ("rps", "rate"),
    ("qps", "rate"),
    ("throughput", "rate"),
    ("errors", "error_rate"),
    ("failed", "error_rate"),
    ("failures", "error_rate"),
    ("failure_rate", "error_rate"),
    ("success", "error_rate"),
    ("success_rate", "error_rate"),
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
    /// The figure of this name, as thresholds have it: `p99`, `service.max`; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = match text {
            "error_rate" => Some(Self::ErrorRate),
            "availability" => Some(Self::Availability),
            "script_error_rate" => Some(Self::ScriptErrorRate),
            "checks" => Some(Self::Checks),
            "rate" => Some(Self::Rate),
            "due_rate" => Some(Self::DueRate),
            "message_rate" => Some(Self::MessageRate),
            "bytes_in" => Some(Self::BytesIn),
            "bytes_out" => Some(Self::BytesOut),
            _ => {
                let count = Count::named().find(|(name, _)| *name == text).map(|(_, count)| count);
                count.or_else(|| Failure::from_name(text).map(Count::Failure)).map(Self::Count)
            }
        };
        let within = || {
            let limit = text.strip_prefix("within(")?.strip_suffix(')')?;
            Some(Self::Within(FigureUnit::Duration.parse(limit).ok()? as u64))
        };
        plain.or_else(within).or_else(|| {
            // A percentile may have a decimal point: p99.9.
            let (time, statistic) = match text.split_once('.') {
                Some((name, rest)) if Statistic::parse(text).is_none() => {
                    (Time::named().find(|(known, _)| *known == name)?.1, rest)
                }
                _ => (Time::Usual, text),
            };
            Some(Self::Time(time, Statistic::parse(statistic)?))
        })
    }

    /// The same percentile of all calls that ended, each with its duration, where this one counts a failed call as one
    /// that would have taken longer.
    pub fn of_ended(self) -> Option<Self> {
        match self {
            Self::Time(Time::Usual | Time::Recorded(Timing::Response), statistic @ Statistic::Quantile(_)) => {
                Some(Self::Time(Time::Ended, statistic))
            }
            _ => None,
        }
    }

    /// The name of a share; empty for any other figure.
    pub(super) fn share_name(self) -> &'static str {
        match self {
            Self::ErrorRate => "error_rate",
            Self::Availability => "availability",
            Self::ScriptErrorRate => "script_error_rate",
            Self::Checks => "checks",
            Self::Count(Count::Recorded(counter)) => counter.key(),
            _ => "",
        }
    }

    /// What thresholds on calls of a name ask for most, for people.
    pub(super) const OF_NAMES: &'static str = " Calls of a name have p50 … p99.99, mean, max, error_rate, availability, checks, rate, \
                                               passes, fails, and failures such as timeout";

    /// A suggestion for an unknown name, for people: the nearest one, or else all names.
    pub(super) fn meant(unknown: &str) -> String {
        // k6 writes p(95).
        let unknown = unknown.trim().to_lowercase().replace(['(', ')'], "");
        if Self::parse(&unknown).is_some() {
            return format!("did you mean {unknown}?");
        }
        let other = OTHER_TOOLS.iter().find(|(name, _)| *name == unknown).map(|(_, ours)| *ours);
        let (time, statistic) = match unknown.split_once('.') {
            Some((time, rest)) if !rest.bytes().all(|b| b.is_ascii_digit()) => (Some(time), rest),
            _ => (None, unknown.as_str()),
        };
        let near = |word: &str, known: Vec<&'static str>| super::nearest(word, known);
        let statistics = || ["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "mean", "stdev", "min", "max"];
        let nearest = match (other, time) {
            (Some(ours), _) => Some(ours.to_owned()),
            (None, Some(time)) => {
                let times = Time::named().map(|(name, _)| name).collect();
                let both = near(time, times).zip(near(statistic, statistics().to_vec()));
                both.map(|(time, statistic)| format!("{time}.{statistic}"))
            }
            (None, None) => {
                let counts = Count::named().map(|(name, _)| name);
                let failures = Failure::ALL.into_iter().map(Failure::name);
                let others = [
                    "error_rate",
                    "script_error_rate",
                    "availability",
                    "checks",
                    "rate",
                    "due_rate",
                    "message_rate",
                    "bytes_in",
                    "bytes_out",
                ];
                let known = statistics().into_iter().chain(others).chain(counts).chain(failures).collect();
                near(statistic, known).map(str::to_owned)
            }
        };
        match nearest {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("there are {}", Self::known()),
        }
    }

    /// All names, for people.
    fn known() -> String {
        let times: Vec<_> = Time::named().map(|(name, _)| format!("{name}.")).collect();
        let counts = Count::named().map(|(name, _)| name);
        let failures = Failure::ALL.iter().map(|failure| failure.name());
        format!(
            "p50 … p99.99, mean, stdev, min, max (with {} before them for other times), within(200ms), error_rate, availability, checks, \
             rate, due_rate, message_rate, bytes_in, bytes_out, {}",
            times.join(" "),
            counts.chain(failures).collect::<Vec<_>>().join(", ")
        )
    }

    /// The unit in which its values are written.
    pub fn unit(self) -> FigureUnit {
        match self {
            Self::Time(..) => FigureUnit::Duration,
            Self::Within(_)
            | Self::ErrorRate
            | Self::Availability
            | Self::ScriptErrorRate
            | Self::Checks
            | Self::Own(OfOwn::Share) => FigureUnit::Ratio,
            Self::Rate | Self::DueRate | Self::MessageRate => FigureUnit::Number,
            Self::BytesIn | Self::BytesOut => FigureUnit::Size,
            Self::Count(Count::Recorded(counter)) if counter.unit() == brunt_record::catalogue::Unit::Nanoseconds => {
                FigureUnit::Duration
            }
            Self::Count(_) => FigureUnit::Count,
            Self::Own(_) => FigureUnit::Plain,
            Self::Watched(_) => FigureUnit::Watched,
        }
    }
}

impl FigureUnit {
    pub(super) fn parse(self, text: &str) -> Result<f64, units::UnitError> {
        match self {
            Self::Duration if text.trim().parse::<f64>().is_ok_and(|bare| bare != 0.0) => {
                Err(units::UnitError { expected: "a duration with its unit, such as 50ms", got: text.to_owned() })
            }
            Self::Duration => units::parse_duration(text).map(|ns| ns as f64),
            Self::Ratio => units::parse_ratio(text).and_then(|ratio| {
                let error = || units::UnitError { expected: "a share such as 5% or 0.05", got: text.to_owned() };
                Some(ratio).filter(|ratio| *ratio <= 1.0).ok_or_else(error)
            }),
            Self::Number | Self::Count => units::parse_number(text),
            // A gauge may be below 0.
            Self::Plain => match text.trim().strip_prefix('-') {
                Some(below) => units::parse_number(below).map(|number| -number),
                None => units::parse_number(text),
            },
            Self::Size => units::parse_size(text).map(|bytes| bytes as f64),
            Self::Watched => {
                let (sign, text) = text.trim().strip_prefix('-').map_or((1.0, text), |below| (-1.0, below));
                let number = || units::parse_number(text).or_else(|_| units::parse_ratio(text));
                let size = |_| units::parse_size(text).map(|bytes| bytes as f64);
                let seconds = |_| units::parse_duration(text).map(|ns| ns as f64 / 1e9);
                let error = |_| units::UnitError {
                    expected: "a number, or one with its unit, such as 90% of a core, 500MB or 20ms",
                    got: text.to_owned(),
                };
                number().or_else(size).or_else(seconds).map(|number| sign * number).map_err(error)
            }
        }
    }

    /// `value`, in the base unit, for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Duration => units::Duration(value as u64).to_string(),
            Self::Ratio => share(value),
            Self::Number => format!("{}/s", units::Number(value)),
            Self::Count => format!("{value}"),
            Self::Plain | Self::Watched => units::Number(value).to_string(),
            Self::Size => format!("{}/s", units::Size(value)),
        }
    }
}

/// A share from 0 to 1 in percent, with three significant digits of its distance from 0 or 100%: `33.3%`, `98.88%`, `99.9996%`.
fn share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let lacks = percent.min(100.0 - percent).max(0.0);
    let decimals = if lacks > 0.0 { (2.0 - lacks.log10().floor()).clamp(0.0, 6.0) } else { 0.0 };
    let scale = 10_f64.powf(decimals);
    format!("{}%", (percent * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_digits_that_tell_them_from_all_or_nothing() {
        for (ratio, text) in [
            (0.0, "0%"),
            (1.0, "100%"),
            (1.0 / 3.0, "33.3%"),
            (0.01, "1%"),
            (0.001_234_567, "0.123%"),
            (0.988_765, "98.88%"),
            (0.999_996, "99.9996%"),
            (0.05, "5%"),
        ] {
            assert_eq!(FigureUnit::Ratio.show(ratio), text);
        }
    }
}
