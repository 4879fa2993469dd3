//! Sending calls and taking their answers.

use std::io;

use brunt_model::outcome::Failure;
use brunt_model::snapshot::Phase;

use super::connection::{Call, Channel, NEVER, State};
use super::pace::Pace;
use super::{Stage, Worker};
use crate::protocol::{Progress, Started};
use crate::transport::Driver;

/// How often one connection is read before the others have their turn.
const READS_IN_A_ROW: usize = 16;

impl<D: Driver> Worker<D> {
    /// Whether new calls are made at all.
    fn is_loading(&self) -> bool {
        self.stage.is_loading() && self.refusal.is_none()
    }

    fn is_measured(&self) -> bool {
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
        match self.user.pause() {
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
    fn compose(&mut self, token: usize, mut call: Call, now: u64) -> bool {
        loop {
            let message = match self.user.call(call.index) {
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
            if call.sent == NEVER {
                call.sent = now;
            }
            self.next_expiry = self.next_expiry.min(call.sent.saturating_add(self.shared.plan.timeout_ns));
            connection.calls.push_back(call);
            if !message.more || call.again {
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

    /// Sends what is in the outgoing buffer, and what the connection still holds.
    pub(super) fn flush(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        self.recorder.snapshot.bytes.clear_out += self.outgoing.len() as u64;
        let outcome = match &mut connection.channel {
            Channel::Plain if connection.unsent.is_empty() => {
                let outcome = write_all(&mut self.driver, token, &self.outgoing);
                if let Ok(written) = outcome {
                    connection.unsent.extend_from_slice(self.outgoing.get(written..).unwrap_or(&[]));
                }
                outcome
            }
            Channel::Plain => {
                connection.unsent.extend_from_slice(&self.outgoing);
                Ok(0)
            }
            Channel::Tls(tls) => {
                // Without a limit on its buffer this takes everything; it does no I/O.
                let taken = io::Write::write_all(&mut tls.writer(), &self.outgoing);
                taken.and_then(|()| write_tls(&mut self.driver, token, tls))
            }
        };
        self.outgoing.clear();
        // A large body must not be kept in memory for ever after.
        self.outgoing.shrink_to(1 << 20);
        match outcome {
            Ok(written) => {
                self.recorder.snapshot.bytes.wire_out += written as u64;
                self.end_sent(token);
            }
            Err(error) => self.write_failed(token, &error),
        }
    }

    /// Sends what a client has to say by itself, if anything. That the socket fails is seen by who reads it.
    #[inline]
    fn flush_aside(&mut self, token: usize) {
        if !self.outgoing.is_empty() {
            self.send_aside(token);
        }
    }

    #[cold]
    fn send_aside(&mut self, token: usize) {
        let bytes = self.outgoing.len() as u64;
        let connection = &mut self.connections[token];
        let outcome = match &mut connection.channel {
            Channel::Plain => {
                connection.unsent.extend_from_slice(&self.outgoing);
                let outcome = write_all(&mut self.driver, token, &connection.unsent);
                if let Ok(written) = outcome {
                    connection.unsent.drain(..written);
                }
                outcome
            }
            Channel::Tls(tls) => {
                let taken = io::Write::write_all(&mut tls.writer(), &self.outgoing);
                taken.and_then(|()| write_tls(&mut self.driver, token, tls))
            }
        };
        self.outgoing.clear();
        self.recorder.snapshot.bytes.clear_out += bytes;
        self.recorder.snapshot.bytes.wire_out += outcome.unwrap_or(0) as u64;
    }

    /// Ends the calls that wait for nothing but to be sent, once the socket has taken everything.
    fn end_sent(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if connection.calls.front().is_none_or(|call| call.ends_sent.is_none()) || !connection.is_sent() {
            return;
        }
        let now = self.driver.now();
        while let Some(status) = self.connections[token].calls.front().and_then(|call| call.ends_sent)
            && let Some(mut call) = self.connections[token].calls.pop_front()
        {
            call.first_byte = now;
            self.recorder.answered(&call, status, now);
            self.under_way -= u64::from(call.measured);
            self.show(token, status);
        }
        let connection = &mut self.connections[token];
        connection.served = true;
        connection.fruitless = 0;
        if self.shared.plan.reconnect {
            self.lost(token, Failure::Closed, "the connection closed after an earlier answer", now);
        } else {
            self.free.push((token, now));
        }
    }

    /// The run is over: says goodbye on every connection where the protocol has a word for it.
    pub(super) fn take_leave(&mut self) {
        for token in 0..self.connections.0.len() {
            let connection = &mut self.connections[token];
            if connection.state == State::Open {
                connection.client.close(&mut self.outgoing);
                self.flush_aside(token);
            }
        }
    }

    /// The socket takes more.
    pub(super) fn writable(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        let outcome = match &mut connection.channel {
            Channel::Plain if connection.unsent.is_empty() => return,
            Channel::Plain => {
                let outcome = write_all(&mut self.driver, token, &connection.unsent);
                if let Ok(written) = outcome {
                    connection.unsent.drain(..written);
                    connection.unsent.shrink_to(4096);
                }
                outcome
            }
            Channel::Tls(tls) if tls.wants_write() => write_tls(&mut self.driver, token, tls),
            Channel::Tls(_) => return,
        };
        match outcome {
            Ok(written) => {
                self.recorder.snapshot.bytes.wire_out += written as u64;
                self.end_sent(token);
            }
            Err(error) => self.write_failed(token, &error),
        }
    }

    /// Sending failed. An answer may have come all the same, sent before the peer closed: it counts.
    fn write_failed(&mut self, token: usize, error: &io::Error) {
        let generation = self.connections[token].generation;
        if self.connections[token].state == State::Open {
            self.readable(token, true);
        }
        if self.connections[token].generation == generation {
            let now = self.driver.now();
            self.broken(token, Failure::Write, &reason_of(error), now);
        }
    }

    /// Reads what is there. `ended` says that the end is near, so that it is read for, too.
    pub(super) fn readable(&mut self, token: usize, ended: bool) {
        let generation = self.connections[token].generation;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reads = 0;
        loop {
            let same = self.connections[token].generation == generation;
            if !same || !self.connections[token].is_read() {
                break;
            }
            reads += 1;
            if reads > READS_IN_A_ROW {
                self.unread.push(token);
                break;
            }
            match self.driver.read(token, &mut buffer) {
                Ok(0) => {
                    let now = self.driver.now();
                    self.peer_closed(token, now);
                    break;
                }
                Ok(n) => {
                    let now = self.driver.now();
                    self.recorder.snapshot.bytes.wire_in += n as u64;
                    self.received(token, buffer.get(..n).unwrap_or(&[]), now);
                    if n < buffer.len() && !ended {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let now = self.driver.now();
                    self.broken(token, Failure::Read, &reason_of(&error), now);
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    fn received(&mut self, token: usize, bytes: &[u8], now: u64) {
        match self.connections[token].channel {
            Channel::Plain => self.received_clear(token, bytes, now),
            Channel::Tls(_) => self.received_tls(token, bytes, now),
        }
    }

    /// Bytes for the protocol arrived.
    pub(super) fn received_clear(&mut self, token: usize, bytes: &[u8], now: u64) {
        self.recorder.snapshot.bytes.clear_in += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let connection = &mut self.connections[token];
            match connection.client.receive(rest, &mut self.outgoing) {
                Ok((taken, Progress::More)) => {
                    rest = rest.get(taken..).unwrap_or(&[]);
                    if let Some(call) = connection.calls.front_mut() {
                        call.first_byte = call.first_byte.min(now);
                    }
                }
                Ok((taken, Progress::Answered(answer))) => {
                    rest = rest.get(taken..).unwrap_or(&[]);
                    let mut call = connection.calls.remove(answer.position);
                    if let Some(call) = &mut call {
                        call.first_byte = call.first_byte.min(now);
                    }
                    connection.served = true;
                    connection.fruitless = 0;
                    // An answer before the request was sent in full: nobody will read the rest of it.
                    let reusable = answer.reusable && connection.unsent.is_empty() && !self.shared.plan.reconnect;
                    if let Some(call) = call {
                        self.recorder.answered(&call, answer.status, now);
                        self.under_way -= u64::from(call.measured);
                    }
                    self.show(token, answer.status);
                    if !reusable {
                        self.flush_aside(token);
                        self.lost(token, Failure::Closed, "the connection closed after an earlier answer", now);
                        return;
                    }
                }
                Ok((taken, progress)) => {
                    rest = rest.get(taken..).unwrap_or(&[]);
                    self.flush_aside(token);
                    if !self.progressed(token, progress, now) {
                        return;
                    }
                }
                Err(malformed) => {
                    self.flush_aside(token);
                    self.broken(token, Failure::Protocol, &malformed.0, now);
                    return;
                }
            }
        }
        self.flush_aside(token);
        self.free.push((token, now));
    }

    /// Shows an answer to whoever takes part: what counts while the load is on, no more and no less.
    #[inline]
    fn show(&mut self, token: usize, status: u16) {
        if self.interests.answers
            && self.stage.is_loading()
            && self.refusal.is_none()
            && let Err(refusal) = self.user.answered(status, self.connections[token].client.parts())
        {
            self.refusal = Some(refusal);
        }
    }

    /// What comes of bytes besides answers; false if the connection is gone.
    fn progressed(&mut self, token: usize, progress: Progress, now: u64) -> bool {
        match progress {
            Progress::Opened => {
                let generation = self.connections[token].generation;
                self.opened(token, now);
                self.connections[token].generation == generation
            }
            Progress::Unasked => {
                self.recorder.unasked();
                true
            }
            Progress::Failed(failed) => {
                let connection = &mut self.connections[token];
                // The peer said something that was understood: nothing is wrong with the way to it.
                connection.served = true;
                connection.fruitless = 0;
                let reusable = failed.reusable && connection.unsent.is_empty() && !self.shared.plan.reconnect;
                if let Some(call) = connection.calls.remove(failed.position) {
                    self.fail(&call, failed.failure, &failed.reason, now);
                }
                if !reusable {
                    self.lost(token, Failure::Closed, "the connection ended with an earlier call", now);
                }
                reusable
            }
            Progress::Closing(reason) => {
                let opening = self.connections[token].state == State::Opening;
                let failure = if opening { Failure::Handshake } else { Failure::Closed };
                self.broken(token, failure, &reason, now);
                false
            }
            Progress::More | Progress::Aside | Progress::Answered(_) => true,
        }
    }

    /// Gives the connections that were answered their next calls. All that has come is read first: it is then timed
    /// when it came, and the code of one step stays in the processor's cache while it is done for every connection.
    pub(super) fn call_again(&mut self) {
        let mut free = std::mem::take(&mut self.free);
        for (token, since) in free.drain(..) {
            if self.connections[token].state == State::Open {
                // A call of the closed model is due when it is made; a connection of the open one has been free since.
                let closed = matches!(self.pace, Pace::Closed(_));
                let now = if closed { self.driver.now() } else { since };
                self.next_calls(token, now);
            }
        }
        self.free = free;
        if matches!(self.pace, Pace::Open(_)) && self.is_loading() {
            self.dispatch();
        }
    }

    /// The peer sends no more.
    pub(super) fn peer_closed(&mut self, token: usize, now: u64) {
        let connection = &mut self.connections[token];
        match connection.state {
            State::Handshaking => {
                let reason = "the peer closed during the TLS handshake";
                return self.connecting_failed(token, Failure::Tls, reason, now);
            }
            State::Opening => {
                let reason = "the peer closed during the opening handshake";
                return self.connecting_failed(token, Failure::Handshake, reason, now);
            }
            _ => {}
        }
        if let Some(answer) = connection.client.closed() {
            connection.served = true;
            connection.fruitless = 0;
            self.show(token, answer.status);
            if let Some(call) = self.connections[token].calls.remove(answer.position) {
                self.recorder.answered(&call, answer.status, now);
                self.under_way -= u64::from(call.measured);
            }
        }
        self.lost(token, Failure::Closed, "the peer closed before the answer was complete", now);
    }

    /// Whatever has waited too long ends: calls, connecting, backing off.
    pub(super) fn expire(&mut self, now: u64) {
        let timeout_ns = self.shared.plan.timeout_ns;
        for token in 0..self.connections.0.len() {
            let connection = &self.connections[token];
            if connection.expiry(timeout_ns) > now {
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
                State::Open => self.lost(token, Failure::Timeout, "no complete answer within the timeout", now),
                // A pause before the call that it is made for is over.
                State::Idle => self.next_calls(token, now),
            }
        }
        let earliest = self.connections.0.iter().map(|c| c.expiry(timeout_ns)).min().unwrap_or(NEVER);
        // Looking at every connection has its price: with many of them, not more often than pays.
        let pause = 1_000_000 + self.connections.0.len() as u64 * 100;
        self.next_expiry = if earliest == NEVER { NEVER } else { earliest.max(now + pause) };
    }

    /// Calls that were sent before, and wait to be sent again, have waited too long.
    fn expire_queue(&mut self, token: usize, now: u64) {
        let timeout_ns = self.shared.plan.timeout_ns;
        let queue = std::mem::take(&mut self.connections[token].queue);
        for call in queue {
            if call.sent.saturating_add(timeout_ns) <= now {
                self.fail(&call, Failure::Timeout, "no complete answer within the timeout", now);
            } else {
                self.connections[token].queue.push_back(call);
            }
        }
    }

    /// Ends a call without an answer.
    pub(super) fn fail(&mut self, call: &Call, failure: Failure, reason: &str, now: u64) {
        self.recorder.failed(call, failure, reason, now);
        self.under_way -= u64::from(call.measured);
    }

    /// The measured part ended: calls that were due and have no connection. Those for which one is being made are under
    /// way, and may still end.
    pub(super) fn drop_unsent(&mut self, end: u64) {
        if let Pace::Open(schedule) = &mut self.pace {
            while let Some((due, _)) = schedule.take() {
                self.recorder.unsent(due, end);
            }
        }
    }

    /// The drain ended: calls that are still under way.
    pub(super) fn drop_unfinished(&mut self, now: u64) {
        for connection in &mut self.connections.0 {
            for call in connection.calls.drain(..).chain(connection.queue.drain(..)) {
                if call.sent != NEVER {
                    self.recorder.unfinished(&call, now);
                } else if call.measured {
                    self.recorder.unsent(call.due, now);
                }
            }
        }
        self.under_way = 0;
    }
}

/// The system's own words for an error, without what is added to them.
pub(super) fn reason_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "connection reset by the peer".to_owned(),
        io::ErrorKind::BrokenPipe => "the peer had closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

/// Writes as much of `bytes` as the socket takes.
fn write_all(driver: &mut impl Driver, token: usize, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..)
        && !rest.is_empty()
    {
        match driver.write(token, rest) {
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Writes as many of the TLS records that wait as the socket takes; returns how many bytes.
pub(super) fn write_tls(
    driver: &mut impl Driver,
    token: usize,
    tls: &mut rustls::ClientConnection,
) -> io::Result<usize> {
    struct Socket<'a, D>(&'a mut D, usize);
    impl<D: Driver> io::Write for Socket<'_, D> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(self.1, bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut written = 0;
    while tls.wants_write() {
        match tls.write_tls(&mut Socket(driver, token)) {
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
