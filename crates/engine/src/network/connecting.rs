//! Making and losing connections.

use std::borrow::Cow;
use std::io;

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;

use super::call::{CallId, End, Place, Resend};
use super::deadlines::NEVER;
use super::origins::NoClient;
use super::receiving::{MOST_TURNED_AWAY, TURNED_AWAY};
use super::sending::reason_of;
use super::{FailedAttempt, Gone, Listing, Load, Network, Service, State};
use crate::channel::{Channel, Socket};
use crate::transport::Driver;
use brunt_protocol::Opening;

/// A call that was sent on an idle connection may have met its end on the way: if the end comes within this time, in nanoseconds, or within
/// twice the time that connecting took.
const MET_ITS_END_NS: u64 = 10_000_000;

/// How long one of several addresses may say nothing before the next is tried, in nanoseconds (RFC 8305, section 8).
const NEXT_ADDRESS_NS: u64 = 250_000_000;

/// Why calls end with a connection whose last answer has come.
const LAST_ANSWER: &str = "the connection closed after an earlier answer";

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Begins to connect.
    pub(crate) fn connect<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        self.origins.take_addresses(self.connections[token].origin);
        let connection = &mut self.connections[token];
        connection.connect_until = now.saturating_add(self.terms.connect_timeout_ns).min(NEVER - 1);
        connection.addresses.clear();
        if let Some(route) = self.origins.route(connection.origin).filter(|route| route.addresses.len() > 1) {
            connection.addresses.extend(route.in_turn(token).cloned());
        }
        connection.client = self.origins.client(connection.origin);
        connection.most = self.origins.asked_of(connection.origin);
        connection.tried = 0;
        connection.bytes_in = 0;
        connection.began = now;
        connection.state = State::Connecting;
        self.connecting += 1;
        self.try_address(load, token, now);
    }

    /// Tries the next of the target's addresses. Where there are others, it has a moment at first; if all have had that, they have what is left
    /// of the time by turns.
    fn try_address<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &self.connections[token];
        let route = self.origins.route(connection.origin);
        let left = connection.connect_until.saturating_sub(now);
        let untried = route.map_or(0, |route| route.addresses.len()).saturating_sub(connection.tried) as u64;
        let patience = match connection.addresses.len() as u64 {
            0 | 1 => left,
            _ if untried > 0 => (left / untried).min(NEXT_ADDRESS_NS),
            others => (left / others).max(NEXT_ADDRESS_NS).min(left),
        };
        let address = connection.addresses.front().or_else(|| route?.addresses.first()).cloned();
        self.set_deadline(token, now.saturating_add(patience));
        let (Some(route), Some(address)) = (self.origins.route(self.connections[token].origin), address) else {
            return;
        };
        let source = route.source(token, &address);
        if let Err(error) = self.driver.connect(token, &address, source) {
            self.address_failed(load, token, &error, now);
        }
    }

    /// An address refused: the others get their chance, then the attempt has failed.
    fn address_failed<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, error: &io::Error, now: u64) {
        let (failure, reason) = failure_of(error);
        if self.connections[token].addresses.len() < 2 {
            let reason = self.at_address(token, &reason);
            return self.connecting_failed(load, token, failure, &reason, now);
        }
        self.recorder.trouble(failure, &self.at_address(token, &reason));
        self.driver.close(token);
        let connection = &mut self.connections[token];
        connection.addresses.pop_front();
        connection.tried += 1;
        self.try_address(load, token, now);
    }

    /// Connecting has taken too long: as a whole, or as far as the first of several addresses has it (RFC 8305, section 5).
    pub(super) fn address_late<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        const REASON: &str = "no connection within the connect timeout";

        if now >= self.connections[token].connect_until {
            let reason = self.at_address(token, REASON);
            return self.connecting_failed(load, token, Failure::ConnectTimeout, &reason, now);
        }
        let addresses = self.origins.route(self.connections[token].origin).map_or(0, |route| route.addresses.len());
        if self.connections[token].tried < addresses {
            let reason = self.at_address(token, "no answer to connecting, and the next address was tried");
            self.recorder.trouble(Failure::ConnectTimeout, &reason);
        }
        self.driver.close(token);
        let connection = &mut self.connections[token];
        connection.addresses.rotate_left(1);
        connection.tried += 1;
        self.try_address(load, token, now);
    }

    /// What happened, with the address that it happened at, where there are several.
    fn at_address<'a>(&self, token: usize, reason: &'a str) -> Cow<'a, str> {
        match self.connections[token].addresses.front() {
            Some(address) => format!("{address}: {reason}").into(),
            None => reason.into(),
        }
    }

    /// The socket has something to say about connecting.
    pub(super) fn socket_connected<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize) {
        let outcome = self.driver.connected(token);
        let now = self.driver.now();
        match outcome {
            Ok(false) => {}
            Err(error) => self.address_failed(load, token, &error, now),
            Ok(true) => {
                let connection = &mut self.connections[token];
                connection.connected = now;
                connection.deadline = connection.connect_until;
                connection.connect_ns = now.saturating_sub(connection.began);
                self.recorder.snapshot.times.record(Timing::Connect, connection.connect_ns);
                match self.origins.route(self.connections[token].origin).and_then(|route| route.tls.as_ref()) {
                    None => self.open(load, token, now),
                    Some(tls) => {
                        let channel = Channel::tls(tls);
                        self.begin_handshake(load, token, channel, now);
                    }
                }
            }
        }
    }

    fn begin_handshake<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        channel: Result<Channel, String>,
        now: u64,
    ) {
        let mut channel = match channel {
            Ok(channel) => channel,
            Err(reason) => return self.connecting_failed(load, token, Failure::Tls, &reason, now),
        };
        let outcome = channel.flush(&mut Socket { driver: &mut self.driver, token });
        let connection = &mut self.connections[token];
        connection.channel = channel;
        connection.state = State::Handshaking;
        match outcome {
            Ok(written) => self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64),
            Err(error) => self.connecting_failed(load, token, Failure::Write, &reason_of(&error), now),
        }
    }

    /// Sends what the channel has to say to what it was fed, and sees whether its handshake is over.
    pub(super) fn was_fed<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        match connection.channel.flush(&mut Socket { driver: &mut self.driver, token }) {
            Ok(written) => self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64),
            Err(error) => {
                let reason = reason_of(&error);
                return self.broken(load, token, Failure::Write, &reason, now);
            }
        }
        if connection.state == State::Handshaking
            && let Some(handshake) = connection.channel.handshake()
        {
            self.recorder.snapshot.times.record(Timing::Tls, now.saturating_sub(connection.connected));
            self.recorder.snapshot.numbers.add(Counter::TlsResumed, u64::from(handshake.is_resumed));
            self.connections[token].connected = now;
            self.open(load, token, now);
        }
    }

    /// The way to the peer is there: the protocol opens its own connection on it.
    fn open<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        match connection.client.open(connection.channel.alpn(), &mut self.outgoing) {
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
        let behind = self.behind(now);
        let connection = &mut self.connections[token];
        connection.state = State::Open;
        connection.deadline = NEVER;
        connection.ready_since = now;
        connection.held_up = connection.held_up.max(behind);
        if connection.without_since != NEVER {
            let without = now.saturating_sub(std::mem::replace(&mut connection.without_since, NEVER));
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

    /// Sends the calls that waited for this connection, as far as it has room for them. The others go on waiting, for as long as a call may
    /// take.
    fn send_queue<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        // What the protocol opens its connection with may wait for the first call.
        let mut composed = !self.outgoing.is_empty();
        let behind = self.behind(now);
        let most = self.origins.pipeline(self.connections[token].origin);
        while self.connections[token].streams_left(most) > 0
            && let Some(id) = self.dequeue(token)
        {
            // The connection was there before this worker came to it.
            if let Some(call) = self.calls.get_mut(id).filter(|call| !call.was_sent()) {
                call.late = (call.late + behind).min(now.saturating_sub(call.due));
            }
            composed |= self.compose(load, token, id, now);
        }
        if composed {
            self.flush(load, token);
        }
        self.bound_waits(load, token);
    }

    /// The calls that wait for room on an open connection have as long as they may take.
    pub(crate) fn bound_waits<L: Load<D, Tag = T>>(&mut self, load: &L, token: usize) {
        for place in 0..self.connections[token].queue.len() {
            let Some(id) = self.connections[token].queue.get(place).copied() else { break };
            self.bound_wait(load, id);
        }
    }

    /// A call that waits for room on a connection has as long as it may take, from when it was due.
    pub(super) fn bound_wait<L: Load<D, Tag = T>>(&mut self, load: &L, id: CallId) {
        let Some(call) = self.calls.get_mut(id).filter(|call| call.expires == NEVER) else { return };
        let timeout_ns = load.timeout_ns(call.tag).unwrap_or(self.terms.timeout_ns);
        call.expires = call.due.saturating_add(timeout_ns);
        let expires = call.expires;
        self.calls.watch(id, expires);
    }

    /// The peer has said something, after which an open connection may have room for calls that waited for it.
    #[inline]
    pub(super) fn send_waiting<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        if let Some(first) = self.connections[token].queue.front().copied() {
            // One that its load has put there for a moment is sent by that.
            let waits = self.calls.get(first).is_some_and(|call| call.expires != NEVER);
            if waits && self.connections[token].state == State::Open {
                self.send_queue(load, token, now);
            }
        }
    }

    /// What a target does that was never heard of: it answers nothing to connecting, or to what is said first on a connection.
    pub(crate) fn silence(&self) -> &'static str {
        let is_open = |state| matches!(state, State::Handshaking | State::Opening);
        if self.connections.0.iter().any(|connection| is_open(connection.state)) {
            "it takes connections, and says nothing on them"
        } else {
            "no answer to connecting"
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
        if self.connections[token].state == State::Connecting {
            self.origins.seek_addresses(self.connections[token].origin, now);
        }
        // A target that says nothing has refused nothing.
        if !self.has_connected && failure != Failure::ConnectTimeout {
            self.refusal = Some(reason.to_owned());
        }
        let connection = &mut self.connections[token];
        connection.service = connection.service.ended();
        if connection.without_since == NEVER && self.watched_since != NEVER {
            connection.without_since = connection.began.max(self.watched_since);
        }
        let (origin, took_ns) = (connection.origin, now.saturating_sub(connection.began));
        let waited = std::mem::take(&mut connection.queue);
        let gone = self.shut(token, failure, reason);
        let is_a_calls_own = !waited.is_empty();
        for id in waited {
            self.complete(load, id, End::Failed(failure, reason), now);
        }
        let attempt = FailedAttempt { origin, failure, reason, took_ns };
        if !load.connect_failed(self, &attempt, now) && !is_a_calls_own {
            self.recorder.trouble(failure, reason);
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
            State::Open | State::Leaving => self.lost(load, token, failure, reason, now),
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

    /// A connection is gone after an answer that was to be its last: the peer has not processed what came behind (RFC 9112 §9.6).
    pub(super) fn ended_with_answer<L: Load<D, Tag = T>>(&mut self, load: &mut L, token: usize, now: u64) {
        let culprit = self.connections[token].calls.front().copied();
        self.lose(load, token, culprit, Failure::Closed, LAST_ANSWER, now);
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

    /// A connection that was ready is gone, by its last answer or otherwise. Calls behind a last answer are sent again. A call that it was idle before, and whose bytes met the end on the way, is sent again, once, if it
    /// may be. Of the others `culprit` has the failure, and the rest end with the connection.
    fn lose<L: Load<D, Tag = T>>(
        &mut self,
        load: &mut L,
        token: usize,
        culprit: Option<CallId>,
        failure: Failure,
        reason: &str,
        now: u64,
    ) {
        let behind = self.behind(now).max(now.saturating_sub(self.recorder.arrival(now)));
        let connection = &mut self.connections[token];
        // In time, its successor would have been there so much earlier.
        connection.held_up = connection.held_up.max(behind);
        let resendable = connection.service == Service::Answered
            && connection.state == State::Open
            && matches!(failure, Failure::Closed | Failure::Read | Failure::Write);
        let met_its_end_ns = MET_ITS_END_NS.max(2 * connection.connect_ns);
        connection.service = connection.service.ended();
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        let gone = self.shut(token, failure, reason);
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let late = matches!(failure, Failure::Timeout | Failure::Stalled) && call.expires <= now;
            let met_its_end = call.alone && now.saturating_sub(call.sent) <= met_its_end_ns;
            let is_turned_away = reason == LAST_ANSWER && call.turned_away < MOST_TURNED_AWAY;
            let is_sent_again = is_turned_away || resendable && met_its_end && call.resend != Resend::Done;
            if is_sent_again && call.first_byte == NEVER && call.resend != Resend::Never {
                if is_turned_away {
                    call.turned_away += 1;
                } else {
                    call.resend = Resend::Done;
                }
                call.place = Place::Queued(token);
                let counter = if is_turned_away { Counter::TurnedAway } else { Counter::Reconnects };
                self.recorder.snapshot.numbers.add(counter, u64::from(self.recorder.counts(call)));
                self.connections[token].queue.push_back(id);
            } else if late {
                let (failure, reason) = self.lateness(id);
                self.complete(load, id, End::Failed(failure, reason), now);
            } else if reason == LAST_ANSWER && call.turned_away >= MOST_TURNED_AWAY {
                self.complete(load, id, End::Failed(Failure::Closed, TURNED_AWAY), now);
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
        self.connecting -= usize::from(connection.is_being_made());
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
        let drained = connection.state == State::Leaving;
        let was_ready = connection.is_there();
        self.taking -= usize::from(was_ready && !drained);
        self.leaving -= usize::from(drained);
        connection.state = State::Idle;
        connection.channel = Channel::Plain;
        connection.unsent.clear();
        connection.stalled_until = NEVER;
        connection.unsent_aside = 0;
        connection.bytes_out = 0;
        connection.generation = connection.generation.wrapping_add(1);
        if connection.service == Service::Answered {
            connection.service = Service::NONE;
        }
        connection.listing = Listing::Unlisted;
        connection.deadline = NEVER;
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
        if connection.state != State::Idle {
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

    /// Waits before the connection is made again, if the last attempt came to nothing; false if it did not.
    pub(crate) fn back_off(&mut self, token: usize, now: u64) -> bool {
        if !self.connections[token].came_to_nothing() {
            return false;
        }
        let at = self.attempts.retry_at(token, now);
        self.connections[token].state = State::Backoff;
        self.set_deadline(token, at);
        true
    }

    /// `fresh` takes the place of a connection on which the peer takes no more calls. Whether that came to nothing is known once it ends: if it
    /// carries none, that is now, and `fresh` waits before it is made. False if it need not.
    pub(crate) fn succeed(&mut self, old: usize, fresh: usize, now: u64) -> bool {
        let behind = self.behind(now);
        let old = &self.connections[old];
        let service = if old.calls.is_empty() { old.service.ended() } else { Service::NONE };
        let held_up = old.held_up.max(behind);
        let fresh_one = &mut self.connections[fresh];
        (fresh_one.service, fresh_one.held_up) = (service, held_up);
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
