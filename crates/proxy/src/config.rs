//! What a proxy is asked to be.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Authority, Scheme};
use http::{HeaderName, Uri};

/// The server behind the proxy: a scheme, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// A text that names no upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an upstream such as http://127.0.0.1:3000 or https://app.internal, without a path, got '{got}'")]
pub struct UpstreamError {
    /// The text that came.
    pub got: String,
}

impl std::str::FromStr for Upstream {
    type Err = UpstreamError;

    /// `http://host[:port]`, `https://host[:port]`, or `host:port` for HTTP.
    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError { got: text.to_owned() };
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
                Ok(Self { scheme, authority })
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// Where a proxy listens.
#[derive(Debug)]
pub enum Listen {
    /// On this TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// On a Unix socket that listens already. Its file is whose who made it.
    Unix(UnixListener),
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// Who the proxy is to clients that speak TLS.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Who these files say, in PEM.
    Files {
        /// The certificate and what leads from it to its root.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// As this says, but for its protocols (ALPN), which are the proxy's.
    Made(Arc<rustls::ServerConfig>),
}

/// By whom the upstream's certificate must be signed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// One of the system's authorities.
    #[default]
    System,
    /// One of those in this PEM file.
    Authorities(PathBuf),
    /// Anybody: it is not verified.
    Anyone,
}

/// How requests are coalesced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coalescing {
    /// Headers by which requests are told apart, beside all else; one that would bar a request does so no longer.
    pub key_headers: Vec<HeaderName>,
    /// How long a whole answer is held for those who come after its end; zero for not at all.
    pub hold: Duration,
    /// How long a follower waits before it asks the upstream itself; [`Config::response_timeout`] if none.
    pub max_wait: Option<Duration>,
    /// Bytes that a flight may hold for slow readers.
    pub flight_bytes: Option<usize>,
    /// Bytes that all flights may hold.
    pub total_bytes: Option<usize>,
}

/// Where the access log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    /// To standard output.
    Stdout,
    /// To the end of this file.
    File(PathBuf),
}

/// What a proxy is asked to be. [`Config::new`] has what is usual.
#[derive(Debug)]
pub struct Config {
    /// The server behind the proxy.
    pub upstream: Upstream,
    /// Where to listen.
    pub listen: Listen,
    /// Threads; as many as there are cores if none.
    pub threads: Option<usize>,
    /// Speaks TLS to clients with this.
    pub identity: Option<Identity>,
    /// Whom to trust of an upstream with TLS.
    pub trust: Trust,
    /// Coalesces identical requests.
    pub coalesce: Option<Coalescing>,
    /// How long making a connection to the upstream may take.
    pub connect_timeout: Duration,
    /// How long the upstream may take until its headers are there, and between pieces of its body.
    pub response_timeout: Duration,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long idle connections to the upstream are kept.
    pub idle_timeout: Duration,
    /// Connections of clients at a time; further ones wait to be accepted.
    pub max_connections: usize,
    /// The longest body of a request, in bytes.
    pub max_body: u64,
    /// How long requests in flight may take once the proxy is told to stop.
    pub grace: Duration,
    /// Where Prometheus finds metrics (`/metrics`).
    pub metrics: Option<SocketAddr>,
    /// A line for each request, as JSON.
    pub access_log: Option<AccessLog>,
}

impl Config {
    /// A plain proxy to `upstream` on `listen`.
    pub fn new(upstream: Upstream, listen: impl Into<Listen>) -> Self {
        Self {
            upstream,
            listen: listen.into(),
            threads: None,
            identity: None,
            trust: Trust::System,
            coalesce: None,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_body: 100 * 1024 * 1024,
            grace: Duration::from_secs(10),
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
        ] {
            assert_eq!(text.parse::<Upstream>().unwrap().to_string(), expected);
        }
        for text in ["", "http://", "ftp://x", "http://x/path", "http://x/?q", "http://me:pw@x", "http://x y"] {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.starts_with("expected an upstream such as"), "{text}: {error}");
        }
    }
}
