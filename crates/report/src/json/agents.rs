//! Each agent's part of a run on several machines.

use brunt_judge::agent_figures::AgentFigures;
use brunt_judge::summary::Summary;
use brunt_record::agents::{AgentEnd, AgentPart, Untold};
use brunt_record::recording::Skew;
use serde::Serialize;

/// The agents of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agents {
    /// The time from the first agent's beginning to the last one's, in nanoseconds.
    pub start_skew_ns: Option<u64>,
    /// By how much that may be wrong, in nanoseconds.
    pub start_skew_uncertainty_ns: Option<u64>,
    /// Calls in the shares of lost agents, which count as unsent.
    pub unsent_lost: u64,
    /// Calls that agents held back, as they were due beyond what their controller had granted; they count as unsent.
    #[serde(skip_serializing_if = "is_none")]
    pub unsent_held: u64,
    /// The agents, in the order of their numbers.
    pub list: Vec<Agent>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// brunt's version there.
    pub brunt_version: String,
    /// The CPUs that it could use.
    pub cores: u32,
    /// The number of the run's workers that it carried.
    pub workers: u32,
    /// When its load began, after the beginning that all had agreed on, in nanoseconds.
    pub began_ns: i64,
    /// By how much that may be wrong, in nanoseconds.
    pub clock_uncertainty_ns: u64,
    /// The loss, if it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// The figures of its part.
    #[serde(flatten)]
    pub figures: AgentFigures,
}

/// How an agent was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lost {
    /// How far into the measured part it last reported, in nanoseconds.
    pub after_ns: u64,
    /// The cause of its loss, as far as it is known.
    pub reason: String,
    /// Virtual users due on it between its last report and the end of the run, who never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_missed: Option<u64>,
    /// Iterations, of a counted number, that it had not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations_unknown: Option<u64>,
    /// What it may have done that no number bounds: calls on connections in the closed model, or of users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<Untold>,
    /// Whether the run may go on without an agent.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub is_allowed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(calls: &u64) -> bool {
    *calls == 0
}

impl Agents {
    /// The agents of a run; `None` if this machine carried it out.
    pub fn from_summary(summary: &Summary) -> Option<Self> {
        let run = &summary.run;
        if run.agents.is_empty() {
            return None;
        }
        let skew = run.start_skew();
        let all = run.agents.iter().zip(&summary.agents);
        Some(Self {
            start_skew_ns: skew.map(|skew: Skew| skew.ns),
            start_skew_uncertainty_ns: skew.map(|skew| skew.uncertainty_ns),
            unsent_lost: run.agents.iter().map(AgentPart::unsent_lost).sum(),
            unsent_held: run.agents.iter().map(AgentPart::unsent_held).sum(),
            list: all.map(|(part, figures)| Agent::from_part(part, figures)).collect(),
        })
    }
}

impl Agent {
    fn from_part(part: &AgentPart, figures: &AgentFigures) -> Self {
        let lost = match &part.ended {
            AgentEnd::Finished => None,
            AgentEnd::Lost { after_ns, reason, users_missed, iterations_unknown, untold, is_allowed } => Some(Lost {
                after_ns: *after_ns,
                reason: reason.clone(),
                users_missed: Some(*users_missed).filter(|users| *users > 0),
                iterations_unknown: Some(*iterations_unknown).filter(|iterations| *iterations > 0),
                untold: *untold,
                is_allowed: *is_allowed,
            }),
        };
        Self {
            name: part.name.clone(),
            brunt_version: part.version.clone(),
            cores: part.cores,
            workers: part.workers,
            began_ns: part.began_ns,
            clock_uncertainty_ns: part.clock_uncertainty_ns,
            lost,
            figures: *figures,
        }
    }
}
