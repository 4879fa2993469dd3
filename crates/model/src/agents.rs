//! What each agent of a run on several machines did, kept apart from the whole.

use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::outcome::OkStatus;
use crate::plan::Plan;
use crate::series::Series;
use crate::snapshot::{Phase, Snapshot};
use crate::summary::{Distribution, Run};
use crate::verdict::{Judged, Judgement, Verdict};

/// The most points that the series of all agents have together: with more agents each has fewer, and longer ones.
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
    /// CPUs that it could use.
    pub cores: u32,
    /// How many of the run's workers it carried.
    pub workers: u32,
    /// When its load began, after the beginning that all had agreed on, in nanoseconds of the controller's clock. Negative: before.
    pub began_ns: i64,
    /// By how much that may be wrong, in nanoseconds.
    pub clock_uncertainty_ns: u64,
    /// How its part ended.
    pub ended: AgentEnd,
    /// How long its measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// What happened in its measured part.
    pub measured: Snapshot,
    /// What happened to its calls after the end of that.
    pub drained: Snapshot,
    /// Its measured part over time.
    pub series: Series,
    /// Whether its calls are told apart by name: not where there are very many agents.
    #[serde(skip, default = "yes")]
    is_named: bool,
}

const fn yes() -> bool {
    true
}

/// How an agent's part ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// With the run.
    Finished,
    /// Before the run: it was lost.
    Lost {
        /// After how much of the measured part it was last heard of, in nanoseconds.
        after_ns: u64,
        /// What became of it, as far as is known.
        reason: String,
        /// After how much of the measured part others went on with what it had left, in nanoseconds, if they did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken_over_ns: Option<u64>,
        /// Virtual users due on it between its last report and the takeover (or the end of the run), who never started.
        #[serde(default, skip_serializing_if = "is_nobody")]
        users_missed: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_nobody(users: &u64) -> bool {
    *users == 0
}

impl AgentPart {
    /// The part of an agent of which nothing has been heard yet, one of so many.
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

    /// What is shown of it, where `plan` is carried out by its workers. It is much less than a summary: there may be very many agents.
    fn figures(&self, plan: &Plan) -> AgentFigures {
        let mut total = Snapshot::default();
        total.merge_totals(&self.measured);
        total.merge_totals(&self.drained);
        total.health = self.measured.health;
        let response = Distribution::of_bracket(&total.response_bracket(), &total.lag, None);
        let judged = Judged { plan, measured_ns: self.measured_ns, points: self.series.points() };
        let answered_per_s = |answered: u64| match self.measured_ns {
            0 => 0.0,
            ns => answered as f64 * 1e9 / ns as f64,
        };
        AgentFigures {
            due: total.due,
            answered: total.statuses.total(),
            not_ok: total.not_ok(&plan.ok_status),
            answered_per_s: answered_per_s(self.measured.statuses.total()),
            response_p99_ns: response.as_ref().and_then(|times| Some(times.quantile("p99")?.value)),
            lag_p99_ns: total.lag.quantile(0.99),
            judgement: Verdict::of_judged(judged, &total, response.as_ref()).judgement,
        }
    }

    /// Whether it was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.ended, AgentEnd::Lost { .. })
    }
}

/// What an agent's part of a run comes to, by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentFigures {
    /// Calls that were due on it.
    pub due: u64,
    /// Calls that it had answered.
    pub answered: u64,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Response time at the 99th percentile, in nanoseconds.
    pub response_p99_ns: Option<u64>,
    /// Generator lag at the 99th percentile, in nanoseconds.
    pub lag_p99_ns: Option<u64>,
    /// Whether its figures can be believed, by themselves.
    pub judgement: Judgement,
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

impl Run {
    /// How far apart its agents began; none where there are none.
    pub fn start_skew(&self) -> Option<Skew> {
        let began = self.agents.iter().filter(|agent| agent.measured.due > 0 || !agent.is_lost());
        let (first, last) = (began.clone().min_by_key(|a| a.began_ns)?, began.max_by_key(|a| a.began_ns)?);
        Some(Skew {
            ns: last.began_ns.abs_diff(first.began_ns),
            uncertainty_ns: first.clock_uncertainty_ns + last.clock_uncertainty_ns,
        })
    }

    /// What each agent's part comes to, in their order.
    pub(crate) fn figures_of_agents(&self) -> Vec<AgentFigures> {
        let mut plan = Plan { thresholds: Vec::new(), ..self.plan.clone() };
        let figures = self.agents.iter().map(|agent| {
            plan.workers = agent.workers;
            agent.figures(&plan)
        });
        figures.collect()
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
