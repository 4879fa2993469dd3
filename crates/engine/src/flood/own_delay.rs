//! How much of a late call's delay is this program's own, and how much is waiting for a connection.
//!
//! A worker that was held up finds many calls overdue at once. Those that its connections cannot carry together wait
//! for each other, and would not have waited had each been sent in time. So a connection carries the time by which its
//! calls were held up (`held_up`): in time it would have been free that much earlier. This is D. V. Lindley's recursion
//! for the waiting time ("The theory of queues with a single server", Proceedings of the Cambridge Philosophical
//! Society 48, 1952), computed twice: with the delay and without it.

use brunt_record::time::Tick;

/// The least delay that is carried on to a connection's next calls, in nanoseconds. Handling a call takes less, which
/// would add up where calls always wait.
const CARRIED_NS: u64 = 500_000;

/// How one call was held up, and what its connection carries on. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnDelay {
    /// How much later the call was sent than it would have been in time.
    pub(crate) call: u64,
    /// How much earlier the connection would have been free.
    pub(crate) held_up: u64,
    /// Whether the call would have waited for the connection in time, too.
    pub(crate) has_waited: bool,
}

/// The delay of a call that was due at `due` and is sent at `now`, on a connection that has been free since
/// `ready_since` and carries `held_up`.
pub(crate) fn measure(due: Tick, ready_since: Tick, held_up: u64, now: Tick) -> OwnDelay {
    let fresh = now.since(due.max(ready_since));
    let ready_in_time = ready_since.before(held_up);
    let call = now.since(due.max(ready_in_time));
    let held_up = if fresh >= CARRIED_NS { call } else { call.min(held_up) };
    OwnDelay { call, held_up, has_waited: ready_in_time > due }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_waited_behind_late_calls_would_not_have_waited() {
        // One connection, a call a millisecond, answered in 0.1 ms; the worker stands still from 0 to 300 ms.
        let (mut ready_since, mut held_up, mut now) = (0, 0, 300 * MS);
        for due in (1..300).map(|n| n * MS) {
            let own = measure(Tick::from_ns(due), Tick::from_ns(ready_since), held_up, Tick::from_ns(now));
            assert_eq!((own.call, own.has_waited), (now - due, false), "due at {due}");
            now += MS / 10;
            (ready_since, held_up) = (now, own.held_up);
        }
        // It has caught up, and carries nothing on for long.
        let own =
            measure(Tick::from_ns(400 * MS), Tick::from_ns(ready_since), held_up, Tick::from_ns(400 * MS + 20_000));
        assert_eq!(own, OwnDelay { call: 20_000, held_up: 20_000, has_waited: false });
    }

    #[test]
    fn waiting_for_a_slow_target_is_no_own_delay() {
        // One connection, a call a millisecond, answered in 2 ms and handled in 20 µs each time.
        let (mut ready_since, mut held_up) = (0, 0);
        for due in (1..1000).map(|n| n * MS) {
            let now = due.max(ready_since) + 20_000;
            let own = measure(Tick::from_ns(due), Tick::from_ns(ready_since), held_up, Tick::from_ns(now));
            assert_eq!(own.call, 20_000);
            assert_eq!(own.has_waited, ready_since > due);
            (ready_since, held_up) = (now + 2 * MS, own.held_up);
        }
        // Held up for 50 ms, all that come later are sent so much later.
        let now = ready_since + 50 * MS;
        let own = measure(Tick::from_ns(1000 * MS), Tick::from_ns(ready_since), held_up, Tick::from_ns(now));
        assert_eq!((own.call, own.held_up), (50 * MS, 50 * MS));
        let ready_since = now + 2 * MS;
        let own = measure(
            Tick::from_ns(1001 * MS),
            Tick::from_ns(ready_since),
            own.held_up,
            Tick::from_ns(ready_since + 20_000),
        );
        assert_eq!((own.call, own.has_waited), (50 * MS + 20_000, true));
    }

    proptest! {
        /// Connections in turn, each call answered after a time of its own, a worker that is held up at random: what is left
        /// of each wait without the own delay is what the same calls wait for one connection that is used in time.
        #[test]
        fn it_is_the_difference_to_a_run_in_time(
            calls in prop::collection::vec((0..5 * MS, 1..5 * MS, prop::option::weighted(0.1, 1..100_u64)), 1..200),
        ) {
            let (mut due, mut ready_since, mut held_up, mut in_time) = (0, 0, 0, 0);
            for (apart, service, stands_still) in calls {
                due += apart;
                let now = due.max(ready_since) + stands_still.map_or(0, |ms| ms * MS);
                let own = measure(Tick::from_ns(due), Tick::from_ns(ready_since), held_up, Tick::from_ns(now));
                in_time = due.max(in_time);
                prop_assert_eq!(now - own.call, in_time);
                in_time += service;
                (ready_since, held_up) = (now + service, own.held_up);
            }
        }
    }
}
