//! Where servers listen.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Listen {
    /// A TCP address, IPv4 or IPv6. Port 0 takes a free one.
    Tcp(SocketAddr),
    /// A Unix stream socket at this path. The file is made at the start and removed at the stop;
    /// one that a dead server left behind is replaced.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// A text that names no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an address such as 127.0.0.1:8080, [::1]:8080, :8080, 8080 or unix:/run/target.sock, got {got:?}")]
pub struct ListenError {
    /// The text that came.
    pub got: String,
}

impl FromStr for Listen {
    type Err = ListenError;

    /// `address:port`, `[v6]:port`, `:port` or `port` (both on 127.0.0.1), `unix:/path`.
    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Tcp(address));
        }
        match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
            Ok(port) => Ok(Self::Tcp((Ipv4Addr::LOCALHOST, port).into())),
            Err(_) => Err(ListenError { got: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_written() {
        for text in ["127.0.0.1:80", "[::1]:0", "unix:/tmp/x.sock"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!(":80".parse::<Listen>().unwrap().to_string(), "127.0.0.1:80");
        assert_eq!("80".parse::<Listen>().unwrap().to_string(), "127.0.0.1:80");
        for text in ["", "unix:", "localhost", "1.2.3.4", "70000"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
