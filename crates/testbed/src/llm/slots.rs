//! Slots: which requests are decoded, and who waits for them. Pure: time is given.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slab::Slab;

/// A request that was taken on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket(usize);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// In line, by this number.
    Waiting(u64),
    /// In a slot, from one time to another.
    Started { from: Duration, to: Duration },
}

#[derive(Debug)]
struct Job {
    /// How long it takes a slot.
    work: Duration,
    connection: usize,
    stage: Stage,
}

/// Slots, first come, first served. A slot is free again at the very time at which its request's work is over, however late
/// anybody looks, so that starts are exact: the earliest time from arrival on at which a slot is free and nobody is before.
#[derive(Debug)]
pub(super) struct Slots {
    count: usize,
    /// The most requests in line.
    most_waiting: usize,
    jobs: Slab<Job>,
    /// Taken slots, by when they will be free.
    running: BTreeSet<(Duration, usize)>,
    waiting: BTreeMap<u64, usize>,
    next_number: u64,
    /// Connections whose requests have started since they were last asked for.
    woken: Vec<usize>,
}

impl Slots {
    pub(super) fn new(count: usize, most_waiting: Option<usize>) -> Self {
        Self {
            count,
            most_waiting: most_waiting.unwrap_or(usize::MAX),
            jobs: Slab::new(),
            running: BTreeSet::new(),
            waiting: BTreeMap::new(),
            next_number: 0,
            woken: Vec::new(),
        }
    }

    /// Takes on a request of `connection` that arrives now and keeps a slot for `work`. `None` if the line is full.
    pub(super) fn take_on(&mut self, now: Duration, work: Duration, connection: usize) -> Option<Ticket> {
        self.advance(now);
        let has_slot = self.running.len() < self.count;
        if !has_slot && self.waiting.len() >= self.most_waiting {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let stage = if has_slot { Stage::Started { from: now, to: now + work } } else { Stage::Waiting(number) };
        let key = self.jobs.insert(Job { work, connection, stage });
        match stage {
            Stage::Waiting(number) => drop(self.waiting.insert(number, key)),
            Stage::Started { to, .. } => drop(self.running.insert((to, key))),
        }
        Some(Ticket(key))
    }

    /// When the request had its slot; `None` while it waits.
    pub(super) fn started(&self, ticket: &Ticket) -> Option<Duration> {
        match self.jobs.get(ticket.0)?.stage {
            Stage::Started { from, .. } => Some(from),
            Stage::Waiting(_) => None,
        }
    }

    /// Frees the slots whose work is over by now, and gives them to those in line.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(&(free, key)) = self.running.first()
            && free <= now
        {
            self.running.remove(&(free, key));
            self.start_next(free);
        }
    }

    /// The request is over for whoever made it. If it has not had all of its time, its slot or its place in line is free now.
    pub(super) fn leave(&mut self, ticket: &Ticket, now: Duration) {
        self.advance(now);
        let Some(job) = self.jobs.try_remove(ticket.0) else { return };
        match job.stage {
            Stage::Waiting(number) => drop(self.waiting.remove(&number)),
            Stage::Started { to, .. } => {
                if self.running.remove(&(to, ticket.0)) {
                    self.start_next(now);
                }
            }
        }
    }

    /// Gives a slot that is free at `free` to the first in line.
    fn start_next(&mut self, free: Duration) {
        let Some((_, key)) = self.waiting.pop_first() else { return };
        let Some(job) = self.jobs.get_mut(key) else { return };
        let to = free + job.work;
        job.stage = Stage::Started { from: free, to };
        self.woken.push(job.connection);
        self.running.insert((to, key));
    }

    /// When to call [`advance`](Self::advance) next; `None` while nobody waits.
    pub(super) fn next_start(&self) -> Option<Duration> {
        if self.waiting.is_empty() { None } else { self.running.first().map(|(free, _)| *free) }
    }

    /// Connections with requests that have started since the last call.
    pub(super) fn take_woken(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.woken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn who_finds_a_slot_starts_at_once_and_others_at_the_time_when_one_is_free() {
        let mut slots = Slots::new(2, None);
        let tickets = [(0, 10), (1, 20), (2, 5), (3, 5)].map(|(at, work)| slots.take_on(MS(at), MS(work), at as usize));
        let started = |slots: &Slots| tickets.each_ref().map(|ticket| slots.started(ticket.as_ref().unwrap()));
        assert_eq!(started(&slots), [Some(MS(0)), Some(MS(1)), None, None]);
        assert_eq!(slots.next_start(), Some(MS(10)));
        // Late by a lot: the times are those of the formula.
        slots.advance(MS(100));
        assert_eq!(started(&slots), [Some(MS(0)), Some(MS(1)), Some(MS(10)), Some(MS(15))]);
        assert_eq!(slots.take_woken(), [2, 3]);
        assert_eq!(slots.next_start(), None);
    }

    #[test]
    fn a_full_line_refuses_and_who_leaves_makes_room() {
        let mut slots = Slots::new(1, Some(1));
        let first = slots.take_on(MS(0), MS(100), 0).unwrap();
        let second = slots.take_on(MS(1), MS(100), 1).unwrap();
        assert_eq!(slots.take_on(MS(2), MS(100), 2), None);
        slots.leave(&second, MS(3));
        let third = slots.take_on(MS(4), MS(100), 3).unwrap();
        slots.leave(&first, MS(5));
        assert_eq!(slots.started(&third), Some(MS(5)), "the slot of who leaves is free at once");
        assert_eq!(slots.take_woken(), [3]);
        slots.leave(&third, MS(500));
        assert!(slots.jobs.is_empty() && slots.running.is_empty() && slots.waiting.is_empty());
        let none = Slots::new(1, Some(0)).take_on(MS(0), MS(1), 0);
        assert!(none.is_some(), "a free slot needs no line");
    }

    proptest! {
        /// Held against the recursion of Kiefer and Wolfowitz, by which each request takes the slot that is free first.
        #[test]
        fn starts_are_those_of_a_queue_with_many_servers(
            count in 1_usize..5,
            requests in proptest::collection::vec((0_u64..20, 0_u64..40), 1..60),
        ) {
            let mut slots = Slots::new(count, None);
            let mut free_at = vec![0; count];
            let (mut arrival, mut expected, mut tickets) = (0, Vec::new(), Vec::new());
            for (gap, work) in requests {
                arrival += gap;
                let slot = free_at.iter_mut().min().unwrap();
                let start = arrival.max(*slot);
                *slot = start + work;
                expected.push(Some(MS(start)));
                tickets.push(slots.take_on(MS(arrival), MS(work), 0).unwrap());
            }
            slots.advance(MS(1_000_000));
            let started: Vec<_> = tickets.iter().map(|ticket| slots.started(ticket)).collect();
            prop_assert_eq!(started, expected);
        }

        /// Whoever leaves when, no slot idles while somebody waits, and nothing is kept in the end.
        #[test]
        fn leaving_frees_what_was_taken(
            count in 1_usize..4,
            steps in proptest::collection::vec((0_u64..10, 0_u64..30, any::<Option<prop::sample::Index>>()), 1..80),
        ) {
            let mut slots = Slots::new(count, None);
            let (mut now, mut tickets) = (0, Vec::new());
            for (gap, work, leaves) in steps {
                now += gap;
                match leaves.filter(|_| !tickets.is_empty()) {
                    Some(index) => {
                        let ticket: Ticket = tickets.swap_remove(index.index(tickets.len()));
                        slots.leave(&ticket, MS(now));
                    }
                    None => tickets.push(slots.take_on(MS(now), MS(work), 0).unwrap()),
                }
                slots.advance(MS(now));
                prop_assert!(slots.running.len() <= count);
                prop_assert!(slots.waiting.is_empty() || slots.running.len() == count);
            }
            for ticket in tickets {
                slots.leave(&ticket, MS(now));
            }
            prop_assert!(slots.jobs.is_empty() && slots.running.is_empty() && slots.waiting.is_empty());
        }
    }
}
