//! Losing connections, and what happens to the calls on them.

use std::borrow::Cow;

use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call::{End, Place, Resend};
use super::calls::CallId;
use super::connection::Link;
use super::failures::{GIVEN_UP, WriteFailure};
use super::receiving::{MOST_TURNED_AWAY, TURNED_AWAY};
use super::{FailedAttempt, Gone, Listing, Network, Service, State, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};

/// A call that was sent on an idle connection may have crossed the connection's end: if the end comes within this time,
/// in nanoseconds, or within twice the time that connecting took.
const MET_ITS_END_NS: u64 = 10_000_000;

/// How a ready connection was lost.
#[derive(Clone, Copy)]
struct Loss<'a> {
    /// The call that has the failure; `None` if each has one of its own.
    culprit: Option<CallId>,
    failure: Failure,
    reason: &'a str,
    /// Whether calls that were sent behind others are sent again.
    sends_behind_again: bool,
}

/// The reason of calls whose connection ended with an earlier answer.
const LAST_ANSWER: &str = "the connection closed after an earlier answer";

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// An attempt to connect has failed, and with it the calls that waited for it.
    pub(super) fn connecting_failed<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        self.connecting -= 1;
        self.recorder.snapshot.numbers.add(Counter::ConnectionsFailed, 1);
        if matches!(self.connections[token].state, State::Connecting(_)) {
            self.origins.seek_addresses(self.connections[token].origin, now);
        }
        // A silent target has not refused anything.
        if !self.has_connected && failure != Failure::ConnectTimeout {
            self.refusal = Some(reason.to_owned());
        }
        let connection = &mut self.connections[token];
        let history = &mut connection.history;
        history.service = history.service.ended();
        if !history.without_since.is_set() && self.watched_since.is_set() {
            history.without_since = connection.link.began.max(self.watched_since);
        }
        let (origin, took_ns) = (connection.origin, now.since(connection.link.began));
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

    /// The peer's end of the stream was read.
    pub(super) fn came_to_its_end<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        match self.connections[token].link.write_failure.take() {
            Some(failure @ WriteFailure::Reset) => {
                self.broken(load, token, Failure::Write, &failure.reason(), now);
            }
            _ => self.peer_closed(load, token, now),
        }
    }

    /// The peer sends no more.
    pub(super) fn peer_closed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.state {
            State::Securing(_) => {
                let reason = "the peer closed during the TLS handshake";
                return self.connecting_failed(load, token, Failure::Tls, reason, now);
            }
            State::Opening(_) => {
                let reason = "the peer closed during the opening handshake";
                return self.connecting_failed(load, token, Failure::Handshake, reason, now);
            }
            _ => {}
        }
        let generation = connection.generation;
        let ended_one = match connection.link.client.closed() {
            Some(Ok(answer)) => {
                connection.has_served();
                self.last_answer = now;
                if let Some(id) = self.connections[token].calls.get(answer.position).copied() {
                    self.answered(load, token, answer.position, id, answer.status, now);
                }
                true
            }
            Some(Err(failed)) => {
                connection.has_served();
                self.last_answer = now;
                if let Some(id) = self.connections[token].take_call(failed.position) {
                    self.complete(load, id, End::Failed(failed.failure, &failed.reason), now);
                }
                true
            }
            None => false,
        };
        if self.connections[token].generation != generation {
            return;
        }
        if ended_one {
            return self.ended_with_answer(load, token, now);
        }
        let reason = self.farewell(token);
        self.ended_in_order(load, token, &reason, now);
    }

    /// The reason with which the peer ends a connection, as far as it gave one.
    pub(super) fn farewell(&self, token: ConnectionId) -> Cow<'static, str> {
        self.connections[token]
            .link
            .client
            .farewell()
            .unwrap_or(Cow::Borrowed("the peer closed before the answer was complete"))
    }

    /// A connection is gone, ready or not yet.
    pub(super) fn broken<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        match self.connections[token].state {
            State::Open { .. } | State::Leaving { .. } => self.lost(load, token, failure, reason, now),
            _ => self.connecting_failed(load, token, failure, reason, now),
        }
    }

    /// A ready connection is gone. The failure is that of the oldest call on it.
    pub(super) fn lost<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let culprit = match failure {
            // Calls that took too long have failures of their own.
            Failure::Timeout | Failure::Stalled => None,
            _ => self.connections[token].calls.front().copied(),
        };
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// A connection is gone after an answer that was to be its last: the peer has not processed the calls behind it
    /// (RFC 9112 §9.6).
    pub(super) fn ended_with_answer<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let culprit = self.connections[token].calls.front().copied();
        let (failure, reason) = (Failure::Closed, LAST_ANSWER);
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// Its peer has ended a ready connection in good order.
    pub(super) fn ended_in_order<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        reason: &str,
        now: Tick,
    ) {
        let connection = &self.connections[token];
        let culprit = connection.calls.front().copied();
        // Of calls that were sent behind others, without a frame that tells, the peer has processed those that it has
        // answered (RFC 9112 §9.3.2).
        let sends_behind_again = connection.history.service == Service::Answered && !connection.link.client.is_framed();
        self.lose(load, token, Loss { culprit, failure: Failure::Closed, reason, sends_behind_again }, now);
    }

    /// A ready connection is gone. The failure is that of this call.
    pub(super) fn lost_with<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        culprit: CallId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let culprit = Some(culprit);
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// A ready connection is gone, by its last answer or otherwise. Calls behind a last answer are sent again. A call of
    /// which the socket has taken nothing is sent again, once; so is one that was sent on an idle connection and
    /// crossed its end, if it may be. Of the other calls the culprit has the failure, and the rest end with the
    /// connection.
    fn lose<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, loss: Loss<'_>, now: Tick) {
        let Loss { culprit, failure, reason, sends_behind_again } = loss;
        let behind = self.behind(now).max(now.since(self.recorder.arrival(now)));
        let connection = &mut self.connections[token];
        // In time, its successor would have been there that much earlier.
        connection.history.held_up = connection.history.held_up.max(behind);
        let by_peer = matches!(failure, Failure::Closed | Failure::Read | Failure::Write);
        let resendable = by_peer && connection.history.service == Service::Answered && connection.is_open();
        let met_its_end_ns = MET_ITS_END_NS.max(2 * connection.link.connect_ns);
        connection.history.service = connection.history.service.ended();
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        // A peer that closes, resets or says goodbye ends a connection by itself.
        let is_own =
            reason == GIVEN_UP || !matches!(failure, Failure::Closed | Failure::Read | Failure::Write | Failure::Tls);
        let bytes_taken = if by_peer { connection.link.bytes_taken } else { u64::MAX };
        let gone = self.shut(token, failure, reason);
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let has_bytes = call.first_byte_out < call.last_byte && !load.keeps_to_connection(call.tag);
            let nothing_sent = has_bytes && call.first_byte_out >= bytes_taken;
            let late = matches!(failure, Failure::Timeout | Failure::Stalled) && call.expires <= now;
            let met_its_end = call.alone && now.since(call.sent) <= met_its_end_ns;
            let is_behind = reason == LAST_ANSWER || sends_behind_again && !call.alone && !nothing_sent;
            let is_behind = is_behind && !is_broken(Rule::BehindALastAnswer);
            let is_turned_away = is_behind && call.turned_away < MOST_TURNED_AWAY;
            let once = call.resend != Resend::Done && (nothing_sent || resendable && met_its_end);
            let may_be = nothing_sent || call.resend != Resend::Never;
            if (is_turned_away || once) && may_be && !call.first_byte.is_set() {
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
                let reason = if is_own { GIVEN_UP } else { "the connection ended with an earlier call" };
                self.complete(load, id, End::Failed(Failure::Closed, reason), now);
            }
        }
        self.carry_on(load, gone, now);
    }

    /// Closes a connection that its load has finished with, with a goodbye. Calls left on it fail.
    pub(crate) fn close<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
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

    /// Drops the socket and its state; returns what is left.
    fn shut<'a>(&mut self, token: ConnectionId, failure: Failure, reason: &'a str) -> Gone<'a> {
        self.driver.close(token);
        self.outgoing.clear();
        let connection = &mut self.connections[token];
        let drained = connection.is_draining();
        let was_ready = connection.is_there();
        self.taking -= usize::from(was_ready && !drained);
        self.leaving -= usize::from(drained);
        connection.state = State::IDLE;
        connection.unsent.clear();
        connection.generation = connection.generation.wrapping_add(1);
        if connection.history.service == Service::Answered {
            connection.history.service = Service::NONE;
        }
        if !is_broken(Rule::LostLeavesLists) {
            connection.listing = Listing::Unlisted;
        }
        let mut link = std::mem::replace(&mut connection.link, Link::none());
        if link.holds.are_any() {
            let now = self.driver.now();
            link.holds.end(now, &mut self.recorder.snapshot.numbers);
        }
        let events = &mut self.recorder.snapshot.events;
        link.client.take_events(&mut |name, count| events.add(name, count));
        Gone { token, client: link.client, failure, reason, drained, was_ready }
    }

    /// After a connection is gone: makes another for the calls that wait for it, at once, or after a while if the last
    /// ones were of no use. Without such calls the load decides.
    fn carry_on<W: Workload<D, Tag = T>>(&mut self, load: &mut W, gone: Gone<'_>, now: Tick) {
        let token = gone.token;
        let connection = &mut self.connections[token];
        // A load that heard of a call's end may have used the place already.
        if !connection.is_idle() {
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

    /// Waits before the connection is made again, if the last attempt was of no use. Returns whether it waits.
    pub(crate) fn back_off(&mut self, token: ConnectionId, now: Tick) -> bool {
        if !self.connections[token].history.came_to_nothing() {
            return false;
        }
        let at = self.attempts.retry_at(token.place(), now);
        let state = State::Backoff { until: at };
        if is_broken(Rule::BackoffIsWatched) {
            self.connections[token].state = state;
        } else {
            self.enter(token, state);
        }
        true
    }

    /// `fresh` replaces a connection on which the peer takes no more calls. Whether that one was of use is known when
    /// it ends: if it carries no calls, that is now, and `fresh` may have to wait before it is made. Returns whether it
    /// waits.
    pub(crate) fn succeed(&mut self, old: ConnectionId, fresh: ConnectionId, now: Tick) -> bool {
        let behind = self.behind(now);
        let old = &self.connections[old];
        let service = if old.calls.is_empty() { old.history.service.ended() } else { Service::NONE };
        let held_up = old.history.held_up.max(behind);
        let history = &mut self.connections[fresh].history;
        (history.service, history.held_up) = (service, held_up);
        self.back_off(fresh, now)
    }

    /// The wait after an attempt of no use is over.
    pub(super) fn backed_off<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        connection.state = State::IDLE;
        if connection.queue.is_empty() {
            load.next_calls(self, token, now);
        } else {
            self.connect(load, token, now);
        }
    }
}
