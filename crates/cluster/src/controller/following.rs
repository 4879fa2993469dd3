//! The log of a replay, which its controller reads beside the agents: the calls due on each, so that a lost agent's
//! calls are accounted for.

use brunt_protocol::replay::{LogTimetable, LoggedCall, Upcoming};

use super::in_run::InRun;

/// Calls read at once, before agents have a turn.
const MOST_AT_ONCE: usize = 100_000;

/// A log that is read beside a run.
pub(super) struct Following {
    timetable: Box<dyn LogTimetable>,
    next: Option<LoggedCall>,
    /// The agent of each worker, by its place.
    owners: Vec<usize>,
    /// Up to when all calls are known, in nanoseconds of the measured part.
    read_ns: u64,
}

impl Following {
    pub(super) fn new(timetable: Box<dyn LogTimetable>, agents: &[InRun]) -> Self {
        let workers = agents.iter().enumerate().map(|(place, agent)| (agent.portion.workers(), place));
        let owners = workers.flat_map(|(workers, place)| (0..workers).map(move |_| place)).collect();
        Self { timetable, next: None, owners, read_ns: 0 }
    }

    /// Up to when all calls are known, in nanoseconds of the measured part.
    pub(super) fn read_ns(&self) -> u64 {
        self.read_ns
    }

    /// Deals out calls that are due before `until_ns`, some at a time.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub(super) fn deal(&mut self, until_ns: u64, agents: &mut [InRun]) -> Result<(), String> {
        for _ in 0..MOST_AT_ONCE {
            let call = match self.next.take() {
                Some(call) => call,
                None => match self.timetable.next() {
                    Upcoming::Call(call) => call,
                    Upcoming::NotYet => return Ok(()),
                    Upcoming::Over => {
                        self.read_ns = u64::MAX;
                        return Ok(());
                    }
                    Upcoming::Failed(reason) => return Err(reason),
                },
            };
            // Later calls are due then at the earliest.
            self.read_ns = self.read_ns.max(call.due_ns);
            if call.due_ns >= until_ns {
                self.next = Some(call);
                return Ok(());
            }
            let owner = (call.number % self.owners.len().max(1) as u64) as usize;
            let Some(agent) = self.owners.get(owner).and_then(|place| agents.get_mut(*place)) else { continue };
            match &mut agent.lost {
                Some(lost) => lost.call_due(call.due_ns),
                None => agent.unreported.due(call.due_ns),
            }
        }
        Ok(())
    }
}
