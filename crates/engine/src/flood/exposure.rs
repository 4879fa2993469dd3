//! How much of a late call's delay can have changed the time that the target took for it.
//!
//! While no call is with the target, it does nothing for this run. If the next call was due after the last answer, it
//! begins a *chain*: the target would have been idle for that call in time, too. Later calls belong to the chain until
//! one is due after all answers before it. Sent late, they only came closer together. Now move all of the chain's calls
//! back by the same time, so that the call in question arrives with the chain's first. Then each arrives no later than
//! it was sent, and in a queue that is served in order no answer comes later for that (J. Kiefer, J. Wolfowitz, "On the
//! theory of queues with many servers", Transactions of the American Mathematical Society 78, 1955: completions are
//! monotone in arrivals). So in time the call would have taken at most as long as from the chain's beginning to its
//! answer: the time that it did take, plus the time from that beginning to its sending.

use brunt_record::time::Tick;

use crate::network::Network;
use crate::transport::Driver;

/// The chain under way.
#[derive(Debug)]
pub(super) struct Exposure {
    /// Whether these are all of the run's calls: those of other workers are unknown.
    is_alone: bool,
    /// When the current chain began; `None` before the first.
    since: Option<Tick>,
}

impl Exposure {
    /// `is_alone` says that this worker makes all of the run's calls.
    pub(super) fn new(is_alone: bool) -> Self {
        Self { is_alone, since: None }
    }

    /// How much of a call's delay was exposed, in nanoseconds: the call is sent at `now`, was due, and had a connection
    /// at `ready`.
    pub(super) fn of<D: Driver, T: Copy + std::fmt::Debug>(
        &mut self,
        network: &Network<D, T>,
        ready: Tick,
        now: Tick,
    ) -> u64 {
        let late = now.since(ready);
        if !self.is_alone {
            return late;
        }
        let last_answer = network.recorder().last_arrival();
        let is_idle = network.under_way() == 0;
        if is_idle && ready >= last_answer {
            self.since = Some(now);
        }
        let in_chain = self.since.map_or(late, |since| late.min(now.since(since)));
        // A target that is idle now was busy for that part at most.
        if is_idle { in_chain.min(last_answer.since(ready)) } else { in_chain }
    }
}
