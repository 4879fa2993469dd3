//! Why a proxy does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a proxy does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; expected a free address of this machine (port 0 takes a free port)")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A Unix socket cannot be taken over.
    #[error("cannot listen on the Unix socket: {0}; expected descriptors to be left (see ulimit -n)")]
    Socket(#[source] io::Error),
    /// A file could not be used.
    #[error("{}: {source}; expected {expected}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected of it.
        expected: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A PEM file lacks the expected content.
    #[error("{}: expected {expected}, got: {got}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
        /// The actual content.
        got: String,
    },
    /// Certificate and key do not work together.
    #[error("the certificate and key cannot be used: {0}; check that they belong together")]
    Identity(#[source] rustls::Error),
    /// Threads could not be had.
    #[error("cannot start threads: {0}; expected some to be left (see ulimit -u)")]
    Threads(#[source] io::Error),
}
