//! Bytes in, and what they mean.

use std::io;

use brunt_model::outcome::Failure;

use super::Worker;
use super::connection::{Channel, State};
use super::sending::reason_of;
use crate::protocol::Progress;
use crate::transport::Driver;

/// How often one connection is read before the others have their turn.
const READS_IN_A_ROW: usize = 16;

impl<D: Driver> Worker<D> {
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
        self.connections[token].bytes_in += bytes.len() as u64;
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
                    if let Some(call) = &call
                        && self.reads_on(token, call, answer.status, now)
                    {
                        let generation = self.connections[token].generation;
                        // What comes next may be there already.
                        self.end_sent(token);
                        if self.connections[token].generation != generation {
                            return;
                        }
                        continue;
                    }
                    let connection = &mut self.connections[token];
                    connection.served = true;
                    connection.fruitless = 0;
                    // An answer before the request was sent in full: nobody will read the rest of it.
                    let sent = call.as_ref().is_none_or(|call| connection.has_sent(call));
                    let reusable = answer.reusable && sent && !self.shared.plan.reconnect;
                    if let Some(call) = call {
                        self.recorder.answered(&call, answer.status, now);
                        self.under_way -= u64::from(call.measured);
                        self.user_answered(token, &call, answer.status, now);
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
    pub(super) fn show(&mut self, token: usize, status: u16) {
        if self.interests.answers
            && self.stage.is_loading()
            && self.refusal.is_none()
            && let Err(refusal) = self.source.answered(status, self.connections[token].client.parts())
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
                let call = connection.calls.remove(failed.position);
                let sent = call.as_ref().is_none_or(|call| connection.has_sent(call));
                let reusable = failed.reusable && sent && !self.shared.plan.reconnect;
                if let Some(call) = call {
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
                self.user_answered(token, &call, answer.status, now);
            }
        }
        self.lost(token, Failure::Closed, "the peer closed before the answer was complete", now);
    }
}
