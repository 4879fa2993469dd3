//! Reading: bytes in, and their meaning.

use std::collections::VecDeque;
use std::io;

use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::answer_sampler::SampleRequest;
use super::call::After;
use super::calls::CallId;
use super::calls::End;
use super::connection::failure_of;
use super::failures::{GIVEN_UP, reason_of};
use super::{Network, State, Workload};
use crate::channel::Clear;
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, DATAGRAM_BYTES, Driver};
use brunt_protocol::Progress;

/// How many bytes of one connection are read in a row before the others have their turn.
const BYTES_IN_A_ROW: usize = 1 << 20;
/// How many reads may bring what came in time, where the kernel does not tell when it came: more than a socket's buffer
/// holds, yet a limit for a peer that never stops.
const READS_IN_TIME: usize = 64;
/// Plain text taken from TLS at once, in bytes: a record's size.
const CLEAR_BYTES: usize = 16 * 1024;

/// What is still to be read, and where it is read to.
#[derive(Debug)]
pub(super) struct Inbound {
    /// Connections whose socket may hold more than was read.
    pub(super) unread: VecDeque<ConnectionId>,
    /// While deadlines are about to pass: the time up to which everything that has come is read; [`Tick::NEVER`] otherwise.
    pub(super) settles_at: Tick,
    /// Connections that may owe acknowledgements for datagrams that were read.
    owing: Vec<ConnectionId>,
    /// Bytes as they came.
    buffer: Vec<u8>,
    /// The sizes of datagrams in it.
    sizes: Vec<usize>,
    /// Those of TLS, decrypted.
    clear: Vec<u8>,
}

impl Inbound {
    /// Nothing is to be read yet. One read takes up to so many bytes.
    pub(super) fn reading(bytes: usize) -> Self {
        Self {
            unread: VecDeque::new(),
            settles_at: Tick::NEVER,
            owing: Vec::new(),
            buffer: vec![0; bytes],
            sizes: Vec::new(),
            clear: Vec::new(),
        }
    }
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Reads available bytes of a connection that is read from. `ended` says that the end of the stream is near, so that it is read as well.
    ///
    /// While deadlines are about to pass ([`Inbound::settles_at`]), everything is read that came by then, and what came later
    /// saves no call whose time was over.
    pub(super) fn readable<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, ended: bool) {
        let connection = &self.connections[token];
        let generation = connection.generation;
        let ended = ended || connection.link.write_failure.is_some();
        if connection.link.channel.has_datagrams() {
            return self.datagrams_readable(load, token, ended);
        }
        let settles = self.inbound.settles_at.is_set();
        let mut buffer = std::mem::take(&mut self.inbound.buffer);
        let (mut reads, mut bytes) = (0, 0);
        while reads == 0 || self.connections[token].generation == generation && self.connections[token].is_read() {
            reads += 1;
            if bytes >= BYTES_IN_A_ROW && !settles {
                self.inbound.unread.push_back(token);
                break;
            }
            let calls = &self.calls;
            let oldest = self.connections[token].calls.front().copied();
            let timed = self.recorder.times_next_read(|| Some(calls.get(oldest?)?.sent));
            let taken = if timed || settles {
                self.driver.read_timed(token, &mut buffer)
            } else {
                self.driver.read(token, &mut buffer).map(|n| (n, None))
            };
            match taken {
                Ok((0, _)) => {
                    let now = self.driver.now();
                    self.came_to_its_end(load, token, now);
                    break;
                }
                Ok((n, arrived)) => {
                    let now = self.driver.now();
                    bytes += n;
                    self.recorder.snapshot.numbers.add(Counter::WireIn, n as u64);
                    let is_late = settles && self.comes_late(load, token, arrived, reads, now);
                    // Its calls may have taken the connection with them.
                    if settles && self.connections[token].generation != generation {
                        break;
                    }
                    // A read that is timed for a deadline is no sample.
                    self.recorder.reads(arrived.filter(|_| timed), now);
                    self.received(load, token, buffer.get(..n).unwrap_or(&[]), now);
                    self.recorder.has_read();
                    if is_late {
                        self.inbound.unread.push_back(token);
                        break;
                    }
                    if n < buffer.len() && !ended {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.unreadable(load, token, &error);
                    break;
                }
            }
        }
        self.inbound.buffer = buffer;
    }

    /// The same for datagrams: reads all that wait, and then sends.
    fn datagrams_readable<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, ended: bool) {
        let generation = self.connections[token].generation;
        let settles = self.inbound.settles_at.is_set();
        let (mut buffer, mut sizes) =
            (std::mem::take(&mut self.inbound.buffer), std::mem::take(&mut self.inbound.sizes));
        let (mut reads, mut bytes) = (0, 0);
        while reads == 0 || self.connections[token].generation == generation && self.connections[token].is_read() {
            reads += 1;
            if bytes >= BYTES_IN_A_ROW && !settles {
                self.inbound.unread.push_back(token);
                break;
            }
            match self.driver.read_datagrams(token, &mut buffer, &mut sizes) {
                Ok(may_be_more) => {
                    let now = self.driver.now();
                    let n: usize = sizes.iter().sum();
                    bytes += n;
                    self.recorder.snapshot.numbers.add(Counter::WireIn, n as u64);
                    let is_late = settles && self.comes_late(load, token, None, reads, now);
                    if settles && self.connections[token].generation != generation {
                        break;
                    }
                    self.recorder.reads(None, now);
                    self.received_datagrams(load, token, &buffer, &sizes, now);
                    self.recorder.has_read();
                    if is_late {
                        self.inbound.unread.push_back(token);
                        break;
                    }
                    if !may_be_more && !ended {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ICMP's word of a datagram that was sent, which the system passes on once.
                Err(error) if self.connections[token].link.channel.outlives(&error) => {}
                Err(error) => {
                    self.unreadable(load, token, &error);
                    break;
                }
            }
        }
        (self.inbound.buffer, self.inbound.sizes) = (buffer, sizes);
    }

    /// A connection cannot be read: nothing has come, or it has failed.
    fn unreadable<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, error: &io::Error) {
        let connection = &mut self.connections[token];
        let is_made = !connection.is_being_made() && !connection.link.early_since.is_set();
        let is_tried = !is_made && connection.link.channel.has_datagrams();
        if error.kind() == io::ErrorKind::WouldBlock {
            if let Some(failure) = connection.link.write_failure.take() {
                let now = self.driver.now();
                let kind = if is_tried { Failure::Connect } else { failure.failure() };
                self.broken(load, token, kind, &failure.reason(), now);
            }
            return;
        }
        let now = self.driver.now();
        if is_tried {
            // ICMP says that the port is closed.
            let (failure, reason) = failure_of(error);
            self.broken(load, token, failure, &reason, now);
        } else if connection.link.client.close_reason().is_some() {
            let reason = self.farewell(token);
            self.broken(load, token, Failure::Closed, &reason, now);
        } else {
            self.broken(load, token, Failure::Read, &reason_of(error), now);
        }
    }

    /// Bytes were read while deadlines are about to pass, by the connection's read of this number: ends its calls whose
    /// time was over when they came. Returns whether that was after what is waited for.
    #[cold]
    fn comes_late<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        arrived: Option<Tick>,
        read: usize,
        now: Tick,
    ) -> bool {
        let untimed = if read <= READS_IN_TIME { self.inbound.settles_at } else { now };
        let at = arrived.unwrap_or(untimed);
        let is_over = |id: &CallId| self.time_ends(*id).is_some_and(|ends| ends < at) && !is_broken(Rule::LateIsLate);
        let overdue: Vec<CallId> = self.connections[token].calls.iter().copied().filter(is_over).collect();
        for id in overdue {
            self.call_late(load, id, now);
        }
        at > self.inbound.settles_at
    }

    fn received<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, bytes: &[u8], now: Tick) {
        self.signs.heard();
        if self.connections[token].link.channel.is_plain() {
            self.received_clear(load, token, bytes, now);
        } else {
            self.received_sealed(load, token, bytes, now);
        }
    }

    /// Bytes for the channel have arrived: its handshake, the protocol's bytes, or both.
    fn received_sealed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, bytes: &[u8], now: Tick) {
        let generation = self.connections[token].generation;
        let mut clear = std::mem::take(&mut self.inbound.clear);
        clear.resize(CLEAR_BYTES, 0);
        let mut rest = bytes;
        'fed: while !rest.is_empty() && self.connections[token].generation == generation {
            // What came before a broken record counts.
            let fed = self.connections[token].link.channel.feed(&mut rest, now);
            if fed.is_ok() {
                self.was_fed(load, token, now);
            }
            // The bytes behind a proxy's answer are the target's.
            if self.connections[token].generation == generation && self.connections[token].link.channel.is_plain() {
                self.received_clear(load, token, rest, now);
                break;
            }
            if !self.take_clear(load, token, &mut clear, generation, now) {
                break 'fed;
            }
            if self.connections[token].generation == generation {
                let channel = &self.connections[token].link.channel;
                // Its own records: of its handshake, or an alert with the reason.
                if channel.has_unsent() {
                    self.flush_channel(token);
                }
                if let Err(reason) = fed {
                    let is_proxys = matches!(self.connections[token].state, State::Tunnelling(_));
                    let failure = if is_proxys { Failure::Connect } else { Failure::Tls };
                    self.broken(load, token, failure, &reason, now);
                }
            }
        }
        self.inbound.clear = clear;
    }

    /// Datagrams have arrived. What the channel sends for them, such as acknowledgements, goes out before the worker waits, with what its
    /// load sends meanwhile.
    fn received_datagrams<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        buffer: &[u8],
        sizes: &[usize],
        now: Tick,
    ) {
        self.signs.heard();
        let generation = self.connections[token].generation;
        let channel = &mut self.connections[token].link.channel;
        for (place, size) in buffer.chunks(DATAGRAM_BYTES).zip(sizes) {
            let mut datagram = place.get(..*size).unwrap_or(&[]);
            // Datagrams that are not the peer's are left out.
            let _ = channel.feed(&mut datagram, now);
        }
        if self.connections[token].link.early_since.is_set() {
            self.early_fed(token, now);
        }
        self.was_fed(load, token, now);
        let mut clear = std::mem::take(&mut self.inbound.clear);
        clear.resize(CLEAR_BYTES, 0);
        let goes_on = self.take_clear(load, token, &mut clear, generation, now);
        if goes_on && self.connections[token].generation == generation && self.inbound.owing.last() != Some(&token) {
            self.inbound.owing.push(token);
        }
        self.inbound.clear = clear;
    }

    /// Sends what is owed for datagrams that came.
    #[inline]
    pub(crate) fn send_owed(&mut self) {
        if !self.inbound.owing.is_empty() {
            self.send_all_owed();
        }
    }

    #[inline(never)]
    fn send_all_owed(&mut self) {
        let mut owing = std::mem::take(&mut self.inbound.owing);
        for token in owing.drain(..) {
            if self.connections[token].link.channel.has_datagrams() {
                self.flush_channel(token);
            }
        }
        self.inbound.owing = owing;
    }

    /// Takes the clear bytes that a channel has. False if the connection has ended with them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "on the way of every read of TLS; the other callers are rare")]
    fn take_clear<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        clear: &mut [u8],
        generation: u32,
        now: Tick,
    ) -> bool {
        while self.connections[token].generation == generation {
            match self.connections[token].link.channel.next_clear(clear) {
                Clear::Bytes(count) => self.received_clear(load, token, clear.get(..count).unwrap_or(&[]), now),
                Clear::Nothing => return true,
                Clear::End => {
                    self.peer_closed(load, token, now);
                    return false;
                }
                Clear::Broken(ending) => {
                    let (failure, reason) = *ending;
                    self.broken(load, token, failure, &reason, now);
                    return false;
                }
            }
        }
        true
    }

    /// A timer of the connection's channel has run out.
    #[cold]
    pub(super) fn channel_timer<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let generation = self.connections[token].generation;
        self.connections[token].link.channel.tick(now);
        let mut clear = std::mem::take(&mut self.inbound.clear);
        clear.resize(CLEAR_BYTES, 0);
        let goes_on = self.take_clear(load, token, &mut clear, generation, now);
        self.inbound.clear = clear;
        if goes_on && self.connections[token].generation == generation {
            self.flush_channel(token);
        }
    }

    /// Bytes for the protocol arrived.
    fn received_clear<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, bytes: &[u8], now: Tick) {
        let connection = &mut self.connections[token];
        let carried = connection.link.channel.carried_in(bytes.len()) as u64;
        connection.link.bytes_in += carried;
        let generation = connection.generation;
        self.recorder.snapshot.numbers.add(Counter::ClearIn, carried);
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.connections[token].link.client.receive(rest, &mut self.outgoing) {
                Ok((taken, progress)) => {
                    let (came, left) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
                    rest = left;
                    let goes_on = self.progressed(load, token, progress, came, now);
                    if !goes_on || self.connections[token].generation != generation {
                        return;
                    }
                }
                Err(malformed) => {
                    self.flush_aside(token);
                    self.broken(load, token, Failure::Protocol, &malformed.0, now);
                    return;
                }
            }
        }
        if let Err(reason) = self.reply_aside(token) {
            return self.broken(load, token, Failure::Protocol, reason, now);
        }
        // What came in may have made room.
        self.send_rest(token);
        self.send_waiting(load, token, now);
        // It has been free since the answer came, whenever that was read.
        self.roomy.push((token, self.recorder.arrival(now)));
    }

    /// Handles the progress that the bytes `came` made. False if the connection is gone.
    #[inline]
    fn progressed<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        progress: Progress,
        came: &[u8],
        now: Tick,
    ) -> bool {
        match progress {
            Progress::Answered(answer) => {
                if !self.recorder.is_ok(answer.status) {
                    self.keep_excerpt(load, token, &answer, came);
                }
                if self.recorder.looks.is_due() || self.connections[token].link.look == SampleRequest::Pending {
                    self.look(load, token, &answer, came);
                }
                let connection = &mut self.connections[token];
                let Some(id) = connection.calls.get(answer.position).copied() else {
                    self.broken(load, token, Failure::Protocol, "an answer to no call in flight", now);
                    return false;
                };
                connection.has_served();
                self.signs.answered(now);
                let connection = &self.connections[token];
                // The answer came before the request was sent in full: nobody will read the rest of that.
                let sent = self
                    .calls
                    .get(id)
                    .is_none_or(|call| connection.has_sent(call) || connection.link.client.is_framed());
                match self.answered(load, token, answer.position, id, answer.status, now) {
                    After::Gone => return false,
                    After::GoesOn => return self.went_on(load, token, now),
                    After::Ended => {}
                }
                if !(answer.reusable && sent) || self.connections[token].carries_one {
                    self.flush_aside(token);
                    self.ended_with_answer(load, token, now);
                    return false;
                }
                self.retire_if_empty(load, token, now)
            }
            Progress::More => self.progressed_in_part(token, 0, now),
            Progress::Part { position } => self.progressed_in_part(token, position, now),
            Progress::Message { position, status } => self.message_came(load, token, position, status, now),
            other => self.progressed_otherwise(load, token, other, now),
        }
    }

    /// A part of an answer has come.
    #[inline]
    fn progressed_in_part(&mut self, token: ConnectionId, position: usize, now: Tick) -> bool {
        let id = self.connections[token].calls.get(position).copied();
        if let Some(call) = id.and_then(|id| self.calls.get_mut(id)) {
            call.receive(now);
        }
        true
    }

    /// Handles progress of the rare kinds.
    fn progressed_otherwise<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        progress: Progress,
        now: Tick,
    ) -> bool {
        if let Err(reason) = self.reply_aside(token) {
            self.broken(load, token, Failure::Protocol, reason, now);
            return false;
        }
        match progress {
            Progress::Opened => {
                let generation = self.connections[token].generation;
                self.opening_done(load, token, now);
                self.connections[token].generation == generation
            }
            Progress::Unsolicited => {
                self.recorder.snapshot.numbers.add(Counter::Unasked, 1);
                self.recorder.heard(now);
                true
            }
            Progress::Failed(failed) => {
                let connection = &mut self.connections[token];
                connection.has_served();
                let call = connection.take_call(failed.position);
                let sent = call
                    .and_then(|id| self.calls.get(id))
                    .is_none_or(|call| connection.has_sent(call) || connection.link.client.is_framed());
                if let Some(id) = call {
                    self.calls.get_mut(id).into_iter().for_each(|call| call.receive(now));
                    self.complete(load, id, End::ToldByPeer(failed.failure, &failed.reason), now);
                }
                if !(failed.reusable && sent) || self.connections[token].carries_one {
                    self.close_for_another_call(load, token, GIVEN_UP, now);
                    return false;
                }
                self.retire_if_empty(load, token, now)
            }
            Progress::Draining { unprocessed } => {
                if !self.connections[token].is_there() {
                    let reason = self.farewell(token);
                    self.broken(load, token, Failure::Handshake, &reason, now);
                    return false;
                }
                self.begin_draining(load, token, unprocessed, now);
                self.retire_if_empty(load, token, now)
            }
            Progress::Refused { position, reason } => {
                let id = self.connections[token].take_call(position);
                self.connections[token].has_served();
                self.make_elsewhere(load, id.into_iter().collect(), reason, now);
                self.retire_if_empty(load, token, now)
            }
            Progress::Closing(reason) => {
                let reason = self.in_its_words(token, reason);
                self.ended_by_word(load, token, &reason, now);
                false
            }
            Progress::More
            | Progress::Part { .. }
            | Progress::ControlFrame
            | Progress::Message { .. }
            | Progress::Answered(_) => true,
        }
    }
}
