//! Connections: the seam between the workers and the operating system.
//!
//! A [`Driver`] owns a worker's sockets and its time. The real one is [`epoll`]; tests have one whose time and peers
//! are made up. Another way to do I/O (`io_uring`) is another driver: neither workers nor protocols change for it.

mod acknowledging;
mod datagrams;
pub(crate) mod epoll;
pub(crate) mod pacing;
pub(crate) mod refusal;
pub(crate) mod route;
mod shared;
pub(crate) mod thread_clock;
mod timer;
#[cfg(target_os = "linux")]
mod timestamps;
pub(crate) mod tls;
mod waking;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use brunt_record::time::Tick;

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over UDP, a datagram with each read and each write.
    Udp(SocketAddr),
    /// To a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The address of a network.
    pub(crate) fn of_network(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Udp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) | Self::Udp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Whether this system tells when the bytes of an answer arrived, tried on a connection over loopback.
pub fn has_arrival_times() -> bool {
    #[cfg(target_os = "linux")]
    return timestamps::are_kept().unwrap_or(false);
    #[cfg(not(target_os = "linux"))]
    false
}

/// The most events of one wait.
pub(crate) const MOST_EVENTS: usize = 512;

/// A worker's own number for a connection: its place among the worker's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct ConnectionId(usize);

impl ConnectionId {
    /// The connection at this place.
    #[inline]
    pub(crate) const fn at(place: usize) -> Self {
        Self(place)
    }

    /// Its place.
    #[inline]
    pub(crate) const fn place(self) -> usize {
        self.0
    }
}

/// A connection for which something can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    /// The connection, by its worker's number for it.
    pub token: ConnectionId,
    /// Something can be read, or the peer's end of stream has come.
    pub readable: bool,
    /// Something may be written, or connecting has ended.
    pub writable: bool,
    /// The peer sends no more: read until the end.
    pub ended: bool,
}

/// The size of a worker's read buffer, in bytes.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The room for one datagram that is read, in bytes: more than the 1,472 that brunt tells its peers to send at most.
pub(crate) const DATAGRAM_BYTES: usize = 2048;

/// The most datagrams that are written at once: 64 KiB hold more of the usual size.
pub(crate) const MOST_AT_ONCE: usize = if cfg!(target_os = "linux") { 32 } else { 1 };

/// A worker's sockets and its time. Nothing blocks but [`Driver::wait`]. For a short example see `Wire` in the channel's tests.
pub(crate) trait Driver {
    /// Nanoseconds since the run's epoch, which all workers share; never goes back.
    fn now(&mut self) -> Tick;

    /// Whether time passes by itself, so that the thread's CPU time can be compared with it. In a simulation it does
    /// not.
    fn is_real_time(&self) -> bool {
        true
    }

    /// Whether something was announced as readable that nobody has read since. Only a simulation knows.
    #[cfg(feature = "simulation")]
    fn has_announced(&self, _token: ConnectionId) -> bool {
        false
    }

    /// The size of the buffer that bytes are read into. A simulation cuts what comes by a smaller one.
    fn read_buffer_bytes(&self) -> usize {
        READ_BUFFER_BYTES
    }

    /// Begins to connect `token`. The outcome is announced as writable.
    fn connect(&mut self, token: ConnectionId, address: &Address, source: Option<IpAddr>) -> io::Result<()>;

    /// Whether connecting has ended, and how.
    fn connected(&mut self, token: ConnectionId) -> io::Result<bool>;

    /// Reads available bytes, or one datagram; 0 is the end, `WouldBlock` nothing yet. Readiness is announced once each time it arises:
    /// read then until less than the buffer's length comes.
    fn read(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads, and tells when the operating system had the last of these bytes, if it knows: in the time of
    /// [`Driver::now`].
    fn read_timed(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<(usize, Option<Tick>)> {
        Ok((self.read(token, buffer)?, None))
    }

    /// Reads one or several datagrams, each to a place of [`DATAGRAM_BYTES`] in the buffer, and sets `sizes` to theirs. Returns whether more
    /// may wait; if not, readiness is announced again. `WouldBlock` for nothing yet.
    fn read_datagrams(&mut self, token: ConnectionId, buffer: &mut [u8], sizes: &mut Vec<usize>) -> io::Result<bool> {
        sizes.clear();
        sizes.push(self.read(token, buffer)?);
        Ok(true)
    }

    /// Writes as much as fits, or one whole datagram; `WouldBlock` if nothing does. Writable is announced when something fits again.
    fn write(&mut self, token: ConnectionId, bytes: &[u8]) -> io::Result<usize>;

    /// Writes datagrams of `each` bytes, the last of which may be shorter, and at most [`MOST_AT_ONCE`]. `WouldBlock` if the socket takes none.
    fn write_datagrams(&mut self, token: ConnectionId, bytes: &[u8], each: usize) -> io::Result<usize> {
        let mut written = 0;
        for datagram in bytes.chunks(each.max(1)) {
            match self.write(token, datagram) {
                Ok(count) => written += count,
                // The rest is lost, as datagrams may be.
                Err(error) if written > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Acknowledges at once what has come from the peer and what comes next, instead of with the next bytes or a moment
    /// later. Where there is no such thing, nothing happens.
    fn acknowledge(&mut self, _token: ConnectionId) {}

    /// Closes the sending side: the peer sees an end, and may still send. Where sockets have no such side, nothing happens.
    fn finish(&mut self, _token: ConnectionId) {}

    /// How many datagrams for this connection were dropped on this machine since it was made, as far as the system says.
    fn dropped(&mut self, _token: ConnectionId) -> u64 {
        0
    }

    /// How many bytes the receive buffer of this connection's socket has less than was asked for. Of sockets of datagrams only.
    fn receive_buffer_missing(&mut self, _token: ConnectionId) -> u64 {
        0
    }

    /// Closes the connection. It may be connected anew at once.
    fn close(&mut self, token: ConnectionId);

    /// Waits until something is ready or `until` (in the time of [`Driver::now`]) has come, and lists what is ready.
    /// Connections closed since may still be listed.
    fn wait(&mut self, until: Tick, ready: &mut Vec<Ready>) -> io::Result<()>;

    /// For how long all of [`Driver::wait`] waited awake so far, in nanoseconds.
    fn spun_ns(&self) -> u64 {
        0
    }

    /// Sleeps for so long, in nanoseconds, whatever becomes ready meanwhile.
    fn pause(&mut self, ns: u64);
}

/// The source of a run's sockets and time: the operating system, or a simulation.
pub(crate) trait Machine: Sync {
    /// One worker's driver.
    type Driver: Driver + Send + 'static;

    /// A driver for a worker, which will have about this many connections.
    ///
    /// # Errors
    /// When the system is out of a resource that it needs.
    fn driver(&self, connections: usize) -> io::Result<Self::Driver>;

    /// The clock that the drivers' [`Driver::now`] reads, for the watchdog.
    fn clock(&self) -> Clock;

    /// Finds the addresses of a host.
    fn resolve(&self) -> Resolve;
}

/// Finds the addresses of a host, with this port. It may block.
pub(crate) type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Tells the time on the run's clock, in nanoseconds.
pub(crate) type Clock = Arc<dyn Fn() -> Tick + Send + Sync>;
