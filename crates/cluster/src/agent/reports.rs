//! The agent's account of what its machine reports: seconds and results of its part, setup and teardown.

use super::machine::{Agent, Job, MachineReport};
use super::session::{PartProgress, SessionEnd, SessionWork};
use crate::messages::{FromAgent, Problem};

impl Agent {
    /// Takes a report of its machine. Reports on work for other controllers no longer matter.
    pub(crate) fn worked(&mut self, job: Job, done: MachineReport) {
        let Job { session: id, run } = job;
        let Some(session) = self.session().filter(|session| session.link.session() == id) else { return };
        if session.run() != Some(run) {
            return;
        }
        match done {
            MachineReport::Ready => {
                if let Some(carrying) =
                    session.carrying(run).filter(|carrying| carrying.progress == PartProgress::Connecting)
                {
                    carrying.progress = PartProgress::Ready;
                    session.send(&FromAgent::Ready { run });
                }
            }
            MachineReport::Began { at, late } => session.send(&FromAgent::Began { run, at, late }),
            MachineReport::Second(interval) => {
                // Measurements up to giving up the run are still reported.
                let is_released = matches!(session.ending, Some(SessionEnd::Released));
                if session.carrying(run).is_some() && !is_released {
                    session.send(&FromAgent::Second { run, interval });
                }
            }
            MachineReport::GivenBack(requests) => session.send(&FromAgent::GivenBack { run, requests }),
            MachineReport::Ran(Ok(ended)) => {
                session.work = SessionWork::Nothing;
                session.send(&FromAgent::Finished { run, ended: *ended });
            }
            MachineReport::SetUp(Ok((value, left))) => {
                session.work = SessionWork::Nothing;
                session.send(&FromAgent::Given { run, value, left });
            }
            MachineReport::TornDown(outcome) => {
                session.work = SessionWork::Nothing;
                let (problem, left) = match outcome {
                    Ok(left) => (None, left),
                    Err(problem) => (Some(problem.text), Box::default()),
                };
                session.send(&FromAgent::TornDown { run, problem, left });
            }
            MachineReport::Ran(Err(problem)) | MachineReport::SetUp(Err(problem)) => self.give_up(run, problem),
        }
    }

    fn give_up(&mut self, run: u32, problem: Problem) {
        if let Some(session) = self.session() {
            session.work = SessionWork::Nothing;
        }
        self.fail(run, problem);
    }
}
