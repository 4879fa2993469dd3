//! The state that a service and its clones share.

use std::sync::Arc;
use std::time::Duration;

use crate::flight::{Answering, Table};
use crate::mark::Mark;
use crate::request::Eligible;
use crate::writes::Epochs;

/// What every call needs.
pub(crate) struct Shared<F: Answering> {
    pub(crate) table: Arc<Table<F>>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) eligible: Eligible,
    pub(crate) mark: Mark,
    pub(crate) max_wait: Option<Duration>,
}
