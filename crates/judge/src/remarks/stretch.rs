//! A stretch of the measured part.

/// A stretch of the measured part, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Stretch {
    pub(super) const fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }

    /// How long both are under way, in nanoseconds.
    pub(super) fn shared(self, other: Self) -> u64 {
        self.to.min(other.to).saturating_sub(self.from.max(other.from))
    }
}
