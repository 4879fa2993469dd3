//! The limits of what a controller waits for. Whatever an agent owes has a limit, and a name that its user is told
//! while it is waited for. An agent that misses one is lost, and what it has reported is kept.
//!
//! Time counts only while the bus lets messages through, as for an agent's silence.

use std::collections::BTreeSet;
use std::time::Duration;

use brunt_plan::plan::Plan;
use brunt_record::SECOND_NS;

use super::inspection::planned_end_ns;

use crate::rules::{Rule, is_broken};

/// How long an agent may need for what takes no time: reading a plan, or ending what is over. In nanoseconds.
const GRACE_NS: u64 = 10 * SECOND_NS;
/// How long a script's setup, and its teardown, may take over agents. In nanoseconds.
const SETUP_NS: u64 = 600 * SECOND_NS;
pub(super) const TEARDOWN_NS: u64 = 60 * SECOND_NS;
/// After how long a wait is told to the user, at the latest. In nanoseconds.
const TELL_NS: u64 = 5 * SECOND_NS;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// That the NATS server lets messages of agents through.
    Contact,
    /// That an agent has taken the plan.
    Plan,
    /// That the script's setup returns.
    Setup,
    /// That an agent has made its connections.
    Connections,
    /// The next second of an agent's part.
    Report,
    /// The end of an agent's part.
    End,
    /// That the script's teardown returns.
    Teardown,
}

impl Awaited {
    /// The loss of an agent that did not do it within `limit_ns`.
    pub(super) fn missed(self, limit_ns: u64) -> String {
        let seconds = Duration::from_nanos(limit_ns).as_secs_f64();
        match self {
            Self::Contact => format!("nothing was heard of it for {seconds:.0}s"),
            Self::Plan => format!("it answers, but has not taken the plan for {seconds:.0}s"),
            Self::Setup => format!("it answers, but the script's setup has not returned within {seconds:.0}s"),
            Self::Connections => format!("it answers, but was not ready to begin within {seconds:.0}s"),
            Self::Report => format!("it answers, but has reported nothing of its part for {seconds:.0}s"),
            Self::End => format!("it answers, but its part has not ended {seconds:.0}s after it should have"),
            Self::Teardown => format!("it answers, but the script's teardown has not returned within {seconds:.0}s"),
        }
    }
}

/// Something that an agent owes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) place: usize,
    pub(super) awaited: Awaited,
    /// Since when it is due, in nanoseconds of the time for which the bus let messages through.
    pub(super) since: u64,
    pub(super) limit_ns: u64,
}

impl Wait {
    /// How long it is overdue at `audible`, if it is.
    pub(super) fn is_missed(&self, audible: u64) -> bool {
        audible.saturating_sub(self.since) >= self.limit_ns && !is_broken(Rule::WaitsEnd)
    }

    fn is_long(&self, audible: u64) -> bool {
        let (waited, limit) = (audible.saturating_sub(self.since), self.limit_ns);
        waited >= TELL_NS.min(limit / 2)
    }
}

/// A wait that has become long, for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What is waited for.
    pub awaited: Awaited,
    /// The agents that owe it, by name.
    pub agents: Vec<String>,
    /// How long they are waited for at most, from now on.
    pub left: Duration,
}

/// News of a controller for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A wait has become long.
    Waiting(Waiting),
    /// Agents of these names that were lost are back, and take part again.
    Joined(Vec<String>),
    /// There is no connection to the NATS server yet, for this reason; it is tried again for so long.
    NoServer {
        /// The reason.
        problem: String,
        /// How long it is tried again.
        left: Duration,
    },
}

/// The long waits that the user was told.
#[derive(Debug, Default)]
pub(super) struct AnnouncedWaits(BTreeSet<(usize, Awaited)>);

impl AnnouncedWaits {
    /// The waits at `audible` that have become long, one for each kind.
    pub(super) fn news(&mut self, waits: &[Wait], audible: u64, name: impl Fn(usize) -> String) -> Vec<Waiting> {
        self.0.retain(|(place, awaited)| waits.iter().any(|wait| (wait.place, wait.awaited) == (*place, *awaited)));
        let mut news: Vec<Waiting> = Vec::new();
        for wait in waits.iter().filter(|wait| wait.is_long(audible)) {
            if !self.0.insert((wait.place, wait.awaited)) {
                continue;
            }
            let left = Duration::from_nanos((wait.since + wait.limit_ns).saturating_sub(audible));
            match news.iter_mut().find(|known| known.awaited == wait.awaited) {
                Some(known) => {
                    known.agents.push(name(wait.place));
                    known.left = known.left.max(left);
                }
                None => news.push(Waiting { awaited: wait.awaited, agents: vec![name(wait.place)], left }),
            }
        }
        news
    }
}

/// The limits of a run's waits, in nanoseconds.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "all are times in nanoseconds")]
pub(super) struct WaitLimits {
    pub(super) plan_ns: u64,
    pub(super) setup_ns: u64,
    pub(super) connections_ns: u64,
    /// From the beginning of the run to its drain; none where the plan does not end by time.
    pub(super) loaded_ns: Option<u64>,
    /// From an order to end, or the planned end, to the end of a part.
    pub(super) drain_ns: u64,
    /// From when something is due that takes no time.
    pub(super) grace_ns: u64,
}

impl WaitLimits {
    /// What an agent owes that carries out its part: the next report, or the end. Times are those for which the bus let
    /// messages through: when the run began, when it was told to end, and when the agent last reported.
    pub(super) fn of_part(&self, place: usize, part: PartTimes, audible: u64) -> Wait {
        let PartTimes { began, stopping, reported, is_drained } = part;
        let planned = self.loaded_ns.map(|loaded_ns| began.saturating_add(loaded_ns)).filter(|end| audible >= *end);
        let over = stopping.or(planned).or(Some(reported).filter(|_| is_drained));
        let (awaited, since) = match over {
            // Its last calls may take as long as the drain.
            Some(over) => (Awaited::End, over.saturating_add(self.drain_ns)),
            None => (Awaited::Report, reported),
        };
        Wait { place, awaited, since, limit_ns: self.grace_ns }
    }
}

/// The times of a part under way, in nanoseconds of the time for which the bus let messages through.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartTimes {
    pub(super) began: u64,
    pub(super) stopping: Option<u64>,
    pub(super) reported: u64,
    pub(super) is_drained: bool,
}

impl WaitLimits {
    pub(super) fn new(plan: &Plan) -> Self {
        let planned_ns = Some(planned_end_ns(plan)).filter(|planned_ns| *planned_ns < u64::MAX);
        Self {
            plan_ns: GRACE_NS,
            setup_ns: SETUP_NS,
            connections_ns: plan.connect_timeout_ns.saturating_add(GRACE_NS),
            loaded_ns: planned_ns.map(|planned_ns| plan.warmup_ns.saturating_add(planned_ns)),
            drain_ns: plan.drain_ns,
            grace_ns: GRACE_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_owes_reports_and_its_end() {
        let limits = WaitLimits {
            plan_ns: 0,
            setup_ns: 0,
            connections_ns: 0,
            loaded_ns: Some(20 * SECOND_NS),
            drain_ns: 5 * SECOND_NS,
            grace_ns: GRACE_NS,
        };
        let times = PartTimes { began: SECOND_NS, stopping: None, reported: 4 * SECOND_NS, is_drained: false };
        let owes = |limits: &WaitLimits, times, second: u64| {
            let wait = limits.of_part(0, times, second * SECOND_NS);
            (wait.awaited, wait.since / SECOND_NS)
        };
        assert_eq!(owes(&limits, times, 20), (Awaited::Report, 4));
        assert_eq!(owes(&limits, times, 21), (Awaited::End, 26));
        let stopped = PartTimes { stopping: Some(10 * SECOND_NS), ..times };
        assert_eq!(owes(&limits, stopped, 11), (Awaited::End, 15));
        // A number of requests has no planned end.
        let numbered = WaitLimits { loaded_ns: None, ..limits };
        assert_eq!(owes(&numbered, times, 1000), (Awaited::Report, 4));
        assert_eq!(owes(&numbered, PartTimes { is_drained: true, ..times }, 1000), (Awaited::End, 9));
    }

    #[test]
    fn a_long_wait_is_told_once_with_all_whom_it_is_for() {
        let wait = |place, since| Wait { place, awaited: Awaited::End, since, limit_ns: 10 * SECOND_NS };
        let waits = [wait(0, 0), wait(2, SECOND_NS)];
        let mut told = AnnouncedWaits::default();
        let name = |place: usize| format!("a{place}");
        assert_eq!(told.news(&waits, 4 * SECOND_NS, name), []);
        let both = told.news(&waits, 6 * SECOND_NS, name);
        let agents = vec!["a0".to_owned(), "a2".to_owned()];
        assert_eq!(both, [Waiting { awaited: Awaited::End, agents, left: Duration::from_secs(5) }]);
        assert_eq!(told.news(&waits, 7 * SECOND_NS, name), []);
        // One that has come, and is late again, is told again.
        assert_eq!(told.news(&waits[..1], 8 * SECOND_NS, name), []);
        assert_eq!(told.news(&waits, 9 * SECOND_NS, name).len(), 1);
        assert!(!waits[0].is_missed(9 * SECOND_NS) && waits[0].is_missed(10 * SECOND_NS));
    }
}
