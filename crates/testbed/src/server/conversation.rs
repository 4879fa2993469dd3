//! What is said on one connection, in whichever protocol.

use std::time::Duration;

use crate::http::{Http2, PREFACE, Session, Site};
use crate::service::{Closing, ServedProtocol};
use crate::{thrift, websocket};

/// One connection's conversation.
#[derive(Debug)]
pub(super) enum Conversation {
    /// HTTP before its version is known: what has come so far may begin a request of either.
    Beginning(Vec<u8>),
    Http(Session),
    Http2(Box<Http2>),
    WebSocket(websocket::Echo),
    Thrift(thrift::Echo),
}

/// The same for each.
macro_rules! each {
    ($self:ident, $it:ident => $what:expr, or $none:expr) => {
        match $self {
            Self::Beginning(_) => $none,
            Self::Http2($it) => $what,
            Self::Http($it) => $what,
            Self::WebSocket($it) => $what,
            Self::Thrift($it) => $what,
        }
    };
}

impl Conversation {
    pub(super) fn new(speaks: ServedProtocol) -> Self {
        match speaks {
            ServedProtocol::Http => Self::Beginning(Vec::new()),
            ServedProtocol::WebSocket => Self::WebSocket(websocket::Echo::default()),
            ServedProtocol::Thrift => Self::Thrift(thrift::Echo::default()),
        }
    }

    /// Everything was said: the connection can end once its output is sent.
    #[inline]
    pub(super) fn closing(&self) -> Option<Closing> {
        each!(self, it => it.closing(), or None)
    }

    /// Nothing waits to be said.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        each!(self, it => it.is_idle(), or true)
    }

    /// Too much waits for a peer that does not read, or does not wait for its answers.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        each!(self, it => it.is_full(), or false)
    }

    /// When something is to be said next, if anything waits.
    #[inline]
    pub(super) fn next_due(&self) -> Option<Duration> {
        each!(self, it => it.next_due(), or None)
    }

    /// The connection is gone.
    pub(super) fn leave(&mut self, site: &mut Site) {
        match self {
            Self::Http(session) => session.leave(site),
            Self::Http2(connection) => connection.leave(site),
            Self::Beginning(_) | Self::WebSocket(_) | Self::Thrift(_) => {}
        }
    }

    /// Appends what is due by now.
    #[inline]
    pub(super) fn pump(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        match self {
            Self::Beginning(_) => {}
            Self::Http(session) => session.pump(site, out),
            Self::Http2(connection) => connection.pump(site, out),
            Self::WebSocket(echo) => echo.pump(&mut site.service, out),
            Self::Thrift(echo) => echo.pump(&mut site.service, out),
        }
    }

    /// Takes bytes from the client and appends what can be answered at once to `out`.
    #[inline]
    pub(super) fn receive(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) {
        match self {
            Self::Beginning(before) => {
                let before = std::mem::take(before);
                self.begin(before, input, site, out);
            }
            Self::Http(session) => session.receive(input, site, out),
            Self::Http2(connection) => connection.receive(input, site, out),
            Self::WebSocket(echo) => echo.receive(input, &mut site.service, out),
            Self::Thrift(echo) => echo.receive(input, &mut site.service, out),
        }
    }

    /// Takes the first bytes of HTTP, by which its version is told.
    #[cold]
    fn begin(&mut self, mut before: Vec<u8>, input: &[u8], site: &mut Site, out: &mut Vec<u8>) {
        before.extend_from_slice(input);
        if before.starts_with(PREFACE) {
            *self = Self::Http2(Box::new(Http2::new()));
        } else if PREFACE.starts_with(&before) {
            *self = Self::Beginning(before);
            return;
        } else {
            *self = Self::Http(Session::new());
        }
        self.receive(&before, site, out);
    }
}
