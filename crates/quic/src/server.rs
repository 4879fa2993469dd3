//! A server's socket, with all of its connections.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig};

use crate::client::{SetupError, gather};
use crate::clock::Clock;
use crate::session::{Limits, Session};

/// The size of a block that received datagrams are gathered in, in bytes.
const BLOCK_BYTES: usize = 64 * 1024;

/// A server's number for a connection, which another may have once this one is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(usize);

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    config: Arc<ServerConfig>,
    clock: Clock,
}

impl ServerSetup {
    /// A server by this configuration of TLS, which names the protocols (ALPN), and with these limits.
    ///
    /// # Errors
    /// When the configuration has no TLS 1.3.
    pub fn new(tls: Arc<rustls::ServerConfig>, limits: Limits) -> Result<Self, SetupError> {
        let crypto = QuicServerConfig::try_from(tls).map_err(|_| SetupError::NoCipherSuite)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(limits.transport());
        Ok(Self { config: Arc::new(config), clock: Clock::default() })
    }
}

/// What a datagram was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This connection, which has something to do now.
    Session(SessionId),
    /// No connection: a new one was refused, or an answer without one was appended.
    Response(Response),
    /// Nothing that a server answers.
    Nothing,
}

/// A datagram to send that belongs to no connection: version negotiation, a Retry, a refusal, a stateless reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Where it goes.
    pub to: SocketAddr,
    /// How many bytes were appended.
    pub bytes: usize,
}

/// A server's socket, with all of its connections.
pub struct QuicServer {
    endpoint: Endpoint,
    sessions: Vec<Option<Session>>,
    clock: Clock,
    block: BytesMut,
    /// Whether new connections have to show that their address is theirs (RFC 9000, section 8.1.2).
    retries: bool,
    /// Whether new connections are refused.
    refuses: bool,
}

impl std::fmt::Debug for QuicServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

impl QuicServer {
    /// A server without connections.
    pub fn new(setup: &ServerSetup) -> Self {
        let config = Some(Arc::clone(&setup.config));
        Self {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), config, false, None),
            sessions: Vec::new(),
            clock: setup.clock,
            block: BytesMut::new(),
            retries: false,
            refuses: false,
        }
    }

    /// Sends a Retry to each new connection first.
    #[must_use]
    pub fn retrying(self, retries: bool) -> Self {
        Self { retries, ..self }
    }

    /// Refuses new connections from now on, or takes them again.
    pub fn refuse(&mut self, refuses: bool) {
        self.refuses = refuses;
    }

    /// A connection.
    pub fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id.0)?.as_mut()
    }

    /// The numbers of all connections.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().enumerate().filter(|(_, session)| session.is_some()).map(|(place, _)| SessionId(place))
    }

    /// Takes a datagram from this address. An answer that belongs to no connection is appended to `out`.
    pub fn receive(&mut self, datagram: &[u8], from: SocketAddr, now: u64, out: &mut Vec<u8>) -> Received {
        let bytes = gather(&mut self.block, datagram, BLOCK_BYTES);
        let at = self.clock.instant(now);
        match self.endpoint.handle(at, from, None, None, bytes, out) {
            None => Received::Nothing,
            Some(DatagramEvent::Response(response)) => {
                Received::Response(Response { to: response.destination, bytes: response.size })
            }
            Some(DatagramEvent::ConnectionEvent(ConnectionHandle(place), event)) => {
                let Some(session) = self.session(SessionId(place)) else { return Received::Nothing };
                session.connection.0.handle_event(event);
                Received::Session(SessionId(place))
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.refuses {
                    let refusal = self.endpoint.refuse(incoming, out);
                    return Received::Response(Response { to: refusal.destination, bytes: refusal.size });
                }
                if self.retries && !incoming.remote_address_validated() && incoming.may_retry() {
                    return match self.endpoint.retry(incoming, out) {
                        Ok(retry) => Received::Response(Response { to: retry.destination, bytes: retry.size }),
                        Err(_) => Received::Nothing,
                    };
                }
                match self.endpoint.accept(incoming, at, out, None) {
                    Ok((ConnectionHandle(place), connection)) => {
                        if self.sessions.len() <= place {
                            self.sessions.resize_with(place + 1, || None);
                        }
                        if let Some(session) = self.sessions.get_mut(place) {
                            *session = Some(Session::new(connection, self.clock));
                        }
                        Received::Session(SessionId(place))
                    }
                    Err(error) => match error.response {
                        Some(response) => {
                            Received::Response(Response { to: response.destination, bytes: response.size })
                        }
                        None => Received::Nothing,
                    },
                }
            }
        }
    }

    /// Appends the next datagram of a connection to `out`. Returns where it goes; `None` if there is none now. A connection that has ended is
    /// forgotten once nothing is left to send.
    pub fn transmit(&mut self, id: SessionId, now: u64, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let place = self.sessions.get_mut(id.0)?;
        loop {
            let session = place.as_mut()?;
            if let Some((to, _)) = session.transmit(now, 1, out) {
                return Some(to);
            }
            let event = session.connection.0.poll_endpoint_events()?;
            let is_drained = event.is_drained();
            if let Some(event) = self.endpoint.handle_event(ConnectionHandle(id.0), event) {
                session.connection.0.handle_event(event);
            }
            if is_drained {
                *place = None;
            }
        }
    }
}
