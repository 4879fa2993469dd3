//! Time in which a peer's limits hold something back: calls for want of a stream, bodies for want of a flow-control
//! window.

use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::time::Tick;

/// The limits that hold a connection back, and since when. Times are nanoseconds on the run's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerLimits {
    /// Whether waiting data is wholly held back by the peer's flow control.
    pub(super) is_blocked: bool,
    blocked_since: Tick,
    full_since: Tick,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self { is_blocked: false, blocked_since: Tick::NEVER, full_since: Tick::NEVER }
    }
}

impl PeerLimits {
    /// Whether anything is known to hold the connection back.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.blocked_since.is_set() || self.full_since.is_set()
    }

    /// Adds the time up to `now`, and begins to count anew.
    pub(super) fn count(&mut self, now: Tick, numbers: &mut Numbers) {
        for (since, counter) in [
            (&mut self.blocked_since, Counter::HeldBackByFlowControl),
            (&mut self.full_since, Counter::HeldBackByStreamLimit),
        ] {
            if since.is_set() {
                numbers.add(counter, now.since(*since));
                *since = now.max(*since);
            }
        }
    }

    /// Nothing holds the connection back any more.
    #[cold]
    pub(super) fn end(&mut self, now: Tick, numbers: &mut Numbers) {
        self.count(now, numbers);
        *self = Self::default();
    }

    /// Whether the state differs from the one noted last.
    #[inline]
    pub(super) fn differ(&self, is_full: bool) -> bool {
        is_full != (self.full_since.is_set()) || self.is_blocked != (self.blocked_since.is_set())
    }

    /// Notes the limits that hold the connection back from `now` on.
    #[cold]
    pub(super) fn change(&mut self, is_full: bool, now: Tick, numbers: &mut Numbers) {
        self.count(now, numbers);
        let since = |holds: bool, since: Tick| if holds { since.min(now) } else { Tick::NEVER };
        self.full_since = since(is_full, self.full_since);
        self.blocked_since = since(self.is_blocked, self.blocked_since);
    }
}
