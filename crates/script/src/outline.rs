//! What is known of a script without a run: locals that users share, and the named actions of its scenarios.

use crate::ScriptError;

/// The result of one pass through a script.
#[derive(Debug, Default)]
pub struct Outline {
    /// Calls, groups and checks, each once, in the order in which they were met.
    pub met: Vec<Met>,
    /// The first misspelling in each scenario, setup and teardown, with file and line.
    pub problems: Vec<ScriptError>,
    /// The functions that ended by an error before their last line. With other answers they may not.
    pub ended: Vec<EndedEarly>,
    /// The lines that were not reached.
    pub unreached: Vec<Unreached>,
    /// Values that are hardly meant.
    pub unlikely: Vec<UnlikelyValue>,
}

/// A local at a script's top that its scenarios assign, or a field of whose table they assign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedLocal {
    /// Its name.
    pub name: String,
    /// The first field of its table that is assigned; `None` where the local itself is.
    pub field: Option<String>,
    /// The file in which it is assigned, as the script names it.
    pub file: String,
    /// The first line that assigns it, from 1.
    pub line: usize,
}

/// A global that a script reads and nothing sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsetGlobal {
    /// The file, as the script names it.
    pub file: String,
    /// The first line that reads it, from 1.
    pub line: usize,
    /// What is wrong, and what was probably meant.
    pub problem: String,
}

/// A value in a script that is hardly meant, such as a timeout of a thousand seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlikelyValue {
    /// The file, as the script names it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What it means, and what was probably meant.
    pub problem: String,
}

/// Lines that no rehearsal reached, though others of the same functions were reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The file, as the script names it.
    pub file: String,
    /// The first line, from 1.
    pub first: usize,
    /// The last line.
    pub last: usize,
}

/// A function that a rehearsal did not reach the end of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedEarly {
    /// Its scenario, or `setup` or `teardown`.
    pub scenario: String,
    /// The error that ended it, with its place.
    pub problem: String,
}

/// A named action of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// Its kind.
    pub kind: MetKind,
    /// Its name in results. `anything` in it stands for the part that an answer would give.
    pub name: String,
    /// The tags of a call, each `key=value`.
    pub tags: Vec<String>,
    /// Its scenario, or `setup` or `teardown`.
    pub scenario: String,
    /// The base URL of a call's client, such as `http://127.0.0.1:8080`, if it has one.
    pub base: Option<String>,
}

/// The kinds of named actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetKind {
    /// Calls of one name.
    Call,
    /// A group.
    Group,
    /// A check.
    Check,
}
