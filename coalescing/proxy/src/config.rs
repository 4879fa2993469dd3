//! The configuration of a proxy.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Uri};
use ipnet::IpNet;

use crate::notice::Notify;

/// The server behind the proxy: a scheme, a host and a port, or a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    /// The file of a Unix socket, in the place of host and port.
    pub(crate) socket: Option<PathBuf>,
}

/// A text that names no upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an upstream such as http://127.0.0.1:3000, https://app.internal (without a path) or unix:/run/app.sock, got '{got}'"
)]
pub struct UpstreamError {
    /// The given text. It may hold a user's password.
    pub got: String,
}

impl std::str::FromStr for Upstream {
    type Err = UpstreamError;

    /// `http://host[:port]`, `https://host[:port]`, `host:port` for HTTP, or `unix:path` for HTTP over a Unix socket.
    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError { got: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            let authority = Authority::from_static("localhost");
            let socket = (!path.is_empty()).then(|| PathBuf::from(path)).ok_or_else(wrong)?;
            return Ok(Self { scheme: Scheme::HTTP, authority, socket: Some(socket) });
        }
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = whole.parse().map_err(|_| wrong())?;
        let parts = uri.into_parts();
        let has_path = parts.path_and_query.is_some_and(|path| path.as_str() != "/");
        match (parts.scheme, parts.authority) {
            (Some(scheme), Some(authority))
                if !has_path
                    && (scheme == Scheme::HTTP || scheme == Scheme::HTTPS)
                    && !authority.as_str().contains('@')
                    && !authority.host().is_empty() =>
            {
                Ok(Self { scheme, authority, socket: None })
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.socket {
            Some(socket) => write!(f, "unix:{}", socket.display()),
            None => write!(f, "{}://{}", self.scheme, self.authority),
        }
    }
}

/// Where a proxy listens.
#[derive(Debug)]
pub enum Listen {
    /// On this TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// On a Unix socket that already listens. Its file belongs to the caller.
    Unix(UnixListener),
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// The proxy's identity for clients that use TLS.
#[derive(Debug, Clone)]
pub enum Identity {
    /// From these PEM files.
    Files {
        /// The certificate, and the chain up to its root.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// From this configuration, apart from its protocols (ALPN), which the proxy sets.
    Made(Arc<rustls::ServerConfig>),
}

/// Whose signature on the upstream's certificate is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// The authorities of the operating system.
    #[default]
    System,
    /// The authorities in this PEM file.
    Authorities(PathBuf),
    /// Any: the certificate is not verified.
    Anyone,
}

/// A trusted proxy before this one: its `Forwarded` and `X-Forwarded-…` are passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Whoever connects from an address of this network.
    Network(IpNet),
    /// Whoever connects by a Unix socket.
    Unix,
}

/// A text that names no trusted proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an address such as 10.0.0.1, a network such as 10.0.0.0/8, or unix, got '{got}'")]
pub struct TrustedProxyError {
    /// The given text.
    pub got: String,
}

impl std::str::FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    /// An IP address, a network in CIDR notation, or `unix`.
    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let network = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.map(Self::Network).ok_or_else(|| TrustedProxyError { got: text.to_owned() })
    }
}

/// The name of a protocol that a client may upgrade to: a token (RFC 9110, section 7.8), compared without case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeProtocol(pub(crate) String);

/// A text that names no protocol to upgrade to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the name of a protocol such as websocket (h2c is none: it would pass the proxy by), got '{got}'")]
pub struct UpgradeProtocolError {
    /// The given text.
    pub got: String,
}

impl std::str::FromStr for UpgradeProtocol {
    type Err = UpgradeProtocolError;

    fn from_str(text: &str) -> Result<Self, UpgradeProtocolError> {
        let is_token = HeaderName::from_bytes(text.as_bytes()).is_ok();
        // Over h2c whole requests would be tunnelled past everything that the proxy does.
        if is_token && !text.eq_ignore_ascii_case("h2c") {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(UpgradeProtocolError { got: text.to_owned() })
        }
    }
}

/// How requests are coalesced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coalescing {
    /// Headers whose values tell requests apart though they would not otherwise. A header that would exclude a request
    /// from coalescing no longer does if it is named here.
    pub key_headers: Vec<HeaderName>,
    /// Headers that are taken for harmless: they neither tell requests apart nor exclude them.
    pub ignored_headers: Vec<HeaderName>,
    /// Cookies that are taken for harmless, by name; `_ga_*` stands for all that begin so.
    pub ignored_cookies: Vec<String>,
    /// The most requests that one call of the upstream answers.
    pub max_members: Option<usize>,
    /// How long after its head an answer may be joined.
    pub join_late: Option<Duration>,
    /// The bytes of an answer's body so far up to which it may be joined after its head.
    pub join_late_bytes: Option<usize>,
    /// How often the next request leads after a status that may be due to its leader's request.
    pub max_promotions: Option<u32>,
    /// Coalesces OPTIONS and TRACE, too.
    pub all_safe_methods: bool,
    /// Shares answers with `Cache-Control: no-cache`, too.
    pub share_no_cache: bool,
    /// How long a complete answer is kept for later requests; zero keeps none.
    pub hold: Duration,
    /// How long a follower waits before it asks the upstream itself. `None` for a little longer than its leader may take, so
    /// that whoever waits for an upstream that hangs is answered when its leader is.
    pub max_wait: Option<Duration>,
    /// Bytes that a flight holds for slow readers before the fast ones wait for them.
    pub flight_bytes: Option<usize>,
    /// Bytes that all flights may hold.
    pub total_bytes: Option<usize>,
}

/// The access log: a line of JSON for each request.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// Where the log goes.
    pub output: LogOutput,
    /// Makes a request's target (a path with a query) fit for readers of the log: queries carry secrets.
    pub shown: fn(&str) -> Cow<'_, str>,
}

/// Where the access log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    /// To standard output.
    Stdout,
    /// To the end of this file.
    File(PathBuf),
}

/// The configuration of a proxy. [`Config::new`] sets the usual values.
#[derive(Debug)]
pub struct Config {
    /// The server behind the proxy.
    pub upstream: Upstream,
    /// Where to listen.
    pub listen: Listen,
    /// The number of threads; `None` for the number of cores.
    pub threads: Option<usize>,
    /// The `Host` that the upstream is sent, in the place of the client's.
    pub upstream_host: Option<HeaderValue>,
    /// The most idle connections to the upstream that are kept.
    pub max_idle: usize,
    /// Is told what the operator should know.
    pub notify: Notify,
    /// Speaks TLS to clients with this.
    pub identity: Option<Identity>,
    /// Whose certificates are trusted, of an upstream with TLS.
    pub trust: Trust,
    /// Coalesces identical requests.
    pub coalesce: Option<Coalescing>,
    /// How long making a connection to the upstream may take.
    pub connect_timeout: Duration,
    /// The longest time that the upstream may take for its headers, and between pieces of its body.
    pub response_timeout: Duration,
    /// The longest time that a client may take for TLS, for HTTP/2's preface, and for the head of a request from its
    /// first byte on.
    pub header_timeout: Duration,
    /// How long a client's connection may be without a request.
    pub keep_alive_timeout: Duration,
    /// The longest time that a client may take to send the next piece of its body, or to accept the next piece of its
    /// answer.
    pub client_timeout: Duration,
    /// How long an upgraded connection may be silent in both directions.
    pub tunnel_timeout: Duration,
    /// How long idle connections to the upstream are kept.
    pub idle_timeout: Duration,
    /// The most client connections at a time, upgraded ones included; further ones wait to be accepted.
    pub max_connections: usize,
    /// The longest head of a request, in bytes; 8 KiB at least.
    pub max_head: usize,
    /// The longest body of a request, in bytes.
    pub max_body: u64,
    /// The longest time that requests in flight may take once the proxy is told to stop.
    pub grace: Duration,
    /// Trusted proxies in front of this one. What others say about the origin of a request is dropped.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Protocols that clients may upgrade to, beside WebSocket. Any other upgrade is ignored.
    pub upgrades: Vec<UpgradeProtocol>,
    /// Where Prometheus finds metrics (`/metrics`).
    pub metrics: Option<SocketAddr>,
    /// Writes down each request.
    pub access_log: Option<AccessLog>,
}

impl Config {
    /// A plain proxy to `upstream` on `listen`.
    pub fn new(upstream: Upstream, listen: impl Into<Listen>) -> Self {
        Self {
            upstream,
            listen: listen.into(),
            threads: None,
            upstream_host: None,
            max_idle: 1024,
            notify: |_| {},
            identity: None,
            trust: Trust::System,
            coalesce: None,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(75),
            client_timeout: Duration::from_secs(60),
            tunnel_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_head: 32 * 1024,
            max_body: 100 * 1024 * 1024,
            grace: Duration::from_secs(10),
            trusted_proxies: Vec::new(),
            upgrades: Vec::new(),
            metrics: None,
            access_log: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_read() {
        for (text, expected) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("localhost:80", "http://localhost:80"),
            ("https://app.internal/", "https://app.internal"),
            ("http://[::1]:1", "http://[::1]:1"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
        ] {
            assert_eq!(text.parse::<Upstream>().unwrap().to_string(), expected);
        }
        for text in ["", "unix:", "http://", "ftp://x", "http://x/path", "http://x/?q", "http://me:pw@x", "http://x y"]
        {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.starts_with("expected an upstream such as"), "{text}: {error}");
        }
    }

    #[test]
    fn trusted_proxies_and_upgrades_are_read() {
        for text in ["10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8", "unix"] {
            assert!(text.parse::<TrustedProxy>().is_ok(), "{text}");
        }
        for text in ["", "10.0.0.0/33", "localhost", "10.0.0"] {
            assert!(text.parse::<TrustedProxy>().is_err(), "{text}");
        }
        assert_eq!("WebRTC".parse::<UpgradeProtocol>().unwrap().0, "webrtc");
        for text in ["", "H2C", "a b", "a,b"] {
            assert!(text.parse::<UpgradeProtocol>().is_err(), "{text}");
        }
    }
}
