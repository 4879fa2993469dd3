//! What can be seen of a run while it goes on.

use crate::snapshot::{Phase, Snapshot};

/// One second of a run, merged over its workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// The part of the run that it belongs to.
    pub phase: Phase,
    /// When it ended, in nanoseconds after the beginning of its phase.
    pub elapsed_ns: u64,
    /// How long the phase takes as planned, in nanoseconds; none if only the number of requests ends it.
    pub planned_ns: Option<u64>,
    /// After how many requests the run ends, if it does.
    pub planned_requests: Option<u64>,
    /// How long it was, in nanoseconds: a second, but for the last of a phase.
    pub length_ns: u64,
    /// What happened in it.
    pub snapshot: Snapshot,
    /// Connections open at its end.
    pub open_connections: u64,
    /// Calls in flight at its end.
    pub in_flight: u64,
    /// The backlog: calls that were due and not sent at its end.
    pub waiting: u64,
    /// How long the oldest call had been due at its end, of those in flight and of the backlog, in nanoseconds; 0 if there
    /// was none.
    pub oldest_ns: u64,
    /// Virtual users alive at its end; none where there are no scenarios.
    pub users: Option<u64>,
}
