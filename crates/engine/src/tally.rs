//! Counts that the workers of all machines of a run add to, each on its own machine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A count of this machine's, and of all others' together, as far as they were heard of.
#[derive(Debug, Default)]
pub struct Tally {
    here: AtomicU64,
    elsewhere: AtomicU64,
}

impl Tally {
    /// Adds one on this machine; the count over all machines before.
    pub(crate) fn add_one(&self) -> u64 {
        self.here.fetch_add(1, Ordering::AcqRel) + self.elsewhere.load(Ordering::Acquire)
    }

    /// The count over all machines.
    pub(crate) fn total(&self) -> u64 {
        self.here.load(Ordering::Acquire) + self.elsewhere.load(Ordering::Acquire)
    }
}

/// A run's counts by name. Whoever carries a run out on several machines takes this machine's from it and puts the others' in;
/// on a machine alone nobody does.
///
/// All parts of a run on one machine share them: what it had from the beginning, and what it took over.
#[derive(Debug, Clone, Default)]
pub struct Tallies(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    named: Mutex<BTreeMap<String, Arc<Tally>>>,
    /// Users alive on this machine.
    users: AtomicU64,
}

impl Tallies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Tally>>> {
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
    pub(crate) fn named(&self, name: &str) -> Arc<Tally> {
        let mut all = self.lock();
        if let Some(known) = all.get(name) {
            return Arc::clone(known);
        }
        Arc::clone(all.entry(name.to_owned()).or_default())
    }

    /// This machine's counts, but for those that are 0.
    pub fn here(&self) -> BTreeMap<String, u64> {
        let all = self.lock();
        let counted = all.iter().map(|(name, tally)| (name.clone(), tally.here.load(Ordering::Acquire)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Takes over what all other machines have counted.
    pub fn set_elsewhere(&self, counts: &BTreeMap<String, u64>) {
        for (name, count) in counts {
            self.named(name).elsewhere.store(*count, Ordering::Release);
        }
    }
}
