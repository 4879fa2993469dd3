//! Giving a lost agent's work to others.

use brunt_engine::Report;
use brunt_plan::plan::Load;
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentEnd;

use super::in_run::{Duty, InRun, Stage};
use super::inspection::planned_end_ns;
use super::progress::{Begun, InProgress};
use crate::takeover::{self, Left};
use crate::words::LeftWork;

/// How long after an agent was declared lost others take over its work, in nanoseconds: time for the message to reach
/// them, and to make connections.
const TAKEOVER_NS: u64 = 600_000_000;
/// The last stretch of a run that is not worth a takeover, in nanoseconds.
const LAST_MOMENTS_NS: u64 = 100_000_000;

impl InProgress {
    /// Deals an agent's remaining work to those that can help. Returns the point of the measured part from which on
    /// they do it, in nanoseconds; never if nobody does. Calls due before the lost agent's horizon it may have sent
    /// itself.
    pub(super) fn reassign(&mut self, place: usize, left: &[Left], now: u64, horizon_ns: Option<u64>) -> u64 {
        let changed = self.changed.as_ref();
        let Begun { plan, at, agents, given, .. } = &mut self.begun;
        let begin = *at + plan.warmup_ns;
        // Work that had not begun for the lost agent begins when it should have begun, or later.
        let first = left.iter().map(|left| left.since_ns).max().unwrap_or(0);
        let after_ns = (now + TAKEOVER_NS).saturating_sub(begin).max(first).max(horizon_ns.unwrap_or(0));
        let is_over = after_ns.saturating_add(LAST_MOMENTS_NS) >= planned_end_ns(plan);
        let mut helpers: Vec<usize> =
            (0..agents.len()).filter(|place| agents.get(*place).is_some_and(InRun::can_help)).collect();
        if is_over || self.is_stopping || self.own_stop.is_some() || helpers.is_empty() {
            return u64::MAX;
        }
        helpers.sort_by_key(|place| agents.get(*place).map_or(0, |agent| agent.duties.len()));
        let counts = matches!(plan.load, Load::Closed {}) && plan.stop.requests.is_some();
        // Each piece needs one of the run's connections, or one of the users that may be alive at once.
        let scarce = match &plan.scenarios {
            Some(scenarios) => scenarios.populations.iter().filter_map(|one| one.most_alive).min().unwrap_or(u64::MAX),
            None => u64::from(plan.connections.most()),
        };
        for (helper, piece) in takeover::deal(left.to_vec(), helpers.len(), scarce, counts) {
            let Some(helper) = helpers.get(helper).copied() else { continue };
            let Some(agent) = agents.get_mut(helper) else { continue };
            self.takeovers += 1;
            let number = self.takeovers;
            let (portion, numbers) = (piece.portion, piece.numbers.clone());
            let piece = Left { since_ns: after_ns, ..piece };
            agent.duties.push(Duty { number, piece, is_taken: false, from: place });
            agent.asked += 1;
            agent.inspection.give(
                plan,
                changed,
                portion,
                after_ns,
                numbers.iter().map(|numbers| numbers.count()).sum(),
            );
            if agent.stage == Stage::Finished {
                agent.stage = Stage::Working;
                // The receiver goes on until every agent has finished.
                let _ = self.reports.send(Report::Resumed { worker: helper as u32, second: after_ns / SECOND_NS });
            }
            let work = LeftWork { number, portion, numbers, after_ns, at: begin + after_ns, given: given.clone() };
            self.left_work.push((helper, work));
        }
        after_ns
    }

    /// An agent cannot take over what it was asked to: nobody does it.
    pub(super) fn declined(&mut self, place: usize, number: u32, problem: &str) {
        // A piece that an ending agent has not begun is dealt again with the rest of its work.
        let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| agent.leaving.is_none()) else {
            return;
        };
        let Some(at) = agent.duties.iter().position(|duty| duty.number == number) else { return };
        let duty = agent.duties.remove(at);
        let name = agent.part.name.clone();
        let Some(lost) = self.begun.agents.get_mut(duty.from) else { return };
        lost.missed.add(std::slice::from_ref(&duty.piece), u64::MAX);
        if let Some(lost) = &mut lost.lost {
            lost.add(&self.begun.plan, self.changed.as_ref(), &duty.piece, u64::MAX);
        }
        if let AgentEnd::Lost { reason, .. } = &mut lost.part.ended {
            *reason = format!("{reason}; agent '{name}' could not take over: {problem}");
        }
    }
}
