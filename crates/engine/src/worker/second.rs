//! The second of a phase that is under way.

use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

/// A second of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    /// When its phase began.
    phase_began: Tick,
    number: u64,
}

impl Second {
    /// The first of a phase that began at `phase_began`.
    pub(super) const fn first(phase_began: Tick) -> Self {
        Self { phase_began, number: 0 }
    }

    /// Its number in its phase, from 0.
    pub(super) const fn number(self) -> u64 {
        self.number
    }

    pub(super) const fn begins(self) -> Tick {
        self.phase_began.saturating_add(self.number.saturating_mul(SECOND_NS))
    }

    #[inline]
    pub(super) const fn ends(self) -> Tick {
        self.phase_began.saturating_add((self.number + 1).saturating_mul(SECOND_NS))
    }

    pub(super) const fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }
}
