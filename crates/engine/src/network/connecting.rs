//! Making and losing connections.

use std::io;

use brunt_plan::random::mix;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use rustls::{ClientConnection, HandshakeKind};

use super::call::{CallId, End, Place};
use super::connection::Channel;
use super::deadlines::NEVER;
use super::origins::NoClient;
use super::sending::{reason_of, write_tls};
use super::{Gone, Load, Network, State};
use crate::transport::Driver;
use brunt_protocol::Opening;

/// How long to wait after the first attempt without an answer, and at most, in nanoseconds.
const BACKOFF_NS: std::ops::RangeInclusive<u64> = 10_000_000..=1_000_000_000;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Begins to connect.
    pub(crate) fn connect<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let deadline = now.saturating_add(self.terms.connect_timeout_ns);
        let connection = &mut self.connections[token];
        connection.client = self.origins.client(connection.origin);
        connection.most = self.origins.asked_of(connection.origin);
        connection.tried = 0;
        connection.bytes_in = 0;
        connection.began = now;
        connection.state = State::Connecting;
        self.connecting += 1;
        self.set_deadline(token, deadline);
        self.try_address(load, token, now);
    }

    /// Tries the next of the target's addresses.
    fn try_address<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let tried = self.connections[token].tried;
        let Some(route) = self.origins.route(self.connections[token].origin) else { return };
        let Some(address) = route.address(token, tried) else { return };
        let source = route.source(token, address);
        if let Err(error) = self.driver.connect(token, address, source) {
            self.address_failed(load, token, &error, now);
        }
    }

    /// An address refused: the others get their chance, then the attempt has failed.
    fn address_failed<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, error: &io::Error, now: u64) {
        self.driver.close(token);
        let (failure, reason) = failure_of(error);
        let connection = &mut self.connections[token];
        let route = self.origins.route(connection.origin);
        let address = route.and_then(|route| route.address(token, connection.tried));
        connection.tried += 1;
        if connection.tried < route.map_or(0, |route| route.addresses.len()) {
            let address = address.map(ToString::to_string).unwrap_or_default();
            self.recorder.trouble(failure, &format!("{address}: {reason}"));
            self.try_address(load, token, now);
            return;
        }
        self.connecting_failed(load, token, failure, &reason, now);
    }

    /// The socket has something to say about connecting.
    pub(super) fn socket_connected<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize) {
        let outcome = self.driver.connected(token);
        let now = self.driver.now();
        match outcome {
            Ok(false) => {}
            Err(error) => self.address_failed(load, token, &error, now),
            Ok(true) => {
                let began = self.connections[token].began;
                self.recorder.snapshot.times.record(Timing::Connect, now.saturating_sub(began));
                self.connections[token].connected = now;
                match self.origins.route(self.connections[token].origin).and_then(|route| route.tls.as_ref()) {
                    None => self.open(load, token, now),
                    Some(tls) => {
                        let session = ClientConnection::new(tls.config.clone(), tls.server_name.clone());
                        self.begin_handshake(load, token, session, now);
                    }
                }
            }
        }
    }

    fn begin_handshake<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        session: Result<ClientConnection, rustls::Error>,
        now: u64,
    ) {
        let mut session = match session {
            Ok(session) => Box::new(session),
            Err(error) => return self.connecting_failed(load, token, Failure::Tls, &error.to_string(), now),
        };
        // A request is taken whole, whatever its size.
        session.set_buffer_limit(None);
        let outcome = write_tls(&mut self.driver, token, &mut session);
        let connection = &mut self.connections[token];
        connection.channel = Channel::Tls(session);
        connection.state = State::Handshaking;
        match outcome {
            Ok(written) => self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64),
            Err(error) => self.connecting_failed(load, token, Failure::Write, &reason_of(&error), now),
        }
    }

    /// Answers what the handshake wants answered, and sees whether it is over.
    pub(super) fn after_records<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        let Channel::Tls(tls) = &mut connection.channel else { return };
        if tls.wants_write() {
            match write_tls(&mut self.driver, token, tls) {
                Ok(written) => self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64),
                Err(error) => {
                    let reason = reason_of(&error);
                    return self.broken(load, token, Failure::Write, &reason, now);
                }
            }
        }
        if connection.state == State::Handshaking && !tls.is_handshaking() {
            self.recorder.snapshot.times.record(Timing::Tls, now.saturating_sub(connection.connected));
            let resumed = tls.handshake_kind() == Some(HandshakeKind::Resumed);
            self.recorder.snapshot.numbers.add(Counter::TlsResumed, u64::from(resumed));
            self.connections[token].connected = now;
            self.open(load, token, now);
        }
    }

    /// The way to the peer is there: the protocol opens its own connection on it.
    fn open<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        let chosen = match &connection.channel {
            Channel::Plain => None,
            Channel::Tls(tls) => tls.alpn_protocol(),
        };
        match connection.client.open(chosen, &mut self.outgoing) {
            Ok(Opening::Ready) => self.ready(load, token, now),
            Ok(Opening::Exchange) => {
                connection.state = State::Opening;
                self.flush(load, token);
            }
            Err(unsuitable) => self.connecting_failed(load, token, Failure::Handshake, &unsuitable.0, now),
        }
    }

    /// The protocol's opening exchange is over.
    pub(super) fn opened<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &self.connections[token];
        if connection.state == State::Opening {
            self.recorder.snapshot.times.record(Timing::Handshake, now.saturating_sub(connection.connected));
            self.ready(load, token, now);
        }
    }

    /// The connection can carry calls.
    fn ready<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        connection.state = State::Open;
        connection.deadline = NEVER;
        connection.ready_since = now;
        connection.settled = true;
        let generation = connection.generation;
        self.connecting -= 1;
        self.last_connected = now;
        self.has_connected = true;
        self.recorder.snapshot.numbers.add(Counter::ConnectionsMade, 1);
        self.send_queue(load, token, now);
        if self.connections[token].generation == generation {
            load.next_calls(self, token, now);
        }
    }

    /// Sends the calls that waited for this connection, which is ready now.
    fn send_queue<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        // What the protocol opens its connection with may wait for the first call.
        let mut composed = !self.outgoing.is_empty();
        while let Some(id) = self.dequeue(token) {
            composed |= self.compose(load, token, id, now);
        }
        if composed {
            self.flush(load, token);
        }
    }

    /// An attempt to connect has failed: so have the calls that waited for it.
    pub(super) fn connecting_failed<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        self.connecting -= 1;
        self.recorder.snapshot.numbers.add(Counter::ConnectionsFailed, 1);
        if !self.has_connected {
            self.refusal = Some(reason.to_owned());
        }
        let connection = &mut self.connections[token];
        connection.settled = true;
        connection.fruitless += 1;
        let waited = std::mem::take(&mut connection.queue);
        let gone = self.shut(token, failure, reason);
        if waited.is_empty() && !load.connect_failed(self, failure, reason, now) {
            self.recorder.trouble(failure, reason);
        }
        for id in waited {
            self.complete(load, id, End::Failed(failure, reason), now);
        }
        self.carry_on(load, gone, now);
    }

    /// A connection is gone, ready or not yet.
    pub(super) fn broken<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        match self.connections[token].state {
            State::Open => self.lost(load, token, failure, reason, now),
            _ => self.connecting_failed(load, token, failure, reason, now),
        }
    }

    /// A connection that was ready is gone. The failure is that of the oldest call on it.
    pub(super) fn lost<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        let culprit = match failure {
            // Those that took too long have each a failure of their own.
            Failure::Timeout | Failure::Stalled => None,
            _ => self.connections[token].calls.front().copied(),
        };
        self.lose(load, token, culprit, failure, reason, now);
    }

    /// The same where the failure is that of this call.
    pub(super) fn lost_with<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        culprit: CallId,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        self.lose(load, token, Some(culprit), failure, reason, now);
    }

    /// A connection that was ready is gone. Calls without a byte of answer are sent again where that is safe; of the others
    /// `culprit` has the failure, and the rest end with the connection.
    fn lose<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        culprit: Option<CallId>,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        let connection = &mut self.connections[token];
        let resendable = connection.served && matches!(failure, Failure::Closed | Failure::Read | Failure::Write);
        connection.fruitless = if connection.served { 0 } else { connection.fruitless + 1 };
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        let gone = self.shut(token, failure, reason);
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let late = matches!(failure, Failure::Timeout | Failure::Stalled) && call.expires <= now;
            if resendable && call.first_byte == NEVER && call.idempotent && !call.again {
                call.again = true;
                call.place = Place::Queued(token);
                self.recorder.snapshot.numbers.add(Counter::Reconnects, u64::from(self.recorder.counts(call)));
                self.connections[token].queue.push_back(id);
            } else if late {
                let (failure, reason) = self.lateness(id);
                self.complete(load, id, End::Failed(failure, reason), now);
            } else if culprit == Some(id) {
                self.complete(load, id, End::Failed(failure, reason), now);
            } else {
                let end = End::Failed(Failure::Closed, "the connection ended with an earlier call");
                self.complete(load, id, end, now);
            }
        }
        self.carry_on(load, gone, now);
    }

    /// Closes a connection that its load is done with, with a goodbye. Calls that are left on it fail.
    pub(crate) fn close<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        const REASON: &str = "the connection was closed while the call was on it";

        self.say_goodbye(token);
        let connection = &mut self.connections[token];
        let unmade = matches!(connection.state, State::Connecting | State::Handshaking | State::Opening);
        self.connecting -= usize::from(unmade);
        let left: Vec<CallId> = connection.calls.drain(..).chain(connection.queue.drain(..)).collect();
        self.shut(token, Failure::Closed, REASON);
        for id in left {
            self.complete(load, id, End::Failed(Failure::Closed, REASON), now);
        }
    }

    /// Forgets the socket and everything about it; what is left is given back.
    fn shut<'a>(&mut self, token: usize, failure: Failure, reason: &'a str) -> Gone<'a> {
        self.driver.close(token);
        self.outgoing.clear();
        let connection = &mut self.connections[token];
        let was_ready = connection.state == State::Open;
        connection.state = State::Idle;
        connection.channel = Channel::Plain;
        connection.unsent.clear();
        connection.stalled = false;
        connection.unsent_aside = 0;
        connection.bytes_out = 0;
        connection.generation = connection.generation.wrapping_add(1);
        connection.served = false;
        connection.deadline = NEVER;
        let drained = std::mem::take(&mut connection.draining);
        if connection.holds.are_any() {
            let now = self.driver.now();
            connection.holds.end(now, &mut self.recorder.snapshot.numbers);
        }
        let events = &mut self.recorder.snapshot.events;
        connection.client.take_events(&mut |name, count| events.add(name, count));
        let client = std::mem::replace(&mut connection.client, Box::new(NoClient));
        Gone { token, client, failure, reason, drained, was_ready }
    }

    /// After a connection is gone: another for the calls that wait for it, at once, or after a while if the last ones came
    /// to nothing. Without such calls its load decides.
    fn carry_on<L: Load<D, Tag = T>>(&mut self, load: &mut L, gone: Gone<'_>, now: u64) {
        let token = gone.token;
        let connection = &mut self.connections[token];
        // A load that heard of a call's end may have used the place already.
        if connection.state != State::Idle || connection.vacant {
            return;
        }
        if gone.drained && !connection.queue.is_empty() {
            let again: Vec<CallId> = connection.queue.drain(..).collect();
            for id in &again {
                if let Some(call) = self.calls.get_mut(*id) {
                    call.place = Place::Waiting;
                }
            }
            load.turned_away(self, again, now);
        }
        if self.connections[token].queue.is_empty() {
            load.gone(self, gone, now);
        } else if !self.back_off(token, now) {
            self.connect(load, token, now);
        }
    }

    /// Waits before the connection is made again, if attempts in a row came to nothing; false if none did.
    pub(crate) fn back_off(&mut self, token: usize, now: u64) -> bool {
        let connection = &mut self.connections[token];
        if connection.fruitless == 0 {
            return false;
        }
        let (least, most) = BACKOFF_NS.into_inner();
        let wait = least.saturating_mul(1 << (connection.fruitless - 1).min(10)).min(most);
        // Between half and all of it, so that connections do not come back in step.
        let jitter = mix(now ^ (token as u64) << 32) % (wait / 2);
        connection.state = State::Backoff;
        self.set_deadline(token, now + wait - jitter);
        true
    }

    /// `fresh` takes the place of a connection on which the peer takes no more calls. It waits before it is made if that one
    /// brought no answer; false if it need not.
    pub(crate) fn inherit_backoff(&mut self, old: usize, fresh: usize, now: u64) -> bool {
        let old = &self.connections[old];
        self.connections[fresh].fruitless = if old.served { 0 } else { old.fruitless + 1 };
        self.back_off(fresh, now)
    }

    /// The wait after an attempt that came to nothing is over.
    pub(super) fn backed_off<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        connection.state = State::Idle;
        connection.deadline = NEVER;
        if connection.queue.is_empty() {
            load.next_calls(self, token, now);
        } else {
            self.connect(load, token, now);
        }
    }

    /// Whether the first attempt to make each connection is over.
    pub(crate) fn has_settled(&self) -> bool {
        self.connections.0.iter().all(|connection| connection.settled)
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
