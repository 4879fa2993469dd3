//! The accounts of a run under way: what each agent has reported, what lost ones have left, and who does it.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use brunt_engine::{Report, StopHandle};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::{Numbers, Portion};
use brunt_protocol::scenario::Value;
use brunt_record::SECOND_NS;
use brunt_record::agents::{AgentEnd, AgentPart};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::timeline::DueLog;

use super::OnLost;
use crate::clock::Offset;
use crate::loss::{LastSeconds, Lost, Missed};
use crate::takeover::{self, Left};
use crate::words::{Ended, FromAgent, LeftWork};

/// How long after a second's end it counts as reported by an agent that is lost, in nanoseconds.
const LATE_NS: u64 = 300_000_000;
/// How long after an agent was found lost others do what it has left, in nanoseconds: time for the word to reach them, and to make
/// connections.
const TAKEOVER_NS: u64 = 600_000_000;
/// How long the controller stood still at least where that is why agents hear nothing of it.
const STOOD_STILL: Duration = Duration::from_secs(3);
/// What is left of a run in its last moments is not worth a takeover, in nanoseconds.
const LAST_MOMENTS_NS: u64 = 100_000_000;

/// The planned end of the measured part, in nanoseconds; `u64::MAX` without one.
fn planned_end_ns(plan: &Plan) -> u64 {
    let of_users = plan.scenarios.as_ref().map(|scenarios| (scenarios.seconds() * 1e9) as u64);
    plan.duration_ns().into_iter().chain(of_users).min().unwrap_or(u64::MAX)
}

/// A second without a length in which nothing happened.
fn nothing(phase: Phase, second: u64) -> Interval {
    let (snapshot, length_ns) = (Snapshot::default(), 0);
    Interval { worker: 0, phase, second, length_ns, snapshot, open_connections: 0, in_flight: 0, oldest_ns: 0 }
}

/// Something that an agent does in a run: its own part, or a piece of what a lost one has left.
#[derive(Debug, Clone)]
struct Duty {
    /// Its number in the run; 0 is the agent's own part.
    number: u32,
    /// What it is; from `since_ns` on it is this agent's.
    piece: Left,
    /// Whether what the agent reports has it.
    is_taken: bool,
    /// The lost agent whose accounts have what is not done of it.
    from: usize,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) plan: Plan,
    pub(super) given: Value<'static>,
    /// When, on the controller's clock, in nanoseconds.
    pub(super) at: u64,
    pub(super) agents: Vec<InRun>,
}

/// An agent in a run.
#[expect(clippy::struct_excessive_bools, reason = "each is a step that the agent has taken")]
pub(super) struct InRun {
    pub(super) part: AgentPart,
    portion: Portion,
    duties: Vec<Duty>,
    /// How many takeovers it was asked for.
    asked: u32,
    /// Measured calls that it has reported as due.
    due: u64,
    /// Users that it has reported as alive, by their scenario.
    users: BTreeMap<String, i64>,
    /// The second of the measured part that comes next.
    next: u64,
    has_drained: bool,
    is_finished: bool,
    /// Why it leaves the run before its time, if it says that it does.
    leaving: Option<String>,
    /// What it reported after it said that it leaves, and how long each of its parts was then.
    held: Vec<Interval>,
    held_parts: BTreeMap<u32, u64>,
    lost: Option<Lost>,
    /// What it reported after it was found lost, and whether that was all.
    late: Vec<Interval>,
    has_said_its_last: bool,
    /// From when of the measured part on it has sent nothing, in nanoseconds, once it is lost.
    horizon_ns: u64,
    missed: Missed,
    is_lost: bool,
    /// Whether it is lost to its controller, which may be after it has finished.
    is_gone: bool,
    counts: BTreeMap<String, u64>,
    /// When it began, on its own clock.
    began_there: Option<u64>,
}

impl InRun {
    pub(super) fn new(part: AgentPart, portion: Portion, place: usize, plan: &Plan) -> Self {
        let numbers = match plan.load {
            Load::Closed {} => plan.stop.requests.map(|requests| Numbers::owned_by(portion, Some(requests))),
            Load::Open { .. } => None,
        };
        let piece = Left { portion, numbers: numbers.into_iter().collect(), since_ns: 0 };
        Self {
            part,
            portion,
            duties: vec![Duty { number: 0, piece, is_taken: true, from: place }],
            asked: 0,
            due: 0,
            users: BTreeMap::new(),
            next: 0,
            has_drained: false,
            is_finished: false,
            leaving: None,
            held: Vec::new(),
            held_parts: BTreeMap::new(),
            lost: None,
            late: Vec::new(),
            has_said_its_last: false,
            horizon_ns: 0,
            missed: Missed::default(),
            is_lost: false,
            is_gone: false,
            counts: BTreeMap::new(),
            began_there: None,
        }
    }

    /// Takes in what it has reported of its users.
    fn count_users(&mut self, interval: &Interval) {
        for (name, scenario) in interval.snapshot.figures.scenarios.iter() {
            match self.users.get_mut(name) {
                Some(alive) => *alive += scenario.users_gained(),
                None => drop(self.users.insert(name.to_owned(), scenario.users_gained())),
            }
        }
    }

    /// What ends the users of a lost agent, in the second that it did not report or in the drain; none if it had no users.
    fn lose_users(&mut self, phase: Phase) -> Option<Interval> {
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

    /// What it had under way when it was last heard of, now that all that was due on it is in its part: how those calls ended nobody knows.
    /// None if there is no such call.
    fn leave_unfinished(&mut self, ok: &OkStatus) -> Option<Interval> {
        let AgentPart { measured, drained, ended, .. } = &self.part;
        let AgentEnd::Lost { after_ns, .. } = ended else { return None };
        let calls = (measured.due() + drained.due()).saturating_sub(measured.ended() + drained.ended());
        let mut snapshot = Snapshot::with_numbers([(Counter::Unfinished, calls)]);
        // They move no percentile, and mark those that they could have moved.
        snapshot.times.record_bounds(Timing::Response, 0, calls);
        snapshot.times.record_bounds(Timing::Service, 0, calls);
        let mut by_due = DueLog::default();
        by_due.unfinished(after_ns.saturating_sub(1), 0, calls);
        snapshot.timeline = by_due.take();
        let interval = Interval { snapshot, ..nothing(Phase::Drain, 0) };
        (calls > 0).then(|| self.part.add(&interval, ok)).map(|()| interval)
    }

    /// Takes in what one that is lost says all the same: it stood still, and goes on. True if that was its last.
    fn take_late(&mut self, run: u32, words: FromAgent) -> bool {
        match words {
            FromAgent::Second { run: of, interval } if of == run && self.leaving.is_none() => self.late.push(*interval),
            FromAgent::Finished { run: of, .. } if of == run => {
                self.has_said_its_last = true;
                return true;
            }
            _ => {}
        }
        false
    }

    /// What it has told of since it was found lost. Others do what it had due from `taken_over_ns` on.
    fn amend(&mut self, lost: &mut Lost, horizon_ns: u64, taken_over_ns: u64) {
        // What others did is theirs: of seconds that both have a part in, nothing is known.
        let is_whole = self.has_said_its_last && taken_over_ns == u64::MAX;
        // Seconds that it took over and has not begun are in none of its accounts.
        if self.duties.iter().any(|duty| !duty.is_taken) {
            return;
        }
        let (mut told, mut accounted_ns) = (Snapshot::default(), 0);
        for interval in self.late.drain(..) {
            let end_ns = interval.second * SECOND_NS + interval.length_ns;
            match interval.phase {
                Phase::Measured if is_whole || end_ns <= horizon_ns.min(taken_over_ns) => {
                    accounted_ns = end_ns;
                    told.merge(&interval.snapshot);
                }
                Phase::Drain if is_whole => told.merge(&interval.snapshot),
                // No figure of the result has calls of the warm-up.
                Phase::Warmup => {}
                Phase::Measured | Phase::Drain => break,
            }
        }
        lost.amend(told, accounted_ns, is_whole);
    }

    /// Says when it began, on the controller's clock, relative to when all were to begin.
    pub(super) fn compare(&mut self, offset: Option<Offset>, at: u64) {
        if let (Some(offset), Some(there)) = (offset, self.began_there) {
            self.part.began_ns = offset.here(there).cast_signed() - at.cast_signed();
            self.part.clock_uncertainty_ns = offset.uncertainty_ns;
        }
    }

    /// Whether it can do something for another.
    fn can_help(&self) -> bool {
        !self.is_lost && !self.is_gone && self.leaving.is_none()
    }

    /// What it had to do and has not accounted for, and whose accounts each has come from.
    fn left(&self, measured_ns: u64, due: u64) -> Vec<Left> {
        let mut made = due;
        let left = self.duties.iter().map(|duty| {
            // In the order in which they were taken over: how many calls were made is known, and not which.
            let of_duty = if duty.is_taken { made } else { 0 };
            let all = duty.piece.numbers.iter().map(|numbers| numbers.count()).sum();
            made -= of_duty.min(all);
            let reported_ns = self.held_parts.get(&duty.number).copied().unwrap_or(measured_ns);
            let since_ns = if duty.is_taken { duty.piece.since_ns.max(reported_ns) } else { duty.piece.since_ns };
            let numbers = takeover::some_of(&duty.piece.numbers, of_duty, u64::MAX);
            Left { portion: duty.piece.portion, numbers, since_ns }
        });
        left.collect()
    }
}

/// A run under way.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the run")]
pub(super) struct InProgress<'a> {
    pub(super) run: u32,
    pub(super) begun: Begun,
    on_lost: OnLost,
    reports: &'a Sender<Report>,
    pub(super) is_stopping: bool,
    /// Whether it is to end for another reason than that who asked for it says so.
    pub(super) was_stopped_by_us: bool,
    pub(super) counts_changed: bool,
    pub(super) status_names: BTreeMap<u16, String>,
    pub(super) redirected_to: Option<String>,
    pub(super) failed: Option<String>,
    pub(super) lost_its_agents: bool,
    /// The longest that this process stood still itself, meanwhile.
    pub(super) stood_still: Duration,
    /// The places of lost agents that have said their last words.
    pub(super) said_their_last: Vec<usize>,
    /// What agents are to be told to take over, with times of the controller's clock.
    pub(super) left_work: Vec<(usize, LeftWork)>,
    takeovers: u32,
}

impl<'a> InProgress<'a> {
    pub(super) fn new(run: u32, begun: Begun, on_lost: OnLost, reports: &'a Sender<Report>) -> Self {
        Self {
            run,
            begun,
            on_lost,
            reports,
            is_stopping: false,
            was_stopped_by_us: false,
            counts_changed: false,
            status_names: BTreeMap::new(),
            redirected_to: None,
            failed: None,
            lost_its_agents: false,
            stood_still: Duration::ZERO,
            said_their_last: Vec::new(),
            left_work: Vec::new(),
            takeovers: 0,
        }
    }

    /// Whether every agent has finished, or is lost.
    pub(super) fn is_over(&self) -> bool {
        self.begun.agents.iter().all(|agent| agent.is_finished || agent.is_lost)
    }

    fn report(&self, report: Report) {
        // Who gathers goes on until every agent has finished.
        let _ = self.reports.send(report);
    }

    /// An agent is lost to its controller, whatever it has done in the run.
    pub(super) fn gone(&mut self, place: usize) {
        if let Some(agent) = self.begun.agents.get_mut(place) {
            agent.is_gone = true;
        }
    }

    /// Takes in what an agent says, at `now` of the controller's clock.
    pub(super) fn take(&mut self, place: usize, words: FromAgent, offset: Option<Offset>, stop: &StopHandle, now: u64) {
        let run = self.run;
        let at = self.begun.at;
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.is_lost {
            if agent.take_late(run, words) {
                self.said_their_last.push(place);
            }
            return;
        }
        match words {
            FromAgent::Began { run: of, at: there, .. } if of == run => {
                agent.began_there = Some(there);
                agent.compare(offset, at);
            }
            FromAgent::Second { run: of, interval } if of == run && agent.leaving.is_some() => {
                agent.held.push(*interval);
            }
            FromAgent::Second { run: of, mut interval } if of == run => {
                interval.worker = place as u32;
                agent.count_users(&interval);
                agent.part.add(&interval, &self.begun.plan.ok_status);
                match interval.phase {
                    Phase::Warmup => {}
                    Phase::Measured => {
                        agent.next = interval.second + 1;
                        agent.due += interval.snapshot.numbers.get(Counter::Due);
                    }
                    Phase::Drain => agent.has_drained = true,
                }
                self.report(Report::Interval(interval));
            }
            FromAgent::Counted { run: of, counts } if of == run => {
                agent.counts = counts;
                self.counts_changed = true;
            }
            FromAgent::Leaving { reason } => agent.leaving = Some(reason),
            FromAgent::Took { run: of, number } if of == run => {
                agent.duties.iter_mut().filter(|duty| duty.number == number).for_each(|duty| duty.is_taken = true);
            }
            FromAgent::Declined { run: of, number, problem } if of == run => self.declined(place, number, &problem),
            FromAgent::Failed { run: of, problem } if of == run => {
                let reason = problem.text;
                self.fail(place, &reason);
            }
            FromAgent::Finished { run: of, ended, taken } if of == run => {
                // One that was asked to take something over meanwhile says so once more.
                let is_all = taken >= agent.asked;
                // A part that ends before its time, and nobody here has said that it should, is lost.
                let is_left = ended.interrupted && !stop.is_stopped() && !self.was_stopped_by_us;
                match agent.leaving.clone().filter(|_| is_left) {
                    Some(reason) => {
                        agent.held_parts = ended.parts;
                        // One that ends in good order is lost all the same, but no reason to abort.
                        let on_lost = if self.on_lost == OnLost::Abort { OnLost::Continue } else { self.on_lost };
                        self.lose(place, &reason, on_lost, now, None);
                    }
                    None => self.finished(place, ended, is_all, stop, now),
                }
            }
            _ => {}
        }
    }

    fn fail(&mut self, place: usize, reason: &str) {
        let name = self.begun.agents.get(place).map(|agent| agent.part.name.clone()).unwrap_or_default();
        self.failed.get_or_insert(format!("agent '{name}': {reason}"));
        self.was_stopped_by_us = true;
        self.end(place, 0, false, None);
    }

    fn finished(&mut self, place: usize, ended: Ended, is_all: bool, stop: &StopHandle, now: u64) {
        let Ended { measured_ns, mut interrupted, failed, stopped, unreached, status_names, redirected_to, .. } = ended;
        self.status_names.extend(status_names);
        self.redirected_to = self.redirected_to.take().or(redirected_to);
        if let Some(reason) = failed {
            self.fail(place, &reason);
            return;
        }
        if let Some(reason) = unreached {
            // As on one machine, the run ends if nobody reaches the target; one agent that does not is lost to the others.
            let others_reach =
                self.begun.agents.iter().any(|agent| agent.part.measured.numbers.get(Counter::ConnectionsMade) > 0);
            if others_reach {
                let on_lost = if self.on_lost == OnLost::Abort { OnLost::Continue } else { self.on_lost };
                self.lose(place, &reason, on_lost, now, None);
                return;
            }
            self.finish(place, measured_ns, false, None, Some(reason));
            return;
        }
        if stopped.is_some() {
            self.was_stopped_by_us = true;
        }
        if !is_all {
            return;
        }
        // Ended for another's sake is not interrupted.
        interrupted &= stop.is_stopped() || !self.was_stopped_by_us;
        self.end(place, measured_ns, interrupted, stopped);
    }

    fn end(&mut self, place: usize, measured_ns: u64, interrupted: bool, stopped: Option<String>) {
        self.finish(place, measured_ns, interrupted, stopped, None);
    }

    fn finish(
        &mut self,
        place: usize,
        measured_ns: u64,
        interrupted: bool,
        stopped: Option<String>,
        unreached: Option<String>,
    ) {
        if let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| !agent.is_finished) {
            agent.is_finished = true;
            agent.part.measured_ns = agent.part.measured_ns.max(measured_ns);
            let worker = place as u32;
            self.report(Report::Finished { worker, measured_ns, interrupted, failed: None, stopped, unreached });
        }
    }

    /// An agent is lost, at `now` of the controller's clock. It makes no call that is due at `horizon_ns` of the run or later; without one, it
    /// has said what it made last.
    pub(super) fn lose(&mut self, place: usize, reason: &str, on_lost: OnLost, now: u64, horizon_ns: Option<u64>) {
        let horizon_ns = horizon_ns.map(|ns| ns.saturating_sub(self.begun.plan.warmup_ns));
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.is_lost || agent.is_finished {
            return;
        }
        agent.is_lost = true;
        let still = self.stood_still;
        let own = (still >= STOOD_STILL).then(|| format!("; this brunt stood still for {:.1} s", still.as_secs_f64()));
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
        let after_ns = last.measured_ns;
        agent.part.ended = AgentEnd::Lost {
            after_ns,
            reason: reason.to_owned(),
            taken_over_ns: None,
            users_missed: 0,
            is_allowed: false,
        };
        // Populations that are over on all others do not wait for it.
        let workers = u64::from(agent.portion.workers());
        if let Some(scenarios) = &self.begun.plan.scenarios {
            for place in 0..scenarios.populations.len() {
                agent.counts.insert(brunt_engine::over_on(place), workers);
            }
            self.counts_changed = true;
        }
        let name = agent.part.name.clone();
        if !agent.has_drained {
            let reported_ns = after_ns.max(agent.next * SECOND_NS);
            let left = agent.left(reported_ns, agent.due + last.begun.due());
            let next = agent.next;
            let until_ns =
                if on_lost == OnLost::Reassign { self.reassign(place, &left, now, horizon_ns) } else { u64::MAX };
            let lost = Lost::of(&self.begun.plan, &left, until_ns, worker, next, &last);
            if let Some(agent) = self.begun.agents.get_mut(place) {
                agent.lost = lost;
                agent.horizon_ns = horizon_ns.unwrap_or(0);
                agent.missed.add(&left, until_ns);
                if let AgentEnd::Lost { taken_over_ns, .. } = &mut agent.part.ended {
                    *taken_over_ns = Some(until_ns).filter(|until_ns| *until_ns < u64::MAX);
                }
            }
        }
        let nobody_left = self.begun.agents.iter().all(|agent| agent.is_lost);
        let has_ended = |agent: &InRun| agent.has_drained || agent.is_finished;
        let is_over = nobody_left || self.begun.agents.iter().any(has_ended);
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.lost.is_none() {
            let is_over = is_over || held.iter().any(|interval| interval.phase == Phase::Drain);
            for interval in held {
                let interval = Interval { worker, ..interval };
                agent.count_users(&interval);
                agent.part.add(&interval, &self.begun.plan.ok_status);
                // As below: who gathers goes on until every agent has finished.
                let _ = self.reports.send(Report::Interval(Box::new(interval)));
            }
            // A measured second that nobody else reports would be one without a length.
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
            self.report(Report::Finished { worker, measured_ns, interrupted: false, failed, stopped, unreached });
        }
        if on_lost == OnLost::Abort || nobody_left {
            self.lost_its_agents = true;
            self.was_stopped_by_us = true;
            let after = Duration::from_nanos(after_ns).as_secs_f64();
            self.failed.get_or_insert(format!("agent '{name}' was lost after {after:.0} s: {reason}"));
        }
    }

    /// Deals what an agent has left to those who can help. Gives from when on they do it, in nanoseconds of the measured part; never
    /// if nobody does. What is due before its horizon it may have sent itself.
    fn reassign(&mut self, place: usize, left: &[Left], now: u64, horizon_ns: Option<u64>) -> u64 {
        let Begun { plan, at, agents, given } = &mut self.begun;
        let begin = *at + plan.warmup_ns;
        // What was not theirs yet begins when it was to begin, or later.
        let first = left.iter().map(|left| left.since_ns).max().unwrap_or(0);
        let after_ns = (now + TAKEOVER_NS).saturating_sub(begin).max(first).max(horizon_ns.unwrap_or(0));
        let is_over = after_ns.saturating_add(LAST_MOMENTS_NS) >= planned_end_ns(plan);
        let mut helpers: Vec<usize> =
            (0..agents.len()).filter(|place| agents.get(*place).is_some_and(InRun::can_help)).collect();
        if is_over || self.is_stopping || self.was_stopped_by_us || helpers.is_empty() {
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
            if std::mem::take(&mut agent.is_finished) {
                agent.has_drained = false;
                // Who gathers goes on until every agent has finished.
                let _ = self.reports.send(Report::Resumed { worker: helper as u32, second: after_ns / SECOND_NS });
            }
            let work = LeftWork { number, portion, numbers, after_ns, at: begin + after_ns, given: given.clone() };
            self.left_work.push((helper, work));
        }
        after_ns
    }

    /// An agent cannot do what it was asked to take over: nobody does it.
    fn declined(&mut self, place: usize, number: u32, problem: &str) {
        // What one that ends has not begun is dealt again with the rest of what it leaves.
        let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| agent.leaving.is_none()) else {
            return;
        };
        let Some(at) = agent.duties.iter().position(|duty| duty.number == number) else { return };
        let duty = agent.duties.remove(at);
        let name = agent.part.name.clone();
        let Some(lost) = self.begun.agents.get_mut(duty.from) else { return };
        lost.missed.add(std::slice::from_ref(&duty.piece), u64::MAX);
        if let Some(lost) = &mut lost.lost {
            lost.add(&self.begun.plan, &duty.piece, u64::MAX);
        }
        if let AgentEnd::Lost { reason, .. } = &mut lost.part.ended {
            *reason = format!("{reason}; agent '{name}' could not take over: {problem}");
        }
    }

    /// Reports what is due on lost agents, at `now` of the controller's clock.
    pub(super) fn go_on_without(&mut self, now: u64) {
        let begun = self.begun.at + self.begun.plan.warmup_ns;
        let measured_ns = now.saturating_sub(begun).saturating_sub(LATE_NS);
        let ok = self.begun.plan.ok_status.clone();
        let mut seconds = Vec::new();
        for agent in &mut self.begun.agents {
            let Some(lost) = &mut agent.lost else { continue };
            let planned_ns = self.begun.plan.duration_ns().unwrap_or(u64::MAX);
            // The last second is reported with what was never sent in it.
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

    /// Reports the end of lost agents, once all others have ended.
    pub(super) fn finish_lost(&mut self) {
        let ok = self.begun.plan.ok_status.clone();
        let measured = |agent: &InRun| agent.part.measured_ns;
        let finished = self.begun.agents.iter().filter(|agent| agent.is_finished).map(measured).max();
        // If every agent was lost, the run ended with the last of them.
        let longest = finished.or_else(|| self.begun.agents.iter().map(measured).max()).unwrap_or(0);
        // With a number of requests, others have made all of theirs: those of a lost one would have been made, too.
        let is_whole = !self.is_stopping && longest < self.begun.plan.duration_ns().unwrap_or(u64::MAX);
        for place in 0..self.begun.agents.len() {
            let Some(agent) = self.begun.agents.get_mut(place) else { continue };
            let end = longest.max(agent.part.measured_ns);
            if let AgentEnd::Lost { users_missed, .. } = &mut agent.part.ended {
                *users_missed = agent.missed.count(&self.begun.plan, end);
            }
            let Some(mut lost) = agent.lost.take() else { continue };
            let taken_over_ns = match &agent.part.ended {
                AgentEnd::Lost { taken_over_ns: Some(at), .. } => *at,
                _ => u64::MAX,
            };
            agent.amend(&mut lost, agent.horizon_ns, taken_over_ns);
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
            self.report(Report::Finished { worker, measured_ns: end, interrupted: false, failed, stopped, unreached });
        }
    }

    /// What all others have counted, for each agent.
    pub(super) fn counts_elsewhere(&self) -> Vec<(usize, BTreeMap<String, u64>)> {
        let mut all: BTreeMap<&String, u64> = BTreeMap::new();
        for agent in &self.begun.agents {
            agent.counts.iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
        }
        let of_others = |agent: &InRun| {
            let less = |(name, count): (&&String, &u64)| {
                let own = agent.counts.get(*name).copied().unwrap_or(0);
                ((*name).clone(), count - own)
            };
            all.iter().map(less).filter(|(_, count)| *count > 0).collect()
        };
        self.begun.agents.iter().enumerate().map(|(place, agent)| (place, of_others(agent))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::mpsc::channel;

    use brunt_engine::{Observer, RunningTotal};
    use brunt_plan::arrivals::{Arrivals, Spread};
    use brunt_plan::plan::{ProtocolOptions, Stop};
    use brunt_plan::target::Url;
    use brunt_protocol::scenario::Value;
    use brunt_record::live::Live;
    use brunt_record::recording::Recording;
    use proptest::prelude::*;

    use super::super::{AHEAD_BRIEFLY_NS, AHEAD_NS};
    use super::*;
    use crate::ledger::Ledger;

    const MS: u64 = 1_000_000;
    /// How long words take, and how long an agent is silent when it is found lost.
    const UNDERWAY_NS: u64 = 60 * MS;
    const SILENT_NS: u64 = 3_000 * MS;

    struct Nobody;

    impl Observer for Nobody {
        fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
            ControlFlow::Continue(())
        }
    }

    /// One part of a simulated agent: the calls that are its own, and the second that it reports next.
    struct Part {
        number: u32,
        arrivals: Vec<Arrivals>,
        next: u64,
    }

    /// An agent that answers every call that is due, and reports each second.
    struct Agent {
        parts: Vec<Part>,
        ledger: Ledger,
        dies_at: u64,
        taken: u32,
        has_ended: bool,
        /// What it sends, as the target counts it.
        sends: Vec<Arrivals>,
    }

    fn plan(profile: &str, spread: Spread, duration_ns: u64) -> Plan {
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let load = Load::Open { profile: profile.parse().unwrap(), arrivals: spread };
        let stop = Stop { duration_ns: Some(duration_ns), requests: None };
        Plan { load, stop, seed: 5, connections: 500.into(), ..Plan::of_calls(target, ProtocolOptions::default()) }
    }

    fn arrivals(plan: &Plan, portion: Portion, after_ns: u64) -> Vec<Arrivals> {
        let Load::Open { profile, arrivals } = &plan.load else { panic!("{plan:?}") };
        let of = |share| {
            let mut of_share = Arrivals::new(profile.clone(), *arrivals, share, plan.seed, None);
            of_share.pass(after_ns);
            of_share
        };
        portion.shares().map(of).collect()
    }

    impl Agent {
        fn begin(&mut self, plan: &Plan, number: u32, portion: Portion, after_ns: u64) {
            self.ledger.begin(number, (number > 0).then_some(after_ns / SECOND_NS));
            let next = after_ns / SECOND_NS;
            self.sends.extend(arrivals(plan, portion, after_ns));
            self.parts.push(Part { number, arrivals: arrivals(plan, portion, after_ns), next });
        }

        /// What it says at `now`: the seconds that are over, and its end once they all are.
        fn says(&mut self, now: u64, duration_ns: u64) -> Vec<FromAgent> {
            let mut seconds = Vec::new();
            for part in &mut self.parts {
                while (part.next + 1) * SECOND_NS <= now.min(duration_ns) {
                    let end = (part.next + 1) * SECOND_NS;
                    let due: u64 = part.arrivals.iter_mut().map(|arrivals| arrivals.pass(end)).sum();
                    let mut snapshot = Snapshot::with_numbers([(Counter::Due, due)]);
                    (0..due).for_each(|_| snapshot.statuses.record(200));
                    snapshot.times.record_n(Timing::Response, 1, due);
                    let (second, length_ns) = (part.next, SECOND_NS);
                    let interval = Interval {
                        worker: 0,
                        phase: Phase::Measured,
                        second,
                        length_ns,
                        snapshot,
                        open_connections: 0,
                        in_flight: 0,
                        oldest_ns: 0,
                    };
                    part.next += 1;
                    seconds.extend(self.ledger.add(part.number, interval));
                }
            }
            let has_ended = now >= duration_ns && !self.has_ended;
            if has_ended {
                self.has_ended = true;
                for part in self.parts.drain(..) {
                    seconds.extend(self.ledger.end(part.number));
                }
            }
            let mut says: Vec<_> =
                seconds.into_iter().map(|one| FromAgent::Second { run: 1, interval: Box::new(one) }).collect();
            if has_ended {
                let ended = Ended { measured_ns: duration_ns, ..Ended::default() };
                says.push(FromAgent::Finished { run: 1, ended, taken: self.taken });
            }
            says
        }
    }

    /// Runs `plan` over simulated agents. Agent `i` dies at `deaths[i]`, in nanoseconds, or never. With how many calls reached the target.
    fn carry_out(plan: &Plan, workers: &[u32], deaths: &[u64], on_lost: OnLost) -> (Recording, u64) {
        let (reports, reported) = channel();
        let of = workers.iter().sum();
        let duration_ns = plan.duration_ns().unwrap();
        let (mut agents, mut in_run, mut first) = (Vec::new(), Vec::new(), 0);
        for (place, count) in workers.iter().enumerate() {
            let portion = Portion::new(first, *count, of).unwrap();
            first += count;
            let part = AgentPart::new(&format!("a{place}"), "0", 1, *count, workers.len());
            in_run.push(InRun::new(part, portion, place, plan));
            let dies_at = deaths.get(place).copied().unwrap_or(u64::MAX);
            let (parts, ledger, sends) = (Vec::new(), Ledger::default(), Vec::new());
            let mut agent = Agent { parts, ledger, dies_at, taken: 0, has_ended: false, sends };
            agent.begin(plan, 0, portion, 0);
            agents.push(agent);
        }
        let begun = Begun { plan: plan.clone(), given: Value::Nil, at: 0, agents: in_run };
        let mut running = InProgress::new(1, begun, on_lost, &reports);
        let stop = StopHandle::default();
        // What is under way to agents and from them, and when it arrives.
        let mut to_agents: Vec<(u64, usize, LeftWork)> = Vec::new();
        let mut from_agents: Vec<(u64, usize, FromAgent)> = Vec::new();
        let mut now = 0;
        while !running.is_over() {
            now += 20 * MS;
            assert!(now < duration_ns + 60_000 * MS, "the run does not end");
            for (place, agent) in agents.iter_mut().enumerate().filter(|(_, agent)| now < agent.dies_at) {
                to_agents.retain(|(at, to, work)| {
                    if *to != place || *at > now {
                        return true;
                    }
                    agent.taken += 1;
                    let number = work.number;
                    if agent.has_ended {
                        from_agents.push((
                            now + UNDERWAY_NS,
                            place,
                            FromAgent::Declined { run: 1, number, problem: String::new() },
                        ));
                    } else {
                        agent.begin(plan, number, work.portion, work.after_ns);
                        from_agents.push((now + UNDERWAY_NS, place, FromAgent::Took { run: 1, number }));
                    }
                    false
                });
                let says = agent.says(now, duration_ns);
                from_agents.extend(says.into_iter().map(|words| (now + UNDERWAY_NS, place, words)));
            }
            for (_, place, words) in from_agents.extract_if(.., |(at, ..)| *at <= now) {
                running.take(place, words, None, &stop, now);
            }
            for (place, agent) in agents.iter().enumerate() {
                if now >= agent.dies_at.saturating_add(SILENT_NS) {
                    running.gone(place);
                    let ahead_ns = if on_lost == OnLost::Continue { AHEAD_NS } else { AHEAD_BRIEFLY_NS };
                    running.lose(place, "it died", on_lost, now, Some(agent.dies_at + ahead_ns));
                }
            }
            running.go_on_without(now);
            let left = std::mem::take(&mut running.left_work);
            to_agents.extend(left.into_iter().map(|(place, work)| (now + UNDERWAY_NS, place, work)));
        }
        running.finish_lost();
        let parts: Vec<_> = running.begun.agents.into_iter().map(|agent| agent.part).collect();
        drop(reports);
        let names: Vec<_> = parts.iter().map(|part| part.name.clone()).collect();
        let mut run = brunt_engine::gather(plan, &names, &reported, &mut Nobody, &stop, 0);
        run.agents = parts;
        let sent = agents.into_iter().map(|agent| {
            let until = agent.dies_at.min(duration_ns);
            agent.sends.into_iter().map(|mut arrivals| arrivals.pass(until)).sum::<u64>()
        });
        (run, sent.sum())
    }

    fn whole(plan: &Plan, until_ns: u64) -> u64 {
        arrivals(plan, Portion::whole(1), 0).iter_mut().map(|all| all.pass(until_ns)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whoever dies and when, those who took over too: every call of the run is due once, and made, unsent or unknown. No call is unsent
        /// that the target has counted.
        #[test]
        fn the_sums_close_whoever_is_lost(
            poisson: bool, workers in prop::collection::vec(1_u32..4, 2..6),
            deaths in prop::collection::vec(prop::option::of(100_u64..14_000), 5), reassigns: bool,
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let plan = plan("100..300/12s", spread, 12 * SECOND_NS);
            let on_lost = if reassigns { OnLost::Reassign } else { OnLost::Continue };
            let mut deaths: Vec<u64> = deaths.into_iter().map(|at| at.map_or(u64::MAX, |ms| ms * MS)).collect();
            // One is left.
            deaths[0] = u64::MAX;
            let (run, counted) = carry_out(&plan, &workers, &deaths, on_lost);
            let total = &run.measured;
            let of = |counter| total.numbers.get(counter);
            let sum = total.statuses.total() + of(Counter::Unsent) + of(Counter::Unknown);
            prop_assert_eq!(total.numbers.get(Counter::Due), whole(&plan, 12 * SECOND_NS));
            prop_assert_eq!(of(Counter::Due), sum);
            prop_assert!(total.statuses.total() <= counted && counted <= of(Counter::Due) - of(Counter::Unsent), "{}", counted);
            prop_assert_eq!(total.numbers.get(Counter::Unsent), total.numbers.get(Counter::UnsentLost));
            prop_assert_eq!(total.times.bounds(Timing::Response).count(), of(Counter::Unsent) + of(Counter::Unknown));
            let of_agents = |of: fn(&Snapshot) -> u64| run.agents.iter().map(|agent| of(&agent.measured)).sum::<u64>();
            prop_assert_eq!(of_agents(Snapshot::due), total.numbers.get(Counter::Due));
            prop_assert_eq!(of_agents(|one| one.numbers.get(Counter::Unsent)), total.numbers.get(Counter::Unsent));
            let due: u64 = run.series.points().iter().map(|point| point.numbers.get(Counter::Due)).sum();
            prop_assert_eq!((due, run.series.points().len()), (total.numbers.get(Counter::Due), 12));
        }
    }

    #[test]
    fn only_the_calls_until_the_takeover_are_not_made() {
        let plan = plan("100", Spread::Uniform, 20 * SECOND_NS);
        let (run, _) = carry_out(&plan, &[1, 1, 1, 1], &[5_500 * MS, u64::MAX, 11_100 * MS], OnLost::Reassign);
        assert_eq!(run.measured.numbers.get(Counter::Due), 2000);
        let gap = |place: usize| {
            let AgentEnd::Lost { after_ns, taken_over_ns, .. } = &run.agents[place].ended else { panic!("{place}") };
            (taken_over_ns.unwrap() - after_ns) as f64 / 1e9
        };
        // Found lost 3 s after its death, taken over 0.6 s later; what it did since its last second is not known.
        assert!((4.0..4.2).contains(&gap(0)) && (3.6..3.8).contains(&gap(2)), "{} {}", gap(0), gap(2));
        // The second one had its own calls and a third of the first one's.
        let expected = 25.0 * gap(0) + 25.0 * (1.0 + 1.0 / 3.0) * gap(2);
        let of = |counter| run.measured.numbers.get(counter) as f64;
        let (unsent, unknown) = (of(Counter::Unsent), of(Counter::Unknown));
        assert!((unsent + unknown - expected).abs() <= 4.0, "{unsent} {unknown} {expected}");
        // From 3.5 s after its death on it has sent nothing.
        assert!((unknown - 25.0 * 4.0 - 25.0 * (1.0 + 1.0 / 3.0) * 3.6).abs() <= 4.0, "{unknown}");
        let last = run.series.points().last().unwrap();
        assert_eq!((last.numbers.get(Counter::Due), last.ended()), (100, 100));
    }
}
