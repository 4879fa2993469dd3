//! Answers by their status.

use brunt_record::counts;
use serde::Serialize;

/// Answers with one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The status.
    pub status: u16,
    /// How many.
    pub count: u64,
}

impl Status {
    pub(super) fn all(statuses: &counts::Statuses) -> Vec<Self> {
        statuses.sorted().into_iter().map(|(status, count)| Self { status, count }).collect()
    }
}
