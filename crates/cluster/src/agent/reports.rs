//! The agent's account of what its machine reports: seconds and results of its part, setup and teardown.

use super::machine::{Agent, Done, Job};
use super::session::{PartProgress, SessionEnd, Work};
use crate::words::{FromAgent, Problem};

impl Agent {
    /// Takes a report of its machine. Reports on work for other controllers no longer matter.
    pub(crate) fn worked(&mut self, job: Job, done: Done) {
        let Job { session: id, run } = job;
        let Some(session) = self.session().filter(|session| session.link.session() == id) else { return };
        if session.run() != Some(run) {
            return;
        }
        match done {
            Done::Ready => {
                if let Some(carrying) =
                    session.carrying(run).filter(|carrying| carrying.progress == PartProgress::Connecting)
                {
                    carrying.progress = PartProgress::Ready;
                    session.send(&FromAgent::Ready { run });
                }
            }
            Done::Began { at, late } => session.send(&FromAgent::Began { run, at, late }),
            Done::Second(interval) => {
                // Measurements up to giving up the run are still reported.
                let is_released = matches!(session.ending, Some(SessionEnd::Released));
                if session.carrying(run).is_some() && !is_released {
                    session.send(&FromAgent::Second { run, interval });
                }
            }
            Done::GivenBack(requests) => session.send(&FromAgent::GivenBack { run, requests }),
            Done::Ran(Ok(ended)) => {
                session.work = Work::Nothing;
                session.send(&FromAgent::Finished { run, ended: *ended });
            }
            Done::SetUp(Ok((value, left))) => {
                session.work = Work::Nothing;
                session.send(&FromAgent::Given { run, value, left });
            }
            Done::TornDown(outcome) => {
                session.work = Work::Nothing;
                let (problem, left) = match outcome {
                    Ok(left) => (None, left),
                    Err(problem) => (Some(problem.text), Box::default()),
                };
                session.send(&FromAgent::TornDown { run, problem, left });
            }
            Done::Ran(Err(problem)) | Done::SetUp(Err(problem)) => self.give_up(run, problem),
        }
    }

    fn give_up(&mut self, run: u32, problem: Problem) {
        if let Some(session) = self.session() {
            session.work = Work::Nothing;
        }
        self.fail(run, problem);
    }
}
