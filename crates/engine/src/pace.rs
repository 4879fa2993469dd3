//! When this worker's calls are due, and which number each has.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use brunt_plan::schedule::Schedule;
use brunt_plan::share::{DealtNumbers, Portion};

/// The most numbers that a worker takes at once.
const MOST_AT_ONCE: u64 = 64;

/// The numbers that the workers of a machine share. While a run goes on, its controller may take some back and add
/// others: a machine that is ahead makes the calls of one that is behind.
///
/// Workers take numbers in blocks, so that the lock is no part of a call. Blocks become smaller as numbers run out: no worker
/// holds the last ones while others have none.
#[derive(Debug, Clone, Default)]
pub struct Supply(Arc<Mutex<Stock>>);

#[derive(Debug, Default)]
struct Stock {
    /// What no worker has taken.
    pieces: VecDeque<DealtNumbers>,
    workers: u64,
    taken: u64,
    /// Whether some were given back, so that more may come until it is said that these are the last.
    may_grow: bool,
}

impl Supply {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, numbers: DealtNumbers, workers: u32) {
        let mut stock = self.stock();
        stock.workers = u64::from(workers);
        stock.pieces.push_back(numbers);
    }

    /// The next block; `None` if there is none now.
    fn lease(&self) -> Option<DealtNumbers> {
        let mut stock = self.stock();
        let left = stock.pieces.iter().fold(0_u64, |left, piece| left.saturating_add(piece.remaining()));
        let most = (left / (stock.workers * 16).max(1)).clamp(1, MOST_AT_ONCE);
        let block = stock.pieces.front_mut()?.split_first(most);
        stock.taken = stock.taken.saturating_add(block.remaining());
        stock.pieces.retain(|piece| piece.remaining() > 0);
        Some(block)
    }

    /// How many numbers workers have taken.
    pub fn taken(&self) -> u64 {
        self.stock().taken
    }

    /// Gives at most this many of the last numbers back, and returns how many these are. Workers then wait for more
    /// until [`Supply::add`] has brought the last ones.
    pub fn give_back(&self, most: u64) -> u64 {
        let mut stock = self.stock();
        let mut left = most;
        while left > 0
            && let Some(piece) = stock.pieces.back_mut()
        {
            left -= piece.split_last(left).remaining();
            stock.pieces.retain(|piece| piece.remaining() > 0);
        }
        stock.may_grow |= left < most;
        most - left
    }

    /// Adds numbers, after which no more come if these are the last.
    pub fn add(&self, numbers: Vec<DealtNumbers>, are_last: bool) {
        let mut stock = self.stock();
        stock.pieces.extend(numbers.into_iter().filter(|piece| piece.remaining() > 0));
        stock.may_grow &= !are_last;
    }

    fn has_some(&self) -> bool {
        !self.stock().pieces.is_empty()
    }

    fn is_used_up(&self) -> bool {
        let stock = self.stock();
        stock.pieces.is_empty() && !stock.may_grow
    }
}

/// A worker's numbers for calls, or iterations, taken in blocks from those that the workers of its machine share.
///
/// In a run on several machines, each has the numbers of its [`Portion`] ahead, and the machines together take every number
/// once. So no worker waits for the network, unless its machine has given numbers back and then got faster at once.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    supply: Supply,
    block: DealtNumbers,
    /// Whether it has asked in vain, and more may come.
    waits: bool,
}

impl Quota {
    /// The portion's numbers from 0 up to `limit`, for its workers, which all clone this.
    pub(crate) fn new(limit: Option<u64>, portion: Portion) -> Self {
        Self::by_connection(limit, portion, portion.all_workers(), Supply::default())
    }

    /// The same, dealt to this many connections of the run, so that each makes as many calls as the others, however few
    /// a machine has. They come from `supply`, which may change.
    pub(crate) fn by_connection(limit: Option<u64>, portion: Portion, connections: u32, supply: Supply) -> Self {
        supply.fill(DealtNumbers::by_connection(portion, limit, u64::from(connections)), portion.workers());
        Self { supply, block: DealtNumbers::none(), waits: false }
    }

    /// The next number; `None` if there is none now.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        self.block.next().or_else(|| self.take_of_another())
    }

    /// The first number of another block.
    #[cold]
    fn take_of_another(&mut self) -> Option<u64> {
        let Some(block) = self.supply.lease() else {
            self.waits = true;
            return None;
        };
        self.block = block;
        self.block.next()
    }

    /// Whether numbers have come for which it has waited. True once for each wait.
    pub(crate) fn is_fed(&mut self) -> bool {
        let is_fed = self.waits && self.supply.has_some();
        self.waits &= !is_fed;
        is_fed
    }

    /// Whether no number is left now, though more may come.
    #[cfg(feature = "simulation")]
    pub(crate) fn is_empty(&self) -> bool {
        self.block.remaining() == 0 && !self.supply.has_some()
    }

    /// Whether no number is left, and none comes.
    pub(crate) fn is_used_up(&self) -> bool {
        self.block.remaining() == 0 && self.supply.is_used_up()
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
                    let connections = portion.all_workers() + 2;
                    let quota = Quota::by_connection(Some(limit), portion, connections, Supply::default());
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

    #[test]
    fn numbers_that_are_given_back_are_made_elsewhere_and_workers_wait_for_more() {
        let supplies = [Supply::default(), Supply::default()];
        let of = |machine: usize| {
            let portion = Portion::new(machine as u32, 1, 2).unwrap();
            (Quota::by_connection(Some(1000), portion, 2, supplies[machine].clone()), portion)
        };
        let ((mut slow, portion), (mut fast, _)) = (of(0), of(1));
        let mut taken: Vec<u64> = std::iter::from_fn(|| slow.take()).take(40).collect();
        // Its controller keeps the same account.
        let mut account = DealtNumbers::by_connection(portion, Some(1000), 2);
        let given_back = account.split_last(supplies[0].give_back(400));
        assert!(given_back.remaining() == 400 && supplies[0].taken() >= 40);
        taken.extend(std::iter::from_fn(|| slow.take()));
        assert_eq!((taken.len(), supplies[0].taken()), (100, 100));
        assert!(!slow.is_used_up() && !slow.is_fed());
        taken.extend(std::iter::from_fn(|| fast.take()));
        assert!(fast.is_used_up(), "it has given nothing back");
        supplies[0].add(vec![given_back, DealtNumbers::none()], false);
        assert!(slow.is_fed() && !slow.is_fed());
        taken.extend(std::iter::from_fn(|| slow.take()));
        assert!(!slow.is_used_up() && supplies[0].give_back(10) == 0);
        supplies[0].add(Vec::new(), true);
        assert!(slow.is_used_up());
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..1000));
    }
}
