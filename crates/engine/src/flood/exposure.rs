//! How much of a late call's delay can have changed what the target took.
//!
//! While no call is with the target, it does nothing of this run. If the next call was due after the last answer, it begins a
//! *chain*: the target would have stood idle for it in time, too. Calls that follow belong to it until one is due after
//! all answers before it. Sent late, they only came closer together. Move all of them, in time, so that the one in question
//! would come with the chain's first: then each comes no later than it was sent, and in a queue that is served in order no
//! answer comes later for that (J. Kiefer, J. Wolfowitz, "On the theory of queues with many servers", Transactions of the
//! American Mathematical Society 78, 1955: completions are monotone in arrivals). So in time the call would have taken at
//! most as long as from the chain's beginning to its answer: as it did take, and from that beginning to when it was sent.

use crate::network::Network;
use crate::transport::Driver;

/// The chain under way.
#[derive(Debug)]
pub(super) struct Exposure {
    /// Whether these are all of the run's calls: of other workers' nothing is known.
    is_alone: bool,
    /// When it began; none before the first.
    since: Option<u64>,
}

impl Exposure {
    /// `is_alone` says that this worker makes all of the run's calls.
    pub(super) fn new(is_alone: bool) -> Self {
        Self { is_alone, since: None }
    }

    /// For how much of its delay a call was exposed that is sent at `now`, and was due and had a connection at `ready`; in
    /// nanoseconds.
    pub(super) fn of<D: Driver, T: Copy + std::fmt::Debug>(
        &mut self,
        network: &Network<D, T>,
        ready: u64,
        now: u64,
    ) -> u64 {
        let late = now.saturating_sub(ready);
        if !self.is_alone {
            return late;
        }
        let last_answer = network.recorder.last_arrival();
        let is_idle = network.under_way() == 0;
        if is_idle && ready >= last_answer {
            self.since = Some(now);
        }
        let in_chain = self.since.map_or(late, |since| late.min(now.saturating_sub(since)));
        // The target that is idle now was busy for that part at the most.
        if is_idle { in_chain.min(last_answer.saturating_sub(ready)) } else { in_chain }
    }
}
