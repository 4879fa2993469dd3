//! A channel over QUIC: datagrams on the wire, records of streams as clear bytes, timers of its own.

use std::io;
use std::net::SocketAddr;

use brunt_quic::{Cause, Client, Ending, Read};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;
use rustix::io::Errno;

use super::{Clear, Socket};
use crate::transport::tls::{TlsRoute, certificates_seen};
use crate::transport::{Driver, MOST_AT_ONCE, refusal};

/// `H3_NO_ERROR` (RFC 9114, section 8.1): HTTP/3 is the one protocol that is spoken over QUIC here.
const NO_ERROR: u64 = 0x100;

/// A connection of QUIC.
pub(crate) struct Quic {
    client: Client,
    alpn: Option<Vec<u8>>,
    /// Datagrams that the socket did not take yet, or nothing.
    datagrams: Vec<u8>,
    /// The length of each of them but the last.
    each: usize,
    /// How many the socket takes at once.
    most: usize,
    /// Whether no certificate was shown: an earlier session was resumed.
    is_resumed: bool,
    /// What was lost and taken so far.
    taken: Losses,
    /// Datagrams that the machine had no room to send.
    unsent: u64,
    /// When a datagram last came.
    heard: Tick,
}

/// What was lost on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Packets to the peer, as far as is known.
    pub(crate) sent: u64,
    /// Datagrams that this machine dropped.
    pub(crate) dropped: u64,
}

impl Quic {
    /// A connection whose handshake has not begun. [`Quic::flush`] begins it.
    ///
    /// # Errors
    /// When QUIC cannot be spoken with this peer.
    pub(super) fn new(
        route: &TlsRoute,
        to: SocketAddr,
        streams: usize,
        place: Option<u32>,
        now: Tick,
    ) -> Result<Self, String> {
        let setup = route.quic.as_ref().ok_or("no QUIC")?;
        let client = setup
            .connect(to, &route.server_name.to_str(), streams as u64, place, now.ns())
            .map_err(|error| error.to_string())?;
        // The server of a resumed session speaks what it spoke then.
        let alpn = if client.is_early() { route.config.alpn_protocols.first().cloned() } else { None };
        Ok(Self {
            client,
            alpn,
            datagrams: Vec::new(),
            each: 0,
            most: MOST_AT_ONCE,
            is_resumed: true,
            taken: Losses::default(),
            unsent: 0,
            heard: now,
        })
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.datagrams.is_empty()
    }

    pub(super) fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    pub(super) fn is_established(&self) -> bool {
        self.client.is_established()
    }

    /// Whether the handshake, once it is over, has resumed a session.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(super) fn is_early(&self) -> bool {
        self.client.is_early()
    }

    pub(super) fn is_early_taken(&self) -> bool {
        self.client.is_early_taken()
    }

    pub(super) fn rtt_ns(&self) -> Option<u64> {
        self.client.rtt_ns()
    }

    pub(super) fn parting_words(&self) -> Option<&str> {
        self.client.parting_words()
    }

    /// When a datagram last came; before the first, when the connection began.
    pub(super) fn heard(&self) -> Tick {
        self.heard
    }

    /// Whether this error of the socket is no more than a lost datagram: QUIC sends its content again.
    pub(super) fn outlives(&self, error: &io::Error) -> bool {
        let Some(errno) = error.raw_os_error().map(Errno::from_raw_os_error) else { return false };
        match errno {
            // The machine has no room for it, or the way takes none of this size any more.
            Errno::NOBUFS | Errno::NOMEM | Errno::MSGSIZE => true,
            // Such as a route that changes, or a firewall's rule for a while. A connection that is being made fails for it, with its name.
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN | Errno::PERM | Errno::ACCESS => {
                self.client.is_established()
            }
            _ => false,
        }
    }

    /// When [`Quic::tick`] is to be called.
    pub(super) fn timer(&mut self) -> Tick {
        self.client.timeout().map_or(Tick::NEVER, Tick::from_ns)
    }

    pub(super) fn tick(&mut self, now: Tick) {
        self.client.tick(now.ns());
    }

    /// Takes a datagram.
    pub(super) fn feed(&mut self, datagram: &[u8], now: Tick) {
        let was_established = self.client.is_established();
        let seen = certificates_seen();
        if !self.client.receive(datagram, now.ns()) {
            return;
        }
        self.heard = now;
        if was_established {
            return;
        }
        self.is_resumed &= certificates_seen() == seen;
        if self.client.is_established() {
            self.alpn = self.client.alpn();
        }
    }

    /// Writes records into `buffer`.
    pub(super) fn next_clear(&mut self, buffer: &mut [u8]) -> Clear {
        match self.client.read(buffer) {
            Read::Bytes(count) => Clear::Bytes(count),
            Read::Nothing => Clear::Nothing,
            Read::End(Ending { cause, reason }) => match failure(cause) {
                Some(Failure::Tls) => Clear::Broken(Box::new((Failure::Tls, refusal::with_way_out(reason)))),
                Some(failure) => Clear::Broken(Box::new((failure, reason))),
                None => Clear::End,
            },
        }
    }

    /// Takes records of the client. Returns how many bytes of streams are in them.
    pub(super) fn write(&mut self, records: &[u8], now: Tick) -> usize {
        self.client.write(records, now.ns())
    }

    /// Sends what QUIC has to send, as far as the socket takes it. Adds the number of bytes taken to `written`.
    ///
    /// # Errors
    /// When the socket fails.
    pub(super) fn flush<D: Driver>(&mut self, socket: &mut Socket<'_, D>, written: &mut usize) -> io::Result<()> {
        let now = socket.driver.now().ns();
        loop {
            if self.datagrams.is_empty() {
                let Some(each) = self.client.transmit(now, self.most, &mut self.datagrams) else { return Ok(()) };
                self.each = each;
            }
            match socket.driver.write_datagrams(socket.token, &self.datagrams, self.each) {
                Ok(count) => {
                    *written += count;
                    self.datagrams.clear();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.outlives(&error) => {
                    if is_full(&error) {
                        self.unsent += self.datagrams.len().div_ceil(self.each.max(1)) as u64;
                    }
                    self.datagrams.clear();
                }
                // The device takes only one at a time: these are sent again as lost ones.
                Err(error) if self.most > 1 && error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    self.most = 1;
                    self.datagrams.clear();
                }
                Err(error) => {
                    self.datagrams.clear();
                    return Err(error);
                }
            }
        }
    }

    /// What was lost since this was last asked; `dropped` are the datagrams that came and that this machine has dropped so far.
    pub(super) fn take_losses(&mut self, dropped: u64) -> Losses {
        let all = Losses { sent: self.client.lost_packets(), dropped: dropped.saturating_add(self.unsent) };
        let before = std::mem::replace(&mut self.taken, all);
        Losses { sent: all.sent.saturating_sub(before.sent), dropped: all.dropped.saturating_sub(before.dropped) }
    }

    /// Ends the connection, if its client has not: the peer is told with the next datagram.
    pub(super) fn close(&mut self, now: Tick) {
        self.client.close(NO_ERROR, now.ns());
    }
}

/// Whether an error of a socket says that the machine has no room.
fn is_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOBUFS | Errno::NOMEM))
}

/// How the calls on a connection fail with its end; `None` where it ended in good order, or its client has said why.
fn failure(cause: Cause) -> Option<Failure> {
    match cause {
        Cause::Version | Cause::Transport => Some(Failure::Protocol),
        Cause::Refused => Some(Failure::Connect),
        Cause::Tls => Some(Failure::Tls),
        Cause::Forgotten => Some(Failure::Read),
        // As a peer of TCP closes a connection that is idle.
        Cause::Idle => Some(Failure::Closed),
        Cause::Application(_) | Cause::Local => None,
    }
}
