//! The second of a phase that is under way.

use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

/// A second of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    number: u64,
    begins: Tick,
    ends: Tick,
}

impl Second {
    /// The first of a phase that began at `phase_began`.
    pub(super) const fn first(phase_began: Tick) -> Self {
        Self { number: 0, begins: phase_began, ends: phase_began.saturating_add(SECOND_NS) }
    }

    /// Its number in its phase, from 0.
    pub(super) const fn number(self) -> u64 {
        self.number
    }

    pub(super) const fn begins(self) -> Tick {
        self.begins
    }

    #[inline]
    pub(super) const fn ends(self) -> Tick {
        self.ends
    }

    pub(super) const fn next(self) -> Self {
        Self { number: self.number + 1, begins: self.ends, ends: self.ends.saturating_add(SECOND_NS) }
    }
}
