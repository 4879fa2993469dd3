//! Bytes out.

use std::io;

use brunt_model::outcome::Failure;

use super::Worker;
use super::connection::{Channel, Connection, State};
use crate::transport::Driver;

/// How much of what waits is encrypted at once, in bytes: no more than will soon be sent.
const TLS_AT_ONCE_BYTES: usize = 64 << 10;

impl<D: Driver> Worker<D> {
    /// Sends what is in the outgoing buffer, and what the connection still holds.
    pub(super) fn flush(&mut self, token: usize) {
        let bytes = self.outgoing.len() as u64;
        self.recorder.snapshot.bytes.clear_out += bytes;
        self.connections[token].bytes_out += bytes;
        let outcome = send(&mut self.driver, token, &mut self.connections[token], &self.outgoing);
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
    pub(super) fn flush_aside(&mut self, token: usize) {
        if !self.outgoing.is_empty() {
            self.send_aside(token);
        }
    }

    #[cold]
    fn send_aside(&mut self, token: usize) {
        let bytes = self.outgoing.len() as u64;
        self.connections[token].bytes_out += bytes;
        let outcome = send(&mut self.driver, token, &mut self.connections[token], &self.outgoing);
        self.outgoing.clear();
        self.recorder.snapshot.bytes.clear_out += bytes;
        self.recorder.snapshot.bytes.wire_out += outcome.unwrap_or(0) as u64;
    }

    /// Ends the calls that wait for nothing but to be sent, once the socket has taken everything.
    pub(super) fn end_sent(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if connection.calls.front().is_none_or(|call| call.ends_sent.is_none()) || !connection.is_sent() {
            return;
        }
        let now = self.driver.now();
        let generation = connection.generation;
        while let Some(status) = self.connections[token].calls.front().and_then(|call| call.ends_sent)
            && let Some(mut call) = self.connections[token].calls.pop_front()
        {
            call.first_byte = now;
            if self.reads_on(token, &call, status, now) {
                continue;
            }
            self.recorder.answered(&call, status, now);
            self.under_way -= u64::from(call.measured);
            self.user_answered(token, &call, status, now);
            self.show(token, status);
        }
        let connection = &mut self.connections[token];
        if connection.generation != generation {
            return;
        }
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
            self.say_goodbye(token);
        }
    }

    /// Says on a connection, as far as its protocol and TLS have words for it, that nothing more will come (RFC 8446 §6.1).
    pub(super) fn say_goodbye(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if connection.state != State::Open {
            return;
        }
        connection.client.close(&mut self.outgoing);
        self.flush_aside(token);
        if let Channel::Tls(tls) = &mut self.connections[token].channel {
            tls.send_close_notify();
            // Nobody is left whom it would matter to that it cannot be said.
            let written = write_tls(&mut self.driver, token, tls).unwrap_or(0);
            self.recorder.snapshot.bytes.wire_out += written as u64;
        }
    }

    /// The socket takes more.
    pub(super) fn writable(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if connection.is_sent() {
            return;
        }
        let outcome = send_waiting(&mut self.driver, token, connection);
        match outcome {
            Ok(written) => {
                self.recorder.snapshot.bytes.wire_out += written as u64;
                self.end_sent(token);
            }
            Err(error) => self.write_failed(token, &error),
        }
    }

    /// Sending failed. An answer may have come all the same, sent before the peer closed: it counts.
    pub(super) fn write_failed(&mut self, token: usize, error: &io::Error) {
        let generation = self.connections[token].generation;
        if self.connections[token].state == State::Open {
            self.readable(token, true);
        }
        if self.connections[token].generation == generation {
            let now = self.driver.now();
            self.broken(token, Failure::Write, &reason_of(error), now);
        }
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

/// Sends `bytes` after what waits already, as far as the socket takes them; the rest waits. Returns how many bytes the
/// socket took.
fn send(driver: &mut impl Driver, token: usize, connection: &mut Connection, bytes: &[u8]) -> io::Result<usize> {
    if !connection.unsent.is_empty() {
        connection.unsent.push(bytes);
        return send_waiting(driver, token, connection);
    }
    match &mut connection.channel {
        Channel::Plain => {
            let written = write_all(driver, token, bytes)?;
            connection.unsent.push(bytes.get(written..).unwrap_or(&[]));
            Ok(written)
        }
        Channel::Tls(tls) => {
            // Without a limit on its buffer this takes everything; it does no I/O.
            io::Write::write_all(&mut tls.writer(), bytes)?;
            write_tls(driver, token, tls)
        }
    }
}

/// Sends what waits, as far as the socket takes it; returns how many bytes it took.
#[cold]
fn send_waiting(driver: &mut impl Driver, token: usize, connection: &mut Connection) -> io::Result<usize> {
    let Connection { channel, unsent, .. } = connection;
    let mut sent = 0;
    match channel {
        Channel::Plain => {
            while !unsent.is_empty() {
                let written = write_all(driver, token, unsent.next())?;
                sent += written;
                let all = written == unsent.next().len();
                unsent.sent(written);
                if !all {
                    break;
                }
            }
        }
        Channel::Tls(tls) => loop {
            sent += write_tls(driver, token, tls)?;
            let next = unsent.next();
            if tls.wants_write() || next.is_empty() {
                break;
            }
            let piece = next.get(..TLS_AT_ONCE_BYTES).unwrap_or(next);
            io::Write::write_all(&mut tls.writer(), piece)?;
            let count = piece.len();
            unsent.sent(count);
        },
    }
    Ok(sent)
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
