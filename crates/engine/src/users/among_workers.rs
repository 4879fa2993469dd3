//! What the users of all workers of a run have in common.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brunt_model::scenario::{Scenarios, Step};

use crate::pace::Quota;

/// What the workers' shares of the populations have in common.
#[derive(Debug, Clone)]
pub(crate) struct AmongWorkers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workers: u32,
    /// The iterations that the users of a population share, if they do.
    quotas: Vec<Option<Quota>>,
    /// On how many workers a population is over.
    over: Vec<AtomicU32>,
    /// Users alive.
    alive: AtomicU64,
    /// Who comes to meetings, by their names and how many meet.
    meetings: Mutex<HashMap<(String, u64), Arc<AtomicU64>>>,
}

impl AmongWorkers {
    /// For the populations of a plan that so many workers carry out.
    pub(crate) fn new(scenarios: &Scenarios, workers: u32) -> Self {
        let quota = |step: Option<&Step>| match step {
            Some(Step::IterationsShared { iterations, .. }) => Some(Quota::new(Some(*iterations as u64), workers)),
            _ => None,
        };
        let quotas = scenarios.populations.iter().map(|one| quota(one.steps.first())).collect();
        let over = scenarios.populations.iter().map(|_| AtomicU32::new(0)).collect();
        Self(Arc::new(Inner { workers, quotas, over, alive: AtomicU64::new(0), meetings: Mutex::default() }))
    }

    /// For one user alone.
    pub(super) fn of_one() -> Self {
        Self(Arc::new(Inner {
            workers: 1,
            quotas: vec![None],
            over: vec![AtomicU32::new(0)],
            alive: AtomicU64::new(0),
            meetings: Mutex::default(),
        }))
    }

    /// How many have come, all workers together, to the meeting of this name where so many users meet.
    pub(super) fn meeting(&self, name: &str, users: u64) -> Arc<AtomicU64> {
        let mut meetings = self.0.meetings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(meetings.entry((name.to_owned(), users)).or_default())
    }

    /// The iterations that the users of a population share, if they do.
    pub(super) fn quota(&self, population: usize) -> Option<Quota> {
        self.0.quotas.get(population).cloned().flatten()
    }

    /// A population is over on one more worker.
    pub(super) fn ended(&self, population: usize) {
        if let Some(over) = self.0.over.get(population) {
            over.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether a population is over on all workers.
    pub(super) fn is_over(&self, population: usize) -> bool {
        self.0.over.get(population).is_none_or(|over| over.load(Ordering::Acquire) >= self.0.workers)
    }

    /// A user comes; gives how many are alive then, on all workers.
    pub(super) fn came(&self) -> u64 {
        self.0.alive.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A user has gone.
    pub(super) fn went(&self) {
        self.0.alive.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_population_is_over_when_it_is_on_every_worker() {
        let among = AmongWorkers(Arc::new(Inner {
            workers: 2,
            quotas: vec![None],
            over: vec![AtomicU32::new(0)],
            alive: AtomicU64::new(0),
            meetings: Mutex::default(),
        }));
        let other = among.clone();
        among.ended(0);
        assert!(!among.is_over(0) && !other.is_over(0));
        other.ended(0);
        assert!(among.is_over(0) && other.is_over(0));
        assert_eq!([among.came(), other.came()], [1, 2]);
        among.went();
        assert_eq!(other.came(), 2);
    }
}
