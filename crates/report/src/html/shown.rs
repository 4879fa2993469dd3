//! The content of a page: a result, and the summary of the same run.

use brunt_judge::summary::Summary;

use super::last_second::LastSecond;
use crate::json::Document;

/// The content of a page: a result, and the summary of the same run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) document: &'a Document,
    pub(super) summary: &'a Summary,
}

impl Shown<'_> {
    /// Whether the run goes on and no call has ended yet.
    pub(super) fn has_no_figure(self, live: Option<&LastSecond>) -> bool {
        let outcomes = &self.document.outcomes;
        live.is_some() && outcomes.answered + outcomes.failed == 0
    }
}
