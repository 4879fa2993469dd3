//! The flights that may be joined, by key, and what they are all held to.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::{Arc, PoisonError};

use hashbrown::HashTable;
use tokio::time::Instant;

use super::{Answering, Flight, Held, Join, Limits, Member};
use crate::answer::Judge;
use crate::counters::{Event, SoloCounters, Tally};
use crate::key::Key;
use crate::sync::{Hasher, Mutex, SHARDS};
use crate::writes::Epochs;

/// The flights that may be joined, by key, and what they are all held to.
pub(crate) struct Table<F: Answering> {
    pub(crate) limits: Limits,
    pub(crate) judge: Judge,
    pub(crate) tally: Tally,
    pub(crate) held: Arc<Held>,
    pub(crate) epochs: Arc<Epochs>,
    hasher: Hasher,
    shards: Vec<Mutex<Shard<F>>>,
    /// Counts for each shard, under its lock.
    lone: Arc<[SoloCounters]>,
    /// Whole answers that are held for a while, with the time when that is over, in order.
    resting: Mutex<VecDeque<(Instant, Arc<Flight<F>>)>>,
}

struct Shard<F: Answering> {
    flights: HashTable<Arc<Flight<F>>>,
    /// Calls that are being polled for the first time, and have nobody who waits for them: few, and gone in no time.
    claims: Vec<(Claim, Key)>,
}

/// A call that is being polled for the first time. Should it be answered at once, it never becomes a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    hash: u64,
    number: u64,
}

/// What became of a request that looked for a flight.
pub(crate) enum Boarding<F: Answering> {
    /// There was none: it calls the service, is counted, and must [release](Table::release) this or [lead](Table::lead) when
    /// it has.
    Claims(Claim),
    /// It waits with others.
    Follows(Member<F>, Key),
    /// As many wait as may, or too much is held for others.
    Full,
}

impl<F: Answering> Table<F> {
    pub(crate) fn new(limits: Limits, judge: Judge, tally: Tally, held: Arc<Held>) -> Self {
        let shard = || Shard { flights: HashTable::new(), claims: Vec::new() };
        let shards = (0..SHARDS).map(|_| Mutex::new(shard())).collect();
        let (hasher, lone, resting) = (Hasher::default(), tally.lone(SHARDS), Mutex::new(VecDeque::new()));
        let epochs = Arc::new(Epochs::new());
        Self { limits, judge, tally, held, epochs, hasher, shards, lone, resting }
    }

    /// The shard for a hash, with its counts.
    fn shard(&self, hash: u64) -> Option<(&Mutex<Shard<F>>, &SoloCounters)> {
        // The low bits choose the place within a shard, and the highest seven the tag.
        let at = (hash >> 32) as usize % SHARDS;
        self.shards.get(at).zip(self.lone.get(at))
    }

    /// Joins the flight with this key, or claims to be the one who calls.
    ///
    /// Keys are compared whole: two that have the same hash are still two.
    pub(crate) fn board(self: &Arc<Self>, mut key: Key) -> Boarding<F> {
        if !self.limits.hold.is_zero() {
            self.let_go();
        }
        if self.held.bytes() > self.limits.fair_bytes() {
            return Boarding::Full;
        }
        let hash = self.hasher.hash_one(key.bytes());
        key.hash = hash;
        let Some((shard, lone)) = self.shard(hash) else { return Boarding::Full };
        // Dropped after the lock is released, with what it holds.
        let _ended;
        let mut guard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *guard;
        if !shard.flights.is_empty()
            && let Ok(entry) = shard.flights.find_entry(hash, |flight| flight.key == key)
        {
            match entry.get().join(&self.limits) {
                Join::Joined(place) => {
                    let charge = Held::charge(&self.held, key.weight());
                    let member = Member::new(Arc::clone(entry.get()), Arc::clone(self), place, charge);
                    return Boarding::Follows(member, key);
                }
                Join::Full => return Boarding::Full,
                // It is about to be taken out by whoever ended it.
                Join::Closed => _ended = entry.remove().0,
            }
        } else if let Some(at) = shard.claims.iter().position(|(_, claimed)| claimed.hash == hash && *claimed == key) {
            let (claim, claimed) = shard.claims.swap_remove(at);
            let flight = shard.depart(claim, claimed, &self.held);
            return match flight.join(&self.limits) {
                Join::Joined(place) => {
                    let charge = Held::charge(&self.held, key.weight());
                    Boarding::Follows(Member::new(flight, Arc::clone(self), place, charge), key)
                }
                Join::Full | Join::Closed => Boarding::Full,
            };
        }
        let claim = Claim { hash, number: lone.comes() };
        shard.claims.push((claim, key));
        Boarding::Claims(claim)
    }

    /// Gives up a claim that nobody else waits for, and counts how it ended; whether that is so.
    #[inline]
    pub(crate) fn release(&self, claim: Claim, ended: Event) -> bool {
        let Some((shard, lone)) = self.shard(claim.hash) else { return false };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = shard.take(claim) else { return false };
        lone.count(ended);
        drop(shard);
        self.tally.observe(ended);
        key.recycle();
        true
    }

    /// The flight that a claim has become, or becomes now. The call is yet to be put into it.
    pub(crate) fn lead(self: &Arc<Self>, claim: Claim) -> Option<Member<F>> {
        let mut guard = self.shard(claim.hash)?.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *guard;
        let flight = match shard.take(claim) {
            Some(key) => shard.depart(claim, key, &self.held),
            None => Arc::clone(shard.flights.find(claim.hash, |flight| flight.number == claim.number)?),
        };
        drop(guard);
        Some(Member::first(flight, Arc::clone(self)))
    }

    /// Takes a flight out, if another with its key has not taken its place.
    pub(crate) fn remove(&self, flight: &Arc<Flight<F>>) {
        let Some((shard, _)) = self.shard(flight.key.hash) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shard.flights.find_entry(flight.key.hash, |other| Arc::ptr_eq(other, flight));
        let removed = found.ok().map(|entry| entry.remove().0);
        // Unlocked first: what it holds may be dropped with it.
        drop(shard);
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
            let too_much = self.held.bytes() > self.limits.fair_bytes();
            let Some((until, flight)) = resting.pop_front() else { return };
            if until > now && !too_much {
                resting.push_front((until, flight));
                return;
            }
            drop(resting);
            self.remove(&flight);
        }
    }

    /// How many flights may be joined, or are about to be taken out, and how many calls may become one.
    #[cfg(test)]
    #[allow(dead_code, reason = "the model in tests/loom.rs, of which this file is a part, looks at it")]
    pub(crate) fn len(&self) -> usize {
        let len = |shard: &Mutex<Shard<F>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.flights.len() + shard.claims.len()
        };
        self.shards.iter().map(len).sum()
    }
}

impl<F: Answering> Drop for Table<F> {
    fn drop(&mut self) {
        self.tally.retire(&self.lone);
    }
}

impl<F: Answering> Shard<F> {
    /// The key of a claim that nobody waits for.
    #[inline]
    fn take(&mut self, claim: Claim) -> Option<Key> {
        // Most often it is the only one.
        if let Some((_, key)) = self.claims.pop_if(|(last, _)| *last == claim) {
            return Some(key);
        }
        let at = self.claims.iter().position(|(other, _)| *other == claim)?;
        Some(self.claims.swap_remove(at).1)
    }

    /// Makes a flight of a claim.
    fn depart(&mut self, claim: Claim, key: Key, held: &Arc<Held>) -> Arc<Flight<F>> {
        let flight = Arc::new(Flight::new(key, claim.number, held));
        self.flights.insert_unique(claim.hash, Arc::clone(&flight), |flight| flight.key.hash);
        flight
    }
}
