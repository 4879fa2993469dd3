//! Channels, between a client's bytes and the socket.
//!
//! Outwards, a channel takes clear bytes, encrypts them, and sends the result ([`Channel::send`]). Inwards, it takes
//! bytes of the wire ([`Channel::feed`]) and gives clear ones as they are asked for ([`Channel::next_clear`]). It does
//! its own handshake and its own end. A plain channel changes nothing, and its reader passes it by
//! ([`Channel::is_plain`]), so that no byte is copied. One of QUIC takes datagrams, has timers of its own ([`Channel::timer`]), and its
//! clear bytes are records of what happens on its streams (`brunt_quic::record`).

mod quic;
mod tunnel;
mod unsent;

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use brunt_quic::record::HEAD_BYTES;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;
use rustls::{CipherSuite, ClientConnection, HandshakeKind, ProtocolVersion};

use crate::transport::refusal;
use crate::transport::tls::TlsRoute;
use crate::transport::{ConnectionId, Driver};

pub(crate) use self::quic::Losses;
use self::quic::Quic;
use self::tunnel::Tunnel;
pub(crate) use self::unsent::Unsent;

/// The most waiting bytes that are encrypted at once: no more than will soon be sent.
const TLS_AT_ONCE_BYTES: usize = 64 << 10;

/// Carries a client's bytes to the socket and back.
pub(crate) enum Channel {
    /// Without encryption.
    Plain,
    /// A proxy that was asked for a tunnel. It becomes another channel once the tunnel stands.
    Tunnel(Box<Tunnel>),
    /// A session of TLS.
    Tls(Box<ClientConnection>),
    /// A connection of QUIC.
    Quic(Box<Quic>),
}

/// Clear bytes of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clear {
    /// As many are in the buffer.
    Bytes(usize),
    /// No clear bytes before more is fed.
    Nothing,
    /// The peer sends no more, whether or not it closes the socket (`close_notify`, RFC 8446 §6.1).
    End,
    /// The connection has ended, with this failure and for this reason. In a box, as every read returns one of these.
    Broken(Box<(Failure, Cow<'static, str>)>),
}

/// A handshake that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    /// Whether an earlier session was resumed.
    pub(crate) is_resumed: bool,
}

/// Bytes that went out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    /// Clear bytes: before encryption.
    pub(crate) clear: usize,
    /// On the wire.
    pub(crate) wire: usize,
}

/// A connection's socket.
pub(crate) struct Socket<'a, D> {
    /// The driver that owns it.
    pub(crate) driver: &'a mut D,
    /// The connection, by its worker's number for it.
    pub(crate) token: ConnectionId,
}

impl Channel {
    /// A channel of TLS whose handshake has not begun. [`Channel::flush`] begins it.
    ///
    /// # Errors
    /// When the TLS library refuses, in its words.
    pub(crate) fn tls(route: &TlsRoute) -> Result<Self, String> {
        let session = ClientConnection::new(route.config.clone(), route.server_name.clone());
        let mut session = session.map_err(|error| error.to_string())?;
        // A request is taken in full, whatever its size.
        session.set_buffer_limit(None);
        Ok(Self::Tls(Box::new(session)))
    }

    /// A channel of QUIC to this address for so many streams at once, whose handshake has not begun. [`Channel::flush`] begins it. Its peer's
    /// datagrams name the `place`, if there is one.
    ///
    /// # Errors
    /// When QUIC cannot be spoken with this peer, in the library's words.
    pub(crate) fn quic(
        route: &TlsRoute,
        to: SocketAddr,
        streams: usize,
        place: Option<u32>,
        now: Tick,
    ) -> Result<Self, String> {
        Ok(Self::Quic(Box::new(Quic::new(route, to, streams, place, now)?)))
    }

    /// Whether the socket carries datagrams: a short read does not mean that it is empty.
    #[inline]
    pub(crate) fn has_datagrams(&self) -> bool {
        matches!(self, Self::Quic(_))
    }

    /// What was lost on the way since this was last asked; `dropped` are the datagrams that this machine has dropped so far.
    pub(crate) fn take_losses(&mut self, dropped: u64) -> Losses {
        match self {
            Self::Quic(quic) => quic.take_losses(dropped),
            Self::Plain | Self::Tunnel(_) | Self::Tls(_) => Losses::default(),
        }
    }

    /// Whether nothing has come from the peer since then, where that means that the way to it is cut, or that it has forgotten the connection:
    /// a peer of QUIC acknowledges what it gets before it answers. Other peers are not known to be silent, since the system takes their bytes.
    pub(crate) fn is_silent_since(&self, since: Tick) -> bool {
        matches!(self, Self::Quic(quic) if quic.heard() < since)
    }

    /// What the peer's protocol said in words as it closed the connection, if it is one of QUIC.
    pub(crate) fn parting_words(&self) -> Option<&str> {
        if let Self::Quic(quic) = self { quic.parting_words() } else { None }
    }

    /// The smoothed round-trip time, in nanoseconds, of a connection of QUIC that stands.
    pub(crate) fn rtt_ns(&self) -> Option<u64> {
        if let Self::Quic(quic) = self { quic.rtt_ns() } else { None }
    }

    /// Whether what is sent now goes as early data: the handshake is not over.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self, Self::Quic(quic) if quic.is_early())
    }

    /// Whether the peer took early data.
    pub(crate) fn is_early_taken(&self) -> bool {
        matches!(self, Self::Quic(quic) if quic.is_early_taken())
    }

    /// Whether the connection outlives this error of its socket. One of datagrams that stands lives on while the network has no way, or no room.
    pub(crate) fn outlives(&self, error: &io::Error) -> bool {
        matches!(self, Self::Quic(quic) if quic.outlives(error))
    }

    /// How many of so many clear bytes are the peer's: those of QUIC come with a record's head.
    #[inline]
    pub(crate) fn carried_in(&self, clear: usize) -> usize {
        match self {
            Self::Quic(_) => clear.saturating_sub(HEAD_BYTES),
            Self::Plain | Self::Tunnel(_) | Self::Tls(_) => clear,
        }
    }

    /// When [`Channel::tick`] is to be called; [`Tick::NEVER`] for a channel without timers.
    #[inline]
    pub(crate) fn timer(&mut self) -> Tick {
        match self {
            Self::Quic(quic) => quic.timer(),
            Self::Plain | Self::Tunnel(_) | Self::Tls(_) => Tick::NEVER,
        }
    }

    /// A timer of its own has run out: it may have clear bytes, and something to send.
    pub(crate) fn tick(&mut self, now: Tick) {
        if let Self::Quic(quic) = self {
            quic.tick(now);
        }
    }

    /// A channel that asks a proxy for a tunnel with this request. [`Channel::flush`] sends it.
    pub(crate) fn tunnel(request: &Arc<[u8]>) -> Self {
        Self::Tunnel(Box::new(Tunnel::new(request)))
    }

    /// Whether it is a tunnel that stands.
    pub(crate) fn has_tunnel(&self) -> bool {
        matches!(self, Self::Tunnel(tunnel) if tunnel.stands())
    }

    /// Whether the bytes of the wire are the clear ones: such a channel is not fed.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Whether it holds bytes that the socket did not take.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Tunnel(tunnel) => tunnel.has_unsent(),
            Self::Tls(tls) => tls.wants_write(),
            Self::Quic(quic) => quic.has_unsent(),
        }
    }

    /// The protocol that the peer has chosen (ALPN, RFC 7301).
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain | Self::Tunnel(_) => None,
            Self::Tls(tls) => tls.alpn_protocol(),
            Self::Quic(quic) => quic.alpn(),
        }
    }

    /// The version of TLS and the cipher suite, as RFC 8446 and RFC 5246 name them; `None` without TLS.
    pub(crate) fn security(&self) -> Option<(ProtocolVersion, CipherSuite)> {
        let Self::Tls(tls) = self else { return None };
        Some((tls.protocol_version()?, tls.negotiated_cipher_suite()?.suite()))
    }

    /// The handshake, once it is over.
    pub(crate) fn handshake(&self) -> Option<Handshake> {
        match self {
            Self::Plain => Some(Handshake { is_resumed: false }),
            Self::Tunnel(_) => None,
            Self::Tls(tls) if tls.is_handshaking() => None,
            Self::Quic(quic) => quic.is_established().then_some(Handshake { is_resumed: quic.is_resumed() }),
            Self::Tls(tls) => Some(Handshake { is_resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed) }),
        }
    }

    /// Takes bytes that came off the front of `wire`, as many as there is room for. Ask for all clear bytes before
    /// feeding it again.
    ///
    /// # Errors
    /// When they are no valid records of a peer, with the reason. An alert for it then waits to be sent
    /// ([`Channel::flush`]).
    pub(crate) fn feed(&mut self, wire: &mut &[u8], now: Tick) -> Result<(), String> {
        let tls = match self {
            Self::Quic(quic) => {
                quic.feed(std::mem::take(wire), now);
                return Ok(());
            }
            Self::Plain => return Ok(()),
            Self::Tunnel(tunnel) => return tunnel.feed(wire),
            Self::Tls(tls) => tls,
        };
        let came = *wire;
        tls.read_tls(wire).map_err(|error| error.to_string())?;
        tls.process_new_packets().map_err(|error| refusal::reason(&error, came))?;
        Ok(())
    }

    /// Writes clear bytes into `buffer`, from the wire bytes that it was fed.
    #[inline]
    pub(crate) fn next_clear(&mut self, buffer: &mut [u8]) -> Clear {
        let tls = match self {
            Self::Tls(tls) => tls,
            Self::Quic(quic) => return quic.next_clear(buffer),
            Self::Plain | Self::Tunnel(_) => return Clear::Nothing,
        };
        match io::Read::read(&mut tls.reader(), buffer) {
            Ok(0) => Clear::End,
            Ok(count) => Clear::Bytes(count),
            Err(_) => Clear::Nothing,
        }
    }

    /// Whether an end of the socket is the end of what its peer sends: TLS has to say so itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self, Self::Plain | Self::Quic(_)) || self.next_clear(&mut [0]) == Clear::End
    }

    /// Sends records of its own (handshake, alerts), as far as the socket takes them. Adds the number of bytes taken to
    /// `written`.
    ///
    /// # Errors
    /// When the socket fails.
    pub(crate) fn flush<D: Driver>(&mut self, socket: &mut Socket<'_, D>, written: &mut usize) -> io::Result<()> {
        match self {
            Self::Plain => Ok(()),
            Self::Tunnel(tunnel) => tunnel.flush(socket, written),
            Self::Tls(tls) => socket.write_records(tls, written),
            Self::Quic(quic) => quic.flush(socket, written),
        }
    }

    /// Sends a `close_notify` (RFC 8446 §6.1), or the end of a connection of QUIC, as far as the socket takes it; returns how many bytes.
    pub(crate) fn close<D: Driver>(&mut self, socket: &mut Socket<'_, D>) -> usize {
        let mut written = 0;
        let tls = match self {
            Self::Tls(tls) => tls,
            Self::Quic(quic) => {
                quic.close(socket.driver.now());
                // Best effort, too.
                let _ = quic.flush(socket, &mut written);
                return written;
            }
            Self::Plain | Self::Tunnel(_) => return 0,
        };
        tls.send_close_notify();
        // Best effort: ignore a failed `close_notify`.
        let _ = socket.write_records(tls, &mut written);
        written
    }

    /// Sends clear `bytes` after those that already wait in `unsent`, as far as the socket takes them; the rest waits
    /// there. Adds the number of bytes taken to `sent`.
    ///
    /// # Errors
    /// When the socket fails, perhaps after it has taken some.
    pub(crate) fn send<D: Driver>(
        &mut self,
        socket: &mut Socket<'_, D>,
        bytes: &[u8],
        unsent: &mut Unsent,
        sent: &mut Sent,
    ) -> io::Result<()> {
        if !unsent.is_empty() {
            unsent.push(bytes);
            return self.send_waiting(socket, unsent, sent);
        }
        match self {
            // Nothing is sent before the tunnel stands.
            Self::Tunnel(_) => {
                unsent.push(bytes);
                Ok(())
            }
            Self::Plain => {
                let mut written = 0;
                let outcome = socket.write_available(bytes, &mut written);
                unsent.push(bytes.get(written..).unwrap_or(&[]));
                sent.clear += written;
                sent.wire += written;
                outcome
            }
            Self::Tls(tls) => {
                // Without a limit on its buffer this takes everything; it does no I/O.
                io::Write::write_all(&mut tls.writer(), bytes)?;
                sent.clear += bytes.len();
                socket.write_records(tls, &mut sent.wire)
            }
            Self::Quic(quic) => {
                sent.clear += quic.write(bytes, socket.driver.now());
                quic.flush(socket, &mut sent.wire)
            }
        }
    }

    /// Sends waiting bytes, as far as the socket takes them. Adds the number of bytes taken to `sent`.
    ///
    /// # Errors
    /// When the socket fails.
    #[cold]
    pub(crate) fn send_waiting<D: Driver>(
        &mut self,
        socket: &mut Socket<'_, D>,
        unsent: &mut Unsent,
        sent: &mut Sent,
    ) -> io::Result<()> {
        match self {
            Self::Tunnel(tunnel) => tunnel.flush(socket, &mut sent.wire)?,
            Self::Quic(quic) => quic.flush(socket, &mut sent.wire)?,
            Self::Plain => {
                while !unsent.is_empty() {
                    let mut written = 0;
                    let outcome = socket.write_available(unsent.next(), &mut written);
                    sent.clear += written;
                    sent.wire += written;
                    let all = written == unsent.next().len();
                    unsent.sent(written);
                    outcome?;
                    if !all {
                        break;
                    }
                }
            }
            Self::Tls(tls) => loop {
                socket.write_records(tls, &mut sent.wire)?;
                // The peer's Nagle algorithm holds a short answer back behind tickets that are not acknowledged yet. A peer
                // that refuses a long request, and closes at once, would drop that answer. Whatever is sent makes the kernel
                // put acknowledgements off again.
                socket.driver.acknowledge(socket.token);
                let next = unsent.next();
                if tls.wants_write() || next.is_empty() {
                    break;
                }
                let piece = next.get(..TLS_AT_ONCE_BYTES).unwrap_or(next);
                io::Write::write_all(&mut tls.writer(), piece)?;
                let count = piece.len();
                sent.clear += count;
                unsent.sent(count);
            },
        }
        Ok(())
    }
}

impl<D: Driver> Socket<'_, D> {
    /// Writes as much of `bytes` as the socket takes. Adds the number of bytes taken to `written`.
    #[inline]
    fn write_available(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        while let Some(rest) = bytes.get(*written..)
            && !rest.is_empty()
        {
            match self.driver.write(self.token, rest) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as many of the TLS records that wait as the socket takes. Adds the number of bytes taken to `written`.
    fn write_records(&mut self, tls: &mut ClientConnection, written: &mut usize) -> io::Result<()> {
        while tls.wants_write() {
            match tls.write_tls(self) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// One write to the socket, for the TLS library.
impl<D: Driver> io::Write for Socket<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.driver.write(self.token, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
