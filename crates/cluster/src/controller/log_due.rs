//! The calls of a log that are due on the agents of a run, and on lost ones.

use brunt_plan::plan::Plan;

use super::progress::InProgress;
use crate::loss::LastSeconds;
use crate::lost_log_calls::Unreported;
use crate::rules::{Rule, is_broken};

impl InProgress {
    /// Reads the run's log on, up to `until_ns` of the measured part.
    fn read_log(&mut self, until_ns: u64) {
        let Some(log) = &mut self.log else { return };
        if let Err(reason) = log.deal(until_ns, &mut self.begun.agents) {
            // The calls due on lost agents are no longer known.
            self.log = None;
            self.failed.get_or_insert(reason);
        }
    }

    /// Reads the run's log up to `now` of the controller's clock.
    pub(super) fn follow(&mut self, now: u64) {
        let planned_ns = planned_ns(&self.begun.plan);
        self.read_log(now.saturating_sub(self.begun.at).min(planned_ns));
    }

    /// Reads on. Returns whether the log was read as far as lost agents had calls of it.
    pub(super) fn has_read_on(&mut self) -> bool {
        let horizons = self.begun.agents.iter().filter_map(|agent| Some(agent.lost.as_ref()?.horizon_ns()));
        let Some(horizon_ns) = horizons.max() else { return true };
        let (longest, is_whole) = self.others_ended();
        let end_ns = if is_whole { planned_ns(&self.begun.plan) } else { longest };
        let until_ns = end_ns.max(horizon_ns);
        self.read_log(until_ns);
        self.log.as_ref().is_none_or(|log| log.read_ns() >= until_ns)
    }

    /// The calls of the log that a lost agent has not reported; `None` in other runs. `last` is its last report.
    pub(super) fn unreported(&mut self, place: usize, last: &LastSeconds) -> Option<Unreported> {
        self.log.as_ref()?;
        let agent = self.begun.agents.get_mut(place)?;
        let reported = last.begun.due() + last.drained.due();
        agent.unreported.reported(if is_broken(Rule::LoggedIsDue) { u64::MAX } else { reported });
        Some(std::mem::take(&mut agent.unreported))
    }
}

/// The longest duration of the measured part, in nanoseconds.
fn planned_ns(plan: &Plan) -> u64 {
    plan.duration_ns().unwrap_or(u64::MAX)
}
