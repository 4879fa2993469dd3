//! Numbers of users and of their waits.

/// A user of this worker, or a task of one, while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct UserId(u32);

impl UserId {
    /// The user in this slot.
    pub(super) const fn in_slot(slot: u32) -> Self {
        Self(slot)
    }

    /// Its slot, by which the script knows it.
    #[inline]
    pub(super) const fn slot(self) -> u32 {
        self.0
    }
}

/// A user's wait for something that may time out, told from all others of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(super) struct WaitId(u64);

impl WaitId {
    /// No wait.
    pub(super) const NONE: Self = Self(0);

    /// The wait that begins after this one.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
