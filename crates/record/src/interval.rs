//! One worker's second, on its way to the coordinator.

use serde::{Deserialize, Serialize};

use crate::snapshot::{Phase, Snapshot};

/// One worker's figures for one second of a run, or for the rest of a phase. Plain data that survives being written
/// down and read back, so that seconds of another machine merge as this machine's do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The worker's number among those of its machine, from 0.
    pub worker: u32,
    /// The part of the run it belongs to.
    pub phase: Phase,
    /// Which second of the phase, from 0.
    pub second: u64,
    /// How long it was, in nanoseconds.
    pub length_ns: u64,
    /// What happened.
    pub snapshot: Snapshot,
    /// Connections open at its end.
    pub open_connections: u64,
    /// Calls in flight at its end.
    pub in_flight: u64,
    /// How long the oldest call had been due at its end, sent or not, in nanoseconds; 0 if there was none.
    pub oldest_ns: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::{Counter, Numbers, Timing};
    use crate::figures::Example;
    use crate::instrument::BoundedTimes;
    use crate::messages::{MessageArrival, StreamEnd};
    use crate::outcome::Failure;

    /// A call or another event: which kind, by what name, and how long it took.
    type Event = (u8, u8, u64);

    fn record(snapshot: &mut Snapshot, (kind, name, ns): Event) {
        let failure = Failure::ALL[usize::from(name) % Failure::ALL.len()];
        let name = format!("näme {}", name % 7);
        match kind {
            0..=3 => {
                snapshot.numbers.add(Counter::Due, 1);
                snapshot.statuses.record(200 + u16::from(kind));
                snapshot.times.record(Timing::Response, ns);
                snapshot.times.record(Timing::Service, ns / 2);
                snapshot.times.record(Timing::FirstByte, ns / 3);
                let calls = snapshot.figures.requests.named(&name);
                calls.due();
                calls.answered(200, ns, ns / 2);
            }
            4 => {
                snapshot.failures.record(failure, &name);
                snapshot.troubles.record(failure, "\u{0}\"\n");
                snapshot.times.record(Timing::Failed, ns);
                snapshot.figures.tags.named(&name).failed(failure, ns, Some(ns / 2));
            }
            5 => {
                snapshot.numbers.add(Counter::Unfinished, 1);
                snapshot.times.record_bounds(Timing::Response, ns, 1000);
                snapshot.figures.groups.named(&name).unfinished(ns, ns / 2);
            }
            6 => {
                snapshot.numbers.add(Counter::Unsent, ns);
                let example = || Example { status: Some(500), body: name.clone() };
                snapshot.figures.checks.named(&name).failed(Some("call"), &name, example);
            }
            7 => {
                snapshot.times.record(Timing::Connect, ns);
                snapshot.times.record(Timing::Tls, ns);
                snapshot.times.record(Timing::Handshake, ns);
                snapshot.numbers.add(Counter::ConnectionsMade, 1);
                snapshot.numbers.add(Counter::WireIn, ns);
                snapshot.came(&MessageArrival { after_ns: ns, is_first: ns % 2 == 0, is_together: false });
                snapshot.stream_ended(&StreamEnd { waited_ns: Some(ns), ..StreamEnd::default() });
            }
            8 => {
                snapshot.numbers.set_health(&Numbers::of_health(1_000_000_000, ns % 1_000_000_000, ns % 999));
                snapshot.times.record(Timing::Lag, ns);
                snapshot.numbers.add(Counter::WaitedForConnection, 1);
            }
            _ => {
                let scenario = snapshot.figures.scenarios.named(&name);
                scenario.users_started += 2;
                scenario.script_error(&name);
                snapshot.figures.most_users = ns;
            }
        }
    }

    fn intervals() -> impl Strategy<Value = Interval> {
        let events = prop::collection::vec((0_u8..10, any::<u8>(), 0_u64..1 << 45), 0..60);
        let phase = prop_oneof![Just(Phase::Warmup), Just(Phase::Measured), Just(Phase::Drain)];
        (events, phase, any::<(u32, u64, u64, u64, u64, u64)>()).prop_map(|(events, phase, numbers)| {
            let (worker, second, length_ns, open_connections, in_flight, oldest_ns) = numbers;
            let mut snapshot = Snapshot::default();
            for event in events {
                record(&mut snapshot, event);
            }
            Interval { worker, phase, second, length_ns, snapshot, open_connections, in_flight, oldest_ns }
        })
    }

    fn travelled(interval: &Interval) -> Interval {
        crate::bytes::from_bytes(&crate::bytes::to_bytes(interval)).unwrap()
    }

    proptest! {
        #[test]
        fn it_arrives_as_it_was_sent(interval in intervals()) {
            prop_assert_eq!(travelled(&interval), interval);
        }

        #[test]
        fn what_is_asked_of_many_seconds_is_as_their_distributions_have_it(interval in intervals(), q in 0.0..1.0_f64) {
            let (snapshot, times) = (&interval.snapshot, interval.snapshot.response_times());
            prop_assert_eq!(snapshot.response_quantile(q), times.quantile(q));
            let parts = BoundedTimes::of_response(&snapshot.times);
            prop_assert_eq!(parts.failed().unwrap_or_default(), times.failed);
        }

        #[test]
        fn what_arrived_merges_as_what_was_sent(intervals in prop::collection::vec(intervals(), 1..6)) {
            let merged = |seconds: &mut dyn Iterator<Item = Snapshot>| {
                let mut all = Snapshot::default();
                seconds.for_each(|snapshot| all.merge(&snapshot));
                all
            };
            let sent = merged(&mut intervals.iter().map(|interval| interval.snapshot.clone()));
            let arrived = merged(&mut intervals.iter().map(|interval| travelled(interval).snapshot));
            prop_assert_eq!(sent.response_times().known.mean(), arrived.response_times().known.mean());
            prop_assert_eq!(sent, arrived);
        }
    }
}
