//! What a page shows: a result, and the summary of the same run.

use brunt_judge::summary::Summary;

use super::last_second::LastSecond;
use crate::json::Document;

/// What the first screen shows: a result, and the summary of the same run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) document: &'a Document,
    pub(super) summary: &'a Summary,
}

impl Shown<'_> {
    /// Whether a run goes on of which no call has ended yet.
    pub(super) fn has_no_figure(self, live: Option<&LastSecond>) -> bool {
        let outcomes = &self.document.outcomes;
        live.is_some() && outcomes.answered + outcomes.failed == 0
    }
}
