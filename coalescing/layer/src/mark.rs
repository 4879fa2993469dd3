//! Marks on answers that were coalesced.

/// Whether answers say `x-coalesced: leader` or `x-coalesced: follower`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mark {
    /// Answers to requests that have a header of that name do.
    #[default]
    WhenAsked,
    /// All that were coalesced do.
    Always,
    /// No answers do.
    Never,
}

impl Mark {
    pub(crate) fn marks(self, is_asked: bool) -> bool {
        match self {
            Self::WhenAsked => is_asked,
            Self::Always => true,
            Self::Never => false,
        }
    }
}
