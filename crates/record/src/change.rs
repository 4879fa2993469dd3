//! What somebody changed about a run while it went on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most changes that a run takes: who asks for more than that is a program in a loop.
pub const MOST_CHANGES: usize = 1000;
/// The longest text of a mark, in characters.
pub const LONGEST_MARK: usize = 200;

/// A change of a run's load, or a mark, made while it went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// When it takes effect, in nanoseconds after the beginning of the measured part: below 0 in the warm-up. Calls that are due then or later
    /// are those of the changed load.
    pub at_ns: i64,
    /// What changes.
    pub action: Action,
    /// Who asked for it.
    pub by: Author,
}

/// What changes about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// So many calls a second are due from then on, until the end: in the place of what the profile had for this time.
    Rate(f64),
    /// Nothing is due from then on.
    Pause,
    /// Calls are due again, as they would be at this time without the pause.
    Resume,
    /// Nothing: a moment has a name.
    Mark(String),
}

/// Who asked for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// Somebody, by `brunt ctl`.
    Ctl,
    /// Somebody, on the live page.
    Page,
    /// A guard that backs off.
    Guard {
        /// As it was written.
        guard: String,
        /// Why: `p99 was 900.0ms over 3s, with 31 calls open`.
        found: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "rate {rate}"),
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
            Self::Mark(text) => write!(f, "mark '{text}'"),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ctl => f.write_str("brunt ctl"),
            Self::Page => f.write_str("the live page"),
            Self::Guard { guard, found } => write!(f, "the guard '{guard}': {found}"),
        }
    }
}

/// The stretches of a run in which it is paused by these changes, from and until, in nanoseconds after the beginning of the measured part.
/// Without an end where it was not resumed.
pub fn pauses(changes: &[Change]) -> Vec<(i64, Option<i64>)> {
    let mut pauses: Vec<(i64, Option<i64>)> = Vec::new();
    for change in changes {
        let open = pauses.last_mut().filter(|(_, until)| until.is_none());
        match (&change.action, open) {
            (Action::Pause, None) => pauses.push((change.at_ns, None)),
            (Action::Resume, Some((_, until))) => *until = Some(change.at_ns),
            _ => {}
        }
    }
    pauses
}
