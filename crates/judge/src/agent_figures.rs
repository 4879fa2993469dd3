//! Figures of each agent's part of a run.

use brunt_plan::plan::Plan;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::Percentile;
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;
use serde::Serialize;

use crate::verdict::{Judged, Judgement, Verdict};

/// Figures of one agent's part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFigures {
    /// Calls due on it.
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
    /// Whether these figures can be believed.
    pub judgement: Judgement,
}

impl AgentFigures {
    /// The figures of each agent of `run`, in their order.
    pub(crate) fn all(plan: &Plan, run: &Recording) -> Vec<Self> {
        let mut plan = Plan { thresholds: Vec::new(), guards: Vec::new(), ..plan.clone() };
        let figures = run.agents.iter().map(|agent| {
            plan.workers = agent.workers;
            Self::new(agent, &plan, run.measured_ns)
        });
        figures.collect()
    }

    /// The figures of `part`, whose workers carry out `plan`. They are far fewer than a summary has: there may be very
    /// many agents.
    /// Rates are those over the whole run, so that they add up to its own.
    fn new(part: &AgentPart, plan: &Plan, run_ns: u64) -> Self {
        let mut total = Snapshot::default();
        total.merge_totals(&part.measured);
        total.merge_totals(&part.drained);
        total.numbers.set_health(&part.measured.numbers);
        let judged = Judged { plan, measured_ns: part.measured_ns, points: part.series.points(), is_changed: false };
        let response = judged.response(&total, None);
        let answered_per_s = |answered: u64| match run_ns.max(part.measured_ns) {
            0 => 0.0,
            ns => answered as f64 * 1e9 / ns as f64,
        };
        Self {
            due: total.numbers.get(Counter::Due),
            answered: total.statuses.total(),
            not_ok: total.not_ok(&plan.ok_status),
            answered_per_s: answered_per_s(total.numbers.get(Counter::EndedAnswered)),
            response_p99_ns: response.as_ref().and_then(|times| Some(times.quantile(Percentile::P99)?.value)),
            lag_p99_ns: total.times.known(Timing::Lag).quantile(0.99),
            judgement: Verdict::of_judged(judged, &total, response.as_ref()).judgement,
        }
    }
}
