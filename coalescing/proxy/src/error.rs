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
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
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
        /// What it should have been.
        expected: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// A PEM file does not hold what it should.
    #[error("{}: expected {expected}, got: {got}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        expected: &'static str,
        /// What was found.
        got: String,
    },
    /// Certificate and key do not work together.
    #[error("the certificate and key cannot be used: {0}; check that they belong together")]
    Identity(#[source] rustls::Error),
    /// Threads could not be had.
    #[error("cannot start threads: {0}; expected some to be left (see ulimit -u)")]
    Threads(#[source] io::Error),
}
