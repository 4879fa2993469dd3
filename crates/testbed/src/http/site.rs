//! What the connections of one worker answer from.

use super::response::Answers;
use super::shop::Shop;
use crate::service::Service;

/// A worker's pages, and by what it answers.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) service: Service,
    pub(super) answers: Answers,
    pub(super) shop: Shop,
}

impl Site {
    /// A site whose default answers have a body of `body_bytes`.
    pub(crate) fn new(service: Service, body_bytes: u64) -> Self {
        Self { service, answers: Answers::new(body_bytes), shop: Shop::default() }
    }
}
