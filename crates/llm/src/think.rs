//! How long people think before they ask on: a duration, or a distribution of durations.

use std::fmt;
use std::str::FromStr;

use brunt_plan::random::Random;
use brunt_plan::units::{ExactDuration, parse_duration};
use serde::{Deserialize, Serialize};

use crate::length::{Distribution, Make};

/// The longest time, in nanoseconds.
const LONGEST_NS: f64 = 24.0 * 3600e9;

/// The time between an answer and the next turn, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Think {
    /// By a distribution that lengths have, too.
    By(Distribution),
    /// As for people who come by chance, by its mean.
    Exponential(f64),
}

impl Think {
    /// None at all.
    pub const NONE: Self = Self::By(Distribution::Fixed(0.0));

    /// A time at random, in nanoseconds.
    pub fn draw(self, random: &mut Random) -> u64 {
        let drawn = match self {
            Self::By(distribution) => distribution.draw(random),
            Self::Exponential(mean) => mean * random.exponential(),
        };
        drawn.round().clamp(0.0, LONGEST_NS) as u64
    }
}

impl FromStr for Think {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a time such as 2s, or exp:2s, normal:2s,500ms, lognormal:2s,3s (mean and deviation) or uniform:1s,5s, not \
                 '{text}'"
            )
        };
        let duration = |text: &str| {
            let ns = parse_duration(text.trim()).map_err(|_| expected())?;
            Some(ns as f64).filter(|ns| *ns <= LONGEST_NS).ok_or_else(expected)
        };
        let Some((name, times)) = text.split_once(':') else {
            return Ok(Self::By(Distribution::Fixed(duration(text)?)));
        };
        if name.trim() == "exp" {
            return Ok(Self::Exponential(duration(times)?));
        }
        let make: Make = Distribution::named(name.trim()).ok_or_else(expected)?;
        let (first, second) = times.split_once(',').ok_or_else(expected)?;
        let distribution = make(duration(first)?, duration(second)?);
        Some(Self::By(distribution)).filter(|_| distribution.is_possible()).ok_or_else(expected)
    }
}

impl TryFrom<String> for Think {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Think> for String {
    fn from(think: Think) -> Self {
        think.to_string()
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: f64| ExactDuration(ns as u64).to_string();
        match self {
            Self::By(distribution) => distribution.write(f, time),
            Self::Exponential(mean) => write!(f, "exp:{}", time(*mean)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for text in ["2s", "0s", "1500ms", "exp:2s", "normal:2s,500ms", "lognormal:2s,3s", "uniform:1s,5s"] {
            let think: Think = text.parse().unwrap();
            assert_eq!(think.to_string().parse(), Ok(think), "{text} {think}");
        }
        for wrong in ["", "2x", "exp:", "normal:2s", "uniform:5s,1s", "lognormal:0s,1s", "30h"] {
            let problem = wrong.parse::<Think>().unwrap_err();
            assert!(problem.ends_with(&format!("not '{wrong}'")), "{problem}");
        }
    }

    #[test]
    fn times_have_their_mean() {
        for (text, mean_s) in [("2s", 2.0), ("exp:2s", 2.0), ("normal:2s,100ms", 2.0), ("uniform:1s,5s", 3.0)] {
            let (think, mut random) = (text.parse::<Think>().unwrap(), Random::new(7, 0));
            let sum: f64 = (0..20_000).map(|_| think.draw(&mut random) as f64 / 1e9).sum();
            assert!((sum / 20_000.0 - mean_s).abs() < 0.05 * mean_s, "{text}: {}", sum / 20_000.0);
        }
    }
}
