//! When this worker's calls are due, and which number each has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_model::arrivals::{Arrival, Arrivals};

/// Numbers for calls, shared by the workers and taken in blocks.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    shared: Arc<AtomicU64>,
    limit: u64,
    block: u64,
    from: u64,
    to: u64,
}

impl Quota {
    /// Numbers from 0 up to `limit`, for `workers` workers that all clone this.
    pub(crate) fn new(limit: Option<u64>, workers: u32) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        // Small enough that no worker sits on the last numbers while others have none left.
        let block = (limit / (u64::from(workers.max(1)) * 16)).clamp(1, 64);
        Self { shared: Arc::default(), limit, block, from: 0, to: 0 }
    }

    /// The next number; none when they are used up.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.from >= self.to {
            self.from = self.shared.fetch_add(self.block, Ordering::Relaxed).min(self.limit);
            self.to = self.from.saturating_add(self.block).min(self.limit);
            if self.from >= self.to {
                return None;
            }
        }
        self.from += 1;
        Some(self.from - 1)
    }

    /// Whether no number is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.from >= self.to && self.shared.load(Ordering::Relaxed) >= self.limit
    }
}

/// Arrivals of the open model on one worker, from a beginning on the run's clock to an end.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    next: Option<Arrival>,
    begin_ns: u64,
    end_ns: u64,
    /// The same arrivals once more, to count what was due apart from what was done about it.
    counted: Arrivals,
    count_next: Option<Arrival>,
}

impl Schedule {
    /// Arrivals whose profile begins at `begin_ns`; those due at `end_ns` or later are none.
    pub(crate) fn new(arrivals: Arrivals, begin_ns: u64, end_ns: u64) -> Self {
        let mut counted = arrivals.clone();
        let count_next = counted.next();
        let mut schedule = Self { arrivals, next: None, begin_ns, end_ns, counted, count_next };
        schedule.advance();
        schedule
    }

    fn advance(&mut self) {
        let end = self.end_ns.saturating_sub(self.begin_ns);
        self.next = self.arrivals.next().filter(|arrival| arrival.due_ns < end);
    }

    /// When the next call is due, on the run's clock; none if there is none.
    #[inline]
    pub(crate) fn due(&self) -> Option<u64> {
        self.next.map(|arrival| self.begin_ns + arrival.due_ns)
    }

    /// Takes the next call: when it is due, and its number.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(u64, u64)> {
        let arrival = self.next?;
        self.advance();
        Some((self.begin_ns + arrival.due_ns, arrival.index))
    }

    /// How many calls became due since the last time this was asked, until `now`.
    pub(crate) fn count_due(&mut self, now: u64) -> u64 {
        let until = now.min(self.end_ns).saturating_sub(self.begin_ns);
        let mut count = 0;
        while self.count_next.is_some_and(|arrival| arrival.due_ns < until) {
            count += 1;
            self.count_next = self.counted.next();
        }
        count
    }

    /// Ends the schedule at `end_ns`, if that is earlier.
    pub(crate) fn end_at(&mut self, end_ns: u64) {
        self.end_ns = self.end_ns.min(end_ns);
        if self.due().is_some_and(|due| due >= end_ns) {
            self.next = None;
        }
    }
}

/// What makes calls due.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    /// Each connection calls again as soon as it is answered.
    Closed(Quota),
    /// Calls are due at times of their own.
    Open(Box<Schedule>),
    /// Virtual users call when they want to.
    Users,
}

#[cfg(test)]
mod tests {
    use brunt_model::arrivals::Spread;
    use brunt_model::profile::Profile;

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

    #[test]
    fn what_is_counted_as_due_is_what_is_taken() {
        let arrivals = Arrivals::new(Profile::constant(1000.0).unwrap(), Spread::Poisson, 0, 1, 3, None);
        let mut schedule = Schedule::new(arrivals, 500, 2_000_000_500);
        let counted = schedule.count_due(900_000_000) + schedule.count_due(u64::MAX);
        let mut taken = 0;
        let mut last = 0;
        while let Some((due, _)) = schedule.take() {
            assert!((500..2_000_000_500).contains(&due) && due >= last);
            last = due;
            taken += 1;
        }
        assert_eq!(counted, taken);
        assert!((1800..2200).contains(&taken), "{taken}");
    }

    #[test]
    fn an_earlier_end_leaves_nothing_due_after_it() {
        let arrivals = Arrivals::new(Profile::constant(10.0).unwrap(), Spread::Uniform, 0, 1, 0, None);
        let mut schedule = Schedule::new(arrivals, 0, u64::MAX);
        schedule.end_at(250_000_000);
        assert_eq!(schedule.count_due(u64::MAX), 3);
        assert_eq!(std::iter::from_fn(|| schedule.take()).count(), 3);
    }
}
