//! Making and losing connections.

use std::io::{self, Read};

use brunt_model::outcome::Failure;
use brunt_model::random::mix;
use brunt_model::snapshot::Phase;
use rustls::{ClientConnection, HandshakeKind};

use super::connection::{Call, Channel, NEVER, Owner, State};
use super::origins::NoClient;
use super::pace::Pace;
use super::sending::{reason_of, write_tls};
use super::{SETUP_PATIENCE_NS, Stage, Worker};
use crate::protocol::Opening;
use crate::transport::Driver;

/// Connections being made at once in the beginning: less than what a listening socket usually holds.
const CONNECTING_AT_ONCE: usize = 128;
/// How long to wait after the first attempt without an answer, and at most, in nanoseconds.
const BACKOFF_NS: std::ops::RangeInclusive<u64> = 10_000_000..=1_000_000_000;
/// Plain text taken from TLS at once, in bytes: a record's size.
const CLEAR_BYTES: usize = 16 * 1024;

impl<D: Driver> Worker<D> {
    /// Before the load: makes the connections, some at a time, and goes to the starting line when they are there, or
    /// when nothing more comes.
    pub(super) fn connect_ahead(&mut self, now: u64) {
        let all = self.connections.0.len();
        if !self.shared.plan.reconnect {
            while self.connecting < CONNECTING_AT_ONCE && self.next_to_connect < all {
                let token = self.next_to_connect;
                self.next_to_connect += 1;
                self.connect(token, now);
            }
            let settled = self.next_to_connect == all && self.connections.0.iter().all(|c| c.settled);
            if !settled && now < self.last_progress + SETUP_PATIENCE_NS {
                return;
            }
        }
        self.shared.line.arrive(self.shared.plan.workers, now);
        self.stage = Stage::Waiting;
    }

    /// Begins to connect.
    pub(super) fn connect(&mut self, token: usize, now: u64) {
        let deadline = now.saturating_add(self.shared.plan.connect_timeout_ns);
        let connection = &mut self.connections[token];
        if connection.owner != Owner::Flood {
            connection.client = self.origins.client(connection.origin);
        }
        connection.tried = 0;
        connection.bytes_in = 0;
        connection.began = now;
        connection.deadline = deadline;
        connection.state = State::Connecting;
        self.connecting += 1;
        self.next_expiry = self.next_expiry.min(deadline);
        self.try_address(token, now);
    }

    /// Tries the next of the target's addresses.
    fn try_address(&mut self, token: usize, now: u64) {
        let tried = self.connections[token].tried;
        let Some(route) = self.origins.route(self.connections[token].origin) else { return };
        let Some(address) = route.address(token, tried) else { return };
        let source = route.source(token, address);
        if let Err(error) = self.driver.connect(token, address, source) {
            self.address_failed(token, &error, now);
        }
    }

    /// An address refused: the others get their chance, then the attempt has failed.
    fn address_failed(&mut self, token: usize, error: &io::Error, now: u64) {
        self.driver.close(token);
        let (failure, reason) = failure_of(error);
        let connection = &mut self.connections[token];
        let route = self.origins.route(connection.origin);
        let address = route.and_then(|route| route.address(token, connection.tried));
        connection.tried += 1;
        if connection.tried < route.map_or(0, |route| route.addresses.len()) {
            let address = address.map(ToString::to_string).unwrap_or_default();
            self.recorder.trouble(failure, &format!("{address}: {reason}"));
            self.try_address(token, now);
            return;
        }
        self.connecting_failed(token, failure, &reason, now);
    }

    /// The socket has something to say about connecting.
    pub(super) fn socket_connected(&mut self, token: usize) {
        let outcome = self.driver.connected(token);
        let now = self.driver.now();
        match outcome {
            Ok(false) => {}
            Err(error) => self.address_failed(token, &error, now),
            Ok(true) => {
                let began = self.connections[token].began;
                self.recorder.snapshot.connect.record(now - began);
                self.connections[token].connected = now;
                match self.origins.route(self.connections[token].origin).and_then(|route| route.tls.as_ref()) {
                    None => self.open(token, now),
                    Some(tls) => {
                        let session = ClientConnection::new(tls.config.clone(), tls.server_name.clone());
                        self.begin_handshake(token, session, now);
                    }
                }
            }
        }
    }

    fn begin_handshake(&mut self, token: usize, session: Result<ClientConnection, rustls::Error>, now: u64) {
        let mut session = match session {
            Ok(session) => Box::new(session),
            Err(error) => return self.connecting_failed(token, Failure::Tls, &error.to_string(), now),
        };
        // A request is taken whole, whatever its size.
        session.set_buffer_limit(None);
        let outcome = write_tls(&mut self.driver, token, &mut session);
        let connection = &mut self.connections[token];
        connection.channel = Channel::Tls(session);
        connection.state = State::Handshaking;
        match outcome {
            Ok(written) => self.recorder.snapshot.bytes.wire_out += written as u64,
            Err(error) => self.connecting_failed(token, Failure::Write, &reason_of(&error), now),
        }
    }

    /// Bytes of TLS arrived: handshake, records, or both.
    pub(super) fn received_tls(&mut self, token: usize, bytes: &[u8], now: u64) {
        let generation = self.connections[token].generation;
        let mut clear = std::mem::take(&mut self.clear);
        clear.resize(CLEAR_BYTES, 0);
        let mut rest = bytes;
        while self.connections[token].generation == generation {
            let Channel::Tls(tls) = &mut self.connections[token].channel else { break };
            match tls.reader().read(&mut clear) {
                // The peer's close_notify: it sends no more, whether or not it closes the socket (RFC 8446 §6.1).
                Ok(0) => {
                    self.peer_closed(token, now);
                    break;
                }
                Ok(n) => {
                    self.received_clear(token, clear.get(..n).unwrap_or(&[]), now);
                    continue;
                }
                // Nothing decrypted is left: on with what arrived, if there is more of it.
                Err(_) if rest.is_empty() => break,
                Err(_) => {}
            }
            let outcome = tls
                .read_tls(&mut rest)
                .map_err(|error| error.to_string())
                .and_then(|_| tls.process_new_packets().map_err(|error| error.to_string()));
            if let Err(reason) = outcome {
                // The alert that says why, as far as the socket takes it.
                let _ = write_tls(&mut self.driver, token, tls);
                self.broken(token, Failure::Tls, &reason, now);
                break;
            }
            self.after_records(token, now);
        }
        self.clear = clear;
    }

    /// Answers what the handshake wants answered, and sees whether it is over.
    fn after_records(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        let Channel::Tls(tls) = &mut connection.channel else { return };
        if tls.wants_write() {
            match write_tls(&mut self.driver, token, tls) {
                Ok(written) => self.recorder.snapshot.bytes.wire_out += written as u64,
                Err(error) => {
                    let reason = reason_of(&error);
                    return self.broken(token, Failure::Write, &reason, now);
                }
            }
        }
        if connection.state == State::Handshaking && !tls.is_handshaking() {
            self.recorder.snapshot.tls.record(now - connection.connected);
            let resumed = tls.handshake_kind() == Some(HandshakeKind::Resumed);
            self.recorder.snapshot.connections.tls_resumed += u64::from(resumed);
            self.connections[token].connected = now;
            self.open(token, now);
        }
    }

    /// The way to the peer is there: the protocol opens its own connection on it.
    fn open(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        match connection.client.open(&mut self.outgoing) {
            Opening::Ready => self.ready(token, now),
            Opening::Exchange => {
                connection.state = State::Opening;
                self.flush(token);
            }
        }
    }

    /// The protocol's opening exchange is over.
    pub(super) fn opened(&mut self, token: usize, now: u64) {
        let connection = &self.connections[token];
        if connection.state == State::Opening {
            self.recorder.snapshot.handshake.record(now - connection.connected);
            self.ready(token, now);
        }
    }

    /// The connection can carry calls.
    fn ready(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        connection.state = State::Open;
        connection.deadline = NEVER;
        connection.ready_since = now;
        connection.settled = true;
        self.connecting -= 1;
        self.last_progress = now;
        self.recorder.snapshot.connections.made += 1;
        self.send_queue(token, now);
        self.next_calls(token, now);
    }

    /// An attempt to connect has failed: so have the calls that waited for it.
    pub(super) fn connecting_failed(&mut self, token: usize, failure: Failure, reason: &str, now: u64) {
        self.connecting -= 1;
        self.recorder.snapshot.connections.failed += 1;
        let connection = &mut self.connections[token];
        connection.settled = true;
        connection.fruitless += 1;
        let calls = std::mem::take(&mut connection.queue);
        let waited = !calls.is_empty();
        for call in calls {
            self.fail(&call, failure, reason, now);
        }
        if !waited {
            self.fail_overdue(failure, reason, now);
        }
        self.keep_held(token, failure, reason);
        self.close(token);
        self.carry_on(token, now);
    }

    /// Open model: a connection could not be made. If a call is overdue and no connection is there for it, it is that
    /// call which has failed.
    fn fail_overdue(&mut self, failure: Failure, reason: &str, now: u64) {
        let measured = self.stage == Stage::Loading(Phase::Measured);
        if let Pace::Open(schedule) = &mut self.pace
            && matches!(self.stage, Stage::Loading(Phase::Warmup | Phase::Measured))
            && self.ready.is_empty()
            && schedule.due().is_some_and(|due| due <= now)
            && let Some((due, index)) = schedule.take()
        {
            let call = Call::new(due, index, measured);
            self.recorder.failed(&call, failure, reason, now);
        }
    }

    /// A connection is gone, ready or not yet.
    pub(super) fn broken(&mut self, token: usize, failure: Failure, reason: &str, now: u64) {
        match self.connections[token].state {
            State::Open => self.lost(token, failure, reason, now),
            _ => self.connecting_failed(token, failure, reason, now),
        }
    }

    /// A connection that was ready is gone. Calls of which nothing came back are sent again where that is safe; the oldest
    /// of the others has the failure, those behind it end with the connection.
    pub(super) fn lost(&mut self, token: usize, failure: Failure, reason: &str, now: u64) {
        let connection = &mut self.connections[token];
        let resendable = connection.served && matches!(failure, Failure::Closed | Failure::Read | Failure::Write);
        connection.fruitless = if connection.served { 0 } else { connection.fruitless + 1 };
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        for (place, mut call) in calls.into_iter().enumerate() {
            if resendable && call.first_byte == NEVER && call.idempotent && !call.again {
                call.again = true;
                self.recorder.snapshot.connections.reconnects += u64::from(call.measured || self.recorder.warming_up);
                self.connections[token].queue.push_back(call);
            } else if place == 0 || failure == Failure::Timeout && call.expires <= now {
                self.fail(&call, failure, reason, now);
            } else {
                self.fail(&call, Failure::Closed, "the connection ended with an earlier call", now);
            }
        }
        self.keep_held(token, failure, reason);
        self.close(token);
        self.carry_on(token, now);
    }

    /// Forgets the socket and everything about it.
    pub(super) fn close(&mut self, token: usize) {
        self.driver.close(token);
        let connection = &mut self.connections[token];
        connection.state = State::Idle;
        connection.channel = Channel::Plain;
        connection.client = match connection.owner {
            Owner::Flood => self.shared.prepared.client(self.interests.answers),
            // It gets one when it is connected again.
            _ => Box::new(NoClient),
        };
        connection.unsent.clear();
        connection.bytes_out = 0;
        connection.generation = connection.generation.wrapping_add(1);
        connection.served = false;
        connection.deadline = NEVER;
    }

    /// After a connection is gone: another at once, or after a while if the last ones came to nothing.
    fn carry_on(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        if connection.owner != Owner::Flood && connection.queue.is_empty() {
            return self.connection_gone(token, now);
        }
        if connection.fruitless > 0 {
            let (least, most) = BACKOFF_NS.into_inner();
            let wait = least.saturating_mul(1 << (connection.fruitless - 1).min(10)).min(most);
            // Between half and all of it, so that connections do not come back in step.
            let jitter = mix(now ^ (token as u64) << 32) % (wait / 2);
            connection.state = State::Backoff;
            connection.deadline = now + wait - jitter;
            self.next_expiry = self.next_expiry.min(connection.deadline);
        } else if connection.queue.is_empty() {
            self.next_calls(token, now);
        } else {
            self.connect(token, now);
        }
    }

    /// The wait after an attempt that came to nothing is over.
    pub(super) fn backed_off(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        connection.state = State::Idle;
        connection.deadline = NEVER;
        if connection.queue.is_empty() {
            self.next_calls(token, now);
        } else {
            self.connect(token, now);
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
