//! A controller's claim on an agent, and the agent's work for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_record::recording::{Ending, Recording, Stop};
use brunt_record::replayed::LogRead;

use crate::link::Link;
use crate::messages::{FromAgent, Grant, PartEnd, RequestsTaken};
use brunt_record::bytes::to_bytes;

/// A controller's claim on the agent.
pub(super) struct Session {
    pub(super) by: String,
    /// The last part of the subject of messages to the controller.
    pub(super) controller: String,
    pub(super) link: Link,
    /// When the controller was last heard, in nanoseconds.
    pub(super) heard: u64,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) work: SessionWork,
    /// The furthest horizon granted so far, with its run.
    pub(super) granted: Grant,
    /// The counts that this machine has reported, of those that machines make together.
    pub(super) counted: BTreeMap<String, u64>,
    /// The requests of a counted number that its workers have taken, when they were last counted.
    pub(super) taken: Option<RequestsTaken>,
    /// The reason for which it ends as soon as nothing runs any more.
    pub(super) ending: Option<SessionEnd>,
    /// Since when it is to end, and whether it was said that its work goes on all the same.
    pub(super) ending_since: Option<u64>,
    pub(super) is_said: bool,
}

/// Why a session ends.
#[derive(Debug, Clone)]
pub(super) enum SessionEnd {
    /// Its controller released it.
    Released,
    /// The agent gives it up, for this reason.
    GivenUp(String),
}

/// The work of the agent's machine for a session.
pub(super) enum SessionWork {
    Nothing,
    /// The script's setup, of this run.
    SettingUp(u32),
    /// Its part of a run.
    Carrying(PartInProgress),
    /// The script's teardown, of this run.
    TearingDown(u32),
}

/// A part of a run under way.
pub(super) struct PartInProgress {
    pub(super) run: u32,
    pub(super) progress: PartProgress,
}

/// How far an agent's part of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartProgress {
    /// Its connections are being made.
    Connecting,
    /// It can begin.
    Ready,
    /// It makes calls, or was told when to begin.
    Begun,
}

impl Session {
    pub(super) fn new(by: String, controller: String, link: Link, heard: u64) -> Self {
        Self {
            by,
            controller,
            link,
            heard,
            plan: None,
            work: SessionWork::Nothing,
            granted: Grant::default(),
            counted: BTreeMap::new(),
            taken: None,
            ending: None,
            ending_since: None,
            is_said: false,
        }
    }

    pub(super) fn send(&mut self, words: &FromAgent) {
        self.link.send(to_bytes(words));
    }

    /// Whether machines count something together.
    pub(super) fn counts_together(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.scenarios.is_some())
    }

    /// The run that its machine works for.
    pub(super) fn run(&self) -> Option<u32> {
        match &self.work {
            SessionWork::Nothing => None,
            SessionWork::SettingUp(run) | SessionWork::TearingDown(run) => Some(*run),
            SessionWork::Carrying(carrying) => Some(carrying.run),
        }
    }

    /// Its part of this run, if that is under way.
    pub(super) fn carrying(&mut self, run: u32) -> Option<&mut PartInProgress> {
        match &mut self.work {
            SessionWork::Carrying(carrying) if carrying.run == run => Some(carrying),
            _ => None,
        }
    }

    /// Takes a grant of the controller. Earlier grants in the same run stay valid. Returns how far its part of that run
    /// may go, with the run's changes, if it has one.
    pub(super) fn take_grant(&mut self, grant: Grant) -> Option<Grant> {
        // A late grant of an earlier run.
        if grant.run < self.granted.run {
            return None;
        }
        let run = grant.run;
        if self.granted.run == run {
            self.granted.until_ns = self.granted.until_ns.max(grant.until_ns);
            // A late note knows fewer changes.
            if grant.changes.len() > self.granted.changes.len() {
                self.granted.changes = grant.changes;
            }
        } else {
            self.granted = grant;
        }
        let granted = self.granted.clone();
        self.carrying(run).map(|_| granted)
    }
}

impl PartEnd {
    /// How a part ended, with its account of the log if it replayed one.
    pub(crate) fn new(run: &Recording, log: Option<Box<LogRead>>) -> Self {
        let (status_names, redirected_to) = (run.status_names.clone(), run.redirected_to.clone());
        let mut ended = Self { measured_ns: run.measured_ns, status_names, redirected_to, log, ..Self::default() };
        match run.ending.clone() {
            // Thresholds and lost agents are the controller's, so that no part is aborted by them.
            Ending::Completed | Ending::Aborted(_) | Ending::AgentsLost(_) => {}
            Ending::Interrupted => ended.interrupted = true,
            Ending::Failed(reason) => ended.failed = Some(reason),
            Ending::Unreached(reason) => ended.unreached = Some(reason),
            Ending::Stopped(reason) => ended.stopped = Some(Stop { reason, ok: true }),
            Ending::GivenUp(reason) => ended.stopped = Some(Stop { reason, ok: false }),
        }
        ended
    }
}
