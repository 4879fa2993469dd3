//! Parts of runs that an agent carries out: prepared, started, taken over, ended.

use super::seconds::Seconds;
use super::{Agent, AgentEvent, PartState, Running, SessionEnd, TakeoverState, Work};
use crate::words::{FromAgent, Grant, LeftWork};
use brunt_engine::{EngineError, Gate, Part, StopHandle, Surrounded, Takeover, Tallies};
use brunt_plan::plan::Plan;
use brunt_plan::share::Portion;
use brunt_protocol::Registry;
use brunt_protocol::scenario::Value;
use brunt_record::SECOND_NS;
use brunt_script::ScriptHost;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Agent<'_> {
    /// Does something on a thread of its own.
    pub(super) fn work_on(
        &mut self,
        run: u32,
        work: impl FnOnce(&Plan, &Registry, &dyn ScriptHost, &StopHandle) -> Work + Send + 'static,
    ) {
        let Some(session) = &mut self.session else { return };
        let Some(plan) = session.plan.clone().filter(|_| session.running.is_none()) else {
            self.fail(
                run,
                "the agent has no plan, or is busy with the one before; this is a defect of brunt".into(),
                false,
            );
            return;
        };
        // The controller ends a part as the run's own end, and waits for its calls.
        let (stop, registry) = (StopHandle::default().of_run(), Arc::clone(&self.registry));
        let scripts = self.scripts;
        let (id, sender, stopped) = (session.link.session(), self.work.clone(), stop.clone());
        session.running = Some(Running::new(run, stop));
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
            // The agent may have ended.
            let _ = sender.send((id, work(&plan, &registry, scripts, &stopped)));
        });
        if let Err(error) = spawned {
            if let Some(session) = &mut self.session {
                session.running = None;
            }
            self.fail(run, format!("cannot start a thread: {error}"), true);
        }
    }

    pub(super) fn prepare(&mut self, run: u32, machine: u32, portion: Portion, given: Value<'static>) {
        let Some(session) = &mut self.session else { return };
        let gate = Gate::with_horizon();
        (session.tallies, session.counted) = (Tallies::default(), BTreeMap::new());
        let part = Part {
            portion,
            gate: Some(gate.clone()),
            tallies: session.tallies.clone(),
            surroundings: Surrounded::Elsewhere(given),
            takeover: None,
        };
        let (id, sender, ended) = (session.link.session(), self.work.clone(), Arc::clone(&self.options.ended));
        self.work_on(run, move |plan, registry, scripts, stop| {
            let mut seconds = Seconds { session: id, part: 0, machine, sender };
            let ran = brunt_engine::run_part(plan, part, registry, scripts, &mut seconds, stop);
            Work::Ran(0, ran.inspect(|finished| ended(finished)).map(Box::new))
        });
        if let Some(running) = self.session.as_mut().and_then(|session| session.running.as_mut()) {
            running.ledger.begin(0, None);
            running.part = Some(PartState { gate, is_ready: false, has_begun: false });
        }
        (self.said)(AgentEvent::Begun { portion });
    }

    pub(super) fn start(&mut self, grant: Grant, at: u64) {
        let (begin, run) = (self.epoch + Duration::from_nanos(at), grant.run);
        let Some(session) = &mut self.session else { return };
        let Some(running) = session.running.as_mut().filter(|running| running.run == run) else { return };
        let Some(part) = &mut running.part else { return };
        if let Some(late) = part.gate.open_at(begin) {
            part.has_begun = true;
            session.take_grant(grant);
            self.send(&FromAgent::Began { run, at: at + late, late });
        }
    }

    /// Does a part of what a lost agent has left, besides what it does or after that.
    pub(super) fn take_over(&mut self, run: u32, work: LeftWork) {
        let LeftWork { number, portion, numbers, after_ns, at, given } = work;
        let Some(session) = &mut self.session else { return };
        let taken = if session.taken.0 == run { session.taken.1 + 1 } else { 1 };
        session.taken = (run, taken);
        let plan = session.plan.clone().filter(|_| session.ending.is_none() && self.leaving_since.is_none());
        let running = session.running.get_or_insert_with(|| Running::new(run, StopHandle::default().of_run()));
        let Some(plan) = plan.filter(|_| running.run == run && !running.stop.is_stopped()) else {
            self.decline(run, number, "its part has ended".to_owned());
            return;
        };
        let gate = Gate::with_horizon();
        let joins_ns = plan.warmup_ns.saturating_add(after_ns);
        let part = Part {
            portion,
            gate: Some(gate.clone()),
            tallies: session.tallies.clone(),
            surroundings: Surrounded::Elsewhere(given),
            takeover: Some(Takeover { after_ns, numbers }),
        };
        running.ledger.begin(number, Some(after_ns / SECOND_NS));
        running.takeovers.insert(number, TakeoverState { gate, at: Some(at), joins_ns });
        let (stop, registry) = (running.stop.clone(), Arc::clone(&self.registry));
        let scripts = self.scripts;
        let (id, sender, ended) = (session.link.session(), self.work.clone(), Arc::clone(&self.options.ended));
        let spawned = std::thread::Builder::new().name("takeover".to_owned()).spawn(move || {
            let mut seconds = Seconds { session: id, part: number, machine: 0, sender: sender.clone() };
            let ran = brunt_engine::run_part(&plan, part, &registry, scripts, &mut seconds, &stop);
            let ran = ran.inspect(|finished| ended(finished)).map(Box::new);
            // The agent may have ended.
            let _ = sender.send((id, Work::Ran(number, ran)));
        });
        self.send(&FromAgent::Took { run, number });
        (self.said)(AgentEvent::TookOver { portion });
        if let Err(error) = spawned {
            self.decline(run, number, format!("cannot start a thread: {error}"));
        }
    }

    pub(super) fn decline(&mut self, run: u32, number: u32, problem: String) {
        (self.said)(AgentEvent::Failed(&problem));
        self.send(&FromAgent::Declined { run, number, problem });
        self.end_part(run, number);
    }

    /// One of the parts has ended; if it was the last, so has the run for this agent.
    pub(super) fn end_part(&mut self, run: u32, number: u32) {
        // What machines count together last is said before they are over.
        self.tell_counts();
        let Some(session) = &mut self.session else { return };
        let Some(running) = session.running.as_mut().filter(|running| running.run == run) else { return };
        running.takeovers.remove(&number);
        if number == 0 {
            running.part = None;
        }
        let seconds = running.ledger.end(number);
        let ended = running.ledger.is_idle().then(|| std::mem::take(&mut running.ended));
        let taken = if session.taken.0 == run { session.taken.1 } else { 0 };
        if ended.is_some() {
            session.running = None;
        }
        for interval in seconds {
            self.send(&FromAgent::Second { run, interval: Box::new(interval) });
        }
        if let Some(ended) = ended {
            self.send(&FromAgent::Finished { run, ended, taken });
        }
    }

    /// A thread has something to say.
    pub(super) fn worked(&mut self, done: Option<(u64, Work)>) {
        let Some((id, work)) = done else { return };
        let Some(session) = self.session.as_mut().filter(|session| session.link.session() == id) else { return };
        let Some(run) = session.running.as_ref().map(|running| running.run) else { return };
        // What was measured until it gave the run up is still said.
        let is_released = matches!(session.ending, Some(SessionEnd::Released));
        match work {
            Work::Second(part, interval) => {
                let Some(running) = &mut session.running else { return };
                let seconds = running.ledger.add(part, *interval);
                for interval in seconds.into_iter().filter(|_| !is_released) {
                    self.send(&FromAgent::Second { run, interval: Box::new(interval) });
                }
            }
            Work::Ran(number, Ok(finished)) => {
                if let Some(running) = &mut session.running {
                    running.ended.merge(number, finished.run);
                }
                self.end_part(run, number);
            }
            Work::Ran(number @ 1.., Err(error)) => {
                let problem = (self.options.words)(error);
                self.decline(run, number, problem);
            }
            Work::SetUp(Ok(value)) => {
                session.running = None;
                self.send(&FromAgent::Given { run, value });
            }
            Work::TornDown(outcome) => {
                session.running = None;
                let problem = outcome.err().map(|error| (self.options.words)(error));
                self.send(&FromAgent::TornDown { run, problem });
            }
            Work::Ran(0, Err(error)) | Work::SetUp(Err(error)) => {
                session.running = None;
                let is_impossible = match &error {
                    EngineError::Route(route) => route.is_no_address(),
                    error => matches!(error, EngineError::Descriptors { .. } | EngineError::System { .. }),
                };
                let text = (self.options.words)(error);
                self.fail(run, text, is_impossible);
            }
        }
    }

    pub(super) fn tell_counts(&mut self) {
        let Some(session) = self.session.as_mut().filter(|session| session.counts_together()) else { return };
        let Some(run) = session.running.as_ref().map(|running| running.run) else { return };
        let counts = session.tallies.here();
        if counts != session.counted {
            session.counted.clone_from(&counts);
            self.send(&FromAgent::Counted { run, counts });
        }
    }
}
