//! When this worker's calls are due, and which number each has.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use brunt_model::schedule::Schedule;

/// What gives out numbers in blocks, each number once: calls of a run, or iterations that users share.
///
/// A worker asks between two calls, so a lease must not wait for anybody. A source whose numbers come from elsewhere asks
/// for its next block ahead of need, and gives an empty one while it has none.
pub(crate) trait Numbers: fmt::Debug + Send + Sync {
    /// The next block. Empty if none is at hand, be it late, refused or the last one gone: [`Numbers::are_used_up`] tells
    /// whether to ask again.
    fn lease(&self) -> Range<u64>;

    /// Whether no block will ever come again.
    fn are_used_up(&self) -> bool;
}

/// The numbers of one machine's run: a counter that its workers share.
#[derive(Debug)]
struct Counter {
    next: AtomicU64,
    limit: u64,
    block: u64,
}

impl Numbers for Counter {
    fn lease(&self) -> Range<u64> {
        let from = self.next.fetch_add(self.block, Ordering::Relaxed).min(self.limit);
        from..from.saturating_add(self.block).min(self.limit)
    }

    fn are_used_up(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.limit
    }
}

/// A worker's numbers for calls, taken in blocks from what all workers share.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    numbers: Arc<dyn Numbers>,
    block: Range<u64>,
}

impl Quota {
    /// Numbers from 0 up to `limit`, for `workers` workers that all clone this.
    pub(crate) fn new(limit: Option<u64>, workers: u32) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        // Small enough that no worker sits on the last numbers while others have none left.
        let block = (limit / (u64::from(workers.max(1)) * 16)).clamp(1, 64);
        Self::of(Arc::new(Counter { next: AtomicU64::new(0), limit, block }))
    }

    /// Numbers from this source.
    fn of(numbers: Arc<dyn Numbers>) -> Self {
        Self { numbers, block: 0..0 }
    }

    /// The next number, at once. None when they are used up, and also while the source has none at hand: unless
    /// [`Quota::is_used_up`], a later attempt may succeed.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.block.is_empty() {
            self.block = self.numbers.lease();
        }
        self.block.next()
    }

    /// Whether no number is left, nor will be.
    pub(crate) fn is_used_up(&self) -> bool {
        self.block.is_empty() && self.numbers.are_used_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_given_out_once_whoever_takes_it() {
        for limit in [1, 7, 1000, 4097] {
            let quota = Quota::new(Some(limit), 3);
            let mut workers = [quota.clone(), quota.clone(), quota];
            let mut taken: Vec<u64> = Vec::new();
            let mut turn = 0;
            while workers.iter_mut().any(|worker| worker.take().map(|n| taken.push(n)).is_some()) {
                // An uneven draw: the second worker is faster.
                turn += 1;
                for _ in 0..turn % 5 {
                    taken.extend(workers[1].take());
                }
            }
            taken.sort_unstable();
            assert!(taken.iter().copied().eq(0..limit), "{limit}: {} taken", taken.len());
        }
    }

    /// A source whose second block is late.
    #[derive(Debug, Default)]
    struct Late(AtomicU64);

    impl Numbers for Late {
        fn lease(&self) -> Range<u64> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => 0..2,
                2 => 2..3,
                _ => 0..0,
            }
        }

        fn are_used_up(&self) -> bool {
            self.0.load(Ordering::Relaxed) > 2
        }
    }

    #[test]
    fn a_late_block_is_asked_for_again() {
        let mut quota = Quota::of(Arc::new(Late::default()));
        assert_eq!([quota.take(), quota.take(), quota.take()], [Some(0), Some(1), None]);
        assert!(!quota.is_used_up());
        assert_eq!(quota.take(), Some(2));
        assert!(quota.is_used_up());
        assert_eq!(quota.take(), None);
    }
}
