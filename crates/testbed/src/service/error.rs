//! Why a server did not start.

use std::io;
use std::path::PathBuf;

use super::listen::Listen;
use crate::tls::TlsError;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A figure of the configuration makes no sense.
    #[error("{field}: expected {expected}, got {got}")]
    Config {
        /// Which one.
        field: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it was.
        got: String,
    },
    /// Another server listens there.
    #[error(
        "expected a free address, but {address} is in use; stop what listens there or choose another{}",
        port_hint(address)
    )]
    InUse {
        /// The address asked for.
        address: Listen,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; expected an address of this machine that you may use (ports below 1024 may need privileges)"
    )]
    Bind {
        /// The address asked for.
        address: Listen,
        /// What the system said.
        source: io::Error,
    },
    /// A file stands where the Unix socket should.
    #[error("expected no file or a socket at {}, found something else; choose another path or remove it", path.display())]
    NotASocket {
        /// The path asked for.
        path: PathBuf,
    },
    /// TLS cannot be spoken as asked.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The log cannot be created.
    #[error("cannot create the log: {source}")]
    Log {
        /// What the system said.
        source: io::Error,
    },
    /// A worker could not be set up.
    #[error("cannot set up a worker: {source}; expected descriptors and threads to be left (see ulimit -n and -u)")]
    Worker {
        /// What the system said.
        source: io::Error,
    },
}

fn port_hint(address: &Listen) -> &'static str {
    match address {
        Listen::Tcp(_) => " (port 0 takes a free one)",
        Listen::Unix(_) => "",
    }
}

impl StartError {
    pub(crate) fn bind(address: &Listen, source: io::Error) -> Self {
        let address = address.clone();
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            _ => Self::Bind { address, source },
        }
    }
}
