//! Seconds that wait for a slow receiver, in bounded number.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use brunt_metrics::otlp::PointInterval;
use brunt_record::live::{AgentSecond, Live};
use brunt_record::snapshot::Snapshot;

/// The most waiting entries. Further seconds are added to the newest, which costs only resolution.
const MOST: usize = 32;

/// Successive seconds of a phase, as one.
#[derive(Debug)]
pub struct Pending {
    /// Their figures, without those that metrics do not have.
    pub second: Live,
    /// Their number.
    pub seconds: u64,
    /// Their beginning and end.
    pub interval: PointInterval,
}

/// Seconds in their order.
#[derive(Debug, Default)]
pub struct Backlog {
    pending: VecDeque<Pending>,
    /// The end of the last one, in nanoseconds since 1970-01-01 UTC.
    last_unix_ns: u64,
}

impl Backlog {
    /// Adds a second that ended at `now_unix_ns`.
    pub fn push(&mut self, second: &Live, now_unix_ns: u64) {
        // The system's clock may be set back; intervals go on all the same.
        let from_unix_ns = now_unix_ns.saturating_sub(second.length_ns).max(self.last_unix_ns);
        let to_unix_ns = now_unix_ns.max(from_unix_ns + 1);
        self.last_unix_ns = to_unix_ns;
        let is_full = self.pending.len() >= MOST;
        match self.pending.back_mut() {
            // Phases stay apart, and a run has three.
            Some(last) if is_full && last.second.phase == second.phase => {
                join(&mut last.second, second);
                last.seconds += 1;
                last.interval.to_unix_ns = to_unix_ns;
            }
            _ => self.pending.push_back(Pending {
                second: lean(second),
                seconds: 1,
                interval: PointInterval { from_unix_ns, to_unix_ns },
            }),
        }
    }

    /// The oldest.
    pub fn pop(&mut self) -> Option<Pending> {
        self.pending.pop_front()
    }
}

/// Now, in nanoseconds since 1970-01-01 UTC.
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A second without parts that only pages show, which may be large.
fn lean(second: &Live) -> Live {
    let from = &second.snapshot;
    let snapshot = Snapshot {
        numbers: from.numbers,
        times: from.times.clone(),
        statuses: from.statuses.clone(),
        failed_check: from.failed_check.clone(),
        excused: from.excused.clone(),
        failures: from.failures.clone(),
        slowest: from.slowest.clone(),
        figures: from.figures.clone(),
        watched: from.watched.clone(),
        ..Snapshot::default()
    };
    Live { snapshot, changes: second.changes.clone(), agents: second.agents.clone(), ..*second }
}

/// Adds the second that follows.
fn join(sum: &mut Live, next: &Live) {
    sum.snapshot.merge_totals(&next.snapshot);
    sum.snapshot.slowest.merge(&next.snapshot.slowest);
    sum.snapshot.figures.merge(&next.snapshot.figures);
    sum.snapshot.watched.merge(&next.snapshot.watched);
    for agent in &next.agents {
        match sum.agents.iter_mut().find(|known| known.name == agent.name) {
            Some(known) => {
                *known = AgentSecond {
                    answered: known.answered + agent.answered,
                    not_ok: known.not_ok + agent.not_ok,
                    is_saturated: known.is_saturated || agent.is_saturated,
                    ..agent.clone()
                }
            }
            None => sum.agents.push(agent.clone()),
        }
    }
    sum.elapsed_ns = next.elapsed_ns;
    sum.length_ns = sum.length_ns.saturating_add(next.length_ns);
    (sum.open_connections, sum.in_flight) = (next.open_connections, next.in_flight);
    (sum.waiting, sum.oldest_ns, sum.users) = (next.waiting, next.oldest_ns, next.users);
}

#[cfg(test)]
mod tests {
    use brunt_record::SECOND_NS;
    use brunt_record::catalogue::Counter;
    use brunt_record::snapshot::Phase;

    use super::*;

    fn second(phase: Phase, due: u64) -> Live {
        let agent = AgentSecond {
            name: "a".into(),
            answered: due,
            not_ok: 0,
            p99_ns: None,
            lag_p99_ns: None,
            is_saturated: false,
            is_silent: false,
        };
        Live {
            open_connections: due,
            agents: vec![agent],
            ..Live::new(phase, SECOND_NS, Snapshot::with_numbers([(Counter::Due, due)]))
        }
    }

    #[test]
    fn a_receiver_that_is_away_costs_resolution_and_no_call() {
        let mut backlog = Backlog::default();
        let start = 1_000 * SECOND_NS;
        for n in 0..10_000 {
            backlog.push(&second(Phase::Measured, 2), start + n * SECOND_NS);
        }
        for n in 10_000..10_100 {
            backlog.push(&second(Phase::Drain, 1), start + n * SECOND_NS);
        }
        let pending: Vec<_> = std::iter::from_fn(|| backlog.pop()).collect();
        assert_eq!(pending.len(), MOST + 1, "bounded; the drain stands apart");
        let due = |pending: &Pending| pending.second.snapshot.due();
        assert_eq!(pending.iter().map(due).sum::<u64>(), 20_100);
        assert_eq!(pending.iter().map(|pending| pending.seconds).sum::<u64>(), 10_100);
        let answered = pending.iter().map(|pending| pending.second.agents[0].answered);
        assert_eq!(answered.sum::<u64>(), 20_100);
        for two in pending.windows(2) {
            assert_eq!(two[0].interval.to_unix_ns, two[1].interval.from_unix_ns, "without a gap");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_interval_that_ends_before_it_begins() {
        let mut backlog = Backlog::default();
        for now in [50 * SECOND_NS, 20 * SECOND_NS, 21 * SECOND_NS, 60 * SECOND_NS] {
            backlog.push(&second(Phase::Measured, 1), now);
        }
        let mut last = 0;
        while let Some(Pending { interval, .. }) = backlog.pop() {
            assert!(last <= interval.from_unix_ns && interval.from_unix_ns < interval.to_unix_ns, "{interval:?}");
            last = interval.to_unix_ns;
        }
    }
}
