//! A controller's account of an agent in a run.

use super::inspection::Inspection;
use super::iterations::Iterations;
use crate::clock::Offset;
use crate::loss::{LostTimetable, Unaccounted};
use crate::lost_log_calls::Unreported;
use crate::messages::FromAgent;
use crate::roster::dealt_requests;
use crate::rules::{Rule, is_broken};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::Portion;
use brunt_record::SECOND_NS;
use brunt_record::agents::{AgentEnd, AgentPart, Untold};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::outcome::OkStatus;
use brunt_record::replayed::LogRead;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;
use std::collections::BTreeMap;

/// A second without a length in which nothing happened.
pub(super) fn nothing(phase: Phase, second: u64) -> Interval {
    let (snapshot, length_ns) = (Snapshot::default(), 0);
    Interval { worker: 0, phase, second, length_ns, snapshot, open_connections: 0, in_flight: 0, oldest_ns: 0 }
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentStage {
    /// It makes calls, or is about to.
    Working,
    /// It has reported its drain.
    Drained,
    /// It has said that it is done.
    Finished,
}

/// Whether an agent is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reachability {
    /// It is.
    Heard,
    /// It is lost to its controller, but not, or not yet, to the run.
    Gone,
    /// It is lost to the run.
    Lost {
        /// Whether it has reported everything that it did, after that.
        has_ended: bool,
    },
}

/// Reports of an agent after it was declared lost.
#[derive(Debug, Default)]
pub(super) struct LateReports {
    /// All of them, and the stretch of the measured part that they cover.
    all: Snapshot,
    all_ns: u64,
    /// Those of seconds that are over before its horizon.
    before: Snapshot,
    before_ns: u64,
    /// Whether there was a later second.
    is_beyond: bool,
}

impl LateReports {
    /// Takes a report of an agent that makes no call due at `horizon_ns` of the measured part or later.
    fn add(&mut self, interval: &Interval, horizon_ns: u64) {
        let end_ns = interval.second * SECOND_NS + interval.length_ns;
        match interval.phase {
            // No figure of the result has calls of the warm-up.
            Phase::Warmup => {}
            Phase::Measured => {
                self.all.merge(&interval.snapshot);
                self.all_ns = end_ns;
                self.is_beyond |= end_ns > horizon_ns && !is_broken(Rule::LateBeyondTheHorizonIsNothing);
                if !self.is_beyond {
                    self.before.merge(&interval.snapshot);
                    self.before_ns = end_ns;
                }
            }
            Phase::Drain => self.all.merge(&interval.snapshot),
        }
    }
}

/// The most names of scenarios whose users are counted, and of what machines count together: more than a plan has.
const MOST_COUNTED: usize = 10_000;

/// An agent in a run.
pub(super) struct InRun {
    pub(super) part: AgentPart,
    pub(super) portion: Portion,
    /// The calls that it has to make, where the plan limits their number in the closed model.
    requests: Option<u64>,
    /// Measured calls that it has reported as due.
    pub(super) due: u64,
    /// Users that it has reported as alive, by scenario.
    pub(super) users: BTreeMap<String, i64>,
    /// The second of the measured part that comes next.
    pub(super) next: u64,
    pub(super) stage: AgentStage,
    pub(super) contact: Reachability,
    /// The reason if it announces that it leaves the run early.
    pub(super) leaving: Option<String>,
    /// Its reports after that announcement.
    pub(super) held: Vec<Interval>,
    pub(super) lost: Option<LostTimetable>,
    /// Calls of a log that are due on it and were not reported.
    pub(super) unreported: Unreported,
    /// Its account of the log, and of its part, once it has ended.
    pub(super) log: Option<Box<LogRead>>,
    /// Its reports after it was declared lost.
    pub(super) late: LateReports,
    /// The limits of its reports.
    pub(super) inspection: Inspection,
    /// The point of the measured part from which on it has sent nothing, in nanoseconds, once it is lost.
    pub(super) horizon_ns: u64,
    /// The users that it had when it was lost.
    pub(super) users_at_loss: u64,
    /// What it had not accounted for when it was lost.
    pub(super) unaccounted: Option<Unaccounted>,
    pub(super) iterations: Iterations,
    pub(super) counts: BTreeMap<String, u64>,
    /// When it began, on its own clock.
    pub(super) began_there: Option<u64>,
    /// When it last reported something of its part, in the time for which the bus let messages through.
    pub(super) reported: u64,
}

impl InRun {
    pub(super) fn new(part: AgentPart, portion: Portion, plan: &Plan) -> Self {
        let connections = u64::from(plan.connections.most());
        let requests = dealt_requests(plan).map(|requests| portion.part_by_connection(requests, connections));
        Self {
            part,
            portion,
            requests,
            due: 0,
            users: BTreeMap::new(),
            next: 0,
            stage: AgentStage::Working,
            contact: Reachability::Heard,
            leaving: None,
            held: Vec::new(),
            lost: None,
            unreported: Unreported::default(),
            log: None,
            late: LateReports::default(),
            inspection: Inspection::new(plan, portion, requests),
            horizon_ns: 0,
            users_at_loss: 0,
            unaccounted: None,
            iterations: Iterations::from_plan(plan, portion),
            counts: BTreeMap::new(),
            began_there: None,
            reported: 0,
        }
    }

    /// It has so many requests of a counted number.
    pub(super) fn dealt(&mut self, requests: u64) {
        self.requests = Some(requests);
        self.inspection.dealt(requests);
    }

    /// Whether it is lost to the run.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.contact, Reachability::Lost { .. })
    }

    /// Takes its report on users.
    pub(super) fn count_users(&mut self, interval: &Interval) {
        self.iterations.add(&interval.snapshot);
        for (name, scenario) in interval.snapshot.figures.scenarios.iter() {
            let has_room = self.users.len() < MOST_COUNTED;
            match self.users.get_mut(name) {
                Some(alive) => *alive = alive.saturating_add(scenario.users_gained()),
                None if has_room => {
                    self.users.insert(name.to_owned(), scenario.users_gained());
                }
                None => {}
            }
        }
    }

    /// Ends the users of a lost agent, in the second that it did not report or in the drain; `None` if it had no users.
    pub(super) fn lose_users(&mut self, phase: Phase) -> Option<Interval> {
        let mut snapshot = Snapshot::default();
        for (name, alive) in std::mem::take(&mut self.users) {
            if alive > 0 {
                snapshot.figures.scenarios.named(&name).users_ended = alive.cast_unsigned();
            }
        }
        let second = if phase == Phase::Drain { 0 } else { self.next };
        let interval = Interval { snapshot, ..nothing(phase, second) };
        (!interval.snapshot.figures.is_empty()).then_some(interval)
    }

    /// The calls that it had under way when it was last heard, once everything due on it is in its part: their outcomes
    /// are unknown. `None` without such calls.
    pub(super) fn leave_unfinished(&mut self, ok: &OkStatus) -> Option<Interval> {
        let AgentPart { measured, drained, ended, .. } = &self.part;
        let AgentEnd::Lost { after_ns, .. } = ended else { return None };
        let (due, has_ended) = (measured.due() + drained.due(), measured.ended() + drained.ended());
        let (calls, more) = (due.saturating_sub(has_ended), has_ended.saturating_sub(due));
        // An agent that reported more ends than calls was declared lost for that.
        let mut snapshot = Snapshot::with_numbers([(Counter::Unfinished, calls), (Counter::Due, more)]);
        // Unknown calls are in no percentile; percentiles that they could change are flagged.
        snapshot.times.record_bounds(Timing::Response, 0, calls);
        snapshot.times.record_bounds(Timing::Service, 0, calls);
        let mut by_due = DueLog::default();
        // The target may have answered them: they say nothing about it.
        by_due.exclude(Tick::from_ns(after_ns.saturating_sub(1)), calls);
        snapshot.timeline = by_due.take();
        let interval = Interval { snapshot, ..nothing(Phase::Drain, 0) };
        (calls + more > 0 && !is_broken(Rule::LeftUnderWayIsUnfinished))
            .then(|| self.part.add(&interval, ok))
            .map(|()| interval)
    }

    /// Takes its share of the counts that machines make together.
    pub(super) fn take_counts(&mut self, counts: BTreeMap<String, u64>) {
        if counts.len() <= MOST_COUNTED {
            self.counts = counts;
        }
    }

    /// Takes a message of a lost agent that stood still and goes on. True if that was its last.
    pub(super) fn take_late(&mut self, run: u32, words: &FromAgent) -> bool {
        match words {
            FromAgent::Second { run: of, interval } if *of == run && self.leaving.is_none() => {
                self.late.add(interval, self.horizon_ns);
            }
            FromAgent::Finished { run: of, ended, .. } if *of == run => {
                self.log.clone_from(&ended.log);
                self.contact = Reachability::Lost { has_ended: true };
                return true;
            }
            _ => {}
        }
        false
    }

    /// Where it may have made calls that no number bounds, once it is lost and its late reports are in.
    pub(super) fn unbounded(&self, plan: &Plan) -> Option<Untold> {
        let AgentEnd::Lost { after_ns, .. } = self.part.ended else { return None };
        let is_bounded = plan.stop.requests.is_some() && plan.scenarios.is_none();
        let is_closed = matches!(plan.load, Load::Closed {}) && !is_bounded;
        let has_ended = self.contact == (Reachability::Lost { has_ended: true });
        if !is_closed || has_ended || is_broken(Rule::UnboundedIsSaid) {
            return None;
        }
        let told_ns = after_ns.max(self.late.before_ns).max(self.next * SECOND_NS);
        let ns = self.horizon_ns.min(plan.duration_ns().unwrap_or(u64::MAX)).saturating_sub(told_ns);
        let (connections, users) = match plan.scenarios {
            Some(_) => (0, self.users_at_loss),
            None => (self.portion.part_of(u64::from(plan.connections.most())), 0),
        };
        (ns > 0).then_some(Untold { connections, users, ns })
    }

    /// Applies its reports since it was declared lost.
    pub(super) fn amend(&mut self, lost: &mut LostTimetable) {
        let is_whole = self.contact == (Reachability::Lost { has_ended: true });
        let LateReports { all, all_ns, before, before_ns, .. } = std::mem::take(&mut self.late);
        let (told, accounted_ns) = if is_whole { (all, all_ns) } else { (before, before_ns) };
        lost.amend(told, accounted_ns, is_whole);
    }

    /// Computes when it began, on the controller's clock, relative to the agreed beginning.
    pub(super) fn compare(&mut self, offset: Option<Offset>, at: u64) {
        if let (Some(offset), Some(there)) = (offset, self.began_there) {
            self.part.began_ns = offset.here(there).cast_signed() - at.cast_signed();
            self.part.clock_uncertainty_ns = offset.uncertainty_ns;
        }
    }

    /// What it has not accounted for, as it has reported `due` calls and `measured_ns` of the measured part.
    pub(super) fn unaccounted(&self, measured_ns: u64, due: u64) -> Unaccounted {
        let requests = self.requests.map_or(0, |requests| requests.saturating_sub(due));
        Unaccounted { portion: self.portion, requests, due, since_ns: measured_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_second_beyond_the_horizon_and_all_after_it_count_apart() {
        let mut late = LateReports::default();
        for second in 0..3 {
            let snapshot = Snapshot::with_numbers([(Counter::Due, 10)]);
            let (phase, length_ns) = (Phase::Measured, SECOND_NS);
            let (open_connections, in_flight, oldest_ns) = (0, 0, 0);
            let interval =
                Interval { worker: 0, phase, second, length_ns, snapshot, open_connections, in_flight, oldest_ns };
            late.add(&interval, 3 * SECOND_NS / 2);
        }
        assert_eq!((late.before.numbers.get(Counter::Due), late.before_ns), (10, SECOND_NS));
        assert_eq!((late.all.numbers.get(Counter::Due), late.all_ns), (30, 3 * SECOND_NS));
    }
}
