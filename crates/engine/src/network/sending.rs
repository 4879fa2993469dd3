//! Bytes out.

use std::io;

use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call::{Counted, End, Place, Resend};
use super::calls::CallId;
use super::failures::WriteFailure;
use super::{Network, Workload};
use crate::channel::{Sent, Socket};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::user::Message;
use brunt_protocol::{Pending, Started};

/// Limit on waiting bytes of one connection that answer its peer's own messages (pings). Beyond it the connection ends:
/// a peer that asks and never reads must not fill our memory.
const MOST_ASIDE_BYTES: usize = 64 << 10;

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Its call has ended.
    Ended,
    /// Its call waits for another answer.
    GoesOn,
    /// Its connection is gone.
    Gone,
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Sends a call on a connection that is open.
    pub(crate) fn send<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, id: CallId, now: Tick) {
        if self.compose(load, token, id, now) {
            self.flush(load, token);
        }
    }

    /// Queues the call for the connection; it is sent once that is ready.
    pub(crate) fn enqueue(&mut self, token: ConnectionId, id: CallId) {
        if let Some(call) = self.calls.get_mut(id) {
            call.place = Place::Queued(token);
            self.connections[token].queue.push_back(id);
        }
    }

    /// Queues the call for an open connection that takes no call yet: the call waits for as long as it may take.
    pub(crate) fn await_room<W: Workload<D, Tag = T>>(&mut self, load: &W, token: ConnectionId, id: CallId) {
        self.enqueue(token, id);
        self.bound_wait(load, id);
    }

    /// The oldest call that waits for the connection, no longer waiting.
    pub(crate) fn dequeue(&mut self, token: ConnectionId) -> Option<CallId> {
        self.connections[token].queue.pop_front()
    }

    /// Writes a call's bytes, and those of its batch, into the outgoing buffer and puts the calls in flight. False if
    /// there is nothing to flush, since the load had no such call.
    pub(crate) fn compose<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        id: CallId,
        now: Tick,
    ) -> bool {
        debug_assert!(!self.connections[token].is_stalled(), "nothing is composed behind bytes that wait");
        let mut next = Some(id);
        let mut composed = false;
        while let Some(id) = next.take() {
            let Some(tag) = self.calls.get(id).map(|call| call.tag) else { break };
            let timeout_ns = load.timeout_ns(tag).unwrap_or(self.terms.timeout_ns);
            let Ok(message) = load.message(tag) else {
                let counted = self.calls.get(id).is_some_and(|call| call.counted == Counted::Already);
                self.complete(load, id, if counted { End::Unsent } else { End::Withdrawn }, now);
                break;
            };
            let (more, idempotent) = (message.more, message.idempotent);
            let first_byte_out = self.connections[token].link.bytes_out + self.outgoing.len() as u64;
            let started = self.append(token, &message);
            let connection = &mut self.connections[token];
            let Some(call) = self.calls.get_mut(id) else { break };
            call.ends_sent = ends_sent(started);
            if call.resend != Resend::Done {
                call.resend = if idempotent { Resend::Once } else { Resend::Never };
            }
            call.first_byte_out = first_byte_out;
            call.last_byte = connection.link.bytes_out + self.outgoing.len() as u64;
            call.place = Place::InFlight(token);
            call.alone = connection.calls.is_empty();
            call.send(now, timeout_ns);
            if call.counted == Counted::OnceSent {
                self.recorder.due(call);
            }
            let call = *call;
            self.calls.watch(id, call.expires);
            if call.alone || call.ends_sent.is_some() {
                connection.calls.push_back(id);
            } else {
                self.put_in_flight(token, id, false);
            }
            if let Started::Streamed { stall_ns } = started {
                self.calls.begin_stream(id, stall_ns);
                self.recorder.times_streams();
            }
            composed = true;
            if more && call.resend != Resend::Done {
                next = load.next_of_batch(&call).map(|call| self.begin(call));
                if let Some(id) = next
                    && self.connections[token].link.client.capacity() <= self.connections[token].calls.len()
                {
                    // The batch goes on once its peer takes more calls.
                    self.await_room(load, token, id);
                    break;
                }
            }
        }
        composed
    }

    /// Puts a call in flight. Calls that end once they are sent stand behind those that wait for an answer: a client's
    /// positions count only the latter.
    #[inline]
    pub(super) fn put_in_flight(&mut self, token: ConnectionId, id: CallId, ends_sent: bool) {
        let in_flight = &mut self.connections[token].calls;
        if ends_sent || in_flight.is_empty() {
            return in_flight.push_back(id);
        }
        let calls = &self.calls;
        let ends_sent = |id: &&CallId| calls.get(**id).is_some_and(|call| call.ends_sent.is_some());
        let behind = in_flight.iter().rev().take_while(ends_sent).count();
        in_flight.insert(in_flight.len() - behind, id);
    }

    /// Asks for another answer for the call just answered on this connection. Returns the status with which the call
    /// ends once that request is sent, if it needs no answer.
    pub(crate) fn ask_on(&mut self, token: ConnectionId, message: &Message<'_>) -> Option<u16> {
        ends_sent(self.append(token, message))
    }

    /// Sends a further message of a user on a call. False if the call is not in flight. A call that takes no more
    /// messages fails.
    pub(crate) fn say<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        id: CallId,
        message: &Message<'_>,
        now: Tick,
    ) -> bool {
        let Some(Place::InFlight(token)) = self.calls.get(id).map(|call| call.place) else { return false };
        let connection = &mut self.connections[token];
        let Some(position) = connection.calls.iter().position(|known| *known == id) else { return false };
        match connection.link.client.say(position, message, &mut self.outgoing) {
            Ok(()) => self.flush(load, token),
            Err(reason) => {
                self.flush_aside(token);
                self.leave(load, id, Some((Failure::Oversize, reason)), now);
            }
        }
        true
    }

    /// Lets the connection's client write a message into the outgoing buffer.
    #[inline]
    fn append(&mut self, token: ConnectionId, message: &Message<'_>) -> Started {
        let connection = &mut self.connections[token];
        let started = connection.link.client.start(message, &mut self.outgoing);
        if let Some(tail) = message.tail
            && !connection.link.client.is_framed()
        {
            connection.link.bytes_out += (self.outgoing.len() + tail.bytes().len()) as u64;
            connection.unsent.push(&self.outgoing);
            self.outgoing.clear();
            connection.unsent.push_shared(tail);
        }
        started
    }

    /// Sends the outgoing buffer, and the bytes that the connection still holds.
    pub(crate) fn flush<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId) {
        let was_stalled = self.connections[token].is_stalled();
        if !self.send_outgoing(token) || !self.send_more(token) {
            return;
        }
        self.note_holds(token);
        let generation = self.connections[token].generation;
        self.end_sent(load, token);
        if was_stalled && self.connections[token].generation == generation {
            let now = self.driver.now();
            self.send_waiting(load, token, now);
        }
    }

    /// Sends further bytes of a connection's client, as long as the socket takes them. False if the socket has failed.
    fn send_more(&mut self, token: ConnectionId) -> bool {
        loop {
            let connection = &mut self.connections[token];
            let pending = connection.link.client.pending();
            connection.link.holds.is_blocked = pending == Pending::HeldBack;
            if pending != Pending::Now || !connection.is_sent() {
                return true;
            }
            connection.link.client.more(&mut self.outgoing);
            if self.outgoing.is_empty() {
                return true;
            }
            if !self.send_outgoing(token) {
                return false;
            }
        }
    }

    /// Sends further bytes after some came in, which may have made room.
    #[inline]
    pub(super) fn send_more_aside(&mut self, token: ConnectionId) {
        let connection = &mut self.connections[token];
        if connection.link.client.pending() == Pending::Nothing {
            connection.link.holds.is_blocked = false;
        } else {
            self.send_more(token);
        }
        self.note_holds(token);
    }

    /// Sends a client's own bytes, if it has any.
    #[inline]
    pub(super) fn flush_aside(&mut self, token: ConnectionId) {
        if !self.outgoing.is_empty() {
            self.send_outgoing(token);
        }
    }

    /// Sends a client's own bytes in answer to its peer.
    ///
    /// # Errors
    /// When more bytes wait than a peer may make us keep.
    #[inline]
    pub(super) fn reply_aside(&mut self, token: ConnectionId) -> Result<(), &'static str> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let aside = self.outgoing.len();
        self.flush_aside(token);
        let connection = &mut self.connections[token];
        if !connection.unsent.is_empty() {
            connection.link.unsent_aside += aside;
        }
        if connection.link.unsent_aside > MOST_ASIDE_BYTES {
            return Err("more than 64 KiB of replies wait for the peer, which does not read them");
        }
        Ok(())
    }

    /// Notes the limits that hold a connection back, after calls or bytes came or went.
    #[inline]
    pub(super) fn note_holds(&mut self, token: ConnectionId) {
        let connection = &mut self.connections[token];
        // Calls that the plan does not ask for are not held back.
        let is_full = connection.link.most > 1 && connection.is_open() && {
            let limit = connection.link.client.capacity();
            // A request that asked for the end of the connection is the last by its own wish.
            limit < connection.link.most
                && connection.carried() >= limit
                && !connection.link.client.has_asked_to_close()
        };
        if connection.link.holds.differ(is_full) {
            let now = self.driver.now();
            connection.link.holds.change(is_full, now, &mut self.recorder.snapshot.numbers);
        }
    }

    /// Sends the outgoing buffer. False if the socket has failed.
    fn send_outgoing(&mut self, token: ConnectionId) -> bool {
        loop {
            let connection = &mut self.connections[token];
            connection.link.bytes_out += self.outgoing.len() as u64;
            if connection.link.write_failure.is_some() {
                self.outgoing.clear();
                return false;
            }
            let mut sent = Sent::default();
            let mut socket = Socket { driver: &mut self.driver, token };
            let outcome = connection.link.channel.send(&mut socket, &self.outgoing, &mut connection.unsent, &mut sent);
            let stalls = connection.is_stalled() || !connection.is_sent();
            self.outgoing.clear();
            // The buffer of a large body must not be kept for ever.
            self.outgoing.shrink_to(1 << 20);
            self.count(token, sent);
            if let Err(error) = outcome {
                self.write_failed(token, &error);
                return false;
            }
            if stalls {
                self.note_stall(token, sent.wire > 0);
            }
            // Adds the bytes that the client owed while nothing could be sent.
            if self.outgoing.is_empty() {
                return true;
            }
        }
    }

    /// Notes whether bytes wait for a socket, which has just taken some or not. The connection's client is told when
    /// waiting begins and when it ends; its bytes then are in the outgoing buffer.
    #[cold]
    fn note_stall(&mut self, token: ConnectionId, has_taken: bool) {
        let now = self.driver.now();
        let connection = &mut self.connections[token];
        let was_stalled = connection.is_stalled();
        if connection.is_sent() {
            connection.link.stalled_until = Tick::NEVER;
            connection.link.unsent_aside = 0;
            if was_stalled {
                connection.link.client.resumed(&mut self.outgoing);
                self.freed.push((token, now));
            }
            return;
        }
        if !was_stalled {
            connection.link.client.stalled();
        }
        if has_taken || !was_stalled {
            let until = now.saturating_add(self.terms.timeout_ns).min(Tick::LAST);
            connection.link.stalled_until = until;
            if !is_broken(Rule::StallsEnd) {
                self.deadlines.arm(token.place() as u32, until);
            }
        }
    }

    #[inline]
    fn count(&mut self, token: ConnectionId, sent: Sent) {
        let connection = &mut self.connections[token];
        if connection.link.channel.is_plain() {
            connection.link.bytes_taken += sent.wire as u64;
        } else if sent.wire > 0 {
            connection.link.bytes_taken = connection.link.bytes_out;
        }
        self.recorder.snapshot.numbers.add(Counter::ClearOut, sent.clear as u64);
        self.recorder.snapshot.numbers.add(Counter::WireOut, sent.wire as u64);
    }

    /// Ends calls that end once they are sent, when the socket has taken everything.
    pub(super) fn end_sent<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId) {
        let Some((mut position, mut id, mut status)) = self.ends_sent(token) else { return };
        if !self.connections[token].is_sent() {
            return;
        }
        let now = self.driver.now();
        let generation = self.connections[token].generation;
        loop {
            let after = self.answered(load, token, position, id, status, now);
            if after == After::Gone || self.connections[token].generation != generation {
                return;
            }
            if after == After::GoesOn && !self.outgoing.is_empty() {
                let goes_on = self.send_outgoing(token);
                if !goes_on || !self.connections[token].is_sent() {
                    return;
                }
            }
            match self.ends_sent(token) {
                Some(next) => (position, id, status) = next,
                None => break,
            }
        }
        self.connections[token].has_served();
        self.last_answer = now;
        if self.terms.reconnect {
            self.ended_with_answer(load, token, now);
        } else {
            self.freed.push((token, now));
        }
    }

    /// A call in flight that ends once it is sent: its position, its name, and its status then.
    #[inline]
    fn ends_sent(&self, token: ConnectionId) -> Option<(usize, CallId, u16)> {
        let in_flight = &self.connections[token].calls;
        let id = *in_flight.back()?;
        Some((in_flight.len() - 1, id, self.calls.get(id)?.ends_sent?))
    }

    /// The run is over: says goodbye on every connection whose protocol has a goodbye.
    pub(crate) fn take_leave(&mut self) {
        for token in self.connections.ids() {
            self.say_goodbye(token);
        }
    }

    /// Announces on a connection, as far as its protocol and TLS can, that nothing more will come (RFC 8446 §6.1).
    pub(super) fn say_goodbye(&mut self, token: ConnectionId) {
        let connection = &mut self.connections[token];
        if !connection.is_there() {
            return;
        }
        connection.link.client.close(&mut self.outgoing);
        self.flush_aside(token);
        let written = self.connections[token].link.channel.close(&mut Socket { driver: &mut self.driver, token });
        self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
    }

    /// The socket takes more.
    pub(super) fn writable<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId) {
        let connection = &mut self.connections[token];
        if connection.is_sent() || connection.link.write_failure.is_some() {
            return;
        }
        let mut sent = Sent::default();
        let mut socket = Socket { driver: &mut self.driver, token };
        let outcome = connection.link.channel.send_waiting(&mut socket, &mut connection.unsent, &mut sent);
        self.count(token, sent);
        if let Err(error) = outcome {
            return self.write_failed(token, &error);
        }
        let generation = self.connections[token].generation;
        self.note_stall(token, sent.wire > 0);
        self.flush(load, token);
        if self.connections[token].generation == generation && !is_broken(Rule::WaitingCallsAreSent) {
            let now = self.driver.now();
            self.send_waiting(load, token, now);
        }
    }

    /// The socket has failed. What the peer sent before is read first, and may hold an answer: the connection takes
    /// nothing until then, and ends with that read.
    #[cold]
    pub(super) fn write_failed(&mut self, token: ConnectionId, error: &io::Error) {
        self.outgoing.clear();
        let connection = &mut self.connections[token];
        if connection.link.write_failure.is_some() {
            return;
        }
        connection.link.write_failure = Some(WriteFailure::of(error));
        let until = self.driver.now().saturating_add(self.terms.timeout_ns).min(Tick::LAST);
        connection.link.stalled_until = until;
        self.deadlines.arm(token.place() as u32, until);
        self.unread.push_back(token);
    }
}

/// The status with which a call ends once it is sent, if it needs no answer.
fn ends_sent(started: Started) -> Option<u16> {
    match started {
        Started::Awaited | Started::Streamed { .. } => None,
        Started::Sent(status) => Some(status),
    }
}
