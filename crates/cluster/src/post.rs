//! What a state machine hands to whoever has a connection to the bus: frames, each with the subject that it goes to.

use crate::frame::Frame;

/// A frame on its way to a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) subject: String,
    pub(crate) frame: Frame,
}

/// The server of the bus that one is connected to, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Server {
    /// Its own id: servers of a cluster have one each.
    pub(crate) id: String,
    /// The longest message that it takes, in bytes.
    pub(crate) most_payload: usize,
}

/// What becomes of the connection to the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BusEvent {
    /// There is none at the moment.
    Away,
    /// There is one, to this server.
    Back(Server),
    /// There is one, to a server that cannot be used, for this reason.
    Unusable(String),
    /// A piece of a message was not taken, since it is longer than what this server takes.
    Refused(Server),
    /// The server refuses something, or says what else is wrong.
    Says(String),
    /// Messages come faster than they are taken in: some were lost.
    TooSlow,
    /// There will be none any more, for this reason.
    Gone(String),
}

/// Subjects and frames that were not taken yet. While the bus is away nothing is kept: what would wait for it only grows old, and pieces of messages are sent
/// again.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    prefix: String,
    posted: Vec<Posted>,
    pub(crate) is_away: bool,
}

impl Outbox {
    /// One whose subjects begin with `prefix`.
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..Self::default() }
    }

    /// The subject of this name below the prefix.
    pub(crate) fn subject(&self, below: &str) -> String {
        format!("{}.{below}", self.prefix)
    }

    pub(crate) fn post(&mut self, subject: String, frame: Frame) {
        if !self.is_away {
            self.posted.push(Posted { subject, frame });
        }
    }

    /// What was posted since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Posted> {
        std::mem::take(&mut self.posted)
    }
}
