//! A run that goes on, as the page gets it: its report if it ended now, and its last second.

use std::io;

use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;

use super::last_second::{Agent, LastSecond};
use super::page;
use crate::live::{Second, SoFar, counts_on, in_log, name};

/// A run that goes on, as the page shows it.
#[derive(Debug)]
pub struct Running {
    so_far: SoFar,
    phase: Option<Phase>,
    state: LastSecond,
}

impl Running {
    /// A run that is about to carry `plan` out.
    pub fn new(plan: &Plan, started_unix_ms: u64) -> Self {
        Self {
            so_far: SoFar::new(plan, started_unix_ms),
            phase: None,
            state: LastSecond { phase: "starting", ..LastSecond::default() },
        }
    }

    /// Takes in the run's last second.
    pub fn push(&mut self, live: &Live) {
        self.so_far.push(live);
        let second = Second::from_live(live, &self.so_far.plan.ok_status);
        // Missed seconds of the warm-up are in no figure anyway.
        let is_new = self.phase.replace(live.phase).is_some_and(|last| !counts_on(last, live.phase));
        self.state = LastSecond {
            phase: name(live.phase),
            elapsed_ns: live.elapsed_ns,
            end: live.end(),
            in_log: in_log::words(live),
            planned_requests: live.planned_requests,
            open_connections: live.open_connections,
            in_flight: live.in_flight,
            users: live.users,
            answered_per_s: second.rate,
            not_ok: second.not_ok,
            p50: second.p50,
            p99: second.p99,
            backlog: live.waiting,
            oldest_ns: (live.oldest_ns > 0).then_some(live.oldest_ns),
            agents: live.agents.iter().map(Agent::new).collect(),
            missed: if is_new { 0 } else { self.state.missed },
        };
    }

    /// Counts seconds that could not be taken in.
    pub fn miss(&mut self, seconds: u64) {
        self.state.missed += seconds;
    }

    /// The page's content now: an event's data, in a line.
    ///
    /// # Errors
    /// None: writing JSON is fallible in type.
    pub fn data(&self) -> io::Result<String> {
        page(&self.so_far.summary(), Some(&self.state)).event()
    }
}
