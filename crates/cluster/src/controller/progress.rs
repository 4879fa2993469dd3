//! The accounts of a run under way: each agent's reports, and what lost ones had to do.

use brunt_record::recording::Stop;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use brunt_engine::{Report, StopHandle};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::profile::Profile;
use brunt_protocol::scenario::Value;
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentEnd;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::recording::LifecycleFigures;
use brunt_record::snapshot::{Phase, Snapshot};

use super::OnLost;
use super::dealing::Dealing;
use super::following::Following;
use super::in_run::{AgentStage, InRun, Reachability, nothing};
use super::inspection::{Breach, planned_end_ns};
use crate::clock::Offset;
use crate::loss::{LastSeconds, LostTimetable};
use crate::messages::{FromAgent, PartEnd, ToAgent};
use crate::rules::{Rule, is_broken};

/// How long after a second's end it counts as reported by a lost agent, in nanoseconds.
const LATE_NS: u64 = 300_000_000;
/// The least time that the controller stood still if that is the reason for which agents hear nothing, in nanoseconds.
const STOOD_STILL_NS: u64 = 3_000_000_000;

/// A run that has begun.
pub(super) struct StartedRun {
    pub(super) plan: Plan,
    pub(super) given: Value<'static>,
    /// The counts of setup and, once the run is over, of teardown.
    pub(super) left: LifecycleFigures,
    /// When, on the controller's clock, in nanoseconds.
    pub(super) at: u64,
    pub(super) agents: Vec<InRun>,
}

/// The reason for which a run ends by itself, early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnStop {
    /// An agent failed, or its script ended the run, in its setup or later.
    ByAgent,
    /// It lost agents, and may not go on without them.
    AgentsLost,
}

/// A run under way.
pub(super) struct InProgress {
    pub(super) run: u32,
    pub(super) begun: StartedRun,
    pub(super) reports: Sender<Report>,
    /// Whether agents were told to stop.
    pub(super) is_stopping: bool,
    /// The reason for which it has to end, unless its user asked for it.
    pub(super) own_stop: Option<OwnStop>,
    pub(super) counts_changed: bool,
    pub(super) status_names: BTreeMap<u16, String>,
    pub(super) redirected_to: Option<String>,
    pub(super) failed: Option<String>,
    /// The longest that this process stood still itself, meanwhile; in nanoseconds.
    pub(super) stood_still_ns: u64,
    /// For how long the bus has let messages through.
    pub(super) audible: u64,
    /// Whether the user has asked twice: nothing is waited for any more.
    pub(super) is_left: bool,
    /// The places of lost agents that have sent their last message.
    pub(super) said_their_last: Vec<usize>,
    /// The log that the run replays, as it is read here.
    pub(super) log: Option<Following>,
    /// The requests of a counted number, and who has them.
    pub(super) dealing: Option<Dealing>,
    /// The number of changes of the run that are applied, and the resulting profile.
    pub(super) heard: usize,
    pub(super) changed: Option<Profile>,
}

impl InProgress {
    pub(super) fn new(run: u32, begun: StartedRun, reports: Sender<Report>) -> Self {
        let portions = begun.agents.iter().map(|agent| agent.portion);
        let dealing = Dealing::new(run, &begun.plan, portions);
        Self {
            dealing,
            run,
            begun,
            reports,
            is_stopping: false,
            own_stop: None,
            counts_changed: false,
            status_names: BTreeMap::new(),
            redirected_to: None,
            failed: None,
            stood_still_ns: 0,
            audible: 0,
            is_left: false,
            said_their_last: Vec::new(),
            log: None,
            heard: 0,
            changed: None,
        }
    }

    /// Whether every agent has finished, or is lost.
    pub(super) fn is_over(&self) -> bool {
        self.begun.agents.iter().all(|agent| agent.stage == AgentStage::Finished || agent.is_lost())
    }

    fn report(&self, report: Report) {
        // The receiver goes on until every agent has finished.
        let _ = self.reports.send(report);
    }

    /// An agent is lost to its controller, whatever it has done in the run.
    pub(super) fn gone(&mut self, place: usize) {
        if let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| !agent.is_lost()) {
            agent.contact = Reachability::Gone;
        }
    }

    /// Takes a message of an agent, at `now` of the controller's clock.
    ///
    /// # Errors
    /// When it cannot be true: it was not counted.
    pub(super) fn take(
        &mut self,
        place: usize,
        words: FromAgent,
        offset: Option<Offset>,
        stop: &StopHandle,
        now: u64,
    ) -> Result<(), Breach> {
        let run = self.run;
        let at = self.begun.at;
        let Some(agent) = self.begun.agents.get_mut(place) else { return Ok(()) };
        if let FromAgent::Second { run: of, interval } = &words
            && *of == run
        {
            let elapsed_ns = now.saturating_sub(at + self.begun.plan.warmup_ns);
            agent.inspection.second(interval, planned_end_ns(&self.begun.plan), elapsed_ns)?;
        }
        if agent.is_lost() {
            if agent.take_late(run, &words) {
                self.said_their_last.push(place);
            }
            return Ok(());
        }
        if let FromAgent::Began { run: of, .. } | FromAgent::Second { run: of, .. } = &words
            && *of == run
        {
            agent.reported = self.audible;
        }
        match words {
            FromAgent::Began { run: of, at: there, .. } if of == run => {
                agent.began_there = Some(there);
                agent.compare(offset, at);
            }
            FromAgent::Second { run: of, interval } if of == run && agent.leaving.is_some() => {
                agent.held.push(*interval);
            }
            FromAgent::Second { run: of, interval } if of == run => self.count(place, interval),
            FromAgent::Counted { run: of, counts } if of == run => {
                agent.take_counts(counts);
                self.counts_changed = true;
            }
            FromAgent::GivenBack { run: of, requests } if of == run => {
                if let Some(dealing) = &mut self.dealing {
                    dealing.given_back(place, requests, agent.due)?;
                    agent.dealt(dealing.dealt(place));
                }
            }
            FromAgent::Leaving { reason } => agent.leaving = Some(reason),
            FromAgent::Failed { run: of, problem } if of == run => {
                let reason = problem.text;
                self.fail(place, &reason);
            }
            FromAgent::Finished { run: of, ended } if of == run => {
                if ended.log.as_ref().is_some_and(|log| !log.is_bounded()) {
                    return Err(Breach::Log);
                }
                agent.log.clone_from(&ended.log);
                // A part that ends early, without an order from here, is lost.
                let is_left = !is_broken(Rule::LeftPartIsLost)
                    && ended.interrupted
                    && !stop.is_stopped()
                    && self.own_stop.is_none();
                if let Some(reason) = agent.leaving.clone().filter(|_| is_left) {
                    agent.part.measured_ns = agent.part.measured_ns.max(ended.measured_ns);
                    // An agent that ends in good order is lost all the same, but no reason to abort.
                    self.lose(place, &reason, OnLost::Continue, None);
                    return Ok(());
                }
                // It had to end as its part was over: its later reports count as before.
                for interval in std::mem::take(&mut agent.held) {
                    self.count(place, Box::new(interval));
                }
                return self.finished(place, ended, stop);
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a second that an agent has reported.
    fn count(&mut self, place: usize, mut interval: Box<Interval>) {
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        interval.worker = place as u32;
        agent.count_users(&interval);
        agent.part.add(&interval, &self.begun.plan.ok_status);
        let due = interval.snapshot.due();
        match interval.phase {
            Phase::Warmup => {}
            Phase::Measured => {
                agent.next = interval.second + 1;
                agent.due += due;
                agent.unreported.reported(due);
            }
            Phase::Drain => agent.stage = AgentStage::Drained,
        }
        self.report(Report::Interval(interval));
    }

    fn fail(&mut self, place: usize, reason: &str) {
        let name = self.begun.agents.get(place).map(|agent| agent.part.name.clone()).unwrap_or_default();
        self.failed.get_or_insert(format!("agent '{name}': {reason}"));
        self.own_stop.get_or_insert(OwnStop::ByAgent);
        self.finish(place, 0, false, None, None);
    }

    fn finished(&mut self, place: usize, ended: PartEnd, stop: &StopHandle) -> Result<(), Breach> {
        let PartEnd { measured_ns, mut interrupted, failed, stopped, unreached, status_names, redirected_to, .. } =
            ended;
        self.status_names.extend(status_names);
        self.redirected_to = self.redirected_to.take().or(redirected_to);
        if let Some(reason) = failed {
            self.fail(place, &reason);
            return Ok(());
        }
        if let Some(reason) = unreached {
            // As on one machine, the run ends if no agent reaches the target; a single agent that does not is lost to
            // the others.
            let others_reach =
                self.begun.agents.iter().any(|agent| agent.part.measured.numbers.get(Counter::ConnectionsMade) > 0);
            if others_reach {
                self.lose(place, &reason, OnLost::Continue, None);
                return Ok(());
            }
            self.finish(place, measured_ns, false, None, Some(reason));
            return Ok(());
        }
        if stopped.is_some() {
            self.own_stop.get_or_insert(OwnStop::ByAgent);
        }
        let planned_ns = planned_end_ns(&self.begun.plan);
        let is_whole = !interrupted && stopped.is_none() && planned_ns < u64::MAX;
        if let Some(agent) = self.begun.agents.get_mut(place) {
            agent.inspection.finished(Some(planned_ns).filter(|_| is_whole))?;
        }
        // A run that ends because of another agent is not interrupted.
        interrupted &= stop.is_stopped() || self.own_stop.is_none();
        self.finish(place, measured_ns, interrupted, stopped, None);
        Ok(())
    }

    fn finish(
        &mut self,
        place: usize,
        measured_ns: u64,
        interrupted: bool,
        stopped: Option<Stop>,
        unreached: Option<String>,
    ) {
        if let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| agent.stage != AgentStage::Finished) {
            agent.stage = AgentStage::Finished;
            agent.part.measured_ns = agent.part.measured_ns.max(measured_ns);
            let worker = place as u32;
            self.report(Report::Finished { worker, measured_ns, interrupted, failed: None, stopped, unreached });
        }
    }

    /// An agent is lost. It makes no call that is due at `horizon_ns` of the run or later; without a horizon, it has
    /// reported the last calls that it made.
    pub(super) fn lose(&mut self, place: usize, reason: &str, on_lost: OnLost, horizon_ns: Option<u64>) {
        let horizon_ns = horizon_ns.map(|ns| ns.saturating_sub(self.begun.plan.warmup_ns));
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.is_lost() || agent.stage == AgentStage::Finished {
            return;
        }
        agent.contact = Reachability::Lost { has_ended: false };
        let still = self.stood_still_ns;
        let own = (still >= STOOD_STILL_NS).then(|| format!("; this brunt stood still for {:.1}s", still as f64 / 1e9));
        let reason = &format!("{reason}{}", own.unwrap_or_default());
        let worker = place as u32;
        let mut last = LastSeconds { measured_ns: agent.part.measured_ns, horizon_ns, ..LastSeconds::default() };
        let held = std::mem::take(&mut agent.held);
        for interval in &held {
            match interval.phase {
                Phase::Warmup => {}
                Phase::Measured => {
                    last.begun.merge(&interval.snapshot);
                    last.measured_ns = last.measured_ns.max(interval.second * SECOND_NS + interval.length_ns);
                }
                Phase::Drain => last.drained.merge(&interval.snapshot),
            }
        }
        let ended = agent.part.measured.ended() + last.begun.ended() + last.drained.ended();
        last.ahead = ended.saturating_sub(agent.part.measured.due() + last.begun.due() + last.drained.due());
        let after_ns = last.measured_ns;
        agent.part.ended = AgentEnd::Lost {
            after_ns,
            reason: reason.to_owned(),
            users_missed: 0,
            iterations_unknown: 0,
            untold: None,
            is_allowed: false,
        };
        agent.users_at_loss = agent.users.values().map(|alive| (*alive).max(0).cast_unsigned()).sum();
        // Populations that are over on all others do not wait for it.
        let workers = u64::from(agent.portion.workers());
        if let Some(scenarios) = &self.begun.plan.scenarios {
            for place in 0..scenarios.populations.len() {
                agent.counts.insert(brunt_engine::over_on(place), workers);
            }
            self.counts_changed = true;
        }
        let name = agent.part.name.clone();
        last.is_drained = agent.stage == AgentStage::Drained;
        let has_timetable = matches!(self.begun.plan.load, Load::Open { .. }) && self.begun.plan.scenarios.is_none();
        if !last.is_drained || has_timetable {
            let reported_ns = after_ns.max(agent.next * SECOND_NS);
            let unaccounted = agent.unaccounted(reported_ns, agent.due + last.begun.due());
            let next = agent.next;
            let lost = match self.unreported(place, &last) {
                Some(unreported) => Some(LostTimetable::of_log(&self.begun.plan, unreported, worker, next, &last)),
                None => LostTimetable::new(&self.begun.plan, self.changed.as_ref(), &unaccounted, worker, next, &last),
            };
            if let Some(agent) = self.begun.agents.get_mut(place) {
                agent.lost = lost;
                agent.horizon_ns = horizon_ns.filter(|_| !last.is_drained).unwrap_or(0);
                agent.unaccounted = Some(unaccounted);
            }
        }
        let nobody_left = self.begun.agents.iter().all(InRun::is_lost);
        let has_ended = |agent: &InRun| agent.stage != AgentStage::Working;
        let is_over = nobody_left || self.begun.agents.iter().any(has_ended);
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.lost.is_none() {
            let is_over = is_over || held.iter().any(|interval| interval.phase == Phase::Drain);
            for interval in held {
                let interval = Interval { worker, ..interval };
                agent.count_users(&interval);
                agent.part.add(&interval, &self.begun.plan.ok_status);
                let _ = self.reports.send(Report::Interval(Box::new(interval)));
            }
            // A measured second that no other agent reports would have no length.
            let phase = if is_over { Phase::Drain } else { Phase::Measured };
            if let Some(gone) = agent.lose_users(phase) {
                agent.part.add(&Interval { phase: Phase::Drain, ..gone.clone() }, &self.begun.plan.ok_status);
                let _ = self.reports.send(Report::Interval(Box::new(Interval { worker, ..gone })));
            }
            if let Some(unfinished) = agent.leave_unfinished(&self.begun.plan.ok_status) {
                let _ = self.reports.send(Report::Interval(Box::new(Interval { worker, ..unfinished })));
            }
            let (failed, stopped, unreached) = (None, None, None);
            let measured_ns = after_ns;
            let interrupted = self.is_left;
            self.report(Report::Finished { worker, measured_ns, interrupted, failed, stopped, unreached });
        }
        if on_lost == OnLost::Abort || nobody_left && !self.is_left {
            self.own_stop = Some(OwnStop::AgentsLost);
            let after = Duration::from_nanos(after_ns).as_secs_f64();
            self.failed.get_or_insert(format!("agent '{name}' was lost after {after:.0}s: {reason}"));
        }
    }

    /// Deals requests of a counted number by progress. Returns what to tell agents, by their places.
    pub(super) fn deal(&mut self) -> Vec<(usize, ToAgent)> {
        let Some(dealing) = self.dealing.as_mut().filter(|_| !self.is_stopping) else { return Vec::new() };
        for (place, agent) in self.begun.agents.iter().enumerate() {
            if agent.stage != AgentStage::Working || agent.contact != Reachability::Heard {
                dealing.gone(place);
            }
        }
        let orders = dealing.orders();
        for (place, _) in &orders {
            if let Some(agent) = self.begun.agents.get_mut(*place) {
                agent.dealt(dealing.dealt(*place));
            }
        }
        orders
    }

    /// Counts requests that agents gave back, and that no agent is left to make, as due and unsent.
    pub(super) fn end_dealing(&mut self) {
        let undealt = self.dealing.as_ref().map_or(0, Dealing::left);
        if undealt == 0 || is_broken(Rule::UndealtIsUnsent) {
            return;
        }
        let Some(place) = self.begun.agents.iter().position(|agent| agent.lost.is_some()) else { return };
        let mut snapshot =
            Snapshot::with_numbers([Counter::Due, Counter::Unsent, Counter::UnsentLost].map(|one| (one, undealt)));
        snapshot.times.record_bounds(Timing::Response, 0, undealt);
        let interval = Interval { worker: place as u32, snapshot, ..nothing(Phase::Drain, 0) };
        if let Some(agent) = self.begun.agents.get_mut(place) {
            agent.part.add(&interval, &self.begun.plan.ok_status);
        }
        self.report(Report::Interval(Box::new(interval)));
    }

    /// Reports the calls due on lost agents, at `now` of the controller's clock.
    pub(super) fn go_on_without(&mut self, now: u64) {
        let begun = self.begun.at + self.begun.plan.warmup_ns;
        // Calls of a log that are not read yet are unknown.
        let read_ns = self.log.as_ref().map_or(u64::MAX, Following::read_ns);
        let measured_ns = now.saturating_sub(begun).saturating_sub(LATE_NS).min(read_ns);
        let ok = self.begun.plan.ok_status.clone();
        let mut seconds = Vec::new();
        for agent in &mut self.begun.agents {
            let Some(lost) = &mut agent.lost else { continue };
            let planned_ns = self.begun.plan.duration_ns().unwrap_or(u64::MAX);
            // The last second is reported together with the calls never sent in it.
            let until = measured_ns.min(planned_ns.saturating_sub(1));
            for interval in lost.until(until) {
                agent.part.add(&interval, &ok);
                seconds.push(interval);
            }
        }
        for interval in seconds {
            self.report(Report::Interval(Box::new(interval)));
        }
    }

    /// The length of the measured part on agents that have finished, in nanoseconds; and whether it ended by itself,
    /// early.
    pub(super) fn others_ended(&self) -> (u64, bool) {
        let measured = |agent: &InRun| agent.part.measured_ns;
        let finished = self.begun.agents.iter().filter(|agent| agent.stage == AgentStage::Finished).map(measured).max();
        // If every agent was lost, the run ended with the last of them.
        let longest = finished.or_else(|| self.begun.agents.iter().map(measured).max()).unwrap_or(0);
        // With a number of requests, the others have made all of theirs: those of a lost agent would have been made,
        // too.
        (longest, !self.is_stopping && longest < self.begun.plan.duration_ns().unwrap_or(u64::MAX))
    }

    /// Reports the end of lost agents, once all others have ended.
    pub(super) fn finish_lost(&mut self) {
        let ok = self.begun.plan.ok_status.clone();
        let (longest, is_whole) = self.others_ended();
        for place in 0..self.begun.agents.len() {
            let Some(agent) = self.begun.agents.get_mut(place) else { continue };
            let end = longest.max(agent.part.measured_ns);
            let most = self.begun.plan.duration_ns().unwrap_or(u64::MAX).max(end);
            let end = agent.lost.as_ref().map_or(end, |lost| lost.end_ns(end, is_whole).min(most));
            let told = agent.unbounded(&self.begun.plan);
            if let AgentEnd::Lost { users_missed, iterations_unknown, untold, .. } = &mut agent.part.ended {
                *untold = told;
                let missed = agent.unaccounted.as_ref().map(|unaccounted| unaccounted.users(&self.begun.plan, end));
                *users_missed = missed.unwrap_or(0);
                *iterations_unknown = agent.iterations.left();
            }
            let Some(mut lost) = agent.lost.take() else { continue };
            agent.amend(&mut lost);
            let mut seconds = Vec::new();
            for interval in lost.end(end, is_whole) {
                agent.part.add(&interval, &ok);
                seconds.push(interval);
            }
            let worker = place as u32;
            seconds.extend(agent.leave_unfinished(&ok).map(|interval| Interval { worker, ..interval }));
            for interval in seconds {
                self.report(Report::Interval(Box::new(interval)));
            }
            let (failed, stopped, unreached) = (None, None, None);
            let (measured_ns, interrupted) = (end, self.is_left);
            self.report(Report::Finished { worker, measured_ns, interrupted, failed, stopped, unreached });
        }
    }
}

#[cfg(test)]
mod tests;
