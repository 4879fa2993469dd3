//! When this worker's calls are due, and which number each has.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use brunt_plan::schedule::Schedule;
use brunt_plan::share::Portion;

/// A counter that the workers of a machine share.
#[derive(Debug)]
struct Counter {
    next: AtomicU64,
    limit: u64,
    block: u64,
}

impl Counter {
    fn lease(&self) -> Range<u64> {
        let from = self.next.fetch_add(self.block, Ordering::Relaxed).min(self.limit);
        from..from.saturating_add(self.block).min(self.limit)
    }
}

/// A worker's numbers for calls, or iterations, taken in blocks from those that the workers of its machine share.
///
/// In a run on several machines, each has the numbers of its [`Portion`] without asking the others: so no worker ever
/// waits for the network, and the machines together take every number once.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    counter: Arc<Counter>,
    portion: Portion,
    /// The run's connections that numbers are dealt to, or its workers.
    dealt_to: u64,
    block: Range<u64>,
}

impl Quota {
    /// The portion's numbers from 0 up to `limit`, for its workers, which all clone this.
    pub(crate) fn new(limit: Option<u64>, portion: Portion) -> Self {
        Self::by_connection(limit, portion, portion.all_workers())
    }

    /// The same, dealt to this many connections of the run, so that each makes as many calls as the others, however few
    /// a machine has.
    pub(crate) fn by_connection(limit: Option<u64>, portion: Portion, connections: u32) -> Self {
        let dealt_to = u64::from(connections);
        let limit = limit.map_or(u64::MAX, |limit| portion.part_by_connection(limit, dealt_to));
        // Small enough that no worker holds the last numbers while others have none.
        let block = (limit / (u64::from(portion.all_workers()) * 16)).clamp(1, 64);
        let counter = Arc::new(Counter { next: AtomicU64::new(0), limit, block });
        Self { counter, portion, dealt_to, block: 0..0 }
    }

    /// The next number; `None` when they are used up.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.block.is_empty() {
            self.block = self.counter.lease();
        }
        self.portion.number_by_connection(self.block.next()?, self.dealt_to)
    }

    /// Whether no number is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.block.is_empty() && self.counter.next.load(Ordering::Relaxed) >= self.counter.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_given_out_once_whoever_takes_it() {
        for limit in [1, 7, 1000, 4097] {
            for machines in [vec![Portion::whole(3)], (0..4).map(|m| Portion::new(m * 3, 3, 12).unwrap()).collect()] {
                let mut taken: Vec<u64> = Vec::new();
                for portion in machines {
                    let quota = Quota::by_connection(Some(limit), portion, portion.all_workers() + 2);
                    let mut workers = [quota.clone(), quota.clone(), quota];
                    let mut turn = 0;
                    while workers.iter_mut().any(|worker| worker.take().map(|n| taken.push(n)).is_some()) {
                        // An uneven draw: the second worker is faster.
                        turn += 1;
                        for _ in 0..turn % 5 {
                            taken.extend(workers[1].take());
                        }
                    }
                    assert!(workers.iter().all(Quota::is_used_up));
                }
                taken.sort_unstable();
                assert!(taken.iter().copied().eq(0..limit), "{limit}: {} taken", taken.len());
            }
        }
    }
}
