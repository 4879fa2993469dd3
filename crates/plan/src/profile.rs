//! A load profile: how many calls a second are due, over time.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{self, ExactDuration};

/// The highest rate a plan may ask for, in calls a second: far beyond what one machine can send.
pub const HIGHEST_RATE: f64 = 1e7;

/// A stretch of time in which the rate is constant or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Calls a second where it begins.
    pub from: f64,
    /// Calls a second where it ends.
    pub to: f64,
    /// How long it lasts, in seconds.
    pub seconds: f64,
}

impl Segment {
    /// How many calls are due in the segment's first `x` seconds: the integral of its rate.
    fn calls(&self, x: f64) -> f64 {
        self.from * x + (self.to - self.from) * x * x / (2.0 * self.seconds)
    }

    /// The time, in seconds, at which `calls` calls have become due: the inverse of [`Segment::calls`].
    ///
    /// Solves from·x + slope/2·x² = calls in the form x = 2·calls / (from + √(from² + 2·slope·calls)), which loses
    /// no digits when the slope is small (Press et al., "Numerical Recipes", §5.6).
    pub(crate) fn time_of(&self, calls: f64) -> f64 {
        if self.from == self.to {
            return calls / self.from;
        }
        let slope = (self.to - self.from) / self.seconds;
        let root = (self.from * self.from + 2.0 * slope * calls).max(0.0).sqrt();
        let sum = self.from + root;
        if sum > 0.0 { 2.0 * calls / sum } else { 0.0 }
    }
}

/// A rate over time: one constant rate without an end, or ramps and holds one after the other.
///
/// Written as `2000`, or `1000..2000/60s,2000/30s,0..5k/1m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Profile {
    segments: Vec<Segment>,
    /// Calls due before each segment; one longer than `segments`.
    calls_before: Vec<f64>,
    /// Seconds before each segment; one longer than `segments`.
    seconds_before: Vec<f64>,
}

/// A profile that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as 2000, or ramps and holds such as 1000..2000/60s,2000/30s; in '{part}' {problem}")]
pub struct ProfileError {
    /// The part of the profile that was not understood.
    pub part: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Profile {
    /// A constant rate, in calls a second, without an end.
    ///
    /// # Errors
    /// When the rate is not above 0 and at most [`HIGHEST_RATE`].
    pub fn constant(rate: f64) -> Result<Self, ProfileError> {
        Self::new(vec![Segment { from: rate, to: rate, seconds: f64::INFINITY }])
    }

    /// These segments, one after the other.
    ///
    /// # Errors
    /// When a rate is out of range, or no call is ever due.
    pub fn new(segments: Vec<Segment>) -> Result<Self, ProfileError> {
        let problem = |part: String, problem: &str| Err(ProfileError { part, problem: problem.to_owned() });
        let (mut calls, mut seconds) = (0.0, 0.0);
        let (mut calls_before, mut seconds_before) = (vec![0.0], vec![0.0]);
        for segment in &segments {
            let rates = [segment.from, segment.to];
            if rates.iter().any(|rate| !(0.0..=HIGHEST_RATE).contains(rate)) {
                return problem(format!("{segment:?}"), "a rate is not between 0 and 10M calls a second");
            }
            if segment.seconds.is_nan() || segment.seconds <= 0.0 {
                return problem(format!("{segment:?}"), "the length is not above 0");
            }
            calls += if segment.seconds.is_finite() {
                segment.calls(segment.seconds)
            } else if segment.from > 0.0 {
                f64::INFINITY
            } else {
                0.0
            };
            seconds += segment.seconds;
            calls_before.push(calls);
            seconds_before.push(seconds);
        }
        if calls <= 0.0 {
            return problem(String::new(), "no call is ever due");
        }
        Ok(Self { segments, calls_before, seconds_before })
    }

    /// The same profile at `factor` times its rates.
    ///
    /// # Errors
    /// When a rate is out of range then.
    pub fn scaled(&self, factor: f64) -> Result<Self, ProfileError> {
        let times = |segment: &Segment| Segment { from: segment.from * factor, to: segment.to * factor, ..*segment };
        Self::new(self.segments.iter().map(times).collect())
    }

    /// Whether its rate is the same all the time.
    pub fn is_constant(&self) -> bool {
        let first = self.segments.first().map_or(0.0, |segment| segment.from);
        self.segments.iter().all(|segment| segment.from == first && segment.to == first)
    }

    /// How many calls are due in the first `seconds` if its last rate is held after its end.
    pub fn calls_held_until(&self, seconds: f64) -> f64 {
        let end = self.seconds_before.last().copied().unwrap_or(0.0);
        let last = self.segments.last().map_or(0.0, |segment| segment.to);
        self.calls_until(seconds) + (seconds - end).max(0.0) * last
    }

    /// The time, in seconds, at which `calls` calls have become due if its last rate is held after its end; `hint` as for
    /// [`Profile::time_of`]. Where that rate is 0, they never do.
    pub fn time_held_of(&self, calls: f64, hint: &mut usize) -> f64 {
        if let Some(time) = self.time_of(calls, hint) {
            return time;
        }
        let end = self.seconds_before.last().copied().unwrap_or(0.0);
        let all = self.calls_before.last().copied().unwrap_or(0.0);
        let last = self.segments.last().map_or(0.0, |segment| segment.to);
        if last > 0.0 { end + (calls - all) / last } else { units::LONGEST_NS as f64 / 1e9 }
    }

    /// How long it lasts, in nanoseconds; none if it has no end.
    pub fn duration_ns(&self) -> Option<u64> {
        let seconds = self.seconds_before.last().copied().unwrap_or(0.0);
        seconds.is_finite().then(|| (seconds * 1e9).round() as u64)
    }

    /// The rate at its very beginning, or, where that is 0, the mean of its first segment that has any: what a
    /// warm-up runs at. In calls a second.
    pub fn first_rate(&self) -> f64 {
        self.segments
            .iter()
            .map(|segment| if segment.from > 0.0 { segment.from } else { segment.to / 2.0 })
            .find(|rate| *rate > 0.0)
            .unwrap_or(1.0)
    }

    /// The highest rate that it reaches, in calls a second.
    pub fn highest_rate(&self) -> f64 {
        self.segments.iter().map(|segment| segment.from.max(segment.to)).fold(0.0, f64::max)
    }

    /// How many calls are due in all, as a real number; infinite if it has no end.
    pub fn calls(&self) -> f64 {
        self.calls_before.last().copied().unwrap_or(0.0)
    }

    /// How many calls are due in the first `seconds`, as a real number.
    pub fn calls_until(&self, seconds: f64) -> f64 {
        let mut calls = 0.0;
        for ((segment, before), calls_before) in self.segments.iter().zip(&self.seconds_before).zip(&self.calls_before)
        {
            if seconds <= *before {
                break;
            }
            calls = calls_before + segment.calls((seconds - before).min(segment.seconds));
        }
        calls
    }

    /// The time, in seconds, at which `calls` calls have become due; none when that never happens. `hint` is a place
    /// to keep where the last answer lay, so that asking for growing numbers does not search again.
    pub fn time_of(&self, calls: f64, hint: &mut usize) -> Option<f64> {
        while *self.calls_before.get(*hint + 1)? <= calls {
            *hint += 1;
        }
        let segment = self.segments.get(*hint)?;
        let within = segment.time_of(calls - self.calls_before.get(*hint)?);
        Some(self.seconds_before.get(*hint)? + within.min(segment.seconds))
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let problem = |part: &str, problem: String| ProfileError { part: part.to_owned(), problem };
        let rate = |part: &str, text: &str| units::parse_number(text).map_err(|e| problem(part, e.to_string()));
        if !text.contains(['/', ',']) && !text.contains("..") {
            return Self::constant(rate(text, text)?).map_err(|e| problem(text, e.problem));
        }
        let segment = |part: &str| -> Result<Segment, ProfileError> {
            let (rates, length) = part
                .split_once('/')
                .ok_or_else(|| problem(part, "a length is missing, such as the /60s of 1000..2000/60s".to_owned()))?;
            let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
            let seconds = units::parse_duration(length).map_err(|e| problem(part, e.to_string()))? as f64 / 1e9;
            let segment = Segment { from: rate(part, from)?, to: rate(part, to)?, seconds };
            match Self::new(vec![segment]) {
                Err(e) if !e.part.is_empty() => Err(problem(part, e.problem)),
                _ => Ok(segment),
            }
        };
        let segments: Vec<_> = text.split(',').map(|part| segment(part.trim())).collect::<Result<_, _>>()?;
        Self::new(segments).map_err(|e| problem(text, e.problem))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Segment { from, to, seconds }) in self.segments.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{from}")?;
            if from != to {
                write!(f, "..{to}")?;
            }
            if seconds.is_finite() {
                write!(f, "/{}", ExactDuration((seconds * 1e9).round() as u64))?;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Profile {
    type Error = ProfileError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> Self {
        profile.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["2000", "1000..2000/1m,2000/30s,0..5000/1m", "10/1500ms", "0/5s,7/1s"] {
            assert_eq!(text.parse::<Profile>().unwrap().to_string(), text);
        }
        assert_eq!("0..5k/1m".parse::<Profile>().unwrap().to_string(), "0..5000/1m");
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, expected) in [
            ("1000..2000", "in '1000..2000' a length is missing"),
            ("1k/1m,5x/1m", "in '5x/1m' expected a number"),
            ("0", "no call is ever due"),
            ("0/10s", "no call is ever due"),
            ("1k/0s", "the length is not above 0"),
            ("1G", "a rate is not between"),
            ("", "expected a number"),
        ] {
            let error = text.parse::<Profile>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_ramp_from_zero_reaches_its_end() {
        let profile: Profile = "0..100/10s".parse().unwrap();
        assert_eq!(profile.duration_ns(), Some(10_000_000_000));
        assert!((profile.calls_until(10.0) - 500.0).abs() < 1e-9);
        assert_eq!(profile.time_of(0.0, &mut 0), Some(0.0));
        assert!((profile.time_of(125.0, &mut 0).unwrap() - 5.0).abs() < 1e-9);
        assert_eq!(profile.time_of(500.0, &mut 0), None);
    }

    #[test]
    fn nothing_is_due_in_a_pause() {
        let profile: Profile = "10/1s,0/5s,10/1s".parse().unwrap();
        assert!((profile.time_of(10.0, &mut 0).unwrap() - 6.0).abs() < 1e-9);
        assert!((profile.calls_until(5.5) - 10.0).abs() < 1e-9);
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        let segment = (0_u32..5000, 0_u32..5000, 1_u32..100).prop_map(|(from, to, tenths)| Segment {
            from: f64::from(from),
            to: f64::from(to),
            seconds: f64::from(tenths) / 10.0,
        });
        prop::collection::vec(segment, 1..6).prop_filter_map("never due", |s| Profile::new(s).ok())
    }

    proptest! {
        #[test]
        fn time_and_calls_are_inverse_and_monotonic(profile in profiles(), share in 0.0_f64..0.999) {
            let end = profile.duration_ns().unwrap() as f64 / 1e9;
            let total = profile.calls_until(end);
            let calls = total * share;
            let time = profile.time_of(calls, &mut 0).unwrap();
            prop_assert!((0.0..=end).contains(&time));
            prop_assert!((profile.calls_until(time) - calls).abs() < 1e-6 * total.max(1.0));
            let later = profile.time_of(total * (share + 0.0005), &mut 0).unwrap();
            prop_assert!(later >= time);
        }
    }
}
