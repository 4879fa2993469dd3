//! What is found in a script without a run: locals that users share, and what its scenarios do.

/// A local of a script's top that its scenarios assign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedLocal {
    /// Its name.
    pub name: String,
    /// The file in which it is assigned, as the script names it.
    pub file: String,
    /// The first line that does, from 1.
    pub line: usize,
}

/// Something with a name that a scenario does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// What it is.
    pub kind: MetKind,
    /// Its name in results. `anything` in it stands for what an answer would have given.
    pub name: String,
    /// The tags of a call, each `key=value`.
    pub tags: Vec<String>,
    /// The scenario that does it, or `setup` or `teardown`.
    pub scenario: String,
    /// Where a call goes, such as `http://127.0.0.1:8080`, if its client has a base.
    pub base: Option<String>,
}

/// The kinds of what a scenario does that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetKind {
    /// Calls of one name.
    Call,
    /// A group.
    Group,
    /// A check.
    Check,
}
