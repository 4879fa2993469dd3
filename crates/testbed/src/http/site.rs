//! What the connections of one worker answer from.

use super::response::Answers;
use super::shop::Shop;
use crate::llm::{Events, Model};
use crate::service::Service;

/// A worker's pages, and by what it answers.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) service: Service,
    pub(super) answers: Answers,
    pub(super) shop: Shop,
    /// A language model, in place of everything else.
    pub(crate) model: Option<Model>,
    /// What the model tells, between it and a connection.
    pub(super) events: Events,
    /// The connection that has its turn, by its number.
    pub(crate) connection: usize,
}

impl Site {
    /// A site whose default answers have a body of `body_bytes`.
    pub(crate) fn new(service: Service, body_bytes: u64) -> Self {
        Self {
            service,
            answers: Answers::new(body_bytes),
            shop: Shop::default(),
            model: None,
            events: Events::default(),
            connection: 0,
        }
    }
}
