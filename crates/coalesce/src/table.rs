//! The flights that may be joined, by key, and what they are all held to.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::{Arc, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tokio::time::Instant;

use crate::answer::Judge;
use crate::counters::Tally;
use crate::flight::{Answering, Flight, Held, Join, Limits, Member};
use crate::key::{Headers, Key};
use crate::sync::{Hasher, Mutex, SHARDS};

type Shard<F> = Mutex<HashTable<Arc<Flight<F>>>>;

/// The flights that may be joined, by key, and what they are all held to.
pub(crate) struct Table<F: Answering> {
    pub(crate) limits: Limits,
    pub(crate) judge: Judge,
    pub(crate) tally: Tally,
    pub(crate) held: Arc<Held>,
    hasher: Hasher,
    shards: Vec<Shard<F>>,
    /// Whole answers that are held for a while, with the time when that is over, in order.
    resting: Mutex<VecDeque<(Instant, Arc<Flight<F>>)>>,
}

/// What became of a call that looked for a flight.
pub(crate) enum Boarding<F: Answering, C> {
    /// There was none: it leads this one.
    Leads(Member<F>),
    /// It waits with others, and is not made for now.
    Follows(Member<F>, C),
    /// As many wait as may.
    Full(C),
}

impl<F: Answering> Table<F> {
    pub(crate) fn new(limits: Limits, judge: Judge, tally: Tally, held: Arc<Held>) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(HashTable::new())).collect();
        Self { limits, judge, tally, held, hasher: Hasher::default(), shards, resting: Mutex::new(VecDeque::new()) }
    }

    fn shard(&self, hash: u64) -> Option<&Shard<F>> {
        // The low bits choose the place within a shard.
        self.shards.get((hash >> 32) as usize % SHARDS)
    }

    /// Joins the flight with this key, or begins one with this call.
    ///
    /// Keys are compared whole: two that have the same hash are still two.
    pub(crate) fn board<C>(
        self: &Arc<Self>,
        key: Key,
        call: C,
        begin: impl FnOnce(C) -> (F, Headers),
    ) -> Boarding<F, C> {
        if !self.limits.hold.is_zero() {
            self.let_go();
        }
        let hash = self.hasher.hash_one(&key);
        let Some(shard) = self.shard(hash) else { return Boarding::Full(call) };
        let begin = |key, call| {
            let (future, asked) = begin(call);
            Arc::new(Flight::new(key, hash, future, asked))
        };
        // Dropped after the lock is released, with what it holds.
        let _replaced;
        let mut flights = shard.lock().unwrap_or_else(PoisonError::into_inner);
        match flights.entry(hash, |flight| flight.key == key, |flight| flight.hash) {
            Entry::Occupied(mut entry) => match entry.get().join(&self.limits) {
                Join::Joined(place) => {
                    Boarding::Follows(Member::new(Arc::clone(entry.get()), Arc::clone(self), place), call)
                }
                Join::Full => Boarding::Full(call),
                // It has ended, and is about to be taken out.
                Join::Closed => {
                    let flight = begin(key, call);
                    _replaced = std::mem::replace(entry.get_mut(), Arc::clone(&flight));
                    Boarding::Leads(Member::first(flight, Arc::clone(self)))
                }
            },
            Entry::Vacant(entry) => {
                let flight = begin(key, call);
                entry.insert(Arc::clone(&flight));
                Boarding::Leads(Member::first(flight, Arc::clone(self)))
            }
        }
    }

    /// Takes a flight out, if another with its key has not taken its place.
    pub(crate) fn remove(&self, flight: &Arc<Flight<F>>) {
        let Some(shard) = self.shard(flight.hash) else { return };
        let mut flights = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let removed =
            flights.find_entry(flight.hash, |other| Arc::ptr_eq(other, flight)).ok().map(|entry| entry.remove().0);
        // Unlocked first: what it holds may be dropped with it.
        drop(flights);
        drop(removed);
    }

    /// Leaves a whole answer in place until then.
    pub(crate) fn rest(&self, flight: &Arc<Flight<F>>, until: Instant) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.push_back((until, Arc::clone(flight)));
    }

    /// Takes out answers that have been held for long enough, and more if too much is held.
    pub(crate) fn let_go(&self) {
        let now = Instant::now();
        loop {
            let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
            let too_much = self.held.bytes() > self.limits.total_bytes / 2;
            let Some((until, flight)) = resting.pop_front() else { return };
            if until > now && !too_much {
                resting.push_front((until, flight));
                return;
            }
            drop(resting);
            self.remove(&flight);
        }
    }

    /// How many flights may be joined, or are about to be taken out.
    #[cfg(test)]
    #[allow(dead_code, reason = "the model in tests/loom.rs, of which this file is a part, looks at it")]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}
