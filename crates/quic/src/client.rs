//! A connection from the client's side.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig};

use crate::clock::Clock;
use crate::session::{Limits, Session};

/// The size of a block that received datagrams are gathered in, in bytes.
const BLOCK_BYTES: usize = 4096;

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
    /// many are wanted in flight at once.
    ///
    /// # Errors
    /// When the address or the name cannot be one.
    pub fn connect(&self, to: SocketAddr, name: &str, streams: u64, now: u64) -> Result<Client, SetupError> {
        let mut endpoint = Endpoint::new(Arc::clone(&self.endpoint), None, false, None);
        let begun = endpoint.connect(self.clock.instant(now), self.config.clone(), to, name);
        let (handle, connection) = begun.map_err(|error| SetupError::Connect(error.to_string()))?;
        let session = Session::new(connection, self.clock).opening_ahead(streams);
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
    /// Takes a datagram of the peer.
    pub fn receive(&mut self, datagram: &[u8], now: u64) {
        let bytes = gather(&mut self.block, datagram, BLOCK_BYTES);
        self.aside.clear();
        let now = self.clock.instant(now);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) =
            self.endpoint.handle(now, self.to, None, None, bytes, &mut self.aside)
        {
            self.session.connection.0.handle_event(event);
            self.session.poll();
        }
    }

    /// Appends the next datagram to `out`. Returns whether there was one.
    pub fn transmit(&mut self, now: u64, out: &mut Vec<u8>) -> bool {
        loop {
            if self.session.transmit(now, out).is_some() {
                return true;
            }
            let Some(event) = self.session.connection.0.poll_endpoint_events() else { return false };
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
