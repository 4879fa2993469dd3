//! Changes of a run while it goes on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most changes that a run takes, and one more to resume it: who asks for more than that is a program in a loop.
pub const MOST_CHANGES: usize = 1000;
/// The longest text of a mark, in characters.
pub const LONGEST_MARK: usize = 200;

/// A change of a run's load, or a mark, made while it went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// When it takes effect, in nanoseconds after the beginning of the measured part; negative in the warm-up. Calls
    /// due then or later belong to the changed load.
    pub at_ns: i64,
    /// The change.
    pub action: Action,
    /// Its author.
    pub by: Author,
}

/// A change of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// This many calls a second are due from then on, to the end, in place of the profile's.
    Rate(f64),
    /// There are this many virtual users from then on, to the end: missing ones come at once, surplus ones end with the
    /// iteration under way.
    Users(u64),
    /// No calls are due from then on.
    Pause,
    /// Calls are due again, as they would be at this time without the pause.
    Resume,
    /// No change: the moment gets a name.
    Mark(String),
}

/// The author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person, by `brunt ctl`.
    Ctl,
    /// A person, on the live page.
    Page,
    /// A guard that backs off.
    Guard {
        /// Its place among the plan's guards, from 0.
        place: u32,
        /// The guard as written.
        guard: String,
        /// Why: `p99 was 900.0ms over 3s, with 31 calls open`.
        found: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "rate {rate}"),
            Self::Users(users) => write!(f, "users {users}"),
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
            Self::Guard { guard, found, .. } => write!(f, "the guard '{guard}': {found}"),
        }
    }
}

/// The pauses that these changes make: from and until, in nanoseconds after the beginning of the measured part; `None`
/// for the end of one that was not resumed.
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
