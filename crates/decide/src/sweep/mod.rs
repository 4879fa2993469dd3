//! A target's behaviour over a range of loads: the values of a sweep, the result of each, and the law fitted to them.

mod usl;

use serde::{Deserialize, Serialize};

use brunt_judge::verdict::Judgement;
use brunt_record::histogram::Percentile;
pub use usl::{Fit, FitInterval, NoFit, Peak, fit};

use crate::evidence::Evidence;
use crate::short::{self, Lacking};

/// The parameter that is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Axis {
    /// Its name, as the flag's: `connections`.
    pub name: String,
    /// Whether it is concurrency, which the law of scalability is about.
    pub is_concurrency: bool,
}

/// One value and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SweepStep"))]
pub struct SweepStep {
    /// The value.
    pub value: u64,
    /// The run; `None` if it could not be made.
    pub evidence: Option<Evidence>,
    /// The reason if the value says little or nothing about the target, for people; empty if it says enough.
    pub problem: String,
}

impl SweepStep {
    /// The step of a run. A target that does not answer is a finding, not an error.
    pub fn new(value: u64, evidence: Evidence) -> Self {
        let problem = if evidence.is_answered() { String::new() } else { format!("no answer ({})", evidence.failure) };
        Self { value, evidence: Some(evidence), problem }
    }

    /// A value for which no run could be made.
    pub fn impossible(value: u64, why: String) -> Self {
        Self { value, evidence: None, problem: why }
    }

    /// Whether the target answered.
    pub fn is_answered(&self) -> bool {
        self.evidence.as_ref().is_some_and(Evidence::is_answered)
    }

    /// Such as `error_rate<50% was 100%`: why it says little, and each threshold that did not hold; empty where it is good.
    pub fn why_not(&self) -> String {
        let missed = self.evidence.iter().flat_map(|run| &run.thresholds).filter(|result| !result.held);
        let missed = missed.map(|result| format!("{} was {}", result.condition, result.got));
        let all = std::iter::once(self.problem.clone()).filter(|problem| !problem.is_empty()).chain(missed);
        all.collect::<Vec<_>>().join("; ")
    }

    /// Whether the target answered and every threshold held.
    pub fn is_good(&self) -> bool {
        self.is_answered() && self.evidence.as_ref().is_some_and(|run| run.failed_threshold().is_none())
    }

    /// Connections and successful calls a second, where those are the target's doing and not the generator's.
    fn point(&self) -> Option<(f64, f64)> {
        let run = self.evidence.as_ref()?;
        let counts = run.is_answered() && run.is_rate_believed && run.ok_per_s > 0.0;
        counts.then_some((self.value as f64, run.ok_per_s))
    }
}

/// The result of fitting the law of scalability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// The law was fitted.
    Fit(Fit),
    /// The law was not fitted.
    NoFit(NoFit),
}

/// A finished sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    /// The parameter that was varied.
    pub axis: Axis,
    /// Values that were to be tried.
    pub planned: Vec<u64>,
    /// The results of the values that were run, in their order.
    pub steps: Vec<SweepStep>,
    /// The law of scalability for a sweep of connections: the fit, or the reason for its absence.
    pub law: Option<Law>,
    /// Steps that the law leaves out, since the generator and not the target was their limit.
    pub generator_bound: usize,
    /// Others that it leaves out, since the generator's own delays lowered what its connections could ask for.
    pub latency_unreliable: usize,
    /// Why it ended before its last value, for people; empty if it did not.
    pub ended: String,
    /// What it lacks.
    #[serde(flatten)]
    pub lacking: Lacking,
}

/// The share of the most calls a second that a value must answer to be enough.
pub const ENOUGH: f64 = 0.95;

/// The least value that answers about as much as any other, beside the value that answers the most.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The least value with at least [`ENOUGH`] of the most.
    pub enough: (u64, &'a Evidence),
    /// The value with the most.
    pub most: (u64, &'a Evidence),
}

impl Choice<'_> {
    /// Successful calls a second at `enough` over those at `most`, 0 to 1.
    pub fn throughput_ratio(&self) -> f64 {
        self.enough.1.ok_per_s / self.most.1.ok_per_s
    }

    /// The percentile that latency is compared by, and its quotient; `None` where the generator spoiled both sides.
    pub fn latency_ratio(&self) -> Option<(Percentile, f64)> {
        let of = |percentile: Percentile| {
            let time = |run: &Evidence| run.quantile(percentile).filter(|time| !time.at_least);
            let known = |run: &Evidence| time(run).filter(|_| run.is_reliable(percentile));
            Some((percentile, known(self.enough.1)?.value as f64 / known(self.most.1)?.value.max(1) as f64))
        };
        of(Percentile::P99).or_else(|| of(Percentile::P50))
    }
}

impl Sweep {
    /// The choice among values that met every threshold, whose throughput is the target's doing, and at which calls did some good.
    pub fn choice(&self) -> Option<Choice<'_>> {
        let runs = || {
            let good = self.steps.iter().filter(|step| step.is_good() && step.point().is_some());
            let runs = good.filter_map(|step| Some((step.value, step.evidence.as_ref()?)));
            runs.filter(|(_, run)| run.without_yield().is_none())
        };
        let most = runs().max_by(|a, b| a.1.ok_per_s.total_cmp(&b.1.ok_per_s))?;
        let enough =
            runs().filter(|(_, run)| run.ok_per_s >= ENOUGH * most.1.ok_per_s).min_by_key(|(value, _)| *value)?;
        Some(Choice { enough, most })
    }

    /// Puts a sweep together, and fits the law where it is one of concurrency.
    pub fn new(axis: Axis, planned: Vec<u64>, steps: Vec<SweepStep>, ended: String) -> Self {
        let points: Vec<_> = steps.iter().filter_map(SweepStep::point).collect();
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
        Self { axis, planned, steps, law, generator_bound, latency_unreliable, ended, lacking: Lacking::default() }
    }

    /// Notes a shortage of runs beyond the allowed share. After an interruption only the runs made count as asked for.
    #[must_use]
    pub fn judged(mut self, most_less_ratio: f64) -> Self {
        let asked = if self.ended.is_empty() { self.planned.len() } else { self.steps.len() };
        let made = self.steps.iter().filter_map(|step| step.evidence.as_ref());
        self.lacking.short = short::of_agents(asked, made, most_less_ratio).into_iter().collect();
        self
    }

    /// Whether no value had an answer.
    pub fn is_silent(&self) -> bool {
        !self.steps.is_empty() && !self.steps.iter().any(SweepStep::is_answered)
    }
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::summary;
    use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
    use brunt_record::histogram::AtLeast;

    use super::*;

    /// A sweep of connections with so many calls a second and such a p99 in milliseconds, and whether its threshold held.
    fn sweep(steps: &[(u64, f64, u64, bool)]) -> Sweep {
        let step = |&(value, per_s, p99_ms, held): &(u64, f64, u64, bool)| {
            let mut run = Evidence::from_summary(&summary());
            (run.answered_per_s, run.ok_per_s) = (per_s, per_s);
            run.p99_ns = Some(AtLeast::exactly(p99_ms * 1_000_000));
            run.thresholds = vec![ThresholdResult {
                condition: JudgedCondition::Threshold("p99<50ms".parse().unwrap()),
                value: None,
                got: "".into(),
                held,
                sure: true,
            }];
            SweepStep::new(value, run)
        };
        let axis = Axis { name: "connections".into(), is_concurrency: true };
        Sweep::new(axis, Vec::new(), steps.iter().map(step).collect(), String::new())
    }

    #[test]
    fn the_least_value_that_answers_nearly_the_most_is_enough() {
        let sweep = sweep(&[(4, 500.0, 8, true), (8, 990.0, 8, true), (16, 1000.0, 16, true), (32, 996.0, 32, true)]);
        let choice = sweep.choice().unwrap();
        assert_eq!((choice.enough.0, choice.most.0), (8, 16));
        assert!((choice.throughput_ratio() - 0.99).abs() < 1e-9);
        assert_eq!(choice.latency_ratio(), Some((Percentile::P99, 0.5)));
    }

    #[test]
    fn values_that_missed_a_threshold_or_that_the_generator_bound_are_no_choice() {
        let mut sweep = sweep(&[(4, 500.0, 8, true), (8, 990.0, 80, false), (16, 2000.0, 16, true)]);
        sweep.steps[2].evidence.as_mut().unwrap().is_rate_believed = false;
        assert_eq!(sweep.choice().map(|choice| (choice.enough.0, choice.most.0)), Some((4, 4)));
        sweep.steps.truncate(0);
        assert!(sweep.choice().is_none());
    }
}
