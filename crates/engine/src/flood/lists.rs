//! The open model's connections that can carry a call, and its places that get one once a call needs it. A connection
//! knows the list that it is in; one that is gone may still be listed, and is passed over.

use std::collections::VecDeque;

use brunt_record::time::Tick;

use crate::network::{Connections, PoolMembership};
use crate::transport::ConnectionId;

/// Both lists.
#[derive(Debug, Default)]
pub(super) struct Lists {
    ready: VecDeque<ConnectionId>,
    dormant: Vec<ConnectionId>,
}

impl Lists {
    /// The connection can carry a call since `since`.
    #[inline]
    pub(super) fn offer(&mut self, token: ConnectionId, connections: &mut Connections, since: Tick) {
        connections[token].list_free(since);
        self.ready.push_back(token);
    }

    /// Whether no connection can carry a call.
    #[inline]
    pub(super) fn have_none_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// The connection that was ready first. It may be gone.
    #[inline]
    pub(super) fn take_ready(&mut self) -> Option<ConnectionId> {
        self.ready.pop_front()
    }

    /// The place gets a connection once a call needs it.
    pub(super) fn rest(&mut self, token: ConnectionId, connections: &mut Connections) {
        let connection = &mut connections[token];
        if connection.is_unlisted() {
            connection.enlist(PoolMembership::Dormant);
            self.dormant.push(token);
        }
    }

    /// Whether no place waits for a call.
    #[inline]
    pub(super) fn have_none_dormant(&self) -> bool {
        self.dormant.is_empty()
    }

    /// A place that waits for a call.
    pub(super) fn take_dormant(&mut self, connections: &mut Connections) -> Option<ConnectionId> {
        while let Some(token) = self.dormant.pop() {
            let connection = &mut connections[token];
            // A place that was given back, and perhaps taken again, is listed no more.
            if connection.listing() == PoolMembership::Dormant && connection.is_idle() {
                connection.unlist();
                return Some(token);
            }
        }
        None
    }
}
