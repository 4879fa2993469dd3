//! The life of a call, from top to bottom, from [`Network::begin`] to its one end, [`Network::complete`].
//!
//! ```text
//!          ┌─── its load sends it elsewhere ◀──┬─────────┐
//!          ▼                                   │         │
//! due ─▶ waiting ─────▶ queued ─▶ in flight ─▶ (first byte …) ─▶ ended
//!          │              │ ▲        │              └─ goes on ─┘  ▲
//!          │              │ └─ again ┘                             │
//!          └──────────────┴────── unsent, withdrawn, late ─────────┘
//! ```
//!
//! Before it begins here, a call is its load's. Due calls of a rate are a position in its `Schedule`, where they wait for a
//! connection and may end (`flood/waiting`); a log's wait in their sessions. Users' calls begin when they are made. How long one
//! may wait:
//!
//! | it waits | until |
//! | --- | --- |
//! | in a schedule, or a session | the timeout, counted from when it was due, if nothing was answered meanwhile; of a log's in any case |
//! | for a connection that is being made | that is there, or has failed: the connect timeout |
//! | for a connection that all users share, while all are full | the end of the load: it is the pool that limits it, not the target |
//! | for room on an open connection ([`Network::await_room`]) | the timeout, counted from when it was due |
//! | for its answer, once it is sent | the timeout, counted from then: a call that was sent in time has all of it again |
//!
//! Times only grow along the line, since each transition takes the later of its own time and the one before; only a load that
//! holds a call back until a horizon moves on puts off when it was due ([`Call::put_off`]). A call is made again where its peer has
//! not processed it: elsewhere by its load ([`Network::make_elsewhere`]), or on the next connection in the same slot (`Left::fate` in
//! `connection`). What a call consists of stands in `calls`; what is counted of it, in `recorder`.

use brunt_record::catalogue::Counter;

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::calls::{Call, CallId, Counted, End, Place};
use super::failures::{CUT, WriteFailure};
use super::recorder::Core;
use super::{AnswerOf, Judgement, MessageOf, Network, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::Started;
use brunt_protocol::source::Message;

/// How often a call is sent again after a peer did not process it.
pub(super) const MOST_REFUSALS: u8 = 8;
/// Why a call has failed that was sent again so often.
pub(super) const REFUSED_TOO_OFTEN: &str = "the peer turned the call away on each of 9 connections";
/// Why a call has failed that was sent, was not processed, and that its load cannot send again.
const NOT_AGAIN: &str = "the peer has not processed the call, which could not be sent again";
/// Why a call has failed that took too long.
const LATE: &str = "no complete answer within the timeout";
/// The reason of a call that its user left before any message had come.
const LEFT: &str = "its user left the stream before its first message";

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Its call has ended.
    Ended,
    /// Its call waits for another answer.
    GoesOn,
    /// Its connection is gone.
    Gone,
}

/// Calls that begin.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A call begins.
    #[inline]
    pub(crate) fn begin(&mut self, mut call: Call<T>) -> CallId {
        if call.counted == Counted::AtOnce {
            self.recorder.due(&mut call);
        }
        self.calls.insert(call)
    }

    /// A call that has begun and not ended.
    pub(crate) fn call(&self, id: CallId) -> Option<&Call<T>> {
        self.calls.get(id)
    }

    /// The same, to change it.
    pub(crate) fn call_mut(&mut self, id: CallId) -> Option<&mut Call<T>> {
        self.calls.get_mut(id)
    }

    /// Calls that have not ended, measured or not.
    pub(crate) fn calls_alive(&self) -> u64 {
        self.calls.alive()
    }

    /// Measured calls that have begun and not ended.
    pub(crate) fn under_way(&self) -> u64 {
        self.calls.under_way()
    }

    /// When the oldest call was due that has begun and not ended.
    pub(crate) fn oldest_due(&self) -> Option<Tick> {
        self.calls.oldest_due()
    }
}

/// Waiting for a connection.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Queues the call for the connection; it is sent once that is ready.
    pub(crate) fn enqueue(&mut self, token: ConnectionId, id: CallId) {
        if let Some(call) = self.calls.get_mut(id) {
            call.place = Place::Queued(token);
            self.connections[token].queue.push_back(id);
        }
    }

    /// Gives the call to a connection: it is sent at once if there is room. Otherwise it waits, and the connection is made if
    /// it is not there.
    pub(crate) fn carry<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, id: CallId, now: Tick) {
        let connection = &self.connections[token];
        let (is_open, is_idle) = (connection.is_open(), connection.is_idle());
        if connection.room(self.origins.pipeline(connection.origin())) > 0 {
            self.send(load, token, id, now);
        } else if is_open {
            self.await_room(load, token, id);
        } else {
            self.enqueue(token, id);
            if is_idle {
                self.connect(load, token, now);
            }
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

    /// Sends queued calls of this connection, as far as it has room. The others go on waiting, for as long as a call
    /// may take.
    pub(super) fn send_queue<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        // The protocol's opening bytes may wait for the first call.
        let mut composed = !self.outgoing.is_empty();
        let behind = self.behind(now);
        let most = self.origins.pipeline(self.connections[token].origin);
        while self.connections[token].streams_left(most) > 0
            && let Some(id) = self.dequeue(token)
        {
            // The connection was there before this worker came to it.
            if let Some(call) = self.calls.get_mut(id).filter(|call| !call.was_sent()) {
                call.own_delay_ns = (call.own_delay_ns + behind).min(now.since(call.due));
            }
            composed |= self.compose(load, token, id, now);
        }
        if composed {
            self.flush(load, token);
        }
        self.bound_waits(load, token);
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
}

/// Sending.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Sends a call on a connection that is open.
    pub(crate) fn send<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, id: CallId, now: Tick) {
        if self.compose(load, token, id, now) {
            self.flush(load, token);
        }
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
                let end = match self.calls.get(id) {
                    Some(call) if call.was_sent() => End::Failed(Failure::Closed, NOT_AGAIN),
                    Some(call) if call.counted == Counted::Already => End::Unsent,
                    _ => End::Withdrawn,
                };
                self.complete(load, id, end, now);
                break;
            };
            let (more, idempotent) = (message.more, message.idempotent);
            let bytes_out_before = self.connections[token].link.bytes_out + self.outgoing.len() as u64;
            let started = self.append(token, &message);
            let connection = &mut self.connections[token];
            let Some(call) = self.calls.get_mut(id) else { break };
            call.ends_sent = ends_once_sent(started);
            call.idempotent = idempotent;
            call.bytes_in_before = connection.bytes_in_before_a_call();
            call.bytes_out_before = bytes_out_before;
            call.bytes_out_through = connection.link.bytes_out + self.outgoing.len() as u64;
            call.place = Place::InFlight(token);
            call.alone = connection.calls.is_empty();
            let is_first_time = !call.was_sent();
            call.send(now, timeout_ns);
            if call.counted == Counted::OnceSent {
                self.recorder.due(call);
            }
            let (expires, stands_last) = (call.expires, call.alone || call.ends_sent.is_some());
            self.calls.watch(id, expires);
            if stands_last {
                connection.calls.push_back(id);
            } else {
                self.put_in_flight(token, id, false);
            }
            match started {
                Started::Awaited => {}
                Started::Sent(_) => {
                    let link = &mut self.connections[token].link;
                    link.finishes = link.client.has_finished();
                }
                Started::Streamed { stall_ns } => {
                    self.calls.begin_stream(id, stall_ns);
                    self.recorder.times_streams();
                }
                Started::Malformed(reason) => self.condemn(token, WriteFailure::Malformed(reason)),
            }
            composed = true;
            if more && is_first_time {
                let sent = self.calls.get(id).copied();
                next = sent.and_then(|sent| load.next_of_batch(&sent)).map(|call| self.begin(call));
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
        match connection.link.client.send_message(position, message, &mut self.outgoing) {
            Ok(()) => self.flush(load, token),
            Err(reason) => {
                self.flush_aside(token);
                self.abandon(load, id, Some((Failure::Oversize, reason)), now);
            }
        }
        true
    }

    /// Asks for another answer for the call just answered on this connection. Returns the status with which the call
    /// ends once that request is sent, if it needs no answer.
    pub(crate) fn ask_on(&mut self, token: ConnectionId, message: &Message<'_>) -> Option<u16> {
        ends_once_sent(self.append(token, message))
    }
}

/// The status with which a call ends once it is sent, if it needs no answer.
fn ends_once_sent(started: Started) -> Option<u16> {
    match started {
        Started::Awaited | Started::Streamed { .. } | Started::Malformed(_) => None,
        Started::Sent(status) => Some(status),
    }
}

/// What comes of it.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A message for the call in flight at this position has come and was read at `now`. False if the connection is
    /// gone.
    pub(super) fn message_came<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        position: usize,
        status: u16,
        now: Tick,
    ) -> bool {
        let connection = &mut self.connections[token];
        connection.has_served();
        self.signs.answered(now);
        let generation = connection.generation;
        let found = connection.calls.get(position).copied();
        let (at, read) = (self.recorder.arrival(now), self.recorder.reads_so_far());
        self.recorder.heard(now);
        let Some((id, (call, stream))) = found.and_then(|id| Some((id, self.calls.streaming(id)?))) else {
            self.broken(load, token, Failure::Protocol, "a message of no stream in flight", now);
            return false;
        };
        call.receive(now);
        let came = stream.came(call, at, read, status);
        let (tag, expires) = (call.tag, call.expires);
        let counts = self.recorder.counts(call);
        self.calls.watch(id, expires);
        if counts {
            self.recorder.snapshot.came(&came);
        }
        self.recorder.message_by_end(Core::All, at);
        if self.meter.is_some() {
            self.meter_message(token, id, at);
        }
        load.streamed(self, &MessageOf { token, id, tag, status, came, at, counts, now });
        self.connections[token].generation == generation
    }

    /// Completes the call in flight at this position, unless its load sends a request that follows the answer or waits for another
    /// one.
    #[inline]
    pub(super) fn answered<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        position: usize,
        id: CallId,
        status: u16,
        now: Tick,
    ) -> After {
        let Some(call) = self.calls.get_mut(id) else { return After::Ended };
        call.receive(now);
        let connection = &self.connections[token];
        if connection.is_stalled() && !connection.has_sent(call) {
            self.recorder.answered_early(call);
        }
        let answer = AnswerOf { token, tag: call.tag, status, now };
        let judgement = load.judge(self, &answer);
        let reason = match judgement {
            Judgement::Ended => {
                self.connections[token].take_call(position);
                self.complete(load, id, End::Answered(status), now);
                return After::Ended;
            }
            Judgement::GoesOn { ends_sent } => {
                self.recorder.heard(now);
                // For the client it has begun anew, behind the calls that wait.
                self.connections[token].take_call(position);
                if let Some(call) = self.calls.get_mut(id) {
                    call.ends_sent = ends_sent;
                }
                self.put_in_flight(token, id, ends_sent.is_some());
                return After::GoesOn;
            }
            Judgement::Wrong { reason, reusable: false } => {
                self.lose_for_call(load, token, id, Failure::Mismatch, &reason, now);
                return After::Gone;
            }
            Judgement::Wrong { reason, reusable: true } => reason,
        };
        self.connections[token].take_call(position);
        self.complete(load, id, End::Failed(Failure::Mismatch, &reason), now);
        After::Ended
    }

    /// A call waits for another answer. The client may hold one already, of this call or of another: hands out what it holds
    /// until nothing is left. False if the connection is gone.
    pub(super) fn went_on<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) -> bool {
        let generation = self.connections[token].generation;
        self.flush(load, token);
        while self.connections[token].generation == generation
            && let Some(answer) = self.connections[token].link.client.take_superseded()
            && let Some(id) = self.connections[token].calls.get(answer.position).copied()
        {
            match self.answered(load, token, answer.position, id, answer.status, now) {
                After::Gone => return false,
                After::Ended => break,
                After::GoesOn => self.flush(load, token),
            }
        }
        self.connections[token].generation == generation
    }

    /// Ends calls that end once they are sent, when the socket has taken everything.
    pub(super) fn end_those_sent<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId) {
        let Some((mut position, mut id, mut status)) = self.next_that_ends_once_sent(token) else { return };
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
            match self.next_that_ends_once_sent(token) {
                Some(next) => (position, id, status) = next,
                None => break,
            }
        }
        self.connections[token].has_served();
        self.signs.answered(now);
        if self.connections[token].carries_one {
            self.ended_with_answer(load, token, now);
        } else {
            self.roomy.push((token, now));
        }
    }

    /// A call in flight that ends once it is sent: its position, its name, and its status then.
    #[inline]
    fn next_that_ends_once_sent(&self, token: ConnectionId) -> Option<(usize, CallId, u16)> {
        let in_flight = &self.connections[token].calls;
        let id = *in_flight.back()?;
        Some((in_flight.len() - 1, id, self.calls.get(id)?.ends_sent?))
    }
}

/// Again, late, or left.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The peer has not processed these calls. They are made again, unless that has happened too often already: then
    /// they end, for `reason`.
    pub(super) fn make_elsewhere<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        calls: Vec<CallId>,
        reason: &str,
        now: Tick,
    ) {
        let mut again = Vec::new();
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            call.place = Place::Waiting;
            call.refusals += 1;
            if call.refusals > MOST_REFUSALS {
                self.complete(load, id, End::Failed(Failure::Closed, reason), now);
            } else {
                self.recorder.snapshot.numbers.add(Counter::TurnedAway, u64::from(self.recorder.counts(call)));
                again.push(id);
            }
        }
        if !again.is_empty() {
            load.refused_unprocessed(self, again, now);
        }
    }

    /// When a call's time is up, not counting time in which this worker stood still.
    pub(super) fn time_ends(&self, id: CallId) -> Option<Tick> {
        let call = self.calls.get(id)?;
        let began = if call.was_sent() { call.sent } else { call.due };
        let since = self.calls.last_message(id).map_or(began, |last| last.max(began));
        Some(self.stops.put_off(since, call.expires))
    }

    /// A call has timed out, or nobody waits for its answer any more. Its connection goes on without it where the protocol can tell a late answer from
    /// another's, and otherwise ends.
    pub(crate) fn call_late<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, now: Tick) {
        let Some(call) = self.calls.get(id).copied() else { return };
        let (failure, reason) = self.lateness(id);
        let end = call.end_of_time(failure, reason);
        match call.place {
            // A call that was sent before and waits to be sent again still has its deadline.
            Place::Waiting => self.complete(load, id, end, now),
            Place::Queued(token) => {
                self.connections[token].queue.retain(|queued| *queued != id);
                self.complete(load, id, end, now);
                if self.connections[token].is_there() {
                    self.roomy.push((token, now));
                }
            }
            Place::InFlight(token) => {
                let connection = &mut self.connections[token];
                let sent = connection.has_sent(&call);
                let position = connection.calls.iter().position(|known| *known == id);
                if let Some(position) = position
                    && (sent || connection.link.client.is_framed())
                    && connection.link.client.cancel(position, &mut self.outgoing)
                {
                    connection.take_call(position);
                    self.flush_aside(token);
                    self.send_waiting(load, token, now);
                    self.complete(load, id, end, now);
                    self.leave_if_silent(load, token, call.sent, now);
                    // A peer that takes no more calls may never answer those that it has.
                    if self.retire_if_empty(load, token, now) {
                        self.roomy.push((token, now));
                    }
                } else {
                    self.outgoing.clear();
                    self.lost(load, token, failure, reason, now);
                }
            }
        }
    }

    /// A call that was sent at `sent` has timed out. No more calls go on its connection if the peer has not even acknowledged that one: a server
    /// of QUIC that was restarted has forgotten its connections, and nothing but its silence says so.
    fn leave_if_silent<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, sent: Tick, now: Tick) {
        let connection = &self.connections[token];
        if connection.is_open() && connection.link.channel.is_silent_since(sent) {
            self.begin_draining(load, token, usize::MAX, now);
        }
    }

    /// The failure of a late call: it has stalled, or timed out as a whole.
    pub(super) fn lateness(&self, id: CallId) -> (Failure, &'static str) {
        let streaming = self.calls.get(id).filter(|call| call.streams).zip(self.calls.stream(id));
        streaming.and_then(|(call, stream)| stream.lateness(call)).unwrap_or((Failure::Timeout, LATE))
    }

    /// The user of a call leaves its answer. With a reason, the call fails for it. Without one, it counts as answered,
    /// with the status of its last message; if no message has come, it fails. The connection is closed, unless the
    /// protocol can cancel a single call.
    pub(crate) fn abandon<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        id: CallId,
        reason: Option<(Failure, &str)>,
        now: Tick,
    ) {
        if self.calls.get(id).is_none() {
            return;
        }
        let end = match (reason, self.calls.streaming(id)) {
            (Some((failure, reason)), _) => End::Failed(failure, reason),
            (None, stream) => match stream.and_then(|(_, stream)| stream.leave()) {
                Some(status) => End::Answered(status),
                None => End::GivenUp(Failure::Closed, LEFT),
            },
        };
        self.abandon_with(load, id, end, now);
    }

    /// The user of a call is cut off: the call ends as it would with the run.
    pub(crate) fn cut_off<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, now: Tick) {
        if let Some(end) = self.calls.get(id).map(Call::cut_short) {
            self.abandon_with(load, id, end, now);
        }
    }

    fn abandon_with<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, end: End<'_>, now: Tick) {
        match self.calls.get(id).map(|call| call.place) {
            None => {}
            Some(Place::Waiting) => self.complete(load, id, end, now),
            Some(Place::Queued(token)) => {
                self.connections[token].queue.retain(|queued| *queued != id);
                self.complete(load, id, end, now);
            }
            Some(Place::InFlight(token)) => self.abandon_in_flight(load, token, id, end, now),
        }
    }

    fn abandon_in_flight<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        id: CallId,
        end: End<'_>,
        now: Tick,
    ) {
        let Some(call) = self.calls.get(id).copied() else { return };
        let connection = &mut self.connections[token];
        let sent = connection.has_sent(&call);
        let Some(position) = connection.calls.iter().position(|known| *known == id) else { return };
        let is_told_apart = sent || connection.link.client.is_framed();
        let goes_on = is_told_apart && connection.link.client.cancel(position, &mut self.outgoing);
        connection.take_call(position);
        if goes_on {
            self.flush_aside(token);
            self.complete(load, id, end, now);
            self.send_waiting(load, token, now);
            // A peer that takes no more calls may never answer those that it has.
            if self.retire_if_empty(load, token, now) {
                self.roomy.push((token, now));
            }
        } else {
            self.outgoing.clear();
            let generation = connection.generation;
            self.complete(load, id, end, now);
            if self.connections[token].generation == generation {
                self.close_for_another_call(load, token, CUT, now);
            }
        }
    }
}

/// The end.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Ends a call: it leaves the calls under way, is recorded, and its load is told. Every call ends here, once; for a
    /// call that has ended already nothing happens.
    ///
    /// Its connection's lists are the caller's to keep.
    #[inline]
    pub(crate) fn complete<W: Workload<D, Tag = T>>(&mut self, load: &mut W, id: CallId, end: End<'_>, now: Tick) {
        let Some(mut call) = self.calls.get(id).copied() else { return };
        self.calls.remove(id, &call);
        match end {
            End::Answered(status) if self.recorder.is_ok(status) => {
                if self.recorder.is_slow(call.response_ns(now)) {
                    self.note_slow(load, &call, status, now);
                }
                self.recorder.ended(&mut call, end, now);
            }
            _ => self.ended_otherwise(load, id, &mut call, end, now),
        }
        if call.streams {
            self.end_stream(load, id, &call, end, now);
        }
        if self.meter.is_some() {
            self.meter_end(id, &call, end, now);
        }
        load.ended(self, &call, end, now);
    }

    /// A call has ended otherwise than with a successful status.
    #[cold]
    fn ended_otherwise<W: Workload<D, Tag = T>>(
        &mut self,
        load: &W,
        id: CallId,
        call: &mut Call<T>,
        end: End<'_>,
        now: Tick,
    ) {
        // The first bytes of an answer are a sign of life, too.
        if call.first_byte != Tick::NEVER {
            self.signs.answered(now);
        }
        let has_failed = match end {
            End::Answered(status) => {
                let is_excused = load.excuses(call.tag, status);
                self.recorder.excuses(is_excused);
                !is_excused
            }
            End::Failed(failure, _) => {
                match failure {
                    Failure::Timeout => self.signs.timed_out(),
                    Failure::Closed | Failure::Read | Failure::Write if call.first_byte == Tick::NEVER => {
                        self.signs.dropped();
                    }
                    _ => {}
                }
                true
            }
            End::ToldByPeer(..) | End::GivenUp(..) => true,
            End::Unfinished | End::Unsent | End::Withdrawn => false,
        };
        self.recorder.ended(call, end, now);
        if has_failed {
            self.note_example(load, id, call, end, now);
        }
    }

    #[cold]
    fn end_stream<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        id: CallId,
        call: &Call<T>,
        end: End<'_>,
        now: Tick,
    ) {
        if end == End::Withdrawn || !self.recorder.counts(call) {
            return;
        }
        let failure = end.failure().map(|(failure, _)| failure);
        let at = self.recorder.ended_at(call, failure, now);
        let Some(ended) = self.calls.stream(id).map(|stream| stream.ended(call, end, at)) else { return };
        self.recorder.snapshot.stream_ended(&ended);
        load.stream_ended(&mut self.recorder, call, &ended);
    }

    /// The drain is over: ends the calls that are left.
    pub(crate) fn complete_all<W: Workload<D, Tag = T>>(&mut self, load: &mut W, now: Tick) {
        for token in self.connections.ids() {
            let connection = &mut self.connections[token];
            connection.calls.clear();
            connection.queue.clear();
        }
        for id in self.calls.ids() {
            let end = self.calls.get(id).map_or(End::Unsent, Call::cut_short);
            self.complete(load, id, end, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(due: Tick) -> Call<u32> {
        Call::new(7, due, true, Counted::AtOnce)
    }

    #[test]
    fn times_only_grow() {
        let mut early = call(Tick::from_ns(100));
        early.send(Tick::from_ns(90), 50);
        assert_eq!((early.sent, early.expires), (Tick::from_ns(100), Tick::from_ns(150)));
        early.receive(Tick::from_ns(80));
        early.receive(Tick::from_ns(200));
        assert_eq!(early.first_byte, Tick::from_ns(100));
        assert_eq!(
            (
                early.response_ns(Tick::from_ns(60)),
                early.service_ns(Tick::from_ns(60)),
                early.service_ns(Tick::from_ns(130))
            ),
            (0, 0, 30)
        );
        assert_eq!(call(Tick::from_ns(100)).service_ns(Tick::from_ns(300)), 0, "never sent");
    }
}
