//! Bytes out.

use std::io;

use brunt_quic::record::{HEAD_BYTES, Record};
use brunt_record::catalogue::Counter;
use brunt_record::figures::{FigureByName as _, OwnFigures, OwnKind};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::calls::Calls;
use super::connection::{Connection, Link};
use super::failures::WriteFailure;
use super::{Network, Workload};
use crate::channel::{Sent, Socket};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::source::Message;
use brunt_protocol::{Pending, RTT, RTT_UNIT, Started};

/// Limit on waiting bytes of one connection that answer its peer's own messages (pings). Beyond it the connection ends:
/// a peer that asks and never reads must not fill our memory.
const MOST_ASIDE_BYTES: usize = 64 << 10;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Lets the connection's client write a message into the outgoing buffer.
    #[inline]
    pub(super) fn append(&mut self, token: ConnectionId, message: &Message<'_>) -> Started {
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
        if !self.send_outgoing(token) || !self.send_rest(token) {
            return;
        }
        let generation = self.connections[token].generation;
        self.end_those_sent(load, token);
        if was_stalled && self.connections[token].generation == generation {
            let now = self.driver.now();
            self.send_waiting(load, token, now);
        }
    }

    /// Sends further bytes of a connection's client, as long as the socket takes them, and notes what holds it back. False
    /// if the socket has failed.
    #[inline(never)]
    fn send_more(&mut self, token: ConnectionId) -> bool {
        loop {
            let connection = &mut self.connections[token];
            let pending = connection.link.client.pending();
            connection.link.holds.is_blocked = pending == Pending::HeldBack;
            if pending != Pending::Now || !connection.is_sent() {
                break;
            }
            connection.link.client.more(&mut self.outgoing);
            if self.outgoing.is_empty() {
                break;
            }
            if !self.send_outgoing(token) {
                return false;
            }
        }
        self.note_holds(token);
        true
    }

    /// The same of a client that most often has none. False if the socket has failed.
    #[inline]
    pub(super) fn send_rest(&mut self, token: ConnectionId) -> bool {
        let Link { client, holds, most, .. } = &self.connections[token].link;
        // One call at a time, and no limit of the peer's was met.
        if client.pending() == Pending::Nothing && *most <= 1 && !holds.are_any() {
            return true;
        }
        self.send_more(token)
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
    pub(super) fn send_outgoing(&mut self, token: ConnectionId) -> bool {
        loop {
            let connection = &mut self.connections[token];
            connection.link.bytes_out += self.outgoing.len() as u64;
            if connection.link.write_failure.is_some() {
                self.outgoing.clear();
                return false;
            }
            let has_datagrams = connection.link.channel.has_datagrams();
            if has_datagrams && self.recorder.samples.is_some() {
                leave_record_heads_out(connection, &mut self.calls, &self.outgoing);
            }
            let mut sent = Sent::default();
            let mut socket = Socket { driver: &mut self.driver, token };
            let outcome = connection.link.channel.send(&mut socket, &self.outgoing, &mut connection.unsent, &mut sent);
            let stalls = connection.is_stalled() || !connection.is_sent();
            self.outgoing.clear();
            // The buffer of a large body must not be kept for ever.
            self.outgoing.shrink_to(1 << 20);
            connection.link.was_taken(sent);
            let finishes = connection.link.finishes && connection.is_sent();
            self.count(sent);
            if let Err(error) = outcome {
                self.write_failed(token, &error);
                return false;
            }
            if has_datagrams {
                self.arm_timer(token);
            }
            if stalls {
                self.note_stall(token, sent.wire > 0);
            }
            // Adds the bytes that the client owed while nothing could be sent.
            if self.outgoing.is_empty() {
                if finishes {
                    self.finish_sending(token);
                }
                return true;
            }
        }
    }

    /// Closes the sending side of a connection, whose bytes have all gone.
    #[cold]
    fn finish_sending(&mut self, token: ConnectionId) {
        let connection = &mut self.connections[token];
        connection.link.finishes = false;
        let written = connection.link.channel.close(&mut Socket { driver: &mut self.driver, token });
        self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
        self.driver.finish(token);
    }

    /// A second is about to be over: notes what its connections have lost.
    pub(crate) fn note_losses(&mut self) {
        for token in self.connections.ids() {
            if self.connections[token].link.channel.has_datagrams() {
                self.note_losses_of(token);
            }
        }
    }

    /// Notes what a connection has lost since that was last noted.
    #[cold]
    pub(super) fn note_losses_of(&mut self, token: ConnectionId) {
        let dropped = self.driver.dropped(token);
        let channel = &mut self.connections[token].link.channel;
        let losses = channel.take_losses(dropped);
        let snapshot = &mut self.recorder.snapshot;
        snapshot.numbers.add(Counter::PacketsLost, losses.sent);
        snapshot.numbers.add(Counter::DatagramsDropped, losses.dropped);
        if losses.dropped > 0 {
            let missing = self.driver.receive_buffer_missing(token);
            let most = snapshot.numbers.get(Counter::ReceiveBufferMissing).max(missing);
            snapshot.numbers.set(Counter::ReceiveBufferMissing, most);
        }
        if let Some(rtt_ns) = channel.rtt_ns() {
            let mut rtt = OwnFigures::new(OwnKind::Trend, RTT_UNIT);
            rtt.record(rtt_ns as f64 / 1e6, 0);
            snapshot.figures.own.named(RTT).merge(&rtt);
        }
    }

    /// A second is over: clients keep their connections alive, or give those up whose peer no longer answers.
    pub(crate) fn beat<W: Workload<D, Tag = T>>(&mut self, load: &mut W, now: Tick) {
        for token in self.connections.ids() {
            let connection = &mut self.connections[token];
            if !connection.is_open() || connection.link.write_failure.is_some() {
                continue;
            }
            match connection.link.client.beat(&mut self.outgoing) {
                Ok(()) => self.flush_aside(token),
                Err(malformed) => {
                    self.outgoing.clear();
                    self.lost(load, token, Failure::Read, &malformed.0, now);
                }
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
                connection.link.caught_up = now;
                connection.link.client.resumed(&mut self.outgoing);
                self.roomy.push((token, now));
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
    fn count(&mut self, sent: Sent) {
        self.recorder.snapshot.numbers.add(Counter::ClearOut, sent.clear as u64);
        self.recorder.snapshot.numbers.add(Counter::WireOut, sent.wire as u64);
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

    /// The socket takes more, and bytes wait for it.
    pub(super) fn writable<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId) {
        let connection = &mut self.connections[token];
        if connection.link.write_failure.is_some() {
            return;
        }
        let mut sent = Sent::default();
        let mut socket = Socket { driver: &mut self.driver, token };
        let outcome = connection.link.channel.send_waiting(&mut socket, &mut connection.unsent, &mut sent);
        connection.link.was_taken(sent);
        self.count(sent);
        if let Err(error) = outcome {
            return self.write_failed(token, &error);
        }
        self.arm_timer(token);
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
        if self.connections[token].link.write_failure.is_none() {
            self.condemn(token, WriteFailure::of(error));
        }
    }

    /// The connection takes nothing any more, and ends once everything is read that has come.
    #[cold]
    pub(super) fn condemn(&mut self, token: ConnectionId, failure: WriteFailure) {
        let connection = &mut self.connections[token];
        connection.link.write_failure = Some(failure);
        let until = self.driver.now().saturating_add(self.terms.timeout_ns).min(Tick::LAST);
        connection.link.stalled_until = until;
        self.deadlines.arm(token.place() as u32, until);
        self.inbound.unread.push_back(token);
    }
}

/// Takes the heads of records, which no peer gets, out of the sizes of the calls whose bytes are about to be sent.
#[cold]
fn leave_record_heads_out<T: Copy>(connection: &Connection, calls: &mut Calls<T>, outgoing: &[u8]) {
    let base = connection.link.bytes_out - outgoing.len() as u64;
    let mut heads = Vec::new();
    let (mut at, mut rest) = (base, outgoing);
    while let Some(record) = Record::read(rest) {
        let length = HEAD_BYTES + record.length();
        heads.push(at);
        (at, rest) = (at + length as u64, rest.get(length..).unwrap_or_default());
    }
    for id in connection.calls.iter().rev() {
        let Some(call) = calls.get_mut(*id).filter(|call| call.bytes_out_before >= base) else { break };
        let own = call.bytes_out_before..call.bytes_out_through;
        let count = heads.iter().filter(|at| own.contains(at)).count();
        call.bytes_out_before += (count * HEAD_BYTES) as u64;
    }
}
