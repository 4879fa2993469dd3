//! Single answers of a run, token by token: those with the latest first tokens, and some by chance.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brunt_plan::random::mix;
use brunt_record::call_timeline::CallTimeline;

/// How many there are of each kind.
const EACH: usize = 4;

/// The answers of a run that are shown one by one. Workers share them.
pub type SharedTimelines = Arc<Mutex<Timelines>>;

/// What is there now: a worker that panicked has written whole entries, too.
pub fn lock(shared: &SharedTimelines) -> MutexGuard<'_, Timelines> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answers chosen so far, each with what chose it: the more the better.
#[derive(Debug, Clone, Default)]
pub struct Timelines {
    slowest: Vec<(u64, CallTimeline)>,
    by_chance: Vec<(u64, CallTimeline)>,
    /// How many answers were looked at.
    seen: u64,
}

/// Puts a call among the best, and leaves out the worst where these are too many.
fn put(best: &mut Vec<(u64, CallTimeline)>, rank: u64, call: impl FnOnce() -> CallTimeline) {
    if ranks(best, rank) {
        let place = best.partition_point(|(other, _)| *other >= rank);
        best.insert(place, (rank, call()));
        best.truncate(EACH);
    }
}

/// Whether a call of this rank is among the best.
fn ranks(best: &[(u64, CallTimeline)], rank: u64) -> bool {
    best.len() < EACH || best.last().is_some_and(|(worst, _)| rank > *worst)
}

impl Timelines {
    /// Takes an answer into account: `call` makes its timeline, if it is chosen.
    pub fn consider(&mut self, first_ns: u64, seed: u64, call: impl Fn(&str) -> CallTimeline) {
        self.seen += 1;
        put(&mut self.slowest, first_ns, || call("slowest"));
        put(&mut self.by_chance, mix(seed ^ mix(self.seen)), || call("sample"));
    }

    /// Joins those of another worker with these.
    pub fn merge(&mut self, other: Self) {
        for (rank, call) in other.slowest {
            put(&mut self.slowest, rank, || call);
        }
        for (rank, call) in other.by_chance {
            put(&mut self.by_chance, rank, || call);
        }
    }

    /// All of them, the slowest first; one that was chosen twice is there once.
    pub fn all(&self) -> Vec<CallTimeline> {
        let mut all: Vec<CallTimeline> = self.slowest.iter().map(|(_, call)| call.clone()).collect();
        for (_, call) in &self.by_chance {
            let is_known = all.iter().any(|known| known.places == call.places && known.ended_ns == call.ended_ns);
            if !is_known {
                all.push(call.clone());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer whose first token came after so long.
    fn call(chosen: &str, first_ns: u64) -> CallTimeline {
        let (chosen, unit) = (chosen.to_owned(), "tokens".to_owned());
        CallTimeline { chosen, unit, sent_ns: 0, places: vec![(first_ns, 1)], ended_ns: first_ns }
    }

    #[test]
    fn the_slowest_and_some_by_chance_are_chosen_over_all_workers() {
        let mut all = Timelines::default();
        for worker in 0..3_u64 {
            let mut own = Timelines::default();
            for nth in 0..1000 {
                let first_ns = 1 + (nth * 3 + worker) * 7919 % 3000;
                own.consider(first_ns, worker, |chosen| call(chosen, first_ns));
            }
            all.merge(own);
        }
        let chosen = all.all();
        let first = |name: &str| {
            chosen.iter().filter(|call| call.chosen == name).map(|call| call.places[0].0).collect::<Vec<_>>()
        };
        assert_eq!(first("slowest"), [3000, 2999, 2998, 2997]);
        assert!((1..=4).contains(&first("sample").len()), "{chosen:?}");
        // An answer of both kinds is shown once.
        let mut few = Timelines::default();
        few.consider(5, 0, |chosen| call(chosen, 5));
        assert_eq!(few.all(), [call("slowest", 5)]);
    }
}
