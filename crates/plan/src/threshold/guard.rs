//! Guards, which end a run early: `p99 > 500ms for 10s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Threshold;
use crate::units::{ExactDuration, parse_duration};

/// The shortest and the longest window of a guard, in nanoseconds: the seconds of a window are kept.
pub const WINDOW_NS: (u64, u64) = (1_000_000_000, 60_000_000_000);

/// A condition that ends a run: on a figure of its last seconds, whatever the seconds before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Guard {
    text: String,
    condition: Threshold,
    window_ns: u64,
}

/// The action of a guard whose condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GuardAction {
    /// It ends the run.
    #[default]
    Stop,
    /// It lowers the rate: to the last one that held, or by half where none did.
    BackOff,
}

impl GuardAction {
    /// For `skip_serializing_if`, which passes a reference.
    pub fn is_usual(&self) -> bool {
        *self == Self::Stop
    }
}

/// A guard that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a guard such as 'p99>500ms for 10s' or 'error_rate>5% for 5s', got '{text}': {problem}")]
pub struct GuardError {
    /// The text as written.
    pub text: String,
    /// The problem.
    pub problem: String,
}

impl FromStr for Guard {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| GuardError { text: text.to_owned(), problem };
        let (condition, window) =
            text.rsplit_once(" for ").ok_or_else(|| error("it does not say for how long".to_owned()))?;
        let window_ns = parse_duration(window).map_err(|problem| error(problem.to_string()))?;
        let (shortest, longest) = WINDOW_NS;
        if !(shortest..=longest).contains(&window_ns) || window_ns % shortest != 0 {
            return Err(error(format!(
                "'{}' is none of {} to {}, in whole seconds",
                window.trim(),
                ExactDuration(shortest),
                ExactDuration(longest)
            )));
        }
        let condition: Threshold =
            condition.trim().parse().map_err(|problem: super::ThresholdError| error(problem.problem))?;
        if condition.aborts().is_some() {
            return Err(error("a guard ends the run by itself: leave 'abort' out".to_owned()));
        }
        Ok(Self { text: text.trim().to_owned(), condition, window_ns })
    }
}

impl Guard {
    /// The condition that must not hold.
    pub fn condition(&self) -> &Threshold {
        &self.condition
    }

    /// Over which time, in nanoseconds: whole seconds.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Guard {
    type Error = GuardError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Guard> for String {
    fn from(guard: Guard) -> Self {
        guard.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_a_condition_and_a_window() {
        let guard: Guard = " login:p95 > 500ms for 1m ".parse().unwrap();
        assert_eq!(guard.condition(), &"login:p95 > 500ms".parse().unwrap());
        assert_eq!((guard.window_ns(), guard.to_string().as_str()), (60_000_000_000, "login:p95 > 500ms for 1m"));
        let quoted: Guard = "\"wait for it\":p95>1s for 5s".parse().unwrap();
        assert_eq!(quoted.condition().subject().map(|(_, name)| name), Some("wait for it"));
    }

    #[test]
    fn what_is_no_guard_says_why() {
        for (text, problem) in [
            ("p99>500ms", "it does not say for how long"),
            ("p99>500ms for ever", "'ever'"),
            ("p99>500ms for 500ms", "'500ms' is none of 1s to 1m, in whole seconds"),
            ("p99>500ms for 2m", "'2m' is none of 1s to 1m, in whole seconds"),
            ("p99>500ms for 1500ms", "in whole seconds"),
            ("p97,5>500ms for 5s", "'p97,5' is not a figure"),
            ("p99>500ms abort for 5s", "leave 'abort' out"),
            ("p99 500ms for 5s", "a comparison is missing: <, <=, >, >= or =="),
        ] {
            let error = text.parse::<Guard>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(text), "{text}: {error}");
        }
    }
}
