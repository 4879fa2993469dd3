//! A controller's claim on an agent, and the agent's work for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_record::recording::{Ending, Recording};

use crate::ledger::Ledger;
use crate::link::Link;
use crate::words::{Ended, FromAgent, Grant, to_bytes};

/// A controller's claim on the agent.
pub(super) struct Session {
    pub(super) by: String,
    /// The last part of the subject of messages to the controller.
    pub(super) controller: String,
    pub(super) link: Link,
    /// When the controller was last heard, in nanoseconds.
    pub(super) heard: u64,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) work: Work,
    /// The furthest horizon granted so far, with its run.
    pub(super) granted: Grant,
    /// A run, with the number of its takeovers that were asked for.
    pub(super) taken: (u32, u32),
    /// The counts that this machine has reported, of those that machines make together.
    pub(super) counted: BTreeMap<String, u64>,
    /// The reason for which it ends as soon as nothing runs any more.
    pub(super) ending: Option<SessionEnd>,
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
pub(super) enum Work {
    Nothing,
    /// The script's setup, of this run.
    SettingUp(u32),
    /// Parts of a run.
    Carrying(Box<Carrying>),
    /// The script's teardown, of this run.
    TearingDown(u32),
}

/// Parts of a run under way.
pub(super) struct Carrying {
    pub(super) run: u32,
    /// How far the part is that the agent had from the beginning.
    pub(super) own: OwnPart,
    /// The parts that are under way, and their seconds.
    pub(super) ledger: Ledger,
    pub(super) ended: Ended,
    pub(super) is_stopping: bool,
}

/// How far an agent's own part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnPart {
    /// Its connections are being made.
    Connecting,
    /// It can begin.
    Ready,
    /// It makes calls, or was told when to begin.
    Begun,
    /// It has ended, or there was none for this agent.
    Over,
}

impl Session {
    pub(super) fn new(by: String, controller: String, link: Link, heard: u64) -> Self {
        Self {
            by,
            controller,
            link,
            heard,
            plan: None,
            work: Work::Nothing,
            granted: Grant::default(),
            taken: (0, 0),
            counted: BTreeMap::new(),
            ending: None,
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
            Work::Nothing => None,
            Work::SettingUp(run) | Work::TearingDown(run) => Some(*run),
            Work::Carrying(carrying) => Some(carrying.run),
        }
    }

    /// The parts of this run, if they are under way.
    pub(super) fn carrying(&mut self, run: u32) -> Option<&mut Carrying> {
        match &mut self.work {
            Work::Carrying(carrying) if carrying.run == run => Some(carrying),
            _ => None,
        }
    }

    /// Takes a grant of the controller. Earlier grants in the same run stay valid. Returns how far parts of that run
    /// may go, with the run's changes, if it has parts.
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

impl Carrying {
    pub(super) fn new(run: u32, own: OwnPart) -> Self {
        Self { run, own, ledger: Ledger::default(), ended: Ended::default(), is_stopping: false }
    }
}

impl Ended {
    /// Takes in how the part with this number ended.
    pub(super) fn merge(&mut self, number: u32, run: Recording) {
        self.parts.insert(number, run.measured_ns);
        self.measured_ns = self.measured_ns.max(run.measured_ns);
        self.status_names.extend(run.status_names);
        self.redirected_to = self.redirected_to.take().or(run.redirected_to);
        match run.ending {
            Ending::Completed => {}
            Ending::Interrupted => self.interrupted = true,
            Ending::Failed(reason) => drop(self.failed.get_or_insert(reason)),
            // Thresholds and lost agents are the controller's, so that no part ends so.
            Ending::Unreached(reason) | Ending::Aborted(reason) | Ending::AgentsLost(reason) => {
                self.unreached.get_or_insert(reason);
            }
            Ending::Stopped(reason) => drop(self.stopped.get_or_insert(reason)),
        }
    }
}
