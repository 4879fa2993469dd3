//! The content of a page: a summary, and what the parts of its page share.

use brunt_judge::summary::Summary;

use super::drilldown::Drilldown;
use super::last_second::LastSecond;

/// The content of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) summary: &'a Summary,
    /// Its calls over time.
    pub(super) drilldown: &'a Drilldown,
}

impl Shown<'_> {
    /// Whether the run goes on and no call has ended yet.
    pub(super) fn has_no_figure(self, live: Option<&LastSecond>) -> bool {
        let total = &self.summary.total;
        live.is_some() && total.statuses.total() + total.failures.total() == 0
    }
}
