//! Which calls of users are traced (`--trace`).

use brunt_plan::plan::Plan;
use brunt_protocol::traced::{TraceIds, Tracing};

use super::call::UserCall;

/// Deals trace ids out to a share of a worker's calls.
#[derive(Debug, Default)]
pub(super) struct Traces {
    tracing: Option<Tracing>,
    /// The number of calls made.
    calls: u64,
}

impl Traces {
    /// Traces as the plan asks for them.
    pub(super) fn from_plan(plan: &Plan) -> Self {
        let share = plan.scenarios.as_ref().and_then(|scenarios| scenarios.trace_ratio);
        Self { tracing: share.map(Tracing::of_share), calls: 0 }
    }

    /// Whether any call is traced.
    pub(super) fn are_wanted(&self) -> bool {
        self.tracing.is_some()
    }

    /// The ids of a call that is made, if it is traced. One that continues another after an answer that led on belongs
    /// to the trace of the first.
    pub(super) fn of(&mut self, call: &UserCall) -> Option<TraceIds> {
        match call.chain {
            Some(chain) => chain.trace,
            None => self.next(),
        }
    }

    fn next(&mut self) -> Option<TraceIds> {
        let ids = self.tracing.as_ref()?.ids(self.calls);
        self.calls += 1;
        ids
    }
}
