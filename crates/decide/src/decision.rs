//! What was decided over several runs, with the plan of those runs.

use brunt_plan::plan::{Origin, Plan};
use brunt_record::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::capacity::{Answer, Capacity};
use crate::compare::ComparedRuns;
use crate::evidence::Evidence;
use crate::knee::{Knee, knees};
use crate::short::Lacking;
use crate::sweep::Sweep;

/// What was decided, with the plan of its runs.
#[derive(Debug, Clone, Copy)]
pub enum Decision<'a> {
    /// The highest rate that meets the plan's thresholds.
    Capacity(&'a Plan, &'a Capacity),
    /// How a target behaves over a range of loads.
    Sweep(&'a Plan, &'a Sweep),
    /// Whether one is slower than another.
    Comparison(&'a ComparedRuns),
}

impl Decision<'_> {
    /// What its user calls it, and the command that repeats it.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::Capacity(plan, _) | Self::Sweep(plan, _) => &plan.origin,
            Self::Comparison(compared) => &compared.origin,
        }
    }

    /// What it lacks of what it asked for, and what became of its agents.
    pub fn lacking(&self) -> &Lacking {
        match self {
            Self::Capacity(_, capacity) => &capacity.lacking,
            Self::Sweep(_, sweep) => &sweep.lacking,
            Self::Comparison(compared) => &compared.lacking,
        }
    }

    /// Whether the target, or that of a side, never answered.
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Capacity(_, capacity) => matches!(capacity.answer, Answer::NeverAnswered { .. }),
            Self::Sweep(_, sweep) => sweep.is_silent(),
            Self::Comparison(compared) => compared.silent_side().is_some(),
        }
    }

    /// The machine that made its runs; `None` without a run, where it is unknown, and where several made them.
    pub fn machine(&self) -> Option<&Machine> {
        let runs = self.runs();
        let first = runs.first()?.machine.as_ref()?;
        runs.iter().all(|run| run.machine.as_ref() == Some(first)).then_some(first)
    }

    /// When its first run began, in milliseconds since 1970-01-01 UTC; `None` without a run.
    pub fn started_unix_ms(&self) -> Option<u64> {
        self.runs().iter().map(|run| run.started_unix_ms).min()
    }

    /// Where figures of its protocol stop growing with the load; nothing of a comparison, which has one load.
    pub fn knees(&self) -> Vec<Knee> {
        match self {
            Self::Capacity(_, capacity) => knees(capacity.trials.iter().map(|trial| (trial.level, &trial.evidence))),
            Self::Sweep(_, sweep) => {
                knees(sweep.steps.iter().filter_map(|step| Some((step.value as f64, step.evidence.as_ref()?))))
            }
            Self::Comparison(_) => Vec::new(),
        }
    }

    /// The runs that it rests on.
    pub fn runs(&self) -> Vec<&Evidence> {
        match self {
            Self::Capacity(_, capacity) => capacity.trials.iter().map(|trial| &trial.evidence).collect(),
            Self::Sweep(_, sweep) => sweep.steps.iter().filter_map(|step| step.evidence.as_ref()).collect(),
            Self::Comparison(compared) => compared.runs.iter().map(|run| &run.evidence).collect(),
        }
    }
}

/// A decision as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptDecision {
    /// See [`Decision::Capacity`].
    Capacity(Box<Plan>, Capacity),
    /// See [`Decision::Sweep`].
    Sweep(Box<Plan>, Sweep),
    /// See [`Decision::Comparison`].
    Comparison(ComparedRuns),
}

impl KeptDecision {
    /// The part of `decision` that is kept.
    pub fn from_decision(decision: Decision<'_>) -> Self {
        match decision {
            Decision::Capacity(plan, capacity) => Self::Capacity(Box::new(plan.clone()), capacity.clone()),
            Decision::Sweep(plan, sweep) => Self::Sweep(Box::new(plan.clone()), sweep.clone()),
            Decision::Comparison(compared) => Self::Comparison(compared.clone()),
        }
    }

    /// What was decided.
    pub fn decision(&self) -> Decision<'_> {
        match self {
            Self::Capacity(plan, capacity) => Decision::Capacity(plan, capacity),
            Self::Sweep(plan, sweep) => Decision::Sweep(plan, sweep),
            Self::Comparison(compared) => Decision::Comparison(compared),
        }
    }
}
