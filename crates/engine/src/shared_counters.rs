//! Counts over the workers of all machines of a run, each of which adds on its own machine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// This machine's count, and that of all others as far as it was heard of.
#[derive(Debug, Default)]
pub struct SharedCounter {
    here: AtomicU64,
    elsewhere: AtomicU64,
}

impl SharedCounter {
    /// Adds one on this machine. Returns the count over all machines before that.
    pub(crate) fn add_one(&self) -> u64 {
        self.here.fetch_add(1, Ordering::AcqRel) + self.elsewhere.load(Ordering::Acquire)
    }

    /// The count over all machines.
    pub(crate) fn total(&self) -> u64 {
        self.here.load(Ordering::Acquire) + self.elsewhere.load(Ordering::Acquire)
    }
}

/// A run's counts by name. Code that carries out a run on several machines reads this machine's counts and sets the
/// others'; on a single machine nobody does.
///
/// All parts of a run on one machine share them: its own part, and parts that it took over.
#[derive(Debug, Clone, Default)]
pub struct SharedCounters(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    named: Mutex<BTreeMap<String, Arc<SharedCounter>>>,
    /// Users alive on this machine.
    users: AtomicU64,
}

impl SharedCounters {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SharedCounter>>> {
        self.0.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user comes; gives how many are alive then, on all workers of this machine.
    pub(crate) fn came(&self) -> u64 {
        self.0.users.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A user has gone.
    pub(crate) fn went(&self) {
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// The count of this name.
    pub(crate) fn named(&self, name: &str) -> Arc<SharedCounter> {
        let mut all = self.lock();
        if let Some(known) = all.get(name) {
            return Arc::clone(known);
        }
        Arc::clone(all.entry(name.to_owned()).or_default())
    }

    /// This machine's counts, except those that are 0.
    pub fn here(&self) -> BTreeMap<String, u64> {
        let all = self.lock();
        let counted = all.iter().map(|(name, tally)| (name.clone(), tally.here.load(Ordering::Acquire)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Takes over the counts of all other machines.
    pub fn set_elsewhere(&self, counts: &BTreeMap<String, u64>) {
        for (name, count) in counts {
            self.named(name).elsewhere.store(*count, Ordering::Release);
        }
    }
}
