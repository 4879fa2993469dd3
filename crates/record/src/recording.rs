//! Everything that is recorded of a run: what the engine has when it is over, and how it ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::AgentPart;
use crate::catalogue::Counter;
use crate::change::Change;
use crate::replayed::Replayed;
use crate::series::Series;
use crate::snapshot::Snapshot;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As planned.
    Completed,
    /// Early, by Ctrl-C or SIGTERM; the figures cover what was done.
    Interrupted,
    /// What asked for calls failed, or the script's teardown after them, or a worker, in these words. The figures cover what
    /// was done.
    Failed(String),
    /// Early, because a threshold that was to end it could no longer pass, in these words. Such a run never passes, whatever the
    /// figures of its part come to.
    Aborted(String),
    /// Before any load, because no connection to the target came about, in these words.
    Unreached(String),
    /// Early, because an agent was lost and the run was to end then, in these words.
    AgentsLost(String),
    /// Early, because the script ended it, for this reason.
    Stopped(String),
}

/// What happened in a run, without the plan that it carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How it ended.
    pub ending: Ending,
    /// How long the measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// What happened in the measured part.
    pub measured: Snapshot,
    /// What happened to its calls after its end.
    pub drained: Snapshot,
    /// The measured part over time.
    pub series: Series,
    /// What statuses are called, where the protocol has names for them.
    #[serde(default)]
    pub status_names: BTreeMap<u16, String>,
    /// Where the first redirect led, if an answer was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected_to: Option<String>,
    /// What somebody changed about it while it went on, and the moments that have a name, in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What a replay took of its log, and how what came differs from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Box<Replayed>>,
    /// What each agent did, if the run was carried out by agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
}

/// How far apart the agents of a run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// From the first to the last, in nanoseconds.
    pub ns: u64,
    /// By how much that may be wrong, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// An agent that a run does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithoutError {
    /// The run was carried out here.
    #[error("the run was carried out by this machine alone: there is no agent to leave out")]
    NoAgents,
    /// No agent is called so.
    #[error("the run has no agent '{name}'; there are {}", known.join(", "))]
    Unknown {
        /// As given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Nothing would be left.
    #[error("without {0} agents nothing of the run is left")]
    Nobody(usize),
}

impl Recording {
    /// Something failed, in these words: the run ended so, unless it had failed before.
    pub fn fail(&mut self, reason: String) {
        if !matches!(self.ending, Ending::Failed(_)) {
            self.ending = Ending::Failed(reason);
        }
    }

    /// How far apart its agents began; none where there are none.
    pub fn start_skew(&self) -> Option<Skew> {
        let began = self.agents.iter().filter(|agent| agent.measured.numbers.get(Counter::Due) > 0 || !agent.is_lost());
        let (first, last) = (began.clone().min_by_key(|a| a.began_ns)?, began.max_by_key(|a| a.began_ns)?);
        Some(Skew {
            ns: last.began_ns.abs_diff(first.began_ns),
            uncertainty_ns: first.clock_uncertainty_ns + last.clock_uncertainty_ns,
        })
    }

    /// The run as it would read had these agents not been there.
    ///
    /// Totals are exact. Over time it has the resolution of the agents' series, and calls are not told apart by name there.
    ///
    /// # Errors
    /// When there is no such agent, or none would be left.
    pub fn without(&self, names: &[String]) -> Result<Self, WithoutError> {
        if self.agents.is_empty() {
            return Err(WithoutError::NoAgents);
        }
        let known = || self.agents.iter().map(|agent| agent.name.clone()).collect::<Vec<_>>();
        if let Some(name) = names.iter().find(|name| self.agents.iter().all(|agent| agent.name != **name)) {
            return Err(WithoutError::Unknown { name: name.clone(), known: known() });
        }
        let left: Vec<AgentPart> = self.agents.iter().filter(|agent| !names.contains(&agent.name)).cloned().collect();
        if left.is_empty() {
            return Err(WithoutError::Nobody(names.len()));
        }
        let (mut measured, mut drained) = (Snapshot::default(), Snapshot::default());
        for agent in &left {
            measured.merge(&agent.measured);
            drained.merge(&agent.drained);
        }
        let series = Series::beside(left.iter().map(|agent| &agent.series));
        let measured_ns = left.iter().map(|agent| agent.measured_ns).max().unwrap_or(0);
        Ok(Self { measured, drained, series, measured_ns, agents: left, ..self.clone() })
    }
}
