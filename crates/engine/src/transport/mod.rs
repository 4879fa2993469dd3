//! Connections: the seam between the workers and the operating system.
//!
//! A [`Driver`] owns a worker's sockets and its time. The real one is [`epoll`]; tests have one whose time and peers are
//! made up. Another way to do I/O (`io_uring`) is another driver, and neither workers nor protocols change.

pub(crate) mod epoll;
pub(crate) mod route;
mod timer;
pub(crate) mod tls;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// Over TCP.
    Tcp(SocketAddr),
    /// To a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A connection for which something can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    /// The connection, by its worker's number for it.
    pub token: usize,
    /// Something may be read, or the end of what the peer sends has come.
    pub readable: bool,
    /// Something may be written, or connecting has ended.
    pub writable: bool,
    /// The peer sends no more: reading until it says so is worth while.
    pub ended: bool,
}

/// A worker's sockets and its time. Nothing blocks but [`Driver::wait`].
pub(crate) trait Driver {
    /// Nanoseconds since the run's epoch, which all workers share; never goes back.
    fn now(&mut self) -> u64;

    /// Begins to connect `token`. Its end is announced as writable.
    fn connect(&mut self, token: usize, address: &Address, source: Option<IpAddr>) -> io::Result<()>;

    /// Whether connecting has ended, and how.
    fn connected(&mut self, token: usize) -> io::Result<bool>;

    /// Reads what is there; 0 is the end, `WouldBlock` nothing yet. Readiness is announced once for each time it comes
    /// about: after it, read until less than the buffer's length comes.
    fn read(&mut self, token: usize, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what fits; `WouldBlock` when nothing does, and writable is announced when it does again.
    fn write(&mut self, token: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Closes the connection. It may be connected anew at once.
    fn close(&mut self, token: usize);

    /// Waits until something is ready or `until` (in the time of [`Driver::now`]) has come, and says what is. Connections
    /// closed since may still be among it.
    fn wait(&mut self, until: u64, ready: &mut Vec<Ready>) -> io::Result<()>;
}
