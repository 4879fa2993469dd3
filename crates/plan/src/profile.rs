//! A load profile: how many calls a second are due, over time.

use std::fmt;
use std::str::FromStr;

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

/// A piece of a profile: a segment, or the part of one that a change of the profile has left.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    segment: Segment,
    /// The part of the segment before it, in seconds.
    skipped: f64,
    /// How long it lasts, in seconds.
    seconds: f64,
}

impl Piece {
    fn rate_at(&self, x: f64) -> f64 {
        let Segment { from, to, seconds } = self.segment;
        let passed = self.skipped + x;
        if from == to || passed >= seconds { to } else { from + (to - from) * (passed / seconds) }
    }

    fn first_rate(&self) -> f64 {
        self.rate_at(0.0)
    }

    fn last_rate(&self) -> f64 {
        self.rate_at(self.seconds)
    }

    fn calls(&self, x: f64) -> f64 {
        // Of a constant rate no digits are lost, however much was skipped.
        if self.segment.from == self.segment.to {
            return self.segment.calls(x);
        }
        self.segment.calls(self.skipped + x) - self.segment.calls(self.skipped)
    }

    fn time_of(&self, calls: f64) -> f64 {
        if self.segment.from == self.segment.to {
            return self.segment.time_of(calls);
        }
        self.segment.time_of(calls + self.segment.calls(self.skipped)) - self.skipped
    }

    /// Splits it at `x` seconds; either part may be absent.
    fn cut(self, x: f64) -> (Option<Self>, Option<Self>) {
        let first = Self { seconds: x.min(self.seconds), ..self };
        let rest = Self { skipped: self.skipped + x, seconds: self.seconds - x, ..self };
        let some = |piece: Self| Some(piece).filter(|piece| piece.seconds > 0.0);
        (some(first), some(rest))
    }
}

impl From<Segment> for Piece {
    fn from(segment: Segment) -> Self {
        Self { segment, skipped: 0.0, seconds: segment.seconds }
    }
}

/// A rate over time: one constant rate without an end, or ramps and holds one after the other.
///
/// Written as `2000`, or `1000..2000/60s,2000/30s,0..5k/1m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Profile {
    pieces: Vec<Piece>,
    /// Calls due before each piece; one longer than `pieces`.
    calls_before: Vec<f64>,
    /// Seconds before each piece; one longer than `pieces`.
    seconds_before: Vec<f64>,
}

/// A profile that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as 2000, or ramps and holds such as 1000..2000/60s,2000/30s; in '{part}' {problem}")]
pub struct ProfileError {
    /// The part of the profile that was not understood.
    pub part: String,
    /// The problem.
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
        for segment in &segments {
            let rates = [segment.from, segment.to];
            if rates.iter().any(|rate| !(0.0..=HIGHEST_RATE).contains(rate)) {
                return problem(format!("{segment:?}"), "a rate is not between 0 and 10M calls a second");
            }
            if segment.seconds.is_nan() || segment.seconds <= 0.0 {
                return problem(format!("{segment:?}"), "the length is not above 0");
            }
        }
        let profile = Self::of(segments.into_iter().map(Piece::from).collect());
        if profile.calls() <= 0.0 {
            return problem(String::new(), "no call is ever due");
        }
        Ok(profile)
    }

    fn of(pieces: Vec<Piece>) -> Self {
        let (mut calls, mut seconds) = (0.0, 0.0);
        let (mut calls_before, mut seconds_before) = (vec![0.0], vec![0.0]);
        for piece in &pieces {
            calls += if piece.seconds.is_finite() {
                piece.calls(piece.seconds)
            } else if piece.first_rate() > 0.0 {
                f64::INFINITY
            } else {
                0.0
            };
            seconds += piece.seconds;
            calls_before.push(calls);
            seconds_before.push(seconds);
        }
        Self { pieces, calls_before, seconds_before }
    }

    /// This profile until `at` seconds, and then `other`, from the same time on. Up to there calls are due at the same
    /// times, to the bit.
    pub(crate) fn until(&self, at: f64, other: &Self) -> Self {
        let mut pieces = self.parted(at).0;
        pieces.extend(other.parted(at).1);
        Self::of(pieces)
    }

    /// Its pieces before and after `at` seconds.
    fn parted(&self, at: f64) -> (Vec<Piece>, Vec<Piece>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (piece, begins) in self.pieces.iter().zip(&self.seconds_before) {
            if *begins >= at {
                after.push(*piece);
            } else {
                let (first, rest) = piece.cut(at - begins);
                before.extend(first);
                after.extend(rest);
            }
        }
        (before, after)
    }

    /// A constant rate, which may be 0, for as long as this profile lasts.
    pub(crate) fn levelled(&self, rate: f64) -> Self {
        let seconds = self.seconds_before.last().copied().unwrap_or(0.0);
        Self::of(vec![Piece::from(Segment { from: rate, to: rate, seconds })])
    }

    /// The rate at `seconds`, in calls a second; where it jumps, the rate after the jump. 0 after its end.
    pub fn rate_at(&self, seconds: f64) -> f64 {
        let mut pieces = self.pieces.iter().zip(&self.seconds_before).rev();
        let piece = pieces.find(|(_, begins)| **begins <= seconds);
        piece
            .filter(|(piece, begins)| seconds - **begins < piece.seconds)
            .map_or(0.0, |(piece, begins)| piece.rate_at(seconds - begins))
    }

    /// Its first `seconds` as a profile of their own.
    ///
    /// # Errors
    /// When no call is due in them.
    pub fn first_seconds(&self, seconds: f64) -> Result<Self, ProfileError> {
        let first = Self::of(self.parted(seconds).0);
        if first.calls() > 0.0 {
            return Ok(first);
        }
        Err(ProfileError { part: first.to_string(), problem: "no call is ever due".to_owned() })
    }

    /// The same profile at `factor` times its rates.
    ///
    /// # Errors
    /// When a rate gets out of range.
    pub fn scaled(&self, factor: f64) -> Result<Self, ProfileError> {
        let times = |segment: Segment| Segment { from: segment.from * factor, to: segment.to * factor, ..segment };
        Self::new(self.pieces.iter().map(|piece| times(piece.segment)).collect())?;
        Ok(Self::of(self.pieces.iter().map(|piece| Piece { segment: times(piece.segment), ..*piece }).collect()))
    }

    /// Whether its rate is the same all the time.
    pub fn is_constant(&self) -> bool {
        let first = self.pieces.first().map_or(0.0, Piece::first_rate);
        self.pieces.iter().all(|piece| piece.first_rate() == first && piece.last_rate() == first)
    }

    /// How many calls are due in the first `seconds` if its last rate is held after its end.
    pub fn calls_held_until(&self, seconds: f64) -> f64 {
        let end = self.seconds_before.last().copied().unwrap_or(0.0);
        let last = self.pieces.last().map_or(0.0, Piece::last_rate);
        self.calls_until(seconds) + (seconds - end).max(0.0) * last
    }

    /// The time, in seconds, at which `calls` calls have become due if the last rate is held after the end. If that rate
    /// is 0 and they never do, it is the longest time of a plan. `hint` is as for [`Profile::time_of`].
    pub fn time_held_of(&self, calls: f64, hint: &mut usize) -> f64 {
        if let Some(time) = self.time_of(calls, hint) {
            return time;
        }
        let end = self.seconds_before.last().copied().unwrap_or(0.0);
        let all = self.calls_before.last().copied().unwrap_or(0.0);
        let last = self.pieces.last().map_or(0.0, Piece::last_rate);
        if last > 0.0 { end + (calls - all) / last } else { units::LONGEST_NS as f64 / 1e9 }
    }

    /// It in words: `300 requests/s`, `100 requests/s for 1s, then 1,000/s for 6s`; of many pieces, the least and the greatest rate.
    pub fn in_words(&self, unit: &str) -> String {
        /// The most pieces that are told one by one.
        const MOST: usize = 3;
        let rates = |unit: &str, from: f64, to: f64| {
            let (from, to) = (units::Number(from), units::Number(to));
            if from.to_string() == to.to_string() {
                format!("{from}{unit}/s")
            } else {
                format!("{from} to {to}{unit}/s")
            }
        };
        let unit = format!(" {unit}");
        if self.pieces.len() > MOST {
            let all = || self.pieces.iter().flat_map(|piece| [piece.first_rate(), piece.last_rate()]);
            let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
            return format!("{}, in {} steps", rates(&unit, least, most), self.pieces.len());
        }
        let piece = |(place, piece): (usize, &Piece)| {
            let text = rates(if place == 0 { &unit } else { "" }, piece.first_rate(), piece.last_rate());
            let length = ExactDuration((piece.seconds * 1e9).round() as u64);
            if piece.seconds.is_finite() { format!("{text} for {length}") } else { text }
        };
        self.pieces.iter().enumerate().map(piece).collect::<Vec<_>>().join(", then ")
    }

    /// Its length, in nanoseconds; `None` if it has no end.
    pub fn duration_ns(&self) -> Option<u64> {
        let seconds = self.seconds_before.last().copied().unwrap_or(0.0);
        seconds.is_finite().then(|| (seconds * 1e9).round() as u64)
    }

    /// The rate of a warm-up, in calls a second: the rate at the very beginning or, where that is 0, the mean of the
    /// first segment with calls.
    pub fn first_rate(&self) -> f64 {
        self.pieces
            .iter()
            .map(|piece| if piece.first_rate() > 0.0 { piece.first_rate() } else { piece.last_rate() / 2.0 })
            .find(|rate| *rate > 0.0)
            .unwrap_or(1.0)
    }

    /// The highest rate that it reaches, in calls a second.
    pub fn highest_rate(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.first_rate().max(piece.last_rate())).fold(0.0, f64::max)
    }

    /// How many calls are due in all, as a real number; infinite if it has no end.
    pub fn calls(&self) -> f64 {
        self.calls_before.last().copied().unwrap_or(0.0)
    }

    /// How many calls are due in the first `seconds`, as a real number.
    pub fn calls_until(&self, seconds: f64) -> f64 {
        let mut calls = 0.0;
        for ((piece, before), calls_before) in self.pieces.iter().zip(&self.seconds_before).zip(&self.calls_before) {
            if seconds <= *before {
                break;
            }
            calls = calls_before + piece.calls((seconds - before).min(piece.seconds));
        }
        calls
    }

    /// The time, in seconds, at which `calls` calls have become due; `None` if that never happens. `hint` keeps the
    /// place of the last answer, so that growing numbers need no new search.
    pub fn time_of(&self, calls: f64, hint: &mut usize) -> Option<f64> {
        while *self.calls_before.get(*hint + 1)? <= calls {
            *hint += 1;
        }
        let piece = self.pieces.get(*hint)?;
        let within = piece.time_of(calls - self.calls_before.get(*hint)?);
        Some(self.seconds_before.get(*hint)? + within.clamp(0.0, piece.seconds))
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
            // A unit without a number: in other tools the time that a rate counts by.
            if !length.is_empty() && !length.contains(|c: char| c.is_ascii_digit()) {
                let problem_text = format!(
                    "'/{length}' has no length: rates are per second (-r 2 for 120 a minute), and /1{length} is for how long"
                );
                return Err(problem(part, problem_text));
            }
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
        for (i, piece) in self.pieces.iter().enumerate() {
            let (from, to, seconds) = (piece.first_rate(), piece.last_rate(), piece.seconds);
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
    fn it_is_told_in_words() {
        for (text, words) in [
            ("300", "300 requests/s"),
            ("100/1s,1000/6s", "100 requests/s for 1s, then 1,000/s for 6s"),
            ("0..2000/30s,2000/1m", "0 to 2,000 requests/s for 30s, then 2,000/s for 1m"),
            ("10/1s,20/1s,5/1s,40/1s", "5 to 40 requests/s, in 4 steps"),
        ] {
            assert_eq!(text.parse::<Profile>().unwrap().in_words("requests"), words);
        }
    }

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
