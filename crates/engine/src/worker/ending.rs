//! Calls that end without an answer: failed, too late, or cut short by the end of the run.

use brunt_model::outcome::Failure;

use super::connection::{Call, Connection, NEVER, State};
use super::pace::Pace;
use super::{Source, Worker};
use crate::transport::Driver;

/// Why a call has failed that took too long.
const LATE: &str = "no complete answer within the timeout";

impl<D: Driver> Worker<D> {
    /// Whatever has waited too long ends: calls, connecting, backing off.
    pub(super) fn expire(&mut self, now: u64) {
        for token in 0..self.connections.0.len() {
            let connection = &self.connections[token];
            if connection.expiry() > now {
                continue;
            }
            match connection.state {
                State::Backoff => self.backed_off(token, now),
                State::Connecting | State::Handshaking | State::Opening if connection.deadline <= now => {
                    let reason = match connection.state {
                        State::Connecting => "no connection within the connect timeout",
                        State::Handshaking => "no TLS handshake within the connect timeout",
                        _ => "no opening handshake within the connect timeout",
                    };
                    self.connecting_failed(token, Failure::ConnectTimeout, reason, now);
                }
                State::Connecting | State::Handshaking | State::Opening => self.expire_queue(token, now),
                State::Open if connection.calls.is_empty() => self.next_calls(token, now),
                State::Open => {
                    if !self.gives_up(token, now) {
                        self.lost(token, Failure::Timeout, LATE, now);
                    }
                }
                // A pause before the call that it is made for is over.
                State::Idle => self.next_calls(token, now),
            }
        }
        let earliest = self.connections.0.iter().map(Connection::expiry).min().unwrap_or(NEVER);
        // Looking at every connection has its price: with many of them, not more often than pays.
        let pause = 1_000_000 + self.connections.0.len() as u64 * 100;
        self.next_expiry = if earliest == NEVER { NEVER } else { earliest.max(now + pause) };
    }

    /// Ends a call that has taken too long without its connection, where its protocol can go on without the answer.
    fn gives_up(&mut self, token: usize, now: u64) -> bool {
        let connection = &mut self.connections[token];
        if connection.calls.len() != 1 || !connection.is_sent() || !connection.client.give_up() {
            return false;
        }
        match connection.calls.pop_front() {
            Some(call) if call.optional => self.user_waited(&call, "nothing came within the timeout", now),
            Some(call) => self.fail(&call, Failure::Timeout, LATE, now),
            None => {}
        }
        self.free.push((token, now));
        true
    }

    /// Calls that were sent before, and wait to be sent again, have waited too long.
    fn expire_queue(&mut self, token: usize, now: u64) {
        let queue = std::mem::take(&mut self.connections[token].queue);
        for call in queue {
            if call.expires <= now {
                self.fail(&call, Failure::Timeout, LATE, now);
            } else {
                self.connections[token].queue.push_back(call);
            }
        }
    }

    /// Ends a call without an answer.
    pub(super) fn fail(&mut self, call: &Call, failure: Failure, reason: &str, now: u64) {
        self.recorder.failed(call, failure, reason, now);
        self.under_way -= u64::from(call.measured);
        self.user_failed(call, failure, reason, now);
    }

    /// The measured part ended: calls that were due and have no connection. Those for which one is being made are under
    /// way, and may still end.
    pub(super) fn drop_unsent(&mut self, end: u64) {
        if let Pace::Open(schedule) = &mut self.pace {
            while let Some((due, _)) = schedule.take() {
                self.recorder.unsent(due, end);
            }
        }
        self.drop_users_unsent(end);
    }

    /// The drain ended: calls that are still under way.
    pub(super) fn drop_unfinished(&mut self, now: u64) {
        for connection in &mut self.connections.0 {
            for call in connection.calls.drain(..).chain(connection.queue.drain(..)) {
                if let Source::Users(users) = &mut self.source {
                    users.cut_short(&call, now, &mut self.recorder);
                }
                if call.optional {
                    // It counts for nothing, as no answer has come.
                } else if call.sent != NEVER {
                    self.recorder.unfinished(&call, now);
                } else if call.measured {
                    self.recorder.unsent(call.due, now);
                }
            }
        }
        self.under_way = 0;
        self.end_users(now);
    }
}
