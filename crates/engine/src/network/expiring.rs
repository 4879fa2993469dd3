//! Deadlines: of calls, of connecting, of backing off, of pauses.

use std::io;

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call::{End, Place};
use super::calls::CallId;
use super::receiving::FAREWELL_NS;
use super::{Network, State, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver, MOST_EVENTS, Ready};

/// The reason of a connection whose peer reads nothing.
const UNREAD: &str = "the peer has read nothing within the timeout";

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Reads everything that had come by `now`, and then ends whatever has waited too long: an answer that lay with the
    /// operating system while this worker stood still has come in time, and time in which it stood still is no wait for
    /// the peer.
    ///
    /// # Errors
    /// When the operating system cannot wait for events.
    pub(crate) fn expire<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        now: Tick,
        events: &mut Vec<Ready>,
    ) -> io::Result<()> {
        self.settles_at = now;
        let settled = if is_broken(Rule::ReadsBeforeExpiring) { Ok(()) } else { self.settle(load, now, events) };
        self.settles_at = Tick::NEVER;
        settled?;
        while let Some(id) = self.calls.overdue(now) {
            match self.time_is_up(id) {
                Some(ends) if ends > now => self.calls.watch(id, ends),
                _ => self.call_late(load, id, now),
            }
        }
        while let Some(token) = self.deadlines.due(now) {
            let token = ConnectionId::at(token as usize);
            if self.connections[token].due() <= now {
                let ends = self.patience_ends(token);
                if ends > now {
                    self.deadlines.arm(token.place() as u32, ends);
                    continue;
                }
                self.connection_late(load, token, now);
            }
            let due = self.connections[token].due();
            if due > now && due.is_set() {
                self.deadlines.arm(token.place() as u32, due);
            }
        }
        Ok(())
    }

    pub(crate) fn settle<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        now: Tick,
        events: &mut Vec<Ready>,
    ) -> io::Result<()> {
        // One wait announces so many connections at most.
        for _ in 0..=self.connections.len() / MOST_EVENTS {
            self.driver.wait(now, events)?;
            self.woke();
            for &event in &*events {
                self.handle(load, event);
            }
            if events.len() < MOST_EVENTS {
                break;
            }
        }
        self.read_on(load);
        Ok(())
    }

    /// When a call's time is up, not counting time in which this worker stood still.
    pub(super) fn time_is_up(&self, id: CallId) -> Option<Tick> {
        let call = self.calls.get(id)?;
        let began = if call.was_sent() { call.sent } else { call.due };
        let since = self.calls.last_message(id).map_or(began, |last| last.max(began));
        Some(self.stops.put_off(since, call.expires))
    }

    /// The same for what a connection's peer has to do.
    pub(super) fn patience_ends(&self, token: ConnectionId) -> Tick {
        let connection = &self.connections[token];
        let due = connection.due();
        let since = match connection.state {
            _ if due == connection.link.stalled_until => due.before(self.terms.timeout_ns),
            State::Connecting(_) | State::Securing(_) | State::Opening(_) => connection.link.began,
            State::Leaving { .. } => due.before(FAREWELL_NS),
            State::Vacant | State::Idle { .. } | State::Backoff { .. } | State::Open { .. } => return due,
        };
        self.stops.put_off(since, due)
    }

    fn connection_late<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if self.connections[token].link.stalled_until <= now {
            return self.broken(load, token, Failure::Write, UNREAD, now);
        }
        let reason = match self.connections[token].state {
            State::Backoff { .. } => return self.backed_off(load, token, now),
            // A pause before the connection's next call is over; the code that set it removes it.
            State::Vacant => return,
            State::Idle { .. } | State::Open { .. } => return load.next_calls(self, token, now),
            State::Leaving { .. } => {
                let reason = self.farewell(token);
                return self.lost(load, token, Failure::Closed, &reason, now);
            }
            State::Connecting(attempt) => return self.address_late(load, token, attempt, now),
            State::Securing(_) => "no TLS handshake within the connect timeout",
            State::Opening(_) => "no opening handshake within the connect timeout",
        };
        self.connecting_failed(load, token, Failure::ConnectTimeout, reason, now);
    }

    /// A call whose answer nobody waits for any more: it ends as if it had timed out.
    pub(crate) fn give_up<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, now: Tick) {
        self.call_late(load, id, now);
    }

    /// A call has timed out. Its connection goes on without it where the protocol can tell a late answer from
    /// another's, and otherwise ends.
    fn call_late<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, now: Tick) {
        let Some(call) = self.calls.get(id).copied() else { return };
        let (failure, reason) = self.lateness(id);
        let end = if call.is_optional() { End::Withdrawn } else { End::Failed(failure, reason) };
        match call.place {
            // A call that was sent before and waits to be sent again still has its deadline.
            Place::Waiting => self.complete(load, id, end, now),
            Place::Queued(token) => {
                self.connections[token].queue.retain(|queued| *queued != id);
                self.complete(load, id, End::Failed(failure, reason), now);
                if self.connections[token].is_there() {
                    self.freed.push((token, now));
                }
            }
            Place::InFlight(token) => {
                let connection = &mut self.connections[token];
                let sent = connection.has_sent(&call);
                let position = connection.calls.iter().position(|known| *known == id);
                if let Some(position) = position
                    && (sent || connection.link.client.is_framed())
                    && connection.link.client.give_up(position, &mut self.outgoing)
                {
                    connection.take_call(position);
                    self.flush_aside(token);
                    self.send_waiting(load, token, now);
                    self.complete(load, id, end, now);
                    // A peer that takes no more calls may never answer those that it has.
                    if self.retire_if_drained(load, token, now) {
                        self.freed.push((token, now));
                    }
                } else {
                    self.outgoing.clear();
                    self.lost(load, token, failure, reason, now);
                }
            }
        }
    }
}
