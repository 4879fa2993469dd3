//! Frames that a state machine posts, each with its subject, for the owner of the connection to the bus.

use crate::frame::Frame;

/// A frame on its way to a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) subject: String,
    pub(crate) frame: Frame,
}

/// The connected server of the bus, by its own account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Server {
    /// Its own id: servers of a cluster have one each.
    pub(crate) id: String,
    /// The longest message that it takes, in bytes.
    pub(crate) most_payload: usize,
}

/// An event of the connection to the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BusEvent {
    /// The connection is gone for now.
    Away,
    /// There is a connection, to this server.
    Back(Server),
    /// There is a connection to a server that cannot be used, for this reason.
    Unusable(String),
    /// A piece of a message was refused, since it is longer than this server allows.
    Refused(Server),
    /// The server refuses something, or has another complaint.
    Says(String),
    /// Messages come faster than they are taken in: some were lost.
    TooSlow,
    /// The connection is gone for good, for this reason.
    Gone(String),
}

/// Subjects and frames that were not taken yet. While the bus is away nothing is kept: waiting frames would only grow
/// old, and pieces of messages are sent again anyway.
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

    /// Everything posted since the last time.
    pub(crate) fn take(&mut self) -> Vec<Posted> {
        std::mem::take(&mut self.posted)
    }
}
