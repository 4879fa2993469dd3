//! A connection from the client's side.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Endpoint, EndpointConfig,
    RandomConnectionIdGenerator,
};

use crate::clock::Clock;
use crate::session::{Limits, Session};

/// The size of a block that received datagrams are gathered in, in bytes.
const BLOCK_BYTES: usize = 4096;

/// The size of the ids that connections here ask to be called by, in bytes.
const ID_BYTES: usize = 8;

/// Makes ids of connections that begin with their place.
struct Placed {
    random: RandomConnectionIdGenerator,
    place: u32,
}

impl ConnectionIdGenerator for Placed {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = self.random.generate_cid();
        if let Some(first) = id.first_chunk_mut() {
            *first = self.place.to_be_bytes();
        }
        id
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The place of the connection that a datagram is for, if it was sent to one that has a place (RFC 8999, section 5). Others, and stateless
/// resets, name any place.
pub fn place_of(datagram: &[u8]) -> Option<u32> {
    /// The first byte's bit of a long header, before whose id are a version and a length.
    const LONG: u8 = 0x80;
    let (first, rest) = datagram.split_first()?;
    let id = if first & LONG == 0 { rest } else { rest.get(5..)? };
    id.first_chunk().map(|place| u32::from_be_bytes(*place))
}

/// Why a connection cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// QUIC needs TLS 1.3 with AES-128-GCM.
    #[error("QUIC needs TLS 1.3 with TLS_AES_128_GCM_SHA256, which this configuration leaves out")]
    NoCipherSuite,
    /// quinn-proto refuses, in its words.
    #[error("QUIC: {0}")]
    Connect(String),
}

/// What the connections of one client have in common.
#[derive(Debug, Clone)]
pub struct ClientSetup {
    config: ClientConfig,
    endpoint: Arc<EndpointConfig>,
    clock: Clock,
}

impl ClientSetup {
    /// Connections by this configuration of TLS, which names the protocols (ALPN), and with these limits.
    ///
    /// # Errors
    /// When the configuration has no TLS 1.3.
    pub fn new(tls: Arc<rustls::ClientConfig>, limits: Limits) -> Result<Self, SetupError> {
        let crypto = QuicClientConfig::try_from(tls).map_err(|_| SetupError::NoCipherSuite)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(limits.transport());
        let endpoint = Arc::new(EndpointConfig::default());
        Ok(Self { config, endpoint, clock: Clock::default() })
    }

    /// Begins a connection; [`Client::transmit`] has its first datagram. `name` is the server's, for its certificate and SNI; `streams` is how
    /// many are wanted in flight at once. With a `place`, all datagrams of its peer name it ([`place_of`]), so that connections can share a
    /// socket.
    ///
    /// # Errors
    /// When the address or the name cannot be one.
    pub fn connect(
        &self,
        to: SocketAddr,
        name: &str,
        streams: u64,
        place: Option<u32>,
        now: u64,
    ) -> Result<Client, SetupError> {
        let config = match place {
            None => Arc::clone(&self.endpoint),
            Some(place) => {
                let mut config = EndpointConfig::clone(&self.endpoint);
                config.cid_generator(move || {
                    Box::new(Placed { random: RandomConnectionIdGenerator::new(ID_BYTES), place })
                });
                Arc::new(config)
            }
        };
        let mut endpoint = Endpoint::new(config, None, false, None);
        let begun = endpoint.connect(self.clock.instant(now), self.config.clone(), to, name);
        let (handle, connection) = begun.map_err(|error| SetupError::Connect(error.to_string()))?;
        let session = Session::new(connection, self.clock).opening_ahead(streams).beginning_early();
        Ok(Client { endpoint, handle, session, to, clock: self.clock, block: BytesMut::new(), aside: Vec::new() })
    }
}

/// A connection from the client's side, with an endpoint of its own.
///
/// **Order.** After [`receive`](Self::receive), [`tick`](Session::tick) and [`write`](Session::write): [`transmit`](Self::transmit) until
/// there is nothing, [`read`](Session::read) until nothing, and, where reading has opened windows or the protocol has written, `transmit` again;
/// then [`timeout`](Session::timeout).
pub struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    session: Session,
    to: SocketAddr,
    clock: Clock,
    block: BytesMut,
    /// What the endpoint itself would answer to datagrams of no connection. It is not sent.
    aside: Vec<u8>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("to", &self.to).field("session", &self.session).finish_non_exhaustive()
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Client {
    /// Takes a datagram. Returns whether it was for this connection.
    pub fn receive(&mut self, datagram: &[u8], now: u64) -> bool {
        let bytes = gather(&mut self.block, datagram, BLOCK_BYTES);
        self.aside.clear();
        let now = self.clock.instant(now);
        let event = self.endpoint.handle(now, self.to, None, None, bytes, &mut self.aside);
        let Some(DatagramEvent::ConnectionEvent(_, event)) = event else { return false };
        self.session.connection.0.handle_event(event);
        self.session.poll();
        true
    }

    /// Appends the next datagrams to `out`, at most so many. Returns the length of each but the last, which may be shorter; `None` if there is
    /// none now.
    pub fn transmit(&mut self, now: u64, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        loop {
            if let Some((_, length)) = self.session.transmit(now, most, out) {
                return Some(length);
            }
            let event = self.session.connection.0.poll_endpoint_events()?;
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.session.connection.0.handle_event(event);
            }
        }
    }
}

/// A datagram as quinn-proto takes it: a part of a larger block, so that most cost no allocation.
pub(crate) fn gather(block: &mut BytesMut, datagram: &[u8], size: usize) -> BytesMut {
    if block.capacity() < datagram.len() {
        block.reserve(datagram.len().max(size));
    }
    block.extend_from_slice(datagram);
    block.split()
}
