//! A run as it can be seen while it goes on.

use std::sync::Arc;

use crate::SECOND_NS;
use crate::catalogue::{Counter, Timing};
use crate::change::Change;
use crate::histogram::AtLeast;
use crate::outcome::OkStatus;
use crate::snapshot::{Phase, Snapshot};

/// One second of a run, merged over its workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// The part of the run that it belongs to.
    pub phase: Phase,
    /// When it ended, in nanoseconds after the beginning of its phase.
    pub elapsed_ns: u64,
    /// The planned length of the phase, in nanoseconds; `None` if only the number of requests ends it.
    pub planned_ns: Option<u64>,
    /// How far a replay is in its log; `None` for other runs.
    pub in_log: Option<InLog>,
    /// The number of requests after which the run ends, if it has one.
    pub planned_requests: Option<u64>,
    /// Its length in nanoseconds: a second, except for the last of a phase.
    pub length_ns: u64,
    /// What happened in it.
    pub snapshot: Snapshot,
    /// Connections open at its end.
    pub open_connections: u64,
    /// Calls in flight at its end.
    pub in_flight: u64,
    /// The backlog: calls that were due and not sent at its end.
    pub waiting: u64,
    /// How long the oldest call had been due at its end, of those in flight and of the backlog, in nanoseconds; 0 if
    /// there was none.
    pub oldest_ns: u64,
    /// Virtual users alive at its end; `None` without scenarios.
    pub users: Option<u64>,
    /// Changes of the run since the second before, as far as they are known: they may take effect later.
    pub changes: Vec<Change>,
    /// Each agent's part in it, in the order of their numbers; empty where this machine carries out the run.
    pub agents: Vec<AgentSecond>,
}

impl Live {
    /// From when to when it was, in nanoseconds after the beginning of the measured part of a run with so long a warm-up: below 0 in that.
    pub fn span(&self, warmup_ns: u64) -> (i64, i64) {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let to_ns = match self.phase {
            Phase::Warmup => signed(self.elapsed_ns).saturating_sub(signed(warmup_ns)),
            Phase::Measured | Phase::Drain => signed(self.elapsed_ns),
        };
        (to_ns.saturating_sub(signed(self.length_ns)), to_ns)
    }

    /// When the phase ends, in nanoseconds after it began: as planned, or with the last request of a log, whichever comes first. And whether that is
    /// an estimate.
    pub fn end(&self) -> Option<(u64, bool)> {
        let planned = self.planned_ns.map(|ns| (ns, false));
        let in_log = self.in_log.filter(|_| self.phase == Phase::Measured);
        let of_log = in_log.and_then(|log| Some((log.end_ns?, log.is_estimate)));
        planned.into_iter().chain(of_log).min_by_key(|(ns, _)| *ns)
    }

    /// A second of `phase` that ended `elapsed_ns` after the phase began, with this snapshot. It is a whole second, or all of a phase
    /// that is shorter. Nothing is planned, nothing is open or waiting, and there are no users, no changes and no agents.
    pub fn new(phase: Phase, elapsed_ns: u64, snapshot: Snapshot) -> Self {
        Self {
            phase,
            elapsed_ns,
            planned_ns: None,
            in_log: None,
            planned_requests: None,
            length_ns: elapsed_ns.min(SECOND_NS),
            snapshot,
            open_connections: 0,
            in_flight: 0,
            waiting: 0,
            oldest_ns: 0,
            users: None,
            changes: Vec::new(),
            agents: Vec::new(),
        }
    }
}

/// How far a replay is in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InLog {
    /// The current time on the log's own clock, in seconds after 1970-01-01 00:00 there; `None` for a log without
    /// times.
    pub clock_s: Option<i64>,
    /// When its last request is due, in nanoseconds of the measured part; `None` where that is unknown.
    pub end_ns: Option<u64>,
    /// Whether `end_ns` is estimated from the share of the log that was read.
    pub is_estimate: bool,
}

/// An agent's part of a second.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSecond {
    /// The agent's name.
    pub name: Arc<str>,
    /// Calls that were answered, whenever they were due.
    pub answered: u64,
    /// Calls that ended without success.
    pub not_ok: u64,
    /// Response time at the 99th percentile, in nanoseconds.
    pub p99_ns: Option<AtLeast<u64>>,
    /// Generator lag at the 99th percentile, in nanoseconds.
    pub lag_p99_ns: Option<u64>,
    /// Whether one of its workers had hardly any CPU time left.
    pub is_saturated: bool,
    /// Whether it has reported nothing for this second: it is lost, or has ended.
    pub is_silent: bool,
}

impl AgentSecond {
    /// The part of the agent `name` in a second; an empty one without a snapshot.
    pub fn from_snapshot(name: &Arc<str>, snapshot: Option<&Snapshot>, ok: &OkStatus) -> Self {
        let empty = Snapshot::default();
        let said = snapshot.unwrap_or(&empty);
        Self {
            name: Arc::clone(name),
            answered: said.numbers.get(Counter::EndedAnswered),
            not_ok: said.not_ok(ok),
            p99_ns: said.response_quantile(0.99),
            lag_p99_ns: said.times.known(Timing::Lag).quantile(0.99),
            is_saturated: said.numbers.get(Counter::WorkersSaturated) > 0,
            is_silent: snapshot.is_none_or(|said| said.numbers.get(Counter::WorkersWall) == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_as_planned_or_with_its_log() {
        let live = |phase, planned_ns, end_ns| Live {
            planned_ns,
            in_log: Some(InLog { clock_s: None, end_ns, is_estimate: true }),
            ..Live::new(phase, 1, Snapshot::default())
        };
        assert_eq!(live(Phase::Measured, Some(5), Some(7)).end(), Some((5, false)));
        assert_eq!(live(Phase::Measured, Some(5), Some(3)).end(), Some((3, true)));
        assert_eq!(live(Phase::Measured, None, Some(7)).end(), Some((7, true)));
        assert_eq!(live(Phase::Measured, None, None).end(), None);
        assert_eq!(live(Phase::Drain, Some(5), Some(3)).end(), Some((5, false)));
    }
}
