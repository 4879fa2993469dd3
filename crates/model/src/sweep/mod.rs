//! How a target behaves over a range of loads: the values of a sweep, what came of each, and the law fitted to it.

mod steps;
mod usl;

use serde::{Deserialize, Serialize};

pub use steps::{Range, Steps, StepsError};
pub use usl::{Fit, Interval, NoFit, Peak, fit};

use crate::evidence::Evidence;
use crate::verdict::Judgement;

/// What is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name, as the flag's: `connections`.
    pub name: String,
    /// Whether the law of scalability is about it.
    pub is_concurrency: bool,
}

/// What came of one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The value.
    pub value: u64,
    /// The run; none if none could be made.
    pub evidence: Option<Evidence>,
    /// Why the value says nothing of the target, or little, for people; empty if it does.
    pub problem: String,
}

impl Step {
    /// What a run says. A target that does not answer is a finding, not an error.
    pub fn of(value: u64, evidence: Evidence) -> Self {
        let problem = if evidence.is_answered() { String::new() } else { format!("no answer ({})", evidence.failure) };
        Self { value, evidence: Some(evidence), problem }
    }

    /// A value for which no run could be made.
    pub fn impossible(value: u64, why: String) -> Self {
        Self { value, evidence: None, problem: why }
    }

    /// Whether the target answered and every threshold held.
    pub fn is_good(&self) -> bool {
        self.evidence.as_ref().is_some_and(|run| run.is_answered() && run.held())
    }

    /// Connections and calls answered a second, where those are the target's doing and not the generator's.
    fn point(&self) -> Option<(f64, f64)> {
        let run = self.evidence.as_ref()?;
        let counts = run.is_answered() && run.is_rate_believed && run.answered_per_s > 0.0;
        counts.then_some((self.value as f64, run.answered_per_s))
    }
}

/// What came of fitting the law of scalability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// It was fitted.
    Fit(Fit),
    /// It was not.
    NoFit(NoFit),
}

/// A sweep that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// What was varied.
    pub axis: Axis,
    /// Values that were to be tried.
    pub planned: Vec<u64>,
    /// What came of each that was, in their order.
    pub steps: Vec<Step>,
    /// The law of scalability, of a sweep of connections: what was fitted, or why not.
    pub law: Option<Law>,
    /// Steps that the law leaves out, since the generator and not the target was their limit.
    pub generator_bound: usize,
    /// Others that it leaves out, since the generator's own delays lowered what its connections could ask for.
    pub latency_unreliable: usize,
    /// Why it ended before its last value, for people; empty if it did not.
    pub ended: String,
}

impl Sweep {
    /// Puts a sweep together, and fits the law where it is one of concurrency.
    pub fn of(axis: Axis, planned: Vec<u64>, steps: Vec<Step>, ended: String) -> Self {
        let points: Vec<_> = steps.iter().filter_map(Step::point).collect();
        let left_out = |is_bound: bool| {
            let is_so = |run: &Evidence| {
                let bound = run.judgement == Judgement::GeneratorBound;
                run.is_answered() && !run.is_rate_believed && bound == is_bound
            };
            steps.iter().filter(|step| step.evidence.as_ref().is_some_and(is_so)).count()
        };
        let (generator_bound, latency_unreliable) = (left_out(true), left_out(false));
        let law = axis.is_concurrency.then(|| match fit(&points) {
            Ok(fit) => Law::Fit(fit),
            Err(why) => Law::NoFit(why),
        });
        Self { axis, planned, steps, law, generator_bound, latency_unreliable, ended }
    }
}
