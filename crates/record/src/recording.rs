//! The recording of a run: everything that the engine knows when it is over, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SECOND_NS;
use crate::agents::AgentPart;
use crate::call_timeline::CallTimeline;
use crate::catalogue::Counter;
use crate::change::Change;
use crate::delivery::Delivery;
use crate::figures::Figures;
use crate::machine::Machine;
use crate::replayed::Replayed;
use crate::samples::Sampled;
use crate::series::Series;
use crate::snapshot::{Phase, Snapshot};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As planned.
    Completed,
    /// Early, by Ctrl-C or SIGTERM; the figures cover the part that was done.
    Interrupted,
    /// The source of calls failed, or the script's teardown after them, or a worker, for this reason. The figures cover
    /// the part that was done.
    Failed(String),
    /// Early, because whoever watched it ended it. Such a run never passes, whatever its figures.
    Aborted(AbortCause),
    /// Before any load, because no connection to the target could be made, for this reason.
    Unreached(String),
    /// Early, because an agent was lost and the run was to end then, in these words.
    AgentsLost(String),
    /// Early, because the script ended it, for this reason.
    Stopped(String),
    /// Early, because the script gave it up, for this reason. Such a run never passes, whatever its figures.
    GivenUp(String),
}

/// A script's word that ends its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Why, in the script's words.
    pub reason: String,
    /// Whether the run did what it was to do; it has failed otherwise.
    pub ok: bool,
}

impl Stop {
    /// Of all words that end one run: the first, but for one that the run has failed, which no word before it can take
    /// back.
    pub fn first_of(first: Option<Self>, next: Option<Self>) -> Option<Self> {
        match (first, next) {
            (Some(first), Some(next)) => Some(if first.ok && !next.ok { next } else { first }),
            (first, next) => first.or(next),
        }
    }

    /// How a run has ended that a script ended so.
    pub fn ending(self) -> Ending {
        if self.ok { Ending::Stopped(self.reason) } else { Ending::GivenUp(self.reason) }
    }
}

/// What a script's setup or teardown leaves to its run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LifecycleFigures {
    /// Its checks, and its records in the script's own figures. Its calls are no load.
    pub figures: Figures,
    /// Its word that ends the run.
    pub stopped: Option<Stop>,
}

impl LifecycleFigures {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.stopped.is_none()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Who aborted a run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AbortCause {
    /// A threshold with `abort` could no longer pass, or one with `abort-now` did not hold.
    Threshold {
        /// Its place among the plan's thresholds, from 0.
        place: u32,
        /// As the plan has it, without the word by which it ends the run.
        threshold: String,
        /// Its figure then, for people.
        got: String,
        /// How much of the measured part was over, in nanoseconds.
        after_ns: u64,
        /// Whether it did not hold, and could still have passed.
        #[serde(default, skip_serializing_if = "is_false")]
        at_once: bool,
    },
    /// A guard fired.
    Guard {
        /// Its place among the plan's guards, from 0.
        place: u32,
        /// As the plan has it.
        guard: String,
        /// The phase in which it fired.
        phase: Phase,
        /// How much of this phase was over, in nanoseconds.
        elapsed_ns: u64,
        /// Its figure then, for people.
        found: String,
    },
    /// An observer that is no judge, for this reason.
    Observer(String),
}

/// The record of a run, without its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The version of the brunt that made it.
    pub brunt_version: String,
    /// The machine of the brunt that made it; with agents, that of their controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How it ended.
    pub ending: Ending,
    /// How long the measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// What happened in the measured part.
    pub measured: Snapshot,
    /// What happened to its calls after the measured part.
    pub drained: Snapshot,
    /// The measured part over time.
    pub series: Series,
    /// Names of statuses, where the protocol has some.
    pub status_names: BTreeMap<u16, String>,
    /// The location of the first redirect, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected_to: Option<String>,
    /// Changes of the run, and named moments, in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Single calls of a protocol that measures parts of answers, part by part; of a run without agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<CallTimeline>,
    /// A replay's account of its log, and how the answers differ from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Box<Replayed>>,
    /// Each agent's part, if agents carried out the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
    /// Accounts of receivers that got its figures while it went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
    /// The account of the file with a row for each call, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Box<Sampled>>,
}

/// The time between the agents' beginnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// From the first beginning to the last, in nanoseconds.
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
        /// The agents that took part.
        known: Vec<String>,
    },
    /// No agent would be left.
    #[error("without {0} agents nothing of the run is left")]
    Nobody(usize),
}

/// A recording that was read and that no run has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected seconds in order within {} years, got {what}", LONGEST_NS / SECOND_NS / 31_536_000)]
pub struct Implausible {
    what: String,
}

/// The longest run that is read, in nanoseconds.
const LONGEST_NS: u64 = 1 << 56;

/// Checks that stretches, each with its beginning and its length, come one after the other.
fn check_stretches(stretches: impl Iterator<Item = (u64, u64)>) -> Result<(), Implausible> {
    let (mut last, mut total) = (0, 0_u64);
    for (start_ns, length_ns) in stretches {
        total = total.saturating_add(length_ns);
        if start_ns < last || start_ns.saturating_add(length_ns) > LONGEST_NS || total > LONGEST_NS {
            return Err(Implausible { what: format!("{length_ns} ns at {start_ns} ns after {last} ns") });
        }
        last = start_ns;
    }
    Ok(())
}

impl Recording {
    /// Checks a recording that was read: arithmetic on its times does not overflow.
    ///
    /// # Errors
    /// When its seconds are not in order, or reach further than any run.
    pub fn check(&self) -> Result<(), Implausible> {
        let series = std::iter::once(&self.series).chain(self.agents.iter().map(|agent| &agent.series));
        for series in series {
            check_stretches(series.points().iter().map(|point| (point.start_ns, point.length_ns)))?;
        }
        let drilldown = self.series.drilldown();
        for stretches in [
            drilldown.requests.stretches(),
            drilldown.tags.stretches(),
            drilldown.statuses.stretches(),
            drilldown.failures.stretches(),
        ] {
            check_stretches(stretches.iter().map(|stretch| (stretch.start_ns, stretch.length_ns)))?;
        }
        check_stretches(std::iter::once((0, self.measured_ns)))
    }

    /// The record of a run that begins now, before anything has happened.
    pub fn begun(started_unix_ms: u64) -> Self {
        Self {
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: None,
            started_unix_ms,
            ending: Ending::Completed,
            measured_ns: 0,
            measured: Snapshot::default(),
            drained: Snapshot::default(),
            series: Series::default(),
            status_names: BTreeMap::new(),
            redirected_to: None,
            changes: Vec::new(),
            timelines: Vec::new(),
            replayed: None,
            agents: Vec::new(),
            deliveries: Vec::new(),
            sampled: None,
        }
    }

    /// Marks the run as failed for this reason, unless it had failed before.
    pub fn fail(&mut self, reason: String) {
        if !matches!(self.ending, Ending::Failed(_)) {
            self.ending = Ending::Failed(reason);
        }
    }

    /// Its script's teardown is over, and has left this.
    pub fn torn_down(&mut self, aside: LifecycleFigures) {
        self.measured.figures.merge(&aside.figures);
        let before = match &self.ending {
            Ending::Completed => None,
            Ending::Stopped(reason) => Some(Stop { reason: reason.clone(), ok: true }),
            _ => return,
        };
        if let Some(stop) = Stop::first_of(before, aside.stopped) {
            self.ending = stop.ending();
        }
    }

    /// The time between its agents' beginnings; `None` without agents.
    pub fn start_skew(&self) -> Option<Skew> {
        let began = self.agents.iter().filter(|agent| agent.measured.numbers.get(Counter::Due) > 0 || !agent.is_lost());
        let (first, last) = (began.clone().min_by_key(|a| a.began_ns)?, began.max_by_key(|a| a.began_ns)?);
        Some(Skew {
            ns: last.began_ns.abs_diff(first.began_ns),
            uncertainty_ns: first.clock_uncertainty_ns + last.clock_uncertainty_ns,
        })
    }

    /// The run without the parts of these agents.
    ///
    /// Totals are exact. Times have the resolution of the agents' series, and calls are not told apart by name there.
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
