//! A run from its beginning to its teardown.

use brunt_protocol::scenario::Value;
use brunt_record::recording::LifecycleFigures;

use super::contact::ContactEvent;
use super::following::Following;
use super::in_run::{AgentStage, InRun};
use super::peer::Peer;
use super::progress::{InProgress, OwnStop, StartedRun};
use super::state::{Controller, Next, Running, State, TeardownResult, TearingDown, refuse};
use super::waits::{Awaited, PartTimes, TEARDOWN_NS, Wait, WaitLimits};
use super::{OnLost, Order, RunRemainder, Startup};
use crate::messages::{FromAgent, ToAgent};
use crate::rules::{Rule, is_broken};

/// How long the bus may let nothing through once a run has to end, in nanoseconds.
const PARTING_NS: u64 = 3_000_000_000;

/// Why a teardown failed.
struct TeardownFailed {
    /// The agent's name; empty where there was no agent.
    agent: String,
    problem: String,
}

impl Controller {
    /// Turns to a run that begins.
    pub(super) fn run(&mut self, run: u32, mut order: Order, mut begun: StartedRun, now: u64) -> State {
        let agents = begun.agents.iter().map(|agent| agent.part.name.clone()).collect();
        let left = std::mem::take(&mut begun.left);
        let own_stop = left.stopped.is_some().then_some(OwnStop::ByAgent);
        // Whoever gave the order may have gone away.
        let _ = order.begun.send(Ok(Startup { agents, left }));
        self.working.clear();
        self.contact.stood_still_ns = 0;
        let mut progress = InProgress { own_stop, ..InProgress::new(run, begun, order.reports.clone()) };
        let timetable = order.timetable.take();
        progress.log = timetable.map(|timetable| Following::new(timetable, &progress.begun.agents));
        let limits = WaitLimits::new(&progress.begun.plan);
        let began = self.contact.audible + progress.begun.at.saturating_sub(now);
        let (stopping_since, stopping_audible) = (None, 0);
        State::Running(Box::new(Running { order, progress, stopping_since, stopping_audible, limits, began }))
    }

    /// Takes the agents' reports, and losses of agents.
    pub(super) fn see_through(&mut self, mut running: Running, now: u64) -> Next {
        self.await_parts(&running);
        let Running { order, progress, stopping_since, stopping_audible, .. } = &mut running;
        progress.stood_still_ns = self.contact.stood_still_ns;
        progress.audible = self.contact.audible;
        progress.hear(&order.control.changes());
        for (place, peer) in self.contact.peers.iter().enumerate() {
            if peer.lost.is_some() {
                progress.gone(place);
            }
        }
        while let Some(said) = self.contact.events.pop_front() {
            if let ContactEvent::Message(place, words) = said {
                let Some(peer) = self.contact.peers.get_mut(place).filter(|peer| !peer.is_cut_off) else { continue };
                if let Err(breach) = progress.take(place, words, peer.clock.offset(), &order.stop, now) {
                    peer.cut_off(breach.to_string(), progress.run);
                }
            }
        }
        for (place, peer) in self.contact.peers.iter().enumerate() {
            if let Some(reason) = &peer.lost {
                progress.lose(place, reason, self.terms.on_lost, Some(peer.granted_ns));
            }
        }
        if order.stop.leaves() && !std::mem::replace(&mut progress.is_left, true) {
            // What they have reported is the result.
            for (place, peer) in self.contact.peers.iter().enumerate() {
                let reason = "the run was ended at once, before it had reported its end";
                progress.lose(place, reason, OnLost::Continue, Some(peer.granted_ns));
            }
        }
        for place in std::mem::take(&mut progress.said_their_last) {
            self.contact.release_lost(place);
        }
        progress.follow(now);
        progress.go_on_without(now);
        let run = progress.run;
        if let Some(dealing) = &mut progress.dealing {
            for (place, peer) in self.contact.peers.iter_mut().enumerate() {
                if let Some(taken) = peer.taken.take().filter(|taken| taken.run == run) {
                    dealing.report_taken(place, now, taken.requests);
                }
            }
            for (place, order) in progress.deal() {
                self.contact.tell(place, &order);
            }
        }
        if (order.stop.is_stopped() || progress.own_stop.is_some()) && !progress.is_stopping {
            progress.is_stopping = true;
            (*stopping_since, *stopping_audible) = (Some(now), self.contact.audible);
            self.contact.tell_all(&ToAgent::Stop { run });
        }
        if stopping_since.is_some_and(|since| now.saturating_sub(since) >= PARTING_NS) {
            // A run that is ended while the bus is away does not wait for it as long as other runs.
            self.contact.lose_unheard(PARTING_NS, now);
        }
        if std::mem::take(&mut progress.counts_changed) {
            for (place, counts) in progress.counts_elsewhere() {
                self.contact.tell(place, &ToAgent::Elsewhere { run, counts });
            }
        }
        if !progress.is_over() || !progress.has_read_on() {
            return Next::Stays(State::Running(Box::new(running)));
        }
        Next::Moves(self.finish(running))
    }

    /// Waits for what agents owe that carry out their parts.
    fn await_parts(&mut self, running: &Running) {
        let Running { progress, stopping_since, stopping_audible, limits, began, .. } = running;
        let audible = self.contact.audible;
        let peers = self.contact.peers.iter().zip(&progress.begun.agents).enumerate();
        let owe = peers.filter(|(_, (peer, agent))| peer.lost.is_none() && agent.stage != AgentStage::Finished);
        let waits: Vec<Wait> = owe
            .map(|(place, (peer, agent))| {
                let stopping = stopping_since.map(|_| *stopping_audible);
                let reported = agent.reported.max(peer.amid).max(*began);
                let is_drained = agent.stage == AgentStage::Drained;
                limits.of_part(place, PartTimes { began: *began, stopping, reported, is_drained }, audible)
            })
            .collect();
        self.contact.wait_for(&waits);
    }

    /// Puts the result of a run together.
    fn finish(&mut self, mut running: Running) -> State {
        self.contact.granting = None;
        let progress = &mut running.progress;
        let nobody_left = progress.begun.agents.iter().all(InRun::is_lost);
        let was_ended = running.order.stop.is_stopped() || progress.own_stop.is_some() && !nobody_left;
        if !was_ended && progress.begun.plan.stop.duration_ns.is_none() {
            progress.end_dealing();
        }
        progress.finish_lost();
        for (agent, peer) in progress.begun.agents.iter_mut().zip(&self.contact.peers) {
            // Comparisons during the run are better than those before it.
            agent.compare(peer.clock.offset(), progress.begun.at);
        }
        for (place, agent) in progress.begun.agents.iter().enumerate() {
            // One that ends takes neither teardown nor another run.
            if let Some(reason) = &agent.leaving {
                self.contact.lose(place, reason.clone());
            }
        }
        if progress.begun.plan.scenarios.is_some() {
            let given = std::mem::replace(&mut progress.begun.given, Value::Nil);
            return TearingDown::state(progress.run, given, TeardownResult::Ran(Box::new(running)));
        }
        running.tell();
        State::Resting
    }

    /// Runs the script's teardown on the first agent that is there and idle.
    pub(super) fn tear_down(&mut self, mut tearing: TearingDown, now: u64) -> Next {
        let run = tearing.run;
        if tearing.order().stop.leaves() {
            let agent = tearing.place.map(|place| self.contact.name(place)).unwrap_or_default();
            let problem = match tearing.place {
                Some(_) => "the script's teardown had not returned, and was cut off",
                None => "the script's teardown was not run: the run was ended at once",
            };
            return Next::Moves(tearing.over(Err(TeardownFailed { agent, problem: problem.to_owned() })));
        }
        if let (true, Some(place)) = (tearing.order().stop.is_stopped(), tearing.place) {
            // A run that is ended while the bus is away does not wait for it as long as other runs.
            let since = *tearing.stopping_since.get_or_insert(now);
            if now.saturating_sub(since) >= PARTING_NS && !self.contact.is_lost(place) {
                self.contact.lose_unheard(PARTING_NS, now);
            }
        }
        let Some(place) = tearing.place else {
            let is_free = |(place, peer): &(usize, &Peer)| peer.lost.is_none() && !self.working.contains(place);
            let Some(place) = self.contact.peers.iter().enumerate().find(is_free).map(|(place, _)| place) else {
                let problem = "no agent was left to run the script's teardown".to_owned();
                return Next::Moves(tearing.over(Err(TeardownFailed { agent: String::new(), problem })));
            };
            self.contact.tell(place, &ToAgent::Teardown { run, given: tearing.given.clone() });
            (tearing.place, tearing.since) = (Some(place), self.contact.audible);
            return Next::Stays(State::TearingDown(Box::new(tearing)));
        };
        let agent = self.contact.name(place);
        let failed = |problem: String| TeardownFailed { agent: agent.clone(), problem };
        let mut came = None;
        while let Some(said) = self.contact.events.pop_front().filter(|_| came.is_none()) {
            match said {
                ContactEvent::Message(of, FromAgent::TornDown { run: which, problem, left })
                    if of == place && which == run =>
                {
                    came = Some(problem.map_or(Ok(left), |problem| Err(failed(problem))));
                }
                ContactEvent::Message(of, FromAgent::Failed { problem, .. }) if of == place => {
                    came = Some(Err(failed(problem.text)));
                }
                _ => {}
            }
        }
        if let (None, Some(peer)) = (&came, self.contact.peers.get(place))
            && let Some(reason) = &peer.lost
        {
            if !peer.link.is_acknowledged() {
                // It never got the order.
                return Next::Moves(State::TearingDown(Box::new(TearingDown { place: None, ..tearing })));
            }
            came = Some(Err(failed(format!("it was lost in the teardown: {reason}"))));
        }
        if let Some(came) = came {
            return Next::Moves(tearing.over(came));
        }
        let (since, limit_ns) = (tearing.since, TEARDOWN_NS);
        self.contact.wait_for(&[Wait { place, awaited: Awaited::Teardown, since, limit_ns }]);
        Next::Stays(State::TearingDown(Box::new(tearing)))
    }
}

impl TearingDown {
    fn order(&self) -> &Order {
        match &self.after {
            TeardownResult::NotBegun(refused) => &refused.0,
            TeardownResult::Ran(running) => &running.order,
        }
    }

    /// Reports the result of the run, and of its teardown.
    fn over(self, came: Result<Box<LifecycleFigures>, TeardownFailed>) -> State {
        match (self.after, came) {
            (TeardownResult::NotBegun(refused), Ok(_)) => refuse(&refused.0, refused.1),
            (TeardownResult::NotBegun(refused), Err(TeardownFailed { agent, problem })) => {
                let (order, error) = *refused;
                refuse(&order, error.and_teardown(agent, &problem));
            }
            (TeardownResult::Ran(mut running), Ok(left)) => {
                if !is_broken(Rule::TeardownCounts) {
                    running.progress.begun.left = *left;
                }
                running.tell();
            }
            (TeardownResult::Ran(mut running), Err(TeardownFailed { agent, problem })) => {
                let problem = if agent.is_empty() { problem } else { format!("agent '{agent}': {problem}") };
                // The reason that ended the run comes first.
                let failed = running.progress.failed.take();
                running.progress.failed = Some(failed.map_or(problem.clone(), |reason| format!("{reason}; {problem}")));
                running.tell();
            }
        }
        State::Resting
    }
}

impl Running {
    /// Reports the result of the run.
    fn tell(self) {
        let Self { order, progress, .. } = self;
        let mut agents = progress.begun.agents;
        let read = |agent: &mut InRun| Some((agent.part.name.clone(), *agent.log.take()?));
        let logs = agents.iter_mut().filter_map(read).collect();
        let over = RunRemainder {
            logs,
            agents: agents.into_iter().map(|agent| agent.part).collect(),
            status_names: progress.status_names,
            redirected_to: progress.redirected_to,
            failed: progress.failed,
            left: progress.begun.left,
            lost_its_agents: progress.own_stop == Some(OwnStop::AgentsLost),
        };
        // Whoever gave the order may have gone away.
        let _ = order.over.send(over);
    }
}
