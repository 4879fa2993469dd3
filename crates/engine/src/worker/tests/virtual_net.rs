//! A driver whose time and peers are made up, so that a run of minutes takes no time and always goes the same way.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use crate::transport::{Address, Driver, Ready};

/// What a peer does, and how long after what it reacts to, in nanoseconds.
pub(super) type Reaction = Vec<(u64, Act)>;

/// What can happen to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// It is accepted.
    Accept,
    /// It is refused.
    Refuse,
    /// Bytes come from the peer.
    Send(Vec<u8>),
    /// The peer closes its side.
    Close,
    /// The peer resets it.
    Reset,
}

/// The other end of every connection of a driver.
pub(super) trait Peer {
    /// Somebody connects.
    fn connecting(&mut self, _now: u64) -> Reaction {
        vec![(50_000, Act::Accept)]
    }

    /// How many bytes it takes at this time.
    fn room(&mut self, _now: u64) -> usize {
        usize::MAX
    }

    /// Bytes came; `connection` is a number that no other connection has.
    fn received(&mut self, connection: u64, bytes: &[u8], now: u64) -> Reaction;
}

#[derive(Default)]
struct Socket {
    connection: u64,
    connected: Option<Result<(), ()>>,
    inbox: Vec<u8>,
    closed: bool,
    reset: bool,
}

/// See the module's text.
pub(super) struct VirtualNet<P> {
    now: u64,
    peer: P,
    sockets: BTreeMap<usize, Socket>,
    /// What will happen: at which time, in which order; to which token and connection.
    future: BTreeMap<(u64, u64), (usize, u64, Act)>,
    count: u64,
    /// The most bytes that one write takes, or one read gives.
    pub(super) piece: usize,
    /// How long the worker sleeps too long, at each wait that ends by time.
    pub(super) oversleeps_ns: u64,
}

impl<P: Peer> VirtualNet<P> {
    pub(super) fn new(peer: P) -> Self {
        Self {
            now: 1_000_000_000,
            peer,
            sockets: BTreeMap::new(),
            future: BTreeMap::new(),
            count: 0,
            piece: usize::MAX,
            oversleeps_ns: 0,
        }
    }

    fn schedule(&mut self, token: usize, connection: u64, reaction: Reaction) {
        for (after, act) in reaction {
            self.count += 1;
            self.future.insert((self.now + after, self.count), (token, connection, act));
        }
    }

    fn socket(&mut self, token: usize) -> io::Result<&mut Socket> {
        self.sockets.get_mut(&token).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn apply(&mut self, token: usize, connection: u64, act: Act) -> Option<Ready> {
        let socket = self.sockets.get_mut(&token).filter(|socket| socket.connection == connection)?;
        let mut ready = Ready { token, readable: true, writable: false, ended: false };
        match act {
            Act::Accept => (socket.connected, ready.writable) = (Some(Ok(())), true),
            Act::Refuse => (socket.connected, ready.writable) = (Some(Err(())), true),
            Act::Send(bytes) => socket.inbox.extend(bytes),
            Act::Close => (socket.closed, ready.ended) = (true, true),
            Act::Reset => (socket.reset, ready.ended) = (true, true),
        }
        Some(ready)
    }
}

impl<P: Peer> Driver for VirtualNet<P> {
    fn now(&mut self) -> u64 {
        self.now
    }

    fn connect(&mut self, token: usize, _address: &Address, _source: Option<IpAddr>) -> io::Result<()> {
        self.count += 1;
        let connection = self.count;
        self.sockets.insert(token, Socket { connection, ..Socket::default() });
        let reaction = self.peer.connecting(self.now);
        self.schedule(token, connection, reaction);
        Ok(())
    }

    fn connected(&mut self, token: usize) -> io::Result<bool> {
        match self.socket(token)?.connected {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(())) => Err(io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error())),
        }
    }

    fn read(&mut self, token: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.piece;
        let socket = self.socket(token)?;
        if !socket.inbox.is_empty() {
            let n = socket.inbox.len().min(buffer.len()).min(piece);
            buffer[..n].copy_from_slice(&socket.inbox[..n]);
            socket.inbox.drain(..n);
            if !socket.inbox.is_empty() && n < buffer.len() {
                // A short read means there is no more for now: what is left is announced again.
                let connection = socket.connection;
                self.schedule(token, connection, vec![(0, Act::Send(Vec::new()))]);
            }
            return Ok(n);
        }
        match (socket.reset, socket.closed) {
            (true, _) => Err(io::ErrorKind::ConnectionReset.into()),
            (_, true) => Ok(0),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write(&mut self, token: usize, bytes: &[u8]) -> io::Result<usize> {
        let (piece, now) = (self.piece, self.now);
        let socket = self.socket(token)?;
        if socket.reset || socket.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let connection = socket.connection;
        let n = bytes.len().min(piece).min(self.peer.room(now));
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let reaction = self.peer.received(connection, &bytes[..n], now);
        self.schedule(token, connection, reaction);
        Ok(n)
    }

    fn close(&mut self, token: usize) {
        self.sockets.remove(&token);
    }

    fn wait(&mut self, until: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        while let Some(entry) = self.future.first_entry() {
            let time = entry.key().0;
            if time > until.max(self.now) || (!ready.is_empty() && time > self.now) {
                break;
            }
            let (token, connection, act) = entry.remove();
            self.now = self.now.max(time);
            ready.extend(self.apply(token, connection, act));
        }
        if ready.is_empty() && until > self.now {
            self.now = until + self.oversleeps_ns;
        }
        Ok(())
    }
}
