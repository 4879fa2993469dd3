//! An agent's part of a run on several machines, recorded apart from the whole.

use serde::{Deserialize, Serialize};

use crate::catalogue::Counter;
use crate::interval::Interval;
use crate::outcome::OkStatus;
use crate::series::Series;
use crate::snapshot::{Phase, Snapshot};

/// The most points that the series of all agents have together: with more agents, each has fewer and longer points.
const MOST_POINTS: usize = 10_000;
/// The fewest points of an agent's series.
const FEWEST_POINTS: usize = 10;
/// The most agents whose calls are told apart by name for each: a name takes up to 100 KB.
const MOST_NAMED: usize = 100;

/// An agent's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPart {
    /// The agent's name.
    pub name: String,
    /// brunt's version there.
    pub version: String,
    /// The CPUs that it could use.
    pub cores: u32,
    /// The number of the run's workers that it carried.
    pub workers: u32,
    /// When its load began, relative to the agreed beginning, in nanoseconds of the controller's clock; negative if
    /// before.
    pub began_ns: i64,
    /// By how much that may be wrong, in nanoseconds.
    pub clock_uncertainty_ns: u64,
    /// The end of its part.
    pub ended: AgentEnd,
    /// How long its measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// What happened in its measured part.
    pub measured: Snapshot,
    /// What happened to its calls after the measured part.
    pub drained: Snapshot,
    /// Its measured part over time.
    pub series: Series,
    /// Whether its calls are told apart by name; with very many agents they are not.
    #[serde(skip, default = "yes")]
    is_named: bool,
}

const fn yes() -> bool {
    true
}

/// Where calls may have been made that nobody counts: how many there were, only the target knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Untold {
    /// Connections that may have made calls; 0 where users did.
    #[serde(default, skip_serializing_if = "is_nobody")]
    pub connections: u64,
    /// Virtual users that may have made calls, as far as it has told of some.
    #[serde(default, skip_serializing_if = "is_nobody")]
    pub users: u64,
    /// For how long after the last report, at most, in nanoseconds.
    pub ns: u64,
}

impl std::fmt::Display for Untold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let who = match self {
            Self { connections: 0, users: 0, .. } => "virtual users".to_owned(),
            Self { connections: 0, users, .. } => number(*users, "virtual user"),
            Self { connections, .. } => number(*connections, "connection"),
        };
        write!(f, "{who} may have made calls for up to {:.1}s that are not counted", self.ns as f64 / 1e9)
    }
}

/// How an agent's part ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// With the run.
    Finished,
    /// Before the run: it was lost.
    Lost {
        /// How far into the measured part it last reported, in nanoseconds.
        after_ns: u64,
        /// The cause of its loss, as far as it is known.
        reason: String,
        /// Virtual users due on it between its last report and the end of the run, who never started.
        #[serde(default, skip_serializing_if = "is_nobody")]
        users_missed: u64,
        /// Iterations, of a counted number, that it had not reported.
        #[serde(default, skip_serializing_if = "is_nobody")]
        iterations_unknown: u64,
        /// What it may have done that no number bounds, in the closed model and with users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        untold: Option<Untold>,
        /// Whether the run may go on without an agent.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        is_allowed: bool,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_nobody(number: &u64) -> bool {
    *number == 0
}

impl AgentPart {
    /// An agent that has not reported yet, one of `agents`.
    pub fn new(name: &str, version: &str, cores: u32, workers: u32, agents: usize) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            cores,
            workers,
            began_ns: 0,
            clock_uncertainty_ns: 0,
            ended: AgentEnd::Finished,
            measured_ns: 0,
            measured: Snapshot::default(),
            drained: Snapshot::default(),
            series: Series::of_at_most((MOST_POINTS / agents.max(1)).max(FEWEST_POINTS)),
            is_named: agents <= MOST_NAMED,
        }
    }

    /// Takes in a second that the agent has reported.
    pub fn add(&mut self, interval: &Interval, ok: &OkStatus) {
        let Interval { phase, second, length_ns, snapshot, open_connections, .. } = interval;
        match phase {
            Phase::Warmup => {
                self.measured.figures.carry_over(&snapshot.figures);
                self.series.warmed_up(snapshot);
            }
            Phase::Measured => {
                self.take_in(snapshot, false);
                self.series.pass_to(second * crate::SECOND_NS, ok);
                self.series.push(*length_ns, snapshot, ok);
                self.series.connections_open(*open_connections);
                self.measured_ns = self.measured_ns.max(second * crate::SECOND_NS + length_ns);
            }
            Phase::Drain => self.take_in(snapshot, true),
        }
    }

    fn take_in(&mut self, snapshot: &Snapshot, is_drain: bool) {
        let of_phase = if is_drain { &mut self.drained } else { &mut self.measured };
        if self.is_named {
            of_phase.merge(snapshot);
        } else {
            of_phase.merge_totals(snapshot);
        }
    }

    /// Calls in its share that were never sent, since it was lost.
    pub fn unsent_lost(&self) -> u64 {
        self.measured.numbers.get(Counter::UnsentLost) + self.drained.numbers.get(Counter::UnsentLost)
    }

    /// Calls that it may or may not have sent before it was lost.
    pub fn unknown(&self) -> u64 {
        self.measured.numbers.get(Counter::Unknown) + self.drained.numbers.get(Counter::Unknown)
    }

    /// Calls that it held back and never sent.
    pub fn unsent_held(&self) -> u64 {
        self.measured.numbers.get(Counter::UnsentHeld) + self.drained.numbers.get(Counter::UnsentHeld)
    }

    /// Whether it was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.ended, AgentEnd::Lost { .. })
    }

    /// Whether it was lost, and the run may not go on without it.
    pub fn is_missed(&self) -> bool {
        matches!(self.ended, AgentEnd::Lost { is_allowed: false, .. })
    }

    /// Notes that the run may go on without it.
    pub fn allow_loss(&mut self) {
        if let AgentEnd::Lost { is_allowed, .. } = &mut self.ended {
            *is_allowed = true;
        }
    }
}
