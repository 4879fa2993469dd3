//! The flights that may be joined, by key, and their common limits.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;
use http::HeaderName;
use tokio::time::Instant;

use super::{Answering, Flight, HeldBytes, Join, Limits, Member};
use crate::answer::{Judge, Sharing};
use crate::counters::{Event, SoloCounters, Tally};
use crate::fields::is_always_in_the_key;
use crate::key::Key;
use crate::sync::{Hasher, Mutex, SHARDS};

/// The flights that may be joined, by key, and their common limits.
pub(crate) struct Table<F: Answering> {
    pub(crate) limits: Limits,
    pub(crate) judge: Judge,
    pub(crate) tally: Tally,
    pub(crate) held: Arc<HeldBytes>,
    hasher: Hasher,
    shards: Vec<Mutex<Shard<F>>>,
    /// The counters of each shard, under its lock.
    lone: Arc<[SoloCounters]>,
    /// Complete answers that are held, with the end of that time, in order.
    resting: Mutex<VecDeque<(Instant, Arc<Flight<F>>)>>,
    /// The number of all lessons.
    learnt: AtomicUsize,
}

/// The most lessons in a part of the table: 16,384 in all.
const LESSONS: usize = 16 * 1024 / SHARDS;

/// The longest key of a lesson, in bytes. So all lessons together take 64 MiB at most.
const LONGEST_LESSON: usize = 4 * 1024;

/// How long a lesson lasts that no answer confirms.
const LESSON_LASTS: Duration = Duration::from_secs(5);

/// What the last answer to a request taught about the next answers to its like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// They are for their clients alone, so that waiting for one is in vain.
    Alone,
    /// They vary by these headers, which the key lacks.
    Varies(Arc<[HeaderName]>),
}

impl Lesson {
    /// The lesson of a shared answer that varies by these headers.
    pub(crate) fn of(vary: &[HeaderName]) -> Option<Self> {
        let lacking = vary.iter().filter(|name| !is_always_in_the_key(name));
        let lacking: Arc<[_]> = if vary.is_empty() { return None } else { lacking.cloned().collect() };
        (!lacking.is_empty()).then_some(Self::Varies(lacking))
    }
}

struct LessonEntry {
    hash: u64,
    key: Box<[u8]>,
    lesson: Lesson,
    until: Instant,
}

struct Shard<F: Answering> {
    flights: HashTable<Arc<Flight<F>>>,
    /// Calls in their first poll. They are few and short.
    claims: Vec<(Claim, Claimed<F>)>,
    lessons: HashTable<LessonEntry>,
}

/// A call in its first poll. If it is answered at once, it never becomes a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    place: u64,
    number: u64,
}

/// What is known of a call in its first poll.
enum Claimed<F: Answering> {
    /// No other request waits for it.
    Alone(Key),
    /// It became a flight, as another does.
    InFlight(Arc<Flight<F>>),
}

/// The result of looking for a flight.
pub(crate) enum Lookup<F: Answering> {
    /// No call with this key is under way. The request calls the service, is counted, and must
    /// [release](Table::release) the claim or [lead](Table::lead) afterwards.
    NewClaim(Claim),
    /// The request waits with others.
    Joined(Member<F>, Key),
    /// The last answer to a request like this was for its client alone.
    Alone(Key),
    /// As many wait as may, or too much is held for others.
    Full,
}

impl<F: Answering> Table<F> {
    pub(crate) fn new(limits: Limits, judge: Judge, tally: Tally, held: Arc<HeldBytes>) -> Self {
        let shard = || Shard { flights: HashTable::new(), claims: Vec::new(), lessons: HashTable::new() };
        let shards = (0..SHARDS).map(|_| Mutex::new(shard())).collect();
        let (hasher, lone, resting) = (Hasher::default(), tally.lone(SHARDS), Mutex::new(VecDeque::new()));
        Self { limits, judge, tally, held, hasher, shards, lone, resting, learnt: AtomicUsize::new(0) }
    }

    /// The shard for a hash, with its counters.
    #[inline]
    fn shard(&self, hash: u64) -> Option<(&Mutex<Shard<F>>, &SoloCounters)> {
        // The low bits choose the place within a shard, and the highest seven the tag.
        let at = (hash >> 32) as usize % SHARDS;
        self.shards.get(at).zip(self.lone.get(at))
    }

    /// Joins the flight with this key, or claims it.
    ///
    /// Keys are compared in full: different keys may have the same hash.
    #[inline]
    pub(crate) fn join_or_claim(self: &Arc<Self>, mut key: Key) -> Lookup<F> {
        if !self.limits.hold.is_zero() {
            self.drop_rested();
        }
        if self.held.bytes() > self.limits.fair_bytes() {
            return Lookup::Full;
        }
        if self.learnt.load(Ordering::Relaxed) > 0 {
            key = match self.apply_lesson(key) {
                Ok(key) => key,
                Err(lookup) => return lookup,
            };
        }
        let Some((shard, lone)) = self.shard(key.place()) else { return Lookup::Full };
        // Dropped after the lock is released, with what it holds.
        let _ended;
        let mut guard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *guard;
        if let Some(entry) = shard.find(&mut key, &self.hasher) {
            match entry.get().join(&self.limits, key.max_age()) {
                Join::Joined { place, is_late } => {
                    let charge = HeldBytes::charge(&self.held, key.weight());
                    let member = Member::new(Arc::clone(entry.get()), Arc::clone(self), (place, is_late), charge);
                    return Lookup::Joined(member, key);
                }
                Join::Full => return Lookup::Full,
                // The flight has ended, and is about to be removed.
                Join::Closed => _ended = entry.remove().0,
            }
        } else if let Some((claim, claimed)) = shard.take_claim_by_key(&key) {
            let flight = shard.start_flight(claimed, &self.held, &self.hasher);
            shard.claims.push((claim, Claimed::InFlight(Arc::clone(&flight))));
            return match flight.join(&self.limits, key.max_age()) {
                Join::Joined { place, is_late } => {
                    let charge = HeldBytes::charge(&self.held, key.weight());
                    Lookup::Joined(Member::new(flight, Arc::clone(self), (place, is_late), charge), key)
                }
                Join::Full | Join::Closed => Lookup::Full,
            };
        }
        let claim = Claim { place: key.place(), number: lone.comes() };
        shard.claims.push((claim, Claimed::Alone(key)));
        Lookup::NewClaim(claim)
    }

    /// The key by which a flight is looked for after what earlier answers taught; or what is to be done without one.
    #[cold]
    fn apply_lesson(&self, key: Key) -> Result<Key, Lookup<F>> {
        match self.lesson(key.bytes()) {
            None => Ok(key),
            Some(Lesson::Alone) => Err(Lookup::Alone(key)),
            Some(Lesson::Varies(names)) => {
                let key = key.split_by(&names).ok_or(Lookup::Full)?;
                if self.lesson(key.bytes()).is_some() { Err(Lookup::Alone(key)) } else { Ok(key) }
            }
        }
    }

    /// Releases a claim and counts its outcome, if no other request waits; returns the key if that was so.
    #[inline]
    pub(crate) fn release(&self, claim: Claim, ended: Event) -> Option<Key> {
        let (shard, lone) = self.shard(claim.place)?;
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let key = shard.take_alone(claim)?;
        lone.count(ended);
        drop(shard);
        self.tally.observe(ended);
        Some(key)
    }

    /// Remembers what an answer to a request with this key taught, or forgets what it refutes.
    #[inline]
    pub(crate) fn learn(&self, key: &Key, lesson: Option<Lesson>) {
        match lesson {
            Some(lesson) => self.remember(key, lesson),
            None if self.learnt.load(Ordering::Relaxed) > 0 => self.forget(key.bytes()),
            None => {}
        }
    }

    /// Learns from the answer to a request that went alone.
    pub(crate) fn taught(&self, key: &Key, response: &http::Response<F::Body>) {
        use http_body::Body as _;
        self.learn_by(key, &self.judge.sharing(response, response.body().size_hint().lower()));
    }

    /// Learns with whom an answer may be shared.
    #[inline]
    pub(crate) fn learn_by(&self, key: &Key, sharing: &Sharing) {
        match sharing {
            Sharing::Freely => self.learn(key, None),
            Sharing::With(vary) => self.learn(key, Lesson::of(vary)),
            Sharing::No | Sharing::NotThis => self.learn(key, Some(Lesson::Alone)),
            Sharing::Failure | Sharing::All => {}
        }
    }

    #[cold]
    fn remember(&self, key: &Key, lesson: Lesson) {
        // By which headers an answer varies is a lesson for all values of them.
        let bytes = if lesson == Lesson::Alone { key.bytes() } else { key.unsplit() };
        if bytes.len() > LONGEST_LESSON {
            return;
        }
        if lesson != Lesson::Alone {
            self.forget(key.bytes());
        }
        let hash = self.hasher.hash_one(bytes);
        let now = Instant::now();
        let Some((shard, _)) = self.shard(hash) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let lessons = &mut shard.lessons;
        if let Some(known) = lessons.find_mut(hash, |known| *known.key == *bytes) {
            (known.lesson, known.until) = (lesson, now + LESSON_LASTS);
            return;
        }
        if lessons.len() >= LESSONS {
            let before = lessons.len();
            lessons.retain(|known| known.until > now);
            self.learnt.fetch_sub(before - lessons.len(), Ordering::Relaxed);
        }
        if lessons.len() < LESSONS {
            let learnt = LessonEntry { hash, key: bytes.into(), lesson, until: now + LESSON_LASTS };
            lessons.insert_unique(hash, learnt, |known| known.hash);
            self.learnt.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    fn forget(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let Some((shard, _)) = self.shard(hash) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(known) = shard.lessons.find_entry(hash, |known| *known.key == *key) {
            drop(known.remove());
            self.learnt.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What is known of requests with this key.
    fn lesson(&self, key: &[u8]) -> Option<Lesson> {
        let hash = self.hasher.hash_one(key);
        let (shard, _) = self.shard(hash)?;
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard.lessons.find_entry(hash, |known| *known.key == *key).ok()?;
        if known.get().until > Instant::now() {
            return Some(known.get().lesson.clone());
        }
        drop(known.remove());
        self.learnt.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Turns a claim into a flight, if it is not one yet. The caller has to put the call into it.
    pub(crate) fn lead(self: &Arc<Self>, claim: Claim) -> Option<Member<F>> {
        let mut guard = self.shard(claim.place)?.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *guard;
        let flight = match shard.take(claim)? {
            Claimed::Alone(key) => shard.start_flight(key, &self.held, &self.hasher),
            Claimed::InFlight(flight) => flight,
        };
        drop(guard);
        Some(Member::first(flight, Arc::clone(self)))
    }

    /// Removes a flight, unless another with its key has taken its place.
    pub(crate) fn remove(&self, flight: &Arc<Flight<F>>) {
        let Some((shard, _)) = self.shard(flight.key.place()) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shard.flights.find_entry(flight.key.hash(), |other| Arc::ptr_eq(other, flight));
        let removed = found.ok().map(|entry| entry.remove().0);
        // Unlocked first: dropping the flight may drop other things with it.
        drop(shard);
        drop(removed);
    }

    /// Leaves a whole answer in place until then.
    pub(crate) fn rest(&self, flight: &Arc<Flight<F>>, until: Instant) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.push_back((until, Arc::clone(flight)));
    }

    /// Takes out answers that have been held for long enough, and more if too much is held.
    pub(crate) fn drop_rested(&self) {
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

    /// The number of flights in the table (those about to be removed included) and of claims.
    #[cfg(test)]
    #[allow(dead_code, reason = "the model in tests/loom.rs, of which this file is a part, looks at it")]
    pub(crate) fn len(&self) -> usize {
        let len = |shard: &Mutex<Shard<F>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let alone = shard.claims.iter().filter(|(_, claimed)| matches!(claimed, Claimed::Alone(_)));
            shard.flights.len() + alone.count()
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
    /// Where a claim is among the others. It is most often the last, and the only one.
    #[inline]
    fn find_claim(&self, claim: Claim) -> Option<usize> {
        self.claims.iter().rposition(|(other, _)| *other == claim)
    }

    fn take(&mut self, claim: Claim) -> Option<Claimed<F>> {
        self.find_claim(claim).map(|at| self.claims.swap_remove(at).1)
    }

    /// Takes the key of a claim that no other request waits for.
    #[inline]
    fn take_alone(&mut self, claim: Claim) -> Option<Key> {
        let at = self.find_claim(claim)?;
        if matches!(self.claims.get(at)?.1, Claimed::InFlight(_)) {
            return None;
        }
        match self.claims.swap_remove(at).1 {
            Claimed::Alone(key) => Some(key),
            Claimed::InFlight(_) => None,
        }
    }

    /// Takes the claim of the call with this key.
    fn take_claim_by_key(&mut self, key: &Key) -> Option<(Claim, Key)> {
        let is_it = |claimed: &Claimed<F>| matches!(claimed, Claimed::Alone(claimed) if claimed == key);
        let at = self.claims.iter().position(|(claim, claimed)| claim.place == key.place() && is_it(claimed))?;
        match self.claims.swap_remove(at) {
            (claim, Claimed::Alone(key)) => Some((claim, key)),
            in_flight => {
                self.claims.push(in_flight);
                None
            }
        }
    }

    /// The flight with this key. A key is hashed only where there is a flight to be found.
    #[inline]
    fn find(&mut self, key: &mut Key, hasher: &Hasher) -> Option<OccupiedEntry<'_, Arc<Flight<F>>>> {
        if self.flights.is_empty() {
            return None;
        }
        let hash = key.hash_by(hasher);
        self.flights.find_entry(hash, |flight| flight.key == *key).ok()
    }

    /// Makes a flight of a claim's key.
    fn start_flight(&mut self, mut key: Key, held: &Arc<HeldBytes>, hasher: &Hasher) -> Arc<Flight<F>> {
        let hash = key.hash_by(hasher);
        let flight = Arc::new(Flight::new(key, held));
        self.flights.insert_unique(hash, Arc::clone(&flight), |flight| flight.key.hash());
        flight
    }
}
