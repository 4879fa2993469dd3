//! Invariants of a network between two steps of its worker. Tests check them after each step.

use std::collections::BTreeSet;

use brunt_record::time::Tick;

use super::calls::CallId;
use super::calls::Place;
use super::connection::Connection;
use super::{Network, State};
use crate::transport::{ConnectionId, Driver};

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Checks the network against its invariants. `waiting` are the calls in the load's own list, if it has one; some
    /// may have ended. `call_bytes` is the most that one call sends, if that is known.
    pub(crate) fn audit<'a>(&self, waiting: Option<impl IntoIterator<Item = &'a CallId>>, call_bytes: Option<usize>) {
        let mut listed = Vec::new();
        for token in self.connections.ids() {
            let connection = &self.connections[token];
            listed.extend(connection.calls.iter().map(|id| (*id, Place::InFlight(token))));
            listed.extend(connection.queue.iter().map(|id| (*id, Place::Queued(token))));
            self.audit_connection(token, connection);
            self.audit_unsent(connection, call_bytes);
        }
        for (id, place) in &listed {
            let call = self.calls.get(*id);
            assert_eq!(call.map(|call| call.place), Some(*place), "a list has calls that are alive and know it");
        }
        let has_list = waiting.is_some();
        let alive = |id: &&CallId| self.calls.get(**id).is_some();
        let waiting: Vec<_> = waiting.into_iter().flatten().filter(alive).map(|id| (*id, Place::Waiting)).collect();
        listed.extend(waiting);
        let names: BTreeSet<_> = listed.iter().map(|(id, _)| *id).collect();
        assert_eq!(names.len(), listed.len(), "no call is in two lists");
        for id in self.calls.ids() {
            let Some(call) = self.calls.get(id) else { continue };
            let waits_elsewhere = !has_list && call.place == Place::Waiting;
            assert!(names.contains(&id) || waits_elsewhere, "{call:?} is in no list");
            assert!(!call.was_sent() || call.expires.is_set(), "{call:?} was sent and has no deadline");
            let ends = self.time_ends(id).unwrap_or(Tick::NEVER);
            assert!(self.calls.is_watched(id, ends), "the deadline of {call:?} is not watched");
        }
        self.audit_counts();
    }

    fn audit_connection(&self, token: ConnectionId, connection: &Connection) {
        let state = connection.state;
        let calls = (connection.calls.len(), connection.queue.len());
        match state {
            State::Vacant => {
                assert_eq!(calls, (0, 0), "a vacant place has no calls");
                assert!(self.connections.taken_at(token).is_none(), "a vacant place was given back");
            }
            State::Idle { .. } => assert_eq!(calls, (0, 0), "what waits for a connection has one made"),
            State::Backoff { .. }
            | State::Connecting(_)
            | State::Tunnelling(_)
            | State::Securing(_)
            | State::Opening(_) => {
                assert_eq!(calls.0, 0, "no call is in flight before the connection is there");
                assert!(state.ends().is_set(), "{state:?} ends by itself");
            }
            State::Open { .. } => {
                let most = self.origins.pipeline(connection.origin);
                assert!(calls.1 == 0 || connection.streams_left(most) == 0, "waiting calls and room mean progress");
            }
            State::Draining { until } => assert!(calls.0 > 0 || until.is_set(), "what leaves has an end"),
        }
        if !connection.is_open() {
            let is_failing = connection.link.write_failure.is_some();
            let nothing = connection.is_draining() || is_failing || connection.unsent.is_empty();
            assert!(nothing, "{state:?} has nothing to send");
        }
        for id in &connection.queue {
            let is_made = connection.is_there();
            let expires = self.calls.get(*id).map_or(Tick::NEVER, |call| call.expires);
            assert!(!is_made || expires.is_set(), "a call that waits for room has a deadline");
        }
        assert!(!connection.has_unsent() || connection.link.stalled_until.is_set(), "bytes that wait have a deadline");
        let is_read = self.inbound.unread.contains(&token) || !self.driver.has_announced(token);
        assert!(is_read, "what was announced on connection {token:?}, {state:?}, is read");
        let due = self.patience_ends(token);
        assert!(
            self.deadlines.alarm(token.place()) <= due,
            "the deadline of connection {token:?}, {state:?}, is watched"
        );
    }

    /// The unsent bytes of a connection are those of its calls, of notices that give calls up, and of answers to the
    /// peer.
    fn audit_unsent(&self, connection: &Connection, call_bytes: Option<usize>) {
        let asked = self.origins.pipeline(connection.origin).max(1);
        let unsent = connection.unsent.len().saturating_sub(connection.link.unsent_aside);
        let bounded = call_bytes.is_none_or(|bytes| unsent <= 2 * bytes * asked);
        assert!(bounded, "{unsent} bytes wait for {asked} calls");
    }

    fn audit_counts(&self) {
        let count = |is: fn(&Connection) -> bool| self.connections.iter().filter(|connection| is(connection)).count();
        assert_eq!(self.census.connecting(), count(Connection::is_being_made));
        assert_eq!(self.census.taking(), count(Connection::is_open));
        assert_eq!(self.census.draining(), count(Connection::is_draining));
        assert_eq!(0, count(|connection| connection.state == State::Vacant), "places that are taken are not vacant");
    }
}
