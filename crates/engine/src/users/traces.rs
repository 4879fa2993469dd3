//! Which calls of users are traced (`--trace`).

use brunt_plan::plan::Plan;
use brunt_protocol::traced::{TraceIds, Tracing};

use super::VirtualUsers;

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

    /// The ids of the next call, if it is traced.
    fn next(&mut self) -> Option<TraceIds> {
        let ids = self.tracing.as_ref()?.ids(self.calls);
        self.calls += 1;
        ids
    }
}

impl VirtualUsers {
    /// Adds a `traceparent` to the call in this slot, encoded or prepared, if it is traced. A call that continues
    /// another after an answer that led on belongs to the trace of the first.
    pub(super) fn trace_call(&mut self, slot: u32, client: usize) {
        if !self.traces.are_wanted() {
            return;
        }
        let Some(call) = self.calls.get_mut(slot) else { return };
        let ids = match call.chain {
            Some(chain) => chain.trace,
            None => self.traces.next(),
        };
        let (Some(ids), Some(client)) = (ids, self.clients.get(client)) else { return };
        let prepared = call.prepared.and_then(|number| self.prepared.get(number as usize));
        if let Some(prepared) = prepared {
            call.encoded.copy_message(&prepared.encoded);
        }
        if client.caller.add_trace(&mut call.encoded, &ids) {
            (call.trace, call.prepared) = (Some(ids), None);
        } else if prepared.is_some() {
            call.encoded.clear();
        }
    }
}
