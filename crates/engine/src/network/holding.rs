//! Time in which a peer's limits hold something back: calls for want of a stream, bodies for want of a flow-control
//! window.

use super::deadlines::NEVER;
use brunt_record::catalogue::{Counter, Numbers};

/// The limits that hold a connection back, and since when. Times are nanoseconds on the run's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holds {
    /// Whether waiting data is wholly held back by the peer's flow control.
    pub(super) is_blocked: bool,
    blocked_since: u64,
    full_since: u64,
}

impl Default for Holds {
    fn default() -> Self {
        Self { is_blocked: false, blocked_since: NEVER, full_since: NEVER }
    }
}

impl Holds {
    /// Whether anything is known to hold the connection back.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.blocked_since != NEVER || self.full_since != NEVER
    }

    /// Adds the time up to `now`, and begins to count anew.
    pub(super) fn count(&mut self, now: u64, numbers: &mut Numbers) {
        for (since, counter) in [
            (&mut self.blocked_since, Counter::HeldBackByFlowControl),
            (&mut self.full_since, Counter::HeldBackByStreamLimit),
        ] {
            if *since != NEVER {
                numbers.add(counter, now.saturating_sub(*since));
                *since = now.max(*since);
            }
        }
    }

    /// Nothing holds the connection back any more.
    #[cold]
    pub(super) fn end(&mut self, now: u64, numbers: &mut Numbers) {
        self.count(now, numbers);
        *self = Self::default();
    }

    /// Whether the state differs from the one noted last.
    #[inline]
    pub(super) fn differ(&self, is_full: bool) -> bool {
        is_full != (self.full_since != NEVER) || self.is_blocked != (self.blocked_since != NEVER)
    }

    /// Notes the limits that hold the connection back from `now` on.
    #[cold]
    pub(super) fn change(&mut self, is_full: bool, now: u64, numbers: &mut Numbers) {
        self.count(now, numbers);
        let since = |holds: bool, since: u64| if holds { since.min(now) } else { NEVER };
        self.full_since = since(is_full, self.full_since);
        self.blocked_since = since(self.is_blocked, self.blocked_since);
    }
}
