//! One connection: bytes between its socket, TLS if any, and its session.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use mio::{Registry, Token};
use rustls::ServerConnection;

use super::conversation::Conversation;
use super::listen::Stream;
use crate::http::Site;
use crate::service::ServedProtocol;
use crate::service::{Closing, OUTPUT};

/// Bytes read at a time.
const INPUT: usize = 64 * 1024;

/// Rounds of reading and writing before other connections get their turn.
const ROUNDS: usize = 16;

/// How long a connection that this server closes waits for the peer's end, so that what the peer is
/// still sending does not make the kernel reset it and lose the last answer (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(1);

/// The buffers that all connections of a worker take turns in.
#[derive(Debug)]
pub(super) struct Buffers {
    input: Box<[u8]>,
    /// Answers on their way out; empty between connections.
    out: Vec<u8>,
    /// The same, encrypted.
    sealed: Vec<u8>,
    /// Decrypted input.
    plain: Box<[u8]>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self {
            input: vec![0; INPUT].into_boxed_slice(),
            out: Vec::with_capacity(2 * OUTPUT),
            sealed: Vec::new(),
            plain: vec![0; INPUT].into_boxed_slice(),
        }
    }
}

/// What becomes of a connection after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing to do until its socket or the clock says so.
    Wait,
    /// It has more to do, but others come first.
    Again,
    Close,
}

/// What is known of the socket's input. Readiness is told once, so this remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// A read came back short or empty: there is nothing until the poll says so.
    Silent,
    /// There is something to read.
    Ready,
    /// The peer has ended its side, and its end is to be found by reading: a short read does not
    /// mean that nothing follows.
    Ending,
    /// The end was read.
    Ended,
}

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    tls: Option<Box<ServerConnection>>,
    session: Conversation,
    /// Output that the socket had no room for. While there is any, nothing more is made or read.
    unsent: Vec<u8>,
    input: Input,
    /// Answered to the end, waiting until this time for the peer to close.
    lingering: Option<Duration>,
    watches_room: bool,
    /// When the worker's timers will wake it.
    pub(super) wake: Option<Duration>,
}

impl Connection {
    pub(super) fn new(stream: Stream, tls: Option<ServerConnection>, speaks: ServedProtocol) -> Self {
        Self {
            stream,
            tls: tls.map(Box::new),
            session: Conversation::new(speaks),
            unsent: Vec::new(),
            input: Input::Silent,
            lingering: None,
            watches_room: false,
            wake: None,
        }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.stream.register(registry, token)
    }

    /// Notes what the poll said of its socket.
    #[inline]
    pub(super) fn note(&mut self, readable: bool, hung_up: bool) {
        self.input = match self.input {
            Input::Ended => Input::Ended,
            _ if hung_up => Input::Ending,
            Input::Silent if readable => Input::Ready,
            other => other,
        };
    }

    /// It is closed: whoever waits on it for answers is gone.
    pub(super) fn leave(&mut self, site: &mut Site) {
        self.session.leave(site);
    }

    /// Keeps the poll's interest in line with whether output is stuck.
    #[inline]
    pub(super) fn watch(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let stuck = !self.unsent.is_empty();
        if stuck == self.watches_room {
            return Ok(());
        }
        self.watches_room = stuck;
        self.stream.watch_room(registry, token, stuck)
    }

    /// When it has to be looked at even if its socket is silent.
    #[inline]
    pub(super) fn next_wake(&self) -> Option<Duration> {
        if self.lingering.is_some() {
            return self.lingering;
        }
        if self.unsent.is_empty() { self.session.next_due() } else { None }
    }

    /// Reads, answers and writes what it can. A socket error ends it: there is nobody left to tell.
    #[inline]
    pub(super) fn drive(&mut self, site: &mut Site, buffers: &mut Buffers) -> Fate {
        let fate = self.rounds(site, buffers).unwrap_or(Fate::Close);
        buffers.out.clear();
        fate
    }

    fn rounds(&mut self, site: &mut Site, buffers: &mut Buffers) -> io::Result<Fate> {
        for _ in 0..ROUNDS {
            if !self.unsent.is_empty() && !self.flush_unsent()? {
                let overdue = self.lingering.is_some_and(|until| site.service.is_due(until));
                return Ok(if overdue { Fate::Close } else { Fate::Wait });
            }
            if let Some(until) = self.lingering {
                return self.drain(until, site, buffers);
            }
            self.session.pump(site, &mut buffers.out);
            if self.may_read() {
                self.read(site, buffers)?;
            }
            site.service.publish();
            self.send(buffers)?;
            if !self.unsent.is_empty() {
                continue;
            }
            if let Some(fate) = self.end(site, buffers)? {
                return Ok(fate);
            }
            if !self.may_read() && !self.session.next_due().is_some_and(|due| site.service.is_due(due)) {
                return Ok(Fate::Wait);
            }
        }
        Ok(Fate::Again)
    }

    fn may_read(&self) -> bool {
        matches!(self.input, Input::Ready | Input::Ending) && self.unsent.is_empty() && !self.session.is_full()
    }

    #[inline]
    fn read(&mut self, site: &mut Site, buffers: &mut Buffers) -> io::Result<()> {
        let length = match self.stream.read(&mut buffers.input) {
            Ok(0) => {
                self.input = Input::Ended;
                return Ok(());
            }
            Ok(length) => length,
            Err(error) => return self.unread(error),
        };
        // A short read means an empty socket: asking again would only cost a call.
        if length < buffers.input.len() && self.input == Input::Ready {
            self.input = Input::Silent;
        }
        let bytes = buffers.input.get(..length).unwrap_or_default();
        match &mut self.tls {
            None => self.session.receive(bytes, site, &mut buffers.out),
            Some(tls) => {
                let open = decrypt(tls, bytes, &mut buffers.plain, |plain| {
                    self.session.receive(plain, site, &mut buffers.out);
                });
                if !open {
                    self.input = Input::Ended;
                }
            }
        }
        Ok(())
    }

    fn unread(&mut self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock => self.input = Input::Silent,
            ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        Ok(())
    }

    /// Sends the output buffer; what the socket has no room for is kept.
    #[inline]
    fn send(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            encrypt(tls, &buffers.out, &mut buffers.sealed)?;
            buffers.out.clear();
            std::mem::swap(&mut buffers.out, &mut buffers.sealed);
        }
        if buffers.out.is_empty() {
            return Ok(());
        }
        let sent = write_some(&mut self.stream, &buffers.out)?;
        if sent < buffers.out.len() {
            self.unsent.extend_from_slice(buffers.out.get(sent..).unwrap_or_default());
        }
        buffers.out.clear();
        Ok(())
    }

    /// Goes on with output that was stuck; true when it is all gone.
    fn flush_unsent(&mut self) -> io::Result<bool> {
        let sent = write_some(&mut self.stream, &self.unsent)?;
        self.unsent.drain(..sent);
        if !self.unsent.is_empty() {
            return Ok(false);
        }
        // Most connections are never stuck: those that were need not hold memory for it.
        self.unsent = Vec::new();
        if self.lingering.is_some() {
            self.stream.shutdown_write()?;
        }
        Ok(true)
    }

    /// Ends the connection if everything was said, in the way that loses nothing.
    #[inline]
    fn end(&mut self, site: &mut Site, buffers: &mut Buffers) -> io::Result<Option<Fate>> {
        let closing = match self.session.closing() {
            // A language model stops for a client that has ended its side, as its servers do.
            _ if self.input == Input::Ended && (self.session.is_idle() || site.model.is_some()) => Closing::Asked,
            Some(closing) => closing,
            None => return Ok(None),
        };
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            self.send(buffers)?;
        }
        if closing == Closing::Asked && self.unsent.is_empty() {
            return Ok(Some(Fate::Close));
        }
        let until = site.service.now() + LINGER;
        self.lingering = Some(until);
        if self.unsent.is_empty() {
            self.stream.shutdown_write()?;
        }
        self.drain(until, site, buffers).map(Some)
    }

    /// Reads and forgets, until the peer ends or its time is up.
    fn drain(&mut self, until: Duration, site: &Site, buffers: &mut Buffers) -> io::Result<Fate> {
        for _ in 0..ROUNDS {
            match self.stream.read(&mut buffers.input) {
                Ok(0) => return Ok(Fate::Close),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(if site.service.is_due(until) { Fate::Close } else { Fate::Wait });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(if site.service.is_due(until) { Fate::Close } else { Fate::Again })
    }
}

/// Writes once; how much went, which is nothing when there is no room.
#[inline]
fn write_some(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            other => return other,
        }
    }
}

/// Passes what the records hold to `take`; false when the peer has ended, or broken the protocol.
fn decrypt(tls: &mut ServerConnection, records: &[u8], plain: &mut [u8], mut take: impl FnMut(&[u8])) -> bool {
    let mut rest = records;
    while !rest.is_empty() {
        if tls.read_tls(&mut rest).is_err() {
            return false;
        }
        let Ok(state) = tls.process_new_packets() else {
            // The alert that says why is in its output now.
            return false;
        };
        while let Ok(length @ 1..) = tls.reader().read(plain) {
            take(plain.get(..length).unwrap_or_default());
        }
        if state.peer_has_closed() {
            return false;
        }
    }
    true
}

/// Appends to `sealed` the records that carry `plain`, and whatever else TLS has to say.
fn encrypt(tls: &mut ServerConnection, plain: &[u8], sealed: &mut Vec<u8>) -> io::Result<()> {
    tls.writer().write_all(plain)?;
    while tls.wants_write() {
        tls.write_tls(sealed)?;
    }
    Ok(())
}
