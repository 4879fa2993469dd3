//! Servers that take requests first come, first served: a target whose capacity is known by construction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// When each of N servers is free again.
///
/// A request takes the server that is free first, and waits for it if it must. Its departure is `max(arrival, free) +
/// service time`: the recursion of Kiefer and Wolfowitz ("On the theory of queues with many servers", Transactions of
/// the American Mathematical Society 78, 1955). So N servers finish at most N requests in each mean service time,
/// however many ask, and however late the thread that answers is.
#[derive(Debug)]
pub(crate) struct Servers {
    free_at: BinaryHeap<Reverse<Duration>>,
}

impl Servers {
    pub(crate) fn new(count: usize) -> Self {
        Self { free_at: vec![Reverse(Duration::ZERO); count].into() }
    }

    /// When a request is done that arrives now, and not before those that were taken on earlier.
    pub(super) fn take_on(&mut self, arrival: Duration, service_time: Duration) -> Duration {
        let Some(mut first) = self.free_at.peek_mut() else { return arrival + service_time };
        let departure = arrival.max(first.0).saturating_add(service_time);
        *first = Reverse(departure);
        departure
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn who_finds_a_server_free_is_served_at_once_and_others_wait_their_turn() {
        let mut servers = Servers::new(2);
        let departures = [0, 1, 2, 3, 30].map(|arrival| servers.take_on(MS(arrival), MS(10)));
        assert_eq!(departures, [10, 11, 20, 21, 40].map(MS));
    }

    #[test]
    fn capacity_is_servers_over_service_time() {
        for (count, service) in [(1, MS(5)), (4, MS(2)), (16, Duration::from_micros(300))] {
            let mut servers = Servers::new(count);
            let last = (0..16_000).map(|_| servers.take_on(Duration::ZERO, service)).max().unwrap();
            assert_eq!(last, service * 16_000 / count as u32, "{count} servers");
        }
    }

    #[test]
    fn below_capacity_nobody_waits_and_above_it_the_wait_grows_by_what_is_too_much() {
        let response = |between: Duration| {
            let mut servers = Servers::new(4);
            let last = (0..10_000).map(|i| servers.take_on(between * i, MS(2)).saturating_sub(between * i));
            last.last().unwrap()
        };
        // Capacity is 2000 a second: one each 500 us.
        assert_eq!(response(Duration::from_micros(500)), MS(2));
        // 10 000 requests at 2500 a second arrive in 4 s and take 5 s: the last has waited one.
        let last = response(Duration::from_micros(400));
        assert!(last > MS(990) && last < MS(1010), "{last:?}");
    }

    proptest! {
        /// Held against the definition: nobody overtakes, and a request waits only while all servers are busy.
        #[test]
        fn no_server_idles_while_somebody_waits(
            count in 1_usize..6,
            requests in proptest::collection::vec((0_u64..20, 0_u64..30), 1..80),
        ) {
            let mut servers = Servers::new(count);
            let mut arrival = 0;
            let mut served: Vec<(u64, u64)> = Vec::new();
            for (gap, service) in requests {
                arrival += gap;
                let departure = servers.take_on(MS(arrival), MS(service)).as_millis() as u64;
                let start = departure - service;
                let busy = |at: u64| served.iter().filter(|(from, to)| *from <= at && at < *to).count();
                prop_assert!(start >= arrival && busy(start) < count);
                if start > arrival {
                    prop_assert!(busy(start - 1) >= count, "waited beside a free server");
                }
                prop_assert!(served.last().is_none_or(|(before, _)| *before <= start), "overtaken");
                served.push((start, departure));
            }
        }
    }
}
