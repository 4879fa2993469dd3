//! Making and losing connections.

use std::borrow::Cow;
use std::io;

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::counts::CONNECTED_TO;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::calls::CallId;
use super::connection::{Attempt, Link, Step};
use super::failures::reason_of;
use super::{Network, State, Workload};
use crate::channel::{Channel, Socket};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::Opening;

/// How long one of several addresses may be silent before the next is tried, in nanoseconds (RFC 8305, section 8).
const NEXT_ADDRESS_NS: u64 = 250_000_000;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Begins to connect.
    pub(crate) fn connect<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        self.origins.take_addresses(self.connections[token].origin);
        if !self.first_attempt.is_set() {
            self.first_attempt = now;
        }
        let connection = &mut self.connections[token];
        connection.addresses.clear();
        if let Some(route) = self.origins.route(connection.origin).filter(|route| route.addresses.len() > 1) {
            connection.addresses.extend(route.in_turn(token.place()).cloned());
        }
        let (client, most) = (self.origins.client(connection.origin), self.origins.asked_of(connection.origin));
        connection.link = Link::new(client, most, now);
        self.connecting += 1;
        self.look_at_next(token);
        let until = now.saturating_add(self.terms.connect_timeout_ns).min(Tick::LAST);
        self.try_address(load, token, Attempt { until, address_until: until, tried: 0 }, now);
    }

    /// Tries the next of the target's addresses. If there are others, it has a moment at first; once all have had that,
    /// they share the rest of the time.
    fn try_address<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, attempt: Attempt, now: Tick) {
        let connection = &self.connections[token];
        let route = self.origins.route(connection.origin);
        let left = attempt.until.since(now);
        let untried = route.map_or(0, |route| route.addresses.len()).saturating_sub(attempt.tried) as u64;
        let patience = match connection.addresses.len() as u64 {
            0 | 1 => left,
            _ if untried > 0 => (left / untried).min(NEXT_ADDRESS_NS),
            others => (left / others).max(NEXT_ADDRESS_NS).min(left),
        };
        let address = connection.addresses.front().or_else(|| route?.addresses.first()).cloned();
        self.enter(token, State::Connecting(Attempt { address_until: now.saturating_add(patience), ..attempt }));
        let (Some(route), Some(address)) = (self.origins.route(self.connections[token].origin), address) else {
            return;
        };
        let source = route.source(token.place(), &address);
        if let Err(error) = self.driver.connect(token, &address, source) {
            self.address_failed(load, token, &error, now);
        }
    }

    /// An address refused: the others get their chance, then the attempt has failed.
    fn address_failed<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        error: &io::Error,
        now: Tick,
    ) {
        let State::Connecting(attempt) = self.connections[token].state else { return };
        let (failure, reason) = failure_of(error);
        if self.connections[token].addresses.len() < 2 {
            let reason = self.at_address(token, &reason);
            return self.connecting_failed(load, token, failure, &reason, now);
        }
        self.recorder.trouble(failure, &self.at_address(token, &reason));
        self.driver.close(token);
        self.connections[token].addresses.pop_front();
        self.try_address(load, token, Attempt { tried: attempt.tried + 1, ..attempt }, now);
    }

    /// Connecting has timed out: as a whole, or for the first of several addresses (RFC 8305, section 5).
    pub(super) fn address_late<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        attempt: Attempt,
        now: Tick,
    ) {
        const REASON: &str = "no connection within the connect timeout";

        if now >= attempt.until {
            let reason = self.at_address(token, REASON);
            return self.connecting_failed(load, token, Failure::ConnectTimeout, &reason, now);
        }
        let addresses = self.origins.route(self.connections[token].origin).map_or(0, |route| route.addresses.len());
        if attempt.tried < addresses {
            let reason = self.at_address(token, "no answer to connecting, and the next address was tried");
            self.recorder.trouble(Failure::ConnectTimeout, &reason);
        }
        self.driver.close(token);
        self.connections[token].addresses.rotate_left(1);
        self.try_address(load, token, Attempt { tried: attempt.tried + 1, ..attempt }, now);
    }

    /// The reason with its address, where the target has several.
    fn at_address<'a>(&self, token: ConnectionId, reason: &'a str) -> Cow<'a, str> {
        match self.connections[token].addresses.front() {
            Some(address) => format!("{address}: {reason}").into(),
            None => reason.into(),
        }
    }

    /// The socket has connected, or failed to.
    pub(super) fn socket_connected<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        attempt: Attempt,
    ) {
        let outcome = self.driver.connected(token);
        let now = self.driver.now();
        match outcome {
            Ok(false) => {}
            Err(error) => self.address_failed(load, token, &error, now),
            Ok(true) => {
                let connection = &mut self.connections[token];
                connection.link.connect_ns = now.since(connection.link.began);
                // Where there are several addresses, the one that took the connection says more than a number.
                if let Some(address) = connection.addresses.front() {
                    self.recorder.snapshot.events.add(&format!("{CONNECTED_TO}{address}"), 1);
                }
                self.recorder.snapshot.times.record(Timing::Connect, connection.link.connect_ns);
                let step = Step { since: now, until: attempt.until };
                match self.origins.route(self.connections[token].origin).and_then(|route| route.tls.as_ref()) {
                    None => self.open(load, token, step, now),
                    Some(tls) => {
                        let channel = Channel::tls(tls);
                        self.secure(load, token, channel, step, now);
                    }
                }
            }
        }
    }

    fn secure<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        channel: Result<Channel, String>,
        step: Step,
        now: Tick,
    ) {
        let channel = match channel {
            Ok(channel) => channel,
            Err(reason) => return self.connecting_failed(load, token, Failure::Tls, &reason, now),
        };
        self.connections[token].link.channel = channel;
        self.enter(token, State::Securing(step));
        self.flush_channel(token);
    }

    /// Sends the channel's own records, if it has any.
    pub(super) fn flush_channel(&mut self, token: ConnectionId) {
        let channel = &mut self.connections[token].link.channel;
        let mut written = 0;
        let outcome = channel.flush(&mut Socket { driver: &mut self.driver, token }, &mut written);
        self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
        if let Err(error) = outcome {
            self.write_failed(token, &error);
        }
    }

    /// Notes whether the channel's handshake is over, after it was fed.
    pub(super) fn was_fed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &self.connections[token];
        if let State::Securing(step) = connection.state
            && let Some(handshake) = connection.link.channel.handshake()
        {
            self.recorder.snapshot.times.record(Timing::Tls, now.since(step.since));
            self.recorder.snapshot.numbers.add(Counter::TlsResumed, u64::from(handshake.is_resumed));
            self.open(load, token, Step { since: now, ..step }, now);
        }
    }

    /// The way to the peer is open: the protocol opens its own connection on it.
    fn open<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, step: Step, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.link.client.open(connection.link.channel.alpn(), &mut self.outgoing) {
            Ok(Opening::Ready) => self.ready(load, token, now),
            Ok(Opening::Exchange) => {
                self.enter(token, State::Opening(step));
                self.flush(load, token);
            }
            Err(unsuitable) => self.connecting_failed(load, token, Failure::Handshake, &unsuitable.0, now),
        }
    }

    /// The protocol's opening exchange is over.
    pub(super) fn opened<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if let State::Opening(step) = self.connections[token].state {
            self.recorder.snapshot.times.record(Timing::Handshake, now.since(step.since));
            self.ready(load, token, now);
        }
    }

    /// The connection can carry calls.
    fn ready<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let behind = self.behind(now);
        let connection = &mut self.connections[token];
        connection.state = State::OPEN;
        connection.ready_since = now;
        let history = &mut connection.history;
        history.held_up = history.held_up.max(behind);
        if history.without_since.is_set() {
            let without = now.since(std::mem::replace(&mut history.without_since, Tick::NEVER));
            self.recorder.snapshot.numbers.add(Counter::WithoutServer, without);
        }
        let generation = connection.generation;
        self.newest = token;
        self.connecting -= 1;
        self.taking += 1;
        self.last_connected = now;
        self.has_connected = true;
        self.recorder.snapshot.numbers.add(Counter::ConnectionsMade, 1);
        self.send_queue(load, token, now);
        if self.connections[token].generation == generation {
            load.next_calls(self, token, now);
        }
    }

    /// Sends queued calls of this connection, as far as it has room. The others go on waiting, for as long as a call
    /// may take.
    fn send_queue<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        // The protocol's opening bytes may wait for the first call.
        let mut composed = !self.outgoing.is_empty();
        let behind = self.behind(now);
        let most = self.origins.pipeline(self.connections[token].origin);
        while self.connections[token].streams_left(most) > 0
            && let Some(id) = self.dequeue(token)
        {
            // The connection was there before this worker came to it.
            if let Some(call) = self.calls.get_mut(id).filter(|call| !call.was_sent()) {
                call.late = (call.late + behind).min(now.since(call.due));
            }
            composed |= self.compose(load, token, id, now);
        }
        if composed {
            self.flush(load, token);
        }
        self.bound_waits(load, token);
    }

    /// Calls that wait for room on an open connection time out from now on.
    pub(crate) fn bound_waits<W: Workload<D, Tag = T>>(&mut self, load: &W, token: ConnectionId) {
        for place in 0..self.connections[token].queue.len() {
            let Some(id) = self.connections[token].queue.get(place).copied() else { break };
            if !is_broken(Rule::WaitsEnd) {
                self.bound_wait(load, id);
            }
        }
    }

    /// A call that waits for room on a connection times out, counted from when it was due.
    pub(crate) fn bound_wait<W: Workload<D, Tag = T>>(&mut self, load: &W, id: CallId) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.expires.is_set()) else { return };
        let timeout_ns = load.timeout_ns(call.tag).unwrap_or(self.terms.timeout_ns);
        call.expires = call.due.saturating_add(timeout_ns);
        let expires = call.expires;
        self.calls.watch(id, expires);
    }

    /// The peer has sent something, after which an open connection may have room for queued calls.
    #[inline]
    pub(super) fn send_waiting<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if let Some(first) = self.connections[token].queue.front().copied() {
            // A call that its load has queued for a moment only is sent by the load.
            let waits = self.calls.get(first).is_some_and(|call| call.expires.is_set());
            if waits && self.connections[token].is_open() {
                self.send_queue(load, token, now);
            }
        }
    }

    /// The reason of failures at a silent target: it answers nothing to connecting, or to the first bytes on a
    /// connection.
    pub(crate) fn silence(&self) -> &'static str {
        let is_silent = |state| matches!(state, State::Securing(_) | State::Opening(_));
        if self.connections.iter().any(|connection| is_silent(connection.state)) {
            "it takes connections, and says nothing on them"
        } else {
            "no answer to connecting"
        }
    }
}

/// The failure that an error of connecting is.
fn failure_of(error: &io::Error) -> (Failure, String) {
    use rustix::io::Errno;

    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => (Failure::Ports, "no local port or address is free".to_owned()),
        Some(Errno::MFILE | Errno::NFILE) => (Failure::Descriptors, "no file descriptor is free".to_owned()),
        Some(Errno::CONNREFUSED) => (Failure::Connect, "connection refused".to_owned()),
        // A Unix socket whose backlog is full.
        Some(Errno::AGAIN) => (Failure::Connect, "the server's queue of connections is full".to_owned()),
        _ => (Failure::Connect, reason_of(error)),
    }
}
