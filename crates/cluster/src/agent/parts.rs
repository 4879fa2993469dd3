//! The agent's account of the parts of runs that its machine carries out: takeovers, and the result of each part.

use brunt_engine::Takeover;
use brunt_record::SECOND_NS;

use super::AgentEvent;
use super::machine::{Act, Agent, Done, Job, NewPart};
use super::session::{Carrying, OwnPart, SessionEnd, Work};
use crate::words::{FromAgent, LeftWork, Problem};

impl Agent {
    /// Takes over a part of a lost agent's work, besides its own or after it.
    pub(super) fn take_over(&mut self, run: u32, work: LeftWork) {
        let LeftWork { number, portion, numbers, after_ns, at, given } = work;
        let is_leaving = self.is_leaving();
        let Some(session) = self.session() else { return };
        let taken = if session.taken.0 == run { session.taken.1 + 1 } else { 1 };
        session.taken = (run, taken);
        if matches!(session.work, Work::Nothing) {
            session.work = Work::Carrying(Box::new(Carrying::new(run, OwnPart::Over)));
        }
        let plan = session.plan.clone().filter(|_| session.ending.is_none() && !is_leaving);
        let carrying = session.carrying(run).filter(|carrying| !carrying.is_stopping);
        let (Some(plan), Some(carrying)) = (plan, carrying) else {
            self.decline(run, number, "its part has ended".to_owned());
            return;
        };
        carrying.ledger.begin(number, Some(after_ns / SECOND_NS));
        session.send(&FromAgent::Took { run, number });
        let granted = session.granted.clone();
        let takeover = Some((Takeover { after_ns, numbers }, at));
        self.act(run, Act::Carry(Box::new(NewPart { plan, number, machine: 0, portion, given, takeover })));
        if granted.run == run {
            self.act(run, Act::Extend(granted));
        }
        self.tell_user(AgentEvent::TookOver { portion });
    }

    fn decline(&mut self, run: u32, number: u32, problem: String) {
        self.tell_user(AgentEvent::Failed(problem.clone()));
        self.send(&FromAgent::Declined { run, number, problem });
        self.end_part(run, number);
    }

    /// One of the parts has ended; after the last one, the run is over for this agent.
    fn end_part(&mut self, run: u32, number: u32) {
        let Some(session) = self.session() else { return };
        let taken = if session.taken.0 == run { session.taken.1 } else { 0 };
        let Some(carrying) = session.carrying(run) else { return };
        if number == 0 {
            carrying.own = OwnPart::Over;
        }
        let seconds = carrying.ledger.end(number);
        let ended = carrying.ledger.is_idle().then(|| std::mem::take(&mut carrying.ended));
        if ended.is_some() {
            session.work = Work::Nothing;
        }
        for interval in seconds {
            session.send(&FromAgent::Second { run, interval: Box::new(interval) });
        }
        if let Some(ended) = ended {
            session.send(&FromAgent::Finished { run, ended, taken });
        }
    }

    /// Takes a report of its machine. Reports on work for other controllers no longer matter.
    pub(crate) fn worked(&mut self, job: Job, done: Done) {
        let Job { session: id, run } = job;
        let Some(session) = self.session().filter(|session| session.link.session() == id) else { return };
        if session.run() != Some(run) {
            return;
        }
        match done {
            Done::Ready => {
                if let Some(carrying) = session.carrying(run).filter(|carrying| carrying.own == OwnPart::Connecting) {
                    carrying.own = OwnPart::Ready;
                    session.send(&FromAgent::Ready { run });
                }
            }
            Done::Began { at, late } => session.send(&FromAgent::Began { run, at, late }),
            Done::Second(part, interval) => {
                // Measurements up to giving up the run are still reported.
                let is_released = matches!(session.ending, Some(SessionEnd::Released));
                let seconds = session.carrying(run).map(|carrying| carrying.ledger.add(part, *interval));
                for interval in seconds.into_iter().flatten().filter(|_| !is_released) {
                    session.send(&FromAgent::Second { run, interval: Box::new(interval) });
                }
            }
            Done::Ran(number, Ok(ran)) => {
                if let Some(carrying) = session.carrying(run) {
                    carrying.ended.merge(number, ran.run);
                    carrying.ended.log = carrying.ended.log.take().or(ran.log);
                }
                self.end_part(run, number);
            }
            Done::Ran(number @ 1.., Err(problem)) => self.decline(run, number, problem.text),
            Done::SetUp(Ok((value, counted))) => {
                session.work = Work::Nothing;
                session.send(&FromAgent::Given { run, value, counted });
            }
            Done::TornDown(outcome) => {
                session.work = Work::Nothing;
                let (problem, counted) = match outcome {
                    Ok(counted) => (None, counted),
                    Err(problem) => (Some(problem.text), Box::default()),
                };
                session.send(&FromAgent::TornDown { run, problem, counted });
            }
            Done::Ran(0, Err(problem)) | Done::SetUp(Err(problem)) => self.give_up(run, problem),
        }
    }

    fn give_up(&mut self, run: u32, problem: Problem) {
        if let Some(session) = self.session() {
            session.work = Work::Nothing;
        }
        self.fail(run, problem);
    }
}
