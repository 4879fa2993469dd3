//! Who sees what users do: everything (`--once`), or failures and what scripts log (`--log`).

use std::sync::Arc;

use crate::trace::{Sight, Trace};

/// The observer of a worker's users.
#[derive(Default)]
pub(super) enum Watch {
    #[default]
    Nobody,
    Everything(Arc<dyn Trace>),
    /// Calls that failed, and what the script logs.
    Failures(Arc<dyn Trace>),
    /// What the script logs.
    Said(Arc<dyn Trace>),
}

impl Watch {
    pub(super) fn of(trace: &Arc<dyn Trace>) -> Self {
        let trace = Arc::clone(trace);
        match trace.sight() {
            Sight::Everything => Self::Everything(trace),
            Sight::Failures => Self::Failures(trace),
            Sight::Said => Self::Said(trace),
        }
    }

    /// Whether it sees everything: then a user goes through its scenario alone and step by step.
    #[inline]
    pub(super) fn sees_everything(&self) -> bool {
        matches!(self, Self::Everything(_))
    }

    /// Whoever sees everything.
    #[inline]
    pub(super) fn all(&self) -> Option<&dyn Trace> {
        if let Self::Everything(trace) = self { Some(trace.as_ref()) } else { None }
    }

    /// Whoever sees of calls those that failed.
    #[inline]
    pub(super) fn failures(&self) -> Option<&dyn Trace> {
        if let Self::Failures(trace) = self { Some(trace.as_ref()) } else { None }
    }

    /// Whoever sees what the script says.
    pub(super) fn said(&self) -> Option<&dyn Trace> {
        match self {
            Self::Nobody => None,
            Self::Everything(trace) | Self::Failures(trace) | Self::Said(trace) => Some(trace.as_ref()),
        }
    }
}
