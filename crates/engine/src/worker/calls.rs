//! When calls are made, and on which connection.

use brunt_model::snapshot::Phase;

use super::connection::{Call, NEVER, State};
use super::pace::Pace;
use super::{Stage, Worker};
use crate::protocol::Started;
use crate::transport::Driver;

/// This long before calls end it is not certain that one more is made for each free connection, in nanoseconds.
const ENDING_NS: u64 = 100_000_000;

impl<D: Driver> Worker<D> {
    /// Whether new calls are made at all.
    pub(super) fn is_loading(&self) -> bool {
        self.stage.is_loading() && self.refusal.is_none()
    }

    pub(super) fn is_measured(&self) -> bool {
        self.stage == Stage::Loading(Phase::Measured)
    }

    /// The load begins: in the closed model every connection calls.
    pub(super) fn begin_calls(&mut self, now: u64) {
        for token in 0..self.connections.0.len() {
            self.next_calls(token, now);
        }
        self.dispatch();
    }

    /// Gives a connection that may be free what it should do next.
    pub(super) fn next_calls(&mut self, token: usize, now: u64) {
        if !self.is_loading() {
            return;
        }
        match self.pace {
            Pace::Closed(_) => self.refill(token, now),
            Pace::Open(_) => self.offer(token, now),
            Pace::Users => self.serve_waiting(token),
        }
    }

    /// Closed model: calls until the connection has as many in flight as it may.
    fn refill(&mut self, token: usize, now: u64) {
        if now >= self.calls_until {
            return;
        }
        let measured = self.is_measured();
        let pipeline = self.shared.plan.pipeline as usize;
        let mut composed = false;
        loop {
            let connection = &self.connections[token];
            let open = connection.state == State::Open;
            let under_way = connection.calls.len() + connection.queue.len();
            // One call is enough to have a connection made for it.
            if under_way >= if open { pipeline } else { 1 } || connection.state == State::Backoff {
                break;
            }
            if self.interests.pauses && under_way == 0 && self.pauses(token, now) {
                break;
            }
            let Pace::Closed(quota) = &mut self.pace else { break };
            let Some(index) = quota.take() else { break };
            let call = Call::new(now, index, measured);
            self.recorder.due(&call);
            self.under_way += u64::from(measured);
            if open {
                composed |= self.compose(token, call, now);
            } else {
                self.connections[token].queue.push_back(call);
            }
            if self.refusal.is_some() {
                break;
            }
        }
        if composed {
            self.flush(token);
        }
        let connection = &self.connections[token];
        if connection.state == State::Idle && !connection.queue.is_empty() {
            self.connect(token, now);
        }
    }

    /// Whether the user lets the connection wait before its next call; it is asked once for each.
    fn pauses(&mut self, token: usize, now: u64) -> bool {
        let connection = &mut self.connections[token];
        if connection.deadline != NEVER {
            if connection.deadline > now {
                return true;
            }
            connection.deadline = NEVER;
            return false;
        }
        match self.source.pause() {
            Ok(0) => false,
            Ok(pause) => {
                connection.deadline = now.saturating_add(pause);
                self.next_expiry = self.next_expiry.min(connection.deadline);
                true
            }
            Err(refusal) => {
                self.refusal = Some(refusal);
                true
            }
        }
    }

    /// Open model: lists the connection among those that can carry a call.
    fn offer(&mut self, token: usize, now: u64) {
        let plan = &self.shared.plan;
        let connection = &mut self.connections[token];
        let free = match connection.state {
            State::Open => connection.calls.len() < plan.pipeline as usize,
            State::Idle => plan.reconnect && connection.queue.is_empty(),
            _ => false,
        };
        if free && !connection.listed {
            connection.listed = true;
            connection.ready_since = now;
            self.ready.push_back(token);
        }
        let connection = &self.connections[token];
        if connection.state == State::Idle && !self.shared.plan.reconnect {
            self.connect(token, now);
        }
    }

    /// Open model: sends what is due on the connections that are free, oldest first.
    pub(super) fn dispatch(&mut self) {
        let measured = self.is_measured();
        let Pace::Open(schedule) = &self.pace else { return };
        if schedule.due().is_none() {
            return;
        }
        let mut now = self.driver.now();
        while let Pace::Open(schedule) = &mut self.pace
            && schedule.due().is_some_and(|due| due <= now)
            && let Some(token) = self.ready.pop_front()
        {
            let connection = &mut self.connections[token];
            connection.listed = false;
            let opens = connection.state == State::Idle && connection.queue.is_empty();
            if connection.state != State::Open && !opens {
                continue;
            }
            let ready_since = connection.ready_since;
            let Some((due, index)) = schedule.take() else { break };
            let call = Call::new(due, index, measured);
            self.under_way += u64::from(measured);
            self.recorder.snapshot.lag.record(now.saturating_sub(due.max(ready_since)));
            self.recorder.snapshot.waited_for_connection += u64::from(ready_since > due);
            if opens {
                self.connections[token].queue.push_back(call);
                self.connect(token, now);
            } else {
                if self.compose(token, call, now) {
                    self.flush(token);
                }
                self.offer(token, ready_since);
            }
            if self.refusal.is_some() {
                break;
            }
            now = self.driver.now();
        }
    }

    /// Writes a call's bytes, and those of its batch, into the outgoing buffer and puts them in flight. False if the
    /// user has no more calls.
    pub(super) fn compose(&mut self, token: usize, mut call: Call, now: u64) -> bool {
        loop {
            let message = match self.source.call(call.index) {
                Ok(message) => message,
                Err(refusal) => {
                    // The call was never made: it is as if it had not been due.
                    self.recorder.withdraw(&call);
                    self.under_way -= u64::from(call.measured);
                    self.refusal = Some(refusal);
                    return false;
                }
            };
            let connection = &mut self.connections[token];
            call.ends_sent = match connection.client.start(&message, &mut self.outgoing) {
                Started::Awaited => None,
                Started::Sent(status) => Some(status),
            };
            call.idempotent = message.idempotent;
            let more = message.more;
            if let Some(tail) = message.tail {
                let bytes = (self.outgoing.len() + tail.bytes().len()) as u64;
                self.recorder.snapshot.bytes.clear_out += bytes;
                connection.bytes_out += bytes;
                connection.unsent.push(&self.outgoing);
                self.outgoing.clear();
                connection.unsent.push_shared(tail);
            }
            call.last_byte = connection.bytes_out + self.outgoing.len() as u64;
            if call.sent == NEVER {
                call.sent = now;
                call.expires =
                    now.saturating_add(self.source.timeout_ns(call.index).unwrap_or(self.shared.plan.timeout_ns));
            }
            self.next_expiry = self.next_expiry.min(call.expires);
            connection.calls.push_back(call);
            if !more || call.again {
                return true;
            }
            let Some(next) = self.next_of_batch(&call) else { return true };
            call = next;
        }
    }

    /// The call that follows in a batch: it has a number of its own, and is due with the first.
    fn next_of_batch(&mut self, call: &Call) -> Option<Call> {
        let (due, index) = match &mut self.pace {
            Pace::Closed(quota) => (call.due, quota.take()?),
            Pace::Open(schedule) => schedule.take()?,
            Pace::Users => return None,
        };
        let next = Call::new(due, index, call.measured);
        if let Pace::Closed(_) = self.pace {
            self.recorder.due(&next);
        }
        self.under_way += u64::from(next.measured);
        Some(next)
    }

    /// Sends the calls that waited for this connection, which is ready now.
    pub(super) fn send_queue(&mut self, token: usize, now: u64) {
        let mut composed = false;
        while let Some(call) = self.connections[token].queue.pop_front() {
            composed |= self.compose(token, call, now);
        }
        if composed {
            self.flush(token);
        }
    }

    /// Gives the connections that were answered their next calls. All that has come is read first: it is then timed
    /// when it came, and the code of one step stays in the processor's cache while it is done for every connection.
    pub(super) fn call_again(&mut self) {
        if self.interests.answers
            && self.refusal.is_none()
            && let Err(refusal) = self.source.settle()
        {
            self.refusal = Some(refusal);
        }
        let mut free = std::mem::take(&mut self.free);
        let certain = self.certain_calls(&free);
        self.source.expect(certain);
        for (token, since) in free.drain(..) {
            if self.connections[token].state == State::Open {
                // A call of the closed model is due when it is made; a connection of the open one has been free since.
                let closed = matches!(self.pace, Pace::Closed(_));
                let now = if closed { self.driver.now() } else { since };
                self.next_calls(token, now);
            }
        }
        self.source.expect(0);
        // Calls that end when they are sent have freed connections meanwhile: those have their next turn after what came.
        free.append(&mut self.free);
        self.free = free;
        match self.pace {
            Pace::Open(_) if self.is_loading() => self.dispatch(),
            Pace::Closed(_) | Pace::Open(_) => {}
            Pace::Users => self.run_users(),
        }
    }

    /// How many calls will be made at once for the connections that are free, as far as that is certain.
    fn certain_calls(&self, free: &[(usize, u64)]) -> usize {
        let Some(&(_, since)) = free.last() else { return 0 };
        let unlimited = matches!(self.pace, Pace::Closed(_)) && self.shared.plan.stop.requests.is_none();
        let certain = unlimited && !self.interests.pauses && self.is_loading() && since + ENDING_NS < self.calls_until;
        if certain { free.len() } else { 0 }
    }
}
