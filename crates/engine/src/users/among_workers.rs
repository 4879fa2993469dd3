//! State that the users of all workers of a run share.

use std::sync::Arc;

use brunt_plan::scenario::{Scenarios, Step};
use brunt_plan::share::Portion;

use crate::pace::Quota;
use crate::shared_counters::{SharedCounter, SharedCounters};

/// The name of the counter that counts the workers on which the population at this place has ended.
pub fn over_on(place: usize) -> String {
    format!("population {place} is over")
}

/// State that the workers' shares of the populations have in common.
#[derive(Debug, Clone)]
pub(crate) struct AmongWorkers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The number of workers of the run, on all machines.
    workers: u64,
    /// The iterations that the users of a population share, where they share them.
    quotas: Vec<Option<Quota>>,
    /// For each population, the number of workers on which it has ended.
    over: Vec<Arc<SharedCounter>>,
    /// Counts of all workers, such as users alive and users at a meeting.
    counters: SharedCounters,
}

impl AmongWorkers {
    /// For the populations of a plan that this portion's workers carry out. `counters` holds the counts of all machines.
    pub(crate) fn new(scenarios: &Scenarios, portion: Portion, counters: &SharedCounters) -> Self {
        let quota = |step: Option<&Step>| match step {
            Some(Step::IterationsShared { iterations, .. }) => Some(Quota::new(Some(*iterations as u64), portion)),
            _ => None,
        };
        let quotas = scenarios.populations.iter().map(|one| quota(one.steps.first())).collect();
        let over = (0..scenarios.populations.len()).map(|place| counters.named(&over_on(place))).collect();
        let workers = u64::from(portion.all_workers());
        Self(Arc::new(Inner { workers, quotas, over, counters: counters.clone() }))
    }

    /// For a single user.
    pub(super) fn of_one() -> Self {
        let (over, counters) = (vec![Arc::default()], SharedCounters::default());
        Self(Arc::new(Inner { workers: 1, quotas: vec![None], over, counters }))
    }

    /// Counts the users who have arrived at the meeting `name` of `users`, over all workers of all machines.
    pub(super) fn meeting(&self, name: &str, users: u64) -> Arc<SharedCounter> {
        self.0.counters.named(&format!("meeting of {users}: {name}"))
    }

    /// The iterations that the users of a population share, where they share them.
    pub(super) fn quota(&self, population: usize) -> Option<Quota> {
        self.0.quotas.get(population).cloned().flatten()
    }

    /// Records that a population has ended on one more worker.
    pub(super) fn ended(&self, population: usize) {
        if let Some(over) = self.0.over.get(population) {
            over.add_one();
        }
    }

    /// Whether a population has ended on all workers.
    pub(super) fn is_over(&self, population: usize) -> bool {
        self.0.over.get(population).is_none_or(|over| over.total() >= self.0.workers)
    }

    /// Counts a new user. Returns the number of users then alive on all workers of this machine.
    pub(super) fn came(&self) -> u64 {
        self.0.counters.came()
    }

    /// Counts a user as gone.
    pub(super) fn went(&self) {
        self.0.counters.went();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_populations() -> Scenarios {
        let population = serde_json::json!({"scenarios": [], "steps": []});
        serde_json::from_value(serde_json::json!({"files": [], "populations": [population, population]})).unwrap()
    }

    #[test]
    fn a_population_is_over_when_it_is_on_every_worker_of_every_machine() {
        let scenarios = two_populations();
        let counters = SharedCounters::default();
        let here = AmongWorkers::new(&scenarios, Portion::new(0, 2, 3).unwrap(), &counters);
        let other = here.clone();
        here.ended(0);
        other.ended(0);
        assert!(!here.is_over(0));
        assert_eq!(counters.here(), [(over_on(0), 2)].into());
        counters.set_elsewhere(&[(over_on(0), 1)].into());
        assert!(here.is_over(0) && other.is_over(0) && !here.is_over(1));
        assert_eq!([here.came(), other.came()], [1, 2]);
        here.went();
        assert_eq!(other.came(), 2);
    }

    #[test]
    fn who_comes_to_a_meeting_elsewhere_has_come() {
        let counters = SharedCounters::default();
        let among = AmongWorkers::new(&two_populations(), Portion::whole(1), &counters);
        let meeting = among.meeting("lunch", 5);
        assert_eq!((meeting.add_one(), meeting.total()), (0, 1));
        let name = counters.here().into_keys().next().unwrap();
        counters.set_elsewhere(&[(name, 3)].into());
        assert_eq!((meeting.add_one(), among.meeting("lunch", 5).total()), (4, 5));
        assert_eq!(among.meeting("lunch", 6).total(), 0);
    }
}
